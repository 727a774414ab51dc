/* kqueue: sentences of the manual page that no other program has a case of. */
#include "queue.h"
#include <limits.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

static void a_queue_needs_descriptors(void)
{
	IN_CHILD({
		int last = 0;
		while (last >= 0)
			last = dup(2);
		FAILS(kqueue(), EMFILE);
		FAILS(kqueuex(KQUEUE_CLOEXEC), EMFILE);
	});
}

static void changes_are_made_before_events_are_returned(void)
{
	struct kevent list[8];
	int queue = new_queue();

	for (int at = 1; at < 5; at++)
		put_with(queue, at, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	EV_SET(&list[0], 1, EVFILT_USER, EV_DELETE, 0, 0, NULL);
	EV_SET(&list[1], 2, EVFILT_USER, EV_DISABLE, 0, 0, NULL);
	EV_SET(&list[2], 5, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	EV_SET(&list[3], 3, EVFILT_USER, EV_DELETE, 0, 0, NULL);
	EV_SET(&list[4], 3, EVFILT_USER, EV_ADD, 0, 0, NULL);
	CHECK(kevent(queue, list, 5, list, 8, NULL) == 2);
	CHECK(list[0].ident + list[1].ident == 4 + 5);
	close(queue);
}

static void what_is_so_no_more_is_not_returned(void)
{
	static const int flags[] = {0, EV_CLEAR, EV_ONESHOT, EV_DISPATCH};
	struct pollfd entry = {.events = POLLIN};
	char bytes[8];
	int ends[2];

	for (int at = 0; at < 4; at++) {
		int queue = new_queue();

		new_pipe(ends);
		put(queue, ends[0], EVFILT_READ, EV_ADD | flags[at]);
		CHECK(write(ends[1], "x", 1) == 1);
		/* The queue has been told, and nobody has retrieved it. */
		entry.fd = queue;
		CHECK(poll(&entry, 1, -1) == 1);
		CHECK(read(ends[0], bytes, 8) == 1);
		no_event(queue);
		CHECK(write(ends[1], "xy", 2) == 2);
		CHECK(one(queue).data == 2);
		close(ends[0]);
		close(ends[1]);
		close(queue);
	}
}

static void what_happens_several_times_is_one_event(void)
{
	struct kevent list[8];
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	put(queue, ends[0], EVFILT_READ, EV_ADD | EV_CLEAR);
	put(queue, 1, EVFILT_USER, EV_ADD | EV_CLEAR);
	for (int round = 0; round < 3; round++) {
		CHECK(write(ends[1], "ab", 2) == 2);
		CHECK(change(queue, 1, EVFILT_USER, 0, NOTE_TRIGGER) == 0);
	}
	CHECK(kevent(queue, NULL, 0, list, 8, NULL) == 2);
	CHECK(list[list[0].filter == EVFILT_USER].data == 6);
	no_event(queue);
	close(queue);
}

static void ev_set_evaluates_its_arguments_once_and_sets_all(void)
{
	struct kevent list[2];
	struct kevent *place = list;
	int number = 1;

	memset(list, 0x5a, sizeof(list));
	EV_SET(place++, number++, EVFILT_USER, EV_ADD, number++, number++, &number);
	CHECK(place == list + 1 && number == 4);
	CHECK(list[0].ident == 1 && list[0].fflags == 2 && list[0].data == 3);
	CHECK(list[0].udata == &number && list[0].filter == EVFILT_USER && list[0].flags == EV_ADD);
	for (int at = 0; at < 4; at++)
		CHECK(list[0].ext[at] == 0 && list[1].ext[at] == 0x5a5a5a5a5a5a5a5aULL);
}

static void further_values_come_back(void)
{
	struct kevent events[4];
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	EV_SET(&events[0], ends[1], EVFILT_WRITE, EV_ADD, 0, 0, NULL);
	EV_SET(&events[1], 2, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	EV_SET(&events[2], 3, EVFILT_TIMER, EV_ADD | EV_ONESHOT, NOTE_NSECONDS, 1, NULL);
	for (int at = 0; at < 3; at++)
		for (int each = 0; each < 4; each++)
			events[at].ext[each] = UINT64_MAX - 10 * events[at].ident - each;
	CHECK(kevent(queue, events, 3, NULL, 0, NULL) == 0);
	for (int got = 0; got < 3; got++) {
		struct kevent event = one(queue);

		for (int each = 0; each < 4; each++)
			CHECK(event.ext[each] == UINT64_MAX - 10 * event.ident - each);
		if (event.filter != EVFILT_TIMER)
			put(queue, event.ident, event.filter, EV_DELETE);
	}
	close(queue);
}

static void a_note_is_of_an_identifier_and_a_filter(void)
{
	struct kevent list[8];
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	put_with(queue, ends[1], EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, &list[0]);
	put_with(queue, ends[1], EVFILT_WRITE, EV_ADD, 0, 0, &list[1]);
	put_with(queue, ends[1], EVFILT_TIMER, EV_ADD, 0, 86400000, &list[2]);
	put_with(queue, ends[1], EVFILT_READ, EV_ADD, 0, 0, &list[3]);
	CHECK(kevent(queue, NULL, 0, list, 8, &now) == 2);
	put(queue, ends[1], EVFILT_WRITE, EV_DELETE);
	CHECK(one(queue).udata == &list[0]);
	close(queue);
}

static void a_note_that_is_added_disabled_keeps_what_happens(void)
{
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	put(queue, ends[0], EVFILT_READ, EV_ADD | EV_DISABLE);
	put_with(queue, 1, EVFILT_USER, EV_ADD | EV_DISABLE | EV_CLEAR, NOTE_TRIGGER, 0, NULL);
	put_with(queue, 2, EVFILT_TIMER, EV_ADD | EV_DISABLE | EV_ONESHOT, NOTE_NSECONDS, 1, NULL);
	CHECK(write(ends[1], "x", 1) == 1);
	nanosleep(&soon, NULL);
	no_event(queue);
	put(queue, ends[0], EVFILT_READ, EV_ENABLE);
	CHECK(one(queue).filter == EVFILT_READ);
	put(queue, ends[0], EVFILT_READ, EV_DELETE);
	put(queue, 1, EVFILT_USER, EV_ENABLE);
	CHECK(one(queue).filter == EVFILT_USER);
	no_event(queue);
	put(queue, 2, EVFILT_TIMER, EV_ENABLE);
	CHECK(one(queue).filter == EVFILT_TIMER);
	FAILS(change(queue, 2, EVFILT_TIMER, EV_ENABLE, 0), ENOENT);
	close(queue);
}

static void receipts_leave_the_events_where_they_are(void)
{
	struct kevent list[8];
	int queue = new_queue();

	put_with(queue, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	EV_SET(&list[0], 2, EVFILT_USER, EV_ADD | EV_RECEIPT, 0, 5, list);
	EV_SET(&list[1], 3, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	EV_SET(&list[2], 4, EVFILT_USER, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
	CHECK(kevent(queue, list, 3, list, 8, NULL) == 2);
	CHECK(list[0].ident == 2 && list[0].flags & EV_ERROR && list[0].data == 0);
	CHECK(list[0].udata == list && list[0].filter == EVFILT_USER);
	CHECK(list[1].ident == 4 && list[1].flags & EV_ERROR && list[1].data == ENOENT);
	CHECK(kevent(queue, NULL, 0, list, 8, NULL) == 2);
	close(queue);
}

static void a_receipt_is_asked_for_by_each_change(void)
{
	struct kevent event;
	int queue = new_queue();

	EV_SET(&event, 1, EVFILT_USER, EV_ADD | EV_RECEIPT | EV_CLEAR, 0, 0, NULL);
	CHECK(kevent(queue, &event, 1, &event, 1, NULL) == 1 && event.flags & EV_ERROR);
	/* The note's later changes have none, and its events are no errors. */
	CHECK(change(queue, 1, EVFILT_USER, 0, NOTE_TRIGGER) == 0);
	event = one(queue);
	CHECK(!(event.flags & EV_ERROR) && event.filter == EVFILT_USER);
	close(queue);
}

static volatile sig_atomic_t handled;

static void count(int signal)
{
	(void)signal;
	handled++;
}

static void a_wait_that_is_interrupted_has_made_its_changes(void)
{
	struct sigaction action = {.sa_handler = count};
	struct itimerval once = {{0, 2000}, {0, 2000}};
	struct itimerval never = {{0, 0}, {0, 0}};
	struct kevent event;
	int queue = new_queue();

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
	EV_SET(&event, 1, EVFILT_USER, EV_ADD, 0, 0, NULL);
	FAILS(kevent(queue, &event, 1, &event, 1, NULL), EINTR);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(change(queue, 1, EVFILT_USER, EV_DELETE, 0) == 0);
	close(queue);
}

static int shared;

static void *trigger(void *argument)
{
	(void)argument;
	nanosleep(&soon, NULL);
	CHECK(change(shared, 1, EVFILT_USER, 0, NOTE_TRIGGER) == 0);
	return NULL;
}

static void a_wait_ends_with_an_event_however_long_it_may_last(void)
{
	const struct timespec times[] = {{86400, 0}, {LONG_MAX, 999999999}, {LONG_MAX / 2, 0}};
	struct kevent event;
	pthread_t thread;

	shared = new_queue();
	put(shared, 1, EVFILT_USER, EV_ADD | EV_CLEAR);
	for (int at = 0; at < 3; at++) {
		CHECK(pthread_create(&thread, NULL, trigger, NULL) == 0);
		CHECK(kevent(shared, NULL, 0, &event, 1, &times[at]) == 1);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	close(shared);
}

static void a_fifo_is_at_its_end_until_a_new_writer_comes(void)
{
	char folder[] = "/tmp/queueXXXXXX";
	char name[40];
	char byte;
	struct kevent event;
	int queue = new_queue();
	int reader;
	int writer;

	CHECK(mkdtemp(folder) != NULL);
	snprintf(name, sizeof(name), "%s/fifo", folder);
	CHECK(mkfifo(name, 0600) == 0);
	reader = open(name, O_RDONLY | O_NONBLOCK);
	writer = open(name, O_WRONLY);
	CHECK(reader >= 0 && writer >= 0);
	put(queue, reader, EVFILT_READ, EV_ADD);
	no_event(queue);
	CHECK(write(writer, "x", 1) == 1 && close(writer) == 0);
	event = one(queue);
	CHECK(event.flags & EV_EOF && event.data == 1);
	CHECK(read(reader, &byte, 1) == 1);
	event = one(queue);
	CHECK(event.flags & EV_EOF && event.data == 0);
	writer = open(name, O_WRONLY);
	no_event(queue);
	CHECK(write(writer, "xy", 2) == 2);
	event = one(queue);
	CHECK(!(event.flags & EV_EOF) && event.data == 2);
	/* The other way round: without a reader, until one comes. */
	put(queue, reader, EVFILT_READ, EV_DELETE);
	put(queue, writer, EVFILT_WRITE, EV_ADD);
	CHECK(!(one(queue).flags & EV_EOF));
	CHECK(close(reader) == 0);
	CHECK(one(queue).flags & EV_EOF);
	reader = open(name, O_RDONLY | O_NONBLOCK);
	CHECK(!(one(queue).flags & EV_EOF));
	close(reader);
	close(writer);
	unlink(name);
	rmdir(folder);
	close(queue);
}

static void connect_pair(int ends[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
	CHECK(connect(ends[0], (struct sockaddr *)&address, length) == 0);
	ends[1] = accept(listener, NULL, NULL);
	CHECK(ends[1] >= 0);
	close(listener);
}

static void a_sockets_own_limit_holds_back_less(void)
{
	int queue = new_queue();
	int limit = 10;
	int ends[2];

	connect_pair(ends);
	CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &limit, sizeof(limit)) == 0);
	put(queue, ends[0], EVFILT_READ, EV_ADD);
	CHECK(write(ends[1], "12345", 5) == 5);
	nanosleep(&soon, NULL);
	no_event(queue);
	CHECK(write(ends[1], "67890", 5) == 5);
	CHECK(one(queue).data == 10);
	/* An end is none. */
	limit = 50;
	CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &limit, sizeof(limit)) == 0);
	CHECK(shutdown(ends[1], SHUT_WR) == 0);
	CHECK(one(queue).flags & EV_EOF);
	close(ends[0]);
	close(ends[1]);
	close(queue);
}

static void a_reset_connection_is_at_its_end_both_ways(void)
{
	struct linger at_once = {1, 0};
	struct kevent list[2];
	int queue = new_queue();
	int ends[2];

	connect_pair(ends);
	CHECK(setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0);
	CHECK(close(ends[1]) == 0);
	put(queue, ends[0], EVFILT_READ, EV_ADD);
	put(queue, ends[0], EVFILT_WRITE, EV_ADD);
	while (kevent(queue, NULL, 0, list, 2, NULL) != 2)
		;
	while (!(list[0].flags & EV_EOF && list[1].flags & EV_EOF))
		CHECK(kevent(queue, NULL, 0, list, 2, NULL) == 2);
	close(ends[0]);
	close(queue);
}

static void a_periodic_timer_of_no_time_has_one_unit(void)
{
	int queue = new_queue();

	put_with(queue, 1, EVFILT_TIMER, EV_ADD, NOTE_USECONDS, 0, NULL);
	for (int round = 0; round < 3; round++)
		CHECK(one(queue).data >= 1);
	put_with(queue, 1, EVFILT_TIMER, EV_ADD, NOTE_SECONDS, 0, NULL);
	/* It is a second from now on, and what had come before is void. */
	no_event(queue);
	close(queue);
}

static void an_absolute_time_that_has_passed_is_now(void)
{
	struct kevent event;
	int queue = new_queue();

	put_with(queue, 1, EVFILT_TIMER, EV_ADD, NOTE_SECONDS | NOTE_ABSTIME, 1, &queue);
	event = one(queue);
	CHECK(event.data == 1 && event.udata == &queue);
	put(queue, 1, EVFILT_TIMER, EV_DELETE);
	put_with(queue, 2, EVFILT_TIMER, EV_ADD | EV_CLEAR, NOTE_ABSTIME, 0, NULL);
	CHECK(one(queue).ident == 2);
	no_event(queue);
	close(queue);
}

static void a_timer_that_is_added_again_begins_anew(void)
{
	int queue = new_queue();
	struct pollfd entry = {.fd = queue, .events = POLLIN};

	put_with(queue, 1, EVFILT_TIMER, EV_ADD, NOTE_NSECONDS, 1000, NULL);
	CHECK(poll(&entry, 1, -1) == 1);
	put_with(queue, 1, EVFILT_TIMER, EV_ADD, NOTE_SECONDS, 86400, NULL);
	no_event(queue);
	/* Other changes leave it as it is. */
	put_with(queue, 1, EVFILT_TIMER, EV_ADD, NOTE_USECONDS, 100, NULL);
	put_with(queue, 1, EVFILT_TIMER, EV_DISABLE, NOTE_SECONDS, 86400, NULL);
	put_with(queue, 1, EVFILT_TIMER, EV_ENABLE, NOTE_SECONDS, 86400, &queue);
	CHECK(one(queue).udata == &queue);
	close(queue);
}

static void a_queue_is_no_descriptor_of_its_own(void)
{
	int queue = new_queue();
	int other = new_queue();

	FAILS(change(queue, queue, EVFILT_READ, EV_ADD, 0), EINVAL);
	put(queue, other, EVFILT_READ, EV_ADD);
	FAILS(change(other, queue, EVFILT_READ, EV_ADD, 0), EINVAL);
	put_with(other, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	CHECK(one(queue).ident == (uintptr_t)other);
	close(queue);
	close(other);
}

static void a_file_that_grows_wakes_a_thread_that_waits_at_its_end(void)
{
	char path[] = "/tmp/queueXXXXXX";
	int queue = new_queue();
	int file = mkstemp(path);
	int writer = open(path, O_WRONLY | O_APPEND);
	pid_t child;

	CHECK(file >= 0 && writer >= 0);
	put(queue, file, EVFILT_READ, EV_ADD);
	no_event(queue);
	child = fork();
	if (child == 0) {
		nanosleep(&soon, NULL);
		_exit(write(writer, "four", 4) != 4);
	}
	CHECK(one(queue).data == 4);
	CHECK(waitpid(child, NULL, 0) == child);
	unlink(path);
	close(file);
	close(writer);
	close(queue);
}

static void one_process_is_watched_by_several_queues(void)
{
	int queues[2] = {new_queue(), new_queue()};
	int ends[2];
	pid_t child;

	new_pipe(ends);
	child = fork();
	if (child == 0) {
		char byte;

		close(ends[1]);
		_exit(read(ends[0], &byte, 1) == 0 ? 3 : 4);
	}
	for (int at = 0; at < 2; at++)
		put_with(queues[at], child, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
	/* Also if the process makes other queues and closes them. */
	put_with(queues[1], getpid(), EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
	close(ends[1]);
	for (int at = 0; at < 2; at++) {
		struct kevent event = one(queues[at]);

		CHECK(event.ident == (uintptr_t)child && event.flags & EV_EOF);
		CHECK(WIFEXITED(event.data) && WEXITSTATUS(event.data) == 3);
		no_event(queues[at]);
		FAILS(change(queues[at], child, EVFILT_PROC, EV_DELETE, 0), ENOENT);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	FAILS(change(queues[0], child, EVFILT_PROC, EV_ADD, NOTE_EXIT), ESRCH);
	close(queues[0]);
	close(queues[1]);
}

static void one_of_two_descriptors_of_a_file_is_closed_and_the_other_is_watched(void)
{
	char path[] = "/tmp/queueXXXXXX";
	struct kevent event;
	int queue = new_queue();
	int file = mkstemp(path);
	int copy = dup(file);

	put_with(queue, file, EVFILT_VNODE, EV_ADD | EV_CLEAR, NOTE_WRITE, 0, NULL);
	put_with(queue, copy, EVFILT_VNODE, EV_ADD | EV_CLEAR, NOTE_WRITE | NOTE_ATTRIB, 0, NULL);
	CHECK(close(file) == 0);
	CHECK(write(copy, "x", 1) == 1);
	event = one(queue);
	CHECK(event.ident == (uintptr_t)copy && event.fflags == NOTE_WRITE);
	no_event(queue);
	unlink(path);
	close(copy);
	close(queue);
}

static void *wait_and_be_cancelled(void *argument)
{
	struct kevent event;

	(void)argument;
	CHECK(kevent(shared, NULL, 0, &event, 1, NULL) == 1);
	pthread_testcancel();
	return NULL;
}

static void a_thread_that_is_cancelled_returns_from_its_call_first(void)
{
	pthread_t thread;
	void *result;

	shared = new_queue();
	put(shared, 1, EVFILT_USER, EV_ADD | EV_CLEAR);
	CHECK(pthread_create(&thread, NULL, wait_and_be_cancelled, NULL) == 0);
	nanosleep(&soon, NULL);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(change(shared, 1, EVFILT_USER, 0, NOTE_TRIGGER) == 0);
	CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	/* It has left nothing behind that others would wait for. */
	CHECK(change(shared, 1, EVFILT_USER, 0, NOTE_TRIGGER) == 0);
	CHECK(one(shared).filter == EVFILT_USER);
	close(shared);
}

MAIN(CASE(a_queue_needs_descriptors), CASE(changes_are_made_before_events_are_returned),
     CASE(what_is_so_no_more_is_not_returned), CASE(what_happens_several_times_is_one_event),
     CASE(ev_set_evaluates_its_arguments_once_and_sets_all), CASE(further_values_come_back),
     CASE(a_note_is_of_an_identifier_and_a_filter),
     CASE(a_note_that_is_added_disabled_keeps_what_happens),
     CASE(receipts_leave_the_events_where_they_are), CASE(a_receipt_is_asked_for_by_each_change),
     CASE(a_wait_that_is_interrupted_has_made_its_changes),
     CASE(a_wait_ends_with_an_event_however_long_it_may_last),
     CASE(a_fifo_is_at_its_end_until_a_new_writer_comes), CASE(a_sockets_own_limit_holds_back_less),
     CASE(a_reset_connection_is_at_its_end_both_ways),
     CASE(a_periodic_timer_of_no_time_has_one_unit), CASE(an_absolute_time_that_has_passed_is_now),
     CASE(a_timer_that_is_added_again_begins_anew), CASE(a_queue_is_no_descriptor_of_its_own),
     CASE(a_file_that_grows_wakes_a_thread_that_waits_at_its_end),
     CASE(one_process_is_watched_by_several_queues),
     CASE(one_of_two_descriptors_of_a_file_is_closed_and_the_other_is_watched),
     CASE(a_thread_that_is_cancelled_returns_from_its_call_first))
