/* kqueue: descriptors, changes, closes, forks and threads. */
#include "queue.h"
#include <sys/socket.h>

static void a_pipe_that_was_full_can_be_written(void)
{
	char bytes[80000] = {0};
	struct kevent event = {0};
	int queue = new_queue();
	int ends[2];

	CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	while (write(ends[1], bytes, sizeof(bytes)) == sizeof(bytes))
		;
	event.ident = ends[1];
	event.filter = EVFILT_WRITE;
	event.flags = EV_ADD | EV_ENABLE;
	CHECK(kevent(queue, &event, 1, NULL, 0, NULL) == 0);
	no_event(queue);
	CHECK(read(ends[0], bytes, sizeof(bytes)) > 0);
	CHECK(kevent(queue, NULL, 0, &event, 1, &now) == 1);
	CHECK(event.ident == (uintptr_t)ends[1] && event.filter == EVFILT_WRITE && event.data > 0);
	close(queue);
}

static void events_have_what_the_change_said(void)
{
	struct kevent event;
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	put_with(queue, ends[0], EVFILT_READ, EV_ADD, 0, 0, &queue);
	CHECK(write(ends[1], "four", 4) == 4);
	event = one(queue);
	CHECK(event.ident == (uintptr_t)ends[0] && event.filter == EVFILT_READ);
	CHECK(event.data == 4 && event.udata == &queue && event.fflags == 0);
	/* The level stays, and is what is left. */
	CHECK(read(ends[0], &event, 3) == 3);
	CHECK(one(queue).data == 1);
	close(ends[1]);
	event = one(queue);
	CHECK(event.data == 1 && event.flags & EV_EOF);
	close(queue);
}

static void the_list_of_changes_can_be_that_of_events(void)
{
	struct kevent list[64] = {{0}};
	int queue = new_queue();
	int ends[2];

	/* A descriptor that there cannot be. */
	list[0].ident = -1;
	list[0].filter = EVFILT_READ;
	list[0].flags = EV_ADD;
	CHECK(kevent(queue, list, 1, list, 64, NULL) == 1);
	CHECK((int)list[0].ident == -1 && list[0].flags & EV_ERROR && list[0].data == EBADF);
	/* Outcomes are written over changes that were read. */
	new_pipe(ends);
	EV_SET(&list[0], 990, EVFILT_READ, EV_ADD, 0, 0, NULL);
	EV_SET(&list[1], ends[1], EVFILT_WRITE, EV_ADD, 0, 0, list);
	EV_SET(&list[2], 991, EVFILT_READ, EV_DELETE, 0, 0, NULL);
	CHECK(kevent(queue, list, 3, list, 64, NULL) == 2);
	CHECK(list[0].ident == 990 && list[0].data == EBADF);
	CHECK(list[1].ident == 991 && list[1].data == EBADF);
	CHECK(one(queue).udata == list);
	close(queue);
}

static void a_descriptor_that_is_read_and_written_has_both_events_with_one_slot(void)
{
	int queue = new_queue();
	int ends[2];
	int seen[2] = {0, 0};

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	put(queue, ends[0], EVFILT_READ, EV_ADD);
	put(queue, ends[0], EVFILT_WRITE, EV_ADD);
	for (int round = 0; round < 20; round++)
		seen[one(queue).filter == EVFILT_WRITE]++;
	CHECK(seen[0] == 10 && seen[1] == 10);
	close(ends[0]);
	/* As edges, each once. */
	put(queue, ends[1], EVFILT_READ, EV_ADD | EV_CLEAR);
	put(queue, ends[1], EVFILT_WRITE, EV_ADD | EV_CLEAR);
	CHECK(one(queue).filter + one(queue).filter == EVFILT_READ + EVFILT_WRITE);
	no_event(queue);
	close(ends[1]);
	close(queue);
}

static void each_error_is_the_one_that_the_page_names(void)
{
	struct kevent event;
	struct timespec bad[] = {{-1, 0}, {0, -1}, {0, 1000000000}};
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	FAILS(kevent(ends[0], NULL, 0, &event, 1, &now), EBADF);
	FAILS(kevent(-1, NULL, 0, &event, 1, &now), EBADF);
	FAILS(kevent(988, NULL, 0, &event, 1, &now), EBADF);
	FAILS(kevent(queue, &event, -1, NULL, 0, &now), EINVAL);
	FAILS(kevent(queue, NULL, 0, &event, -1, &now), EINVAL);
	FAILS(kevent(queue, NULL, 1, NULL, 0, &now), EFAULT);
	FAILS(kevent(queue, NULL, 0, NULL, 1, &now), EFAULT);
	for (int at = 0; at < 3; at++)
		FAILS(kevent(queue, NULL, 0, &event, 1, &bad[at]), EINVAL);
	for (int filter = 1; filter <= 20; filter += 19)
		FAILS(change(queue, ends[0], filter, EV_ADD, 0), EINVAL);
	/* There are no such filters here: AIO, PROCDESC, FS, LIO. */
	FAILS(change(queue, ends[0], -3, EV_ADD, 0), EINVAL);
	FAILS(change(queue, ends[0], -8, EV_ADD, 0), EINVAL);
	FAILS(change(queue, ends[0], EVFILT_READ, EV_DELETE, 0), ENOENT);
	FAILS(change(queue, ends[0], EVFILT_READ, EV_ENABLE, 0), ENOENT);
	FAILS(change(queue, 989, EVFILT_READ, EV_ADD, 0), EBADF);
	FAILS(change(queue, ends[0], EVFILT_READ, EV_ADD | EV_KEEPUDATA, 0), EINVAL);
	FAILS(change(queue, 999999999, EVFILT_PROC, EV_ADD, NOTE_EXIT), ESRCH);
	FAILS(change(queue, getpid(), EVFILT_PROC, EV_ADD, 8), EINVAL);
	FAILS(change(queue, ends[0], EVFILT_VNODE, EV_ADD, NOTE_WRITE), EINVAL);
	FAILS(change(queue, SIGKILL, EVFILT_SIGNAL, EV_ADD, 0), EINVAL);
	FAILS(change(queue, 1, EVFILT_TIMER, EV_ADD, 0x8000), EINVAL);
	FAILS(kqueuex(2), EINVAL);
	CHECK(close(queue) == 0);
	FAILS(kevent(queue, NULL, 0, &event, 1, &now), EBADF);
	/* A port is none, and a queue is no port. */
	queue = new_queue();
	FAILS(port_send(queue, 1, NULL), EBADFD);
	close(queue);
}

static void a_change_without_a_filter_is_none(void)
{
	int queue = new_queue();

	CHECK(change(queue, 989, 0, EV_ADD, 0) == 0);
	close(queue);
}

static void receipts_need_room(void)
{
	struct kevent list[3];
	struct kevent receipts[3];
	int queue = new_queue();

	for (int at = 0; at < 3; at++)
		EV_SET(&list[at], at, EVFILT_USER, EV_ADD | EV_RECEIPT, NOTE_TRIGGER, 0, NULL);
	CHECK(kevent(queue, list, 3, receipts, 1, NULL) == 1);
	CHECK(receipts[0].ident == 0 && receipts[0].flags & EV_ERROR && receipts[0].data == 0);
	/* The second was made, and the third was not. */
	CHECK(change(queue, 1, EVFILT_USER, EV_DELETE, 0) == 0);
	FAILS(change(queue, 2, EVFILT_USER, EV_DELETE, 0), ENOENT);
	CHECK(kevent(queue, list, 3, receipts, 3, NULL) == 3);
	close(queue);
}

static void without_room_it_returns_at_once(void)
{
	struct timespec day = {86400, 0};
	int queue = new_queue();

	put_with(queue, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	CHECK(kevent(queue, NULL, 0, NULL, 0, &day) == 0);
	CHECK(kevent(queue, NULL, 0, NULL, 0, NULL) == 0);
	CHECK(one(queue).filter == EVFILT_USER);
	close(queue);
}

static void a_close_ends_notes_though_a_duplicate_lives(void)
{
	int queue = new_queue();
	int ends[2];
	int copy;

	new_pipe(ends);
	copy = dup(ends[0]);
	CHECK(write(ends[1], "x", 1) == 1);
	put(queue, ends[0], EVFILT_READ, EV_ADD);
	CHECK(one(queue).data == 1);
	close(ends[0]);
	no_event(queue);
	/* The number is another file's. */
	CHECK(dup2(ends[1], ends[0]) == ends[0]);
	FAILS(change(queue, ends[0], EVFILT_READ, EV_DELETE, 0), ENOENT);
	put(queue, ends[0], EVFILT_WRITE, EV_ADD);
	CHECK(one(queue).filter == EVFILT_WRITE);
	/* It is replaced in one step. */
	CHECK(dup2(copy, ends[0]) == ends[0]);
	no_event(queue);
	put(queue, ends[0], EVFILT_READ, EV_ADD);
	CHECK(one(queue).data == 1);
	close_range(ends[0], ends[0], 0);
	no_event(queue);
	close(copy);
	close(queue);
}

static void duplicates_are_the_queue(void)
{
	int queue = new_queue();
	int copy = dup(queue);

	put_with(copy, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	CHECK(one(queue).filter == EVFILT_USER);
	close(queue);
	CHECK(one(copy).filter == EVFILT_USER);
	close(copy);
	FAILS(change(copy, 1, EVFILT_USER, EV_DELETE, 0), EBADF);
}

static void a_queue_can_be_polled_and_be_in_a_queue(void)
{
	int queue = new_queue();
	int outer = new_queue();
	struct pollfd entry = {.fd = queue, .events = POLLIN};

	put(outer, queue, EVFILT_READ, EV_ADD);
	CHECK(poll(&entry, 1, 0) == 0);
	no_event(outer);
	put_with(queue, 1, EVFILT_USER, EV_ADD | EV_CLEAR, NOTE_TRIGGER, 0, NULL);
	CHECK(poll(&entry, 1, -1) == 1 && entry.revents == POLLIN);
	CHECK(one(outer).ident == (uintptr_t)queue);
	one(queue);
	CHECK(poll(&entry, 1, 0) == 0);
	no_event(outer);
	close(queue);
	close(outer);
}

static void a_child_has_no_queue(void)
{
	int queue = new_queue();
	int copy = dup(queue);
	int ends[2];

	new_pipe(ends);
	put(queue, ends[1], EVFILT_WRITE, EV_ADD);
	put(copy, ends[0], EVFILT_READ, EV_ADD);
	IN_CHILD({
		struct kevent event;
		int own;
		FAILS(fcntl(queue, F_GETFD), EBADF);
		FAILS(kevent(queue, NULL, 0, &event, 1, &now), EBADF);
		/* The number is free for others. */
		CHECK(fcntl(ends[0], F_DUPFD, queue) == queue);
		CHECK(close(queue) == 0);
		own = new_queue();
		put(own, ends[1], EVFILT_WRITE, EV_ADD);
		CHECK(one(own).ident == (uintptr_t)ends[1]);
		/* What it closes stays in its parent's. */
		CHECK(close(ends[1]) == 0);
		no_event(own);
		CHECK(close(own) == 0);
	});
	CHECK(one(queue).ident == (uintptr_t)ends[1]);
	close(copy);
	close(queue);
}

static void it_is_closed_by_exec(void)
{
	int queue = kqueue1(0);
	int other = kqueuex(KQUEUE_CLOEXEC);

	CHECK(queue >= 0 && other >= 0);
	CHECK(fcntl(queue, F_GETFD) == FD_CLOEXEC && fcntl(other, F_GETFD) == FD_CLOEXEC);
	close(queue);
	close(other);
}

static int shared;

static void *wait_for_the_end(void *argument)
{
	struct kevent event;

	(void)argument;
	FAILS(kevent(shared, NULL, 0, &event, 1, NULL), EBADF);
	return NULL;
}

static void a_close_ends_waits(void)
{
	pthread_t threads[3];

	shared = new_queue();
	for (int at = 0; at < 3; at++)
		CHECK(pthread_create(&threads[at], NULL, wait_for_the_end, NULL) == 0);
	nanosleep(&soon, NULL);
	close(shared);
	for (int at = 0; at < 3; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
}

#define THREADS 4
#define EVENTS	20000

static int taken[EVENTS];
static int left;

static void *take_events(void *argument)
{
	struct kevent list[3];
	int got;

	(void)argument;
	while (__atomic_load_n(&left, __ATOMIC_SEQ_CST) > 0) {
		got = kevent(shared, NULL, 0, list, 3, &soon);
		CHECK(got >= 0);
		for (int at = 0; at < got; at++)
			__atomic_fetch_add(&taken[list[at].ident], 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_sub(&left, got, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void threads_that_wait_get_each_event_once(void)
{
	pthread_t threads[THREADS];

	shared = new_queue();
	left = EVENTS;
	for (int at = 0; at < THREADS; at++)
		CHECK(pthread_create(&threads[at], NULL, take_events, NULL) == 0);
	for (int at = 0; at < EVENTS; at++)
		put_with(shared, at, EVFILT_USER, EV_ADD | EV_ONESHOT, NOTE_TRIGGER, 0, NULL);
	for (int at = 0; at < THREADS; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	for (int at = 0; at < EVENTS; at++)
		CHECK(taken[at] == 1);
	close(shared);
}

static void timers_expire(void)
{
	struct kevent event;
	int queue = new_queue();

	put_with(queue, 5, EVFILT_TIMER, EV_ADD | EV_ONESHOT, NOTE_USECONDS, 2000, NULL);
	event = one(queue);
	CHECK(event.ident == 5 && event.filter == EVFILT_TIMER && event.data == 1);
	FAILS(change(queue, 5, EVFILT_TIMER, EV_DELETE, 0), ENOENT);
	put_with(queue, 6, EVFILT_TIMER, EV_ADD, 0, 1, NULL);
	for (int round = 0; round < 3; round++)
		CHECK(one(queue).data >= 1);
	close(queue);
}

static void ends_of_processes_and_changes_of_files_are_events(void)
{
	char path[] = "/tmp/queueXXXXXX";
	struct kevent event;
	int queue = new_queue();
	int file = mkstemp(path);
	int ends[2];
	int status;
	pid_t child;

	new_pipe(ends);
	child = fork();
	if (child == 0) {
		close(ends[1]);
		_exit(read(ends[0], path, 1) == 0 ? 5 : 6);
	}
	put_with(queue, child, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
	put_with(queue, file, EVFILT_VNODE, EV_ADD | EV_CLEAR, NOTE_WRITE | NOTE_DELETE, 0, NULL);
	no_event(queue);
	CHECK(write(file, "text", 4) == 4);
	event = one(queue);
	CHECK(event.filter == EVFILT_VNODE && event.fflags == NOTE_WRITE);
	CHECK(unlink(path) == 0);
	CHECK(one(queue).fflags == NOTE_DELETE);
	close(ends[1]);
	event = one(queue);
	CHECK(event.ident == (uintptr_t)child && event.filter == EVFILT_PROC);
	CHECK(event.fflags == NOTE_EXIT && event.flags & EV_EOF);
	CHECK(waitpid(child, &status, 0) == child && status == event.data);
	CHECK(WEXITSTATUS(status) == 5);
	close(file);
	no_event(queue);
	close(queue);
}

MAIN(CASE(a_pipe_that_was_full_can_be_written), CASE(events_have_what_the_change_said),
     CASE(the_list_of_changes_can_be_that_of_events),
     CASE(a_descriptor_that_is_read_and_written_has_both_events_with_one_slot),
     CASE(each_error_is_the_one_that_the_page_names), CASE(a_change_without_a_filter_is_none),
     CASE(receipts_need_room), CASE(without_room_it_returns_at_once),
     CASE(a_close_ends_notes_though_a_duplicate_lives), CASE(duplicates_are_the_queue),
     CASE(a_queue_can_be_polled_and_be_in_a_queue), CASE(a_child_has_no_queue),
     CASE(it_is_closed_by_exec), CASE(a_close_ends_waits),
     CASE(threads_that_wait_get_each_event_once), CASE(timers_expire),
     CASE(ends_of_processes_and_changes_of_files_are_events))
