/* kqueue: flags in combination, changes that fail half way, identifiers at their limits. */
#include "queue.h"
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static void enable_wins_over_disable(void)
{
	int queue = new_queue();

	put_with(queue, 1, EVFILT_USER, EV_ADD | EV_DISABLE | EV_ENABLE, NOTE_TRIGGER, 0, NULL);
	CHECK(one(queue).ident == 1);
	put(queue, 1, EVFILT_USER, EV_DISABLE);
	no_event(queue);
	put(queue, 1, EVFILT_USER, EV_DISABLE | EV_ENABLE);
	CHECK(one(queue).ident == 1);
	close(queue);
}

static void add_and_delete_make_a_note_or_end_the_one_that_there_is(void)
{
	int queue = new_queue();

	put_with(queue, 1, EVFILT_USER, EV_ADD | EV_DELETE, NOTE_TRIGGER, 0, NULL);
	CHECK(one(queue).ident == 1);
	put_with(queue, 1, EVFILT_USER, EV_ADD | EV_DELETE, NOTE_TRIGGER, 0, NULL);
	FAILS(change(queue, 1, EVFILT_USER, EV_DELETE, 0), ENOENT);
	no_event(queue);
	close(queue);
}

static void oneshot_ends_the_note_whatever_else_it_has(void)
{
	static const int flags[] = {EV_DISPATCH, EV_CLEAR, EV_DISPATCH | EV_CLEAR};
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	for (int at = 0; at < 3; at++) {
		put(queue, ends[0], EVFILT_READ, EV_ADD | EV_ONESHOT | flags[at]);
		CHECK(one(queue).data == 1);
		FAILS(change(queue, ends[0], EVFILT_READ, EV_ENABLE, 0), ENOENT);
		no_event(queue);
	}
	close(queue);
}

static void a_dispatched_edge_is_told_again_when_it_is_enabled(void)
{
	int queue = new_queue();
	char byte;
	int ends[2];

	new_pipe(ends);
	put(queue, ends[0], EVFILT_READ, EV_ADD | EV_DISPATCH | EV_CLEAR);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(one(queue).data == 1);
	CHECK(write(ends[1], "x", 1) == 1);
	no_event(queue);
	/* A change asks the filter, which says what is so. */
	put(queue, ends[0], EVFILT_READ, EV_ENABLE);
	CHECK(one(queue).data == 2);
	CHECK(read(ends[0], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1);
	put(queue, ends[0], EVFILT_READ, EV_ENABLE);
	no_event(queue);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(one(queue).data == 1);
	close(queue);
}

static void what_was_ready_and_is_no_more_is_told_again_when_it_is(void)
{
	struct kevent events[3];
	int queue = new_queue();
	int ends[3][2];
	char byte;

	for (int at = 0; at < 3; at++) {
		new_pipe(ends[at]);
		put(queue, ends[at][0], EVFILT_READ, EV_ADD | EV_DISPATCH);
		CHECK(write(ends[at][1], "x", 1) == 1);
	}
	CHECK(kevent(queue, NULL, 0, events, 1, &now) == 1);
	for (int at = 0; at < 3; at++)
		CHECK(read(ends[at][0], &byte, 1) == 1);
	no_event(queue);
	for (int at = 0; at < 3; at++)
		CHECK(write(ends[at][1], "x", 1) == 1);
	/* The first one is disabled. */
	CHECK(kevent(queue, NULL, 0, events + 1, 1, &now) == 1);
	CHECK(events[1].ident != events[0].ident);
	CHECK(kevent(queue, NULL, 0, events + 2, 1, &now) == 1);
	CHECK(events[2].ident != events[0].ident && events[2].ident != events[1].ident);
	no_event(queue);
	close(queue);
}

static void a_dispatched_timer_counts_on(void)
{
	struct kevent event;
	int queue = new_queue();

	put_with(queue, 1, EVFILT_TIMER, EV_ADD | EV_DISPATCH, NOTE_USECONDS, 200, NULL);
	CHECK(one(queue).data >= 1);
	nanosleep(&soon, NULL);
	no_event(queue);
	put(queue, 1, EVFILT_TIMER, EV_ENABLE);
	event = one(queue);
	CHECK(event.data >= 2 && event.flags & EV_DISPATCH);
	no_event(queue);
	close(queue);
}

static void the_flags_of_a_note_are_those_of_its_first_change(void)
{
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	put(queue, ends[0], EVFILT_READ, EV_ADD);
	put(queue, ends[0], EVFILT_READ, EV_ADD | EV_CLEAR | EV_ONESHOT | EV_DISPATCH);
	for (int round = 0; round < 3; round++)
		CHECK(one(queue).data == 1);
	put(queue, 1, EVFILT_USER, EV_ADD | EV_CLEAR);
	CHECK(change(queue, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER) == 0);
	put(queue, ends[0], EVFILT_READ, EV_DELETE);
	CHECK(one(queue).ident == 1);
	no_event(queue);
	close(queue);
}

static void flags_of_events_are_no_flags_of_changes(void)
{
	struct kevent event;
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	put(queue, ends[0], EVFILT_READ, EV_ADD | EV_EOF | EV_ERROR);
	event = one(queue);
	CHECK(!(event.flags & (EV_EOF | EV_ERROR | EV_ADD)) && event.data == 1);
	close(queue);
}

static void what_fails_without_room_ends_the_changes(void)
{
	struct kevent list[3];
	int queue = new_queue();

	EV_SET(&list[0], 1, EVFILT_USER, EV_ADD, 0, 0, NULL);
	EV_SET(&list[1], 2, EVFILT_USER, EV_DELETE, 0, 0, NULL);
	EV_SET(&list[2], 3, EVFILT_USER, EV_ADD, 0, 0, NULL);
	FAILS(kevent(queue, list, 3, NULL, 0, NULL), ENOENT);
	CHECK(change(queue, 1, EVFILT_USER, EV_DELETE, 0) == 0);
	FAILS(change(queue, 3, EVFILT_USER, EV_DELETE, 0), ENOENT);
	close(queue);
}

static void a_receipt_without_any_room_ends_the_changes_too(void)
{
	struct kevent list[2];
	int queue = new_queue();

	for (int at = 0; at < 2; at++)
		EV_SET(&list[at], at, EVFILT_USER, EV_ADD | EV_RECEIPT, 0, 0, NULL);
	CHECK(kevent(queue, list, 2, NULL, 0, NULL) == 0);
	CHECK(change(queue, 0, EVFILT_USER, EV_DELETE, 0) == 0);
	FAILS(change(queue, 1, EVFILT_USER, EV_DELETE, 0), ENOENT);
	close(queue);
}

static void identifiers_are_as_wide_as_a_pointer(void)
{
	const uintptr_t wide = ((uintptr_t)1 << 32);
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	put_with(queue, 0, EVFILT_USER, EV_ADD | EV_ONESHOT, NOTE_TRIGGER, 0, NULL);
	CHECK(one(queue).ident == 0);
	put_with(queue, UINTPTR_MAX, EVFILT_USER, EV_ADD | EV_ONESHOT, NOTE_TRIGGER, 0, NULL);
	put_with(queue, UINTPTR_MAX, EVFILT_TIMER, EV_ADD | EV_ONESHOT, NOTE_NSECONDS, 1, NULL);
	CHECK(one(queue).ident == UINTPTR_MAX && one(queue).ident == UINTPTR_MAX);
	/* None is cut down to a descriptor, a signal or a process that there is. */
	FAILS(change(queue, wide | ends[0], EVFILT_READ, EV_ADD, 0), EBADF);
	FAILS(change(queue, wide | ends[0], EVFILT_VNODE, EV_ADD, NOTE_WRITE), EBADF);
	FAILS(change(queue, wide | SIGUSR1, EVFILT_SIGNAL, EV_ADD, 0), EINVAL);
	FAILS(change(queue, wide | getpid(), EVFILT_PROC, EV_ADD, NOTE_EXIT), ESRCH);
	close(queue);
}

static void processes_are_no_groups_and_no_threads(void)
{
	int queue = new_queue();

	FAILS(change(queue, 0, EVFILT_PROC, EV_ADD, NOTE_EXIT), ESRCH);
	FAILS(change(queue, (uintptr_t)-1, EVFILT_PROC, EV_ADD, NOTE_EXIT), ESRCH);
	FAILS(change(queue, (uintptr_t)-getpgrp(), EVFILT_PROC, EV_ADD, NOTE_EXIT), ESRCH);
	close(queue);
}

static void without_descriptors_the_queue_works_and_says_what_does_not(void)
{
	int queue = new_queue();
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	IN_CHILD({
		int own = new_queue();
		int last = 0;
		while (last >= 0)
			last = dup(2);
		FAILS(change(own, 1, EVFILT_TIMER, EV_ADD, 0), EMFILE);
		FAILS(change(own, getpid(), EVFILT_PROC, EV_ADD, NOTE_EXIT), EMFILE);
		/* Nothing is left of them, and what needs none is there. */
		FAILS(change(own, 1, EVFILT_TIMER, EV_DELETE, 0), ENOENT);
		FAILS(change(own, getpid(), EVFILT_PROC, EV_DELETE, 0), ENOENT);
		put(own, ends[0], EVFILT_READ, EV_ADD | EV_ONESHOT);
		CHECK(one(own).ident == (uintptr_t)ends[0]);
		close(100);
		put_with(own, 1, EVFILT_TIMER, EV_ADD, NOTE_NSECONDS, 1, NULL);
		CHECK(one(own).filter == EVFILT_TIMER);
	});
	close(queue);
}

static void a_limit_that_is_lowered_leaves_what_is_there(void)
{
	IN_CHILD({
		struct rlimit limit = {8, 8};
		int queue = new_queue();
		int high = fcntl(queue, F_DUPFD, 100);
		int ends[2];

		new_pipe(ends);
		ends[0] = fcntl(ends[0], F_DUPFD, 101);
		CHECK(high >= 100 && ends[0] >= 101);
		put(queue, ends[0], EVFILT_READ, EV_ADD | EV_CLEAR);
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		CHECK(write(ends[1], "x", 1) == 1);
		CHECK(one(high).ident == (uintptr_t)ends[0]);
		put(high, ends[0], EVFILT_READ, EV_DELETE);
		put(high, ends[0], EVFILT_READ, EV_ADD);
		CHECK(one(high).ident == (uintptr_t)ends[0]);
		FAILS(kqueue(), EMFILE);
	});
}

static void there_is_a_limit_of_queues(void)
{
	IN_CHILD({
		int queues[300];
		int count = 0;
		while ((queues[count] = kqueue()) >= 0)
			CHECK(++count < 300);
		CHECK(errno == EMFILE && count > 100);
		for (int at = 0; at < count; at++)
			CHECK(close(queues[at]) == 0);
		CHECK(close(new_queue()) == 0);
	});
}

static void a_close_ends_the_note_though_a_child_has_the_descriptor(void)
{
	int queue = new_queue();
	int ends[2];
	int go[2];
	pid_t child;

	new_pipe(ends);
	new_pipe(go);
	put(queue, ends[0], EVFILT_READ, EV_ADD);
	child = fork();
	if (child == 0) {
		char byte;

		close(go[1]);
		_exit(read(go[0], &byte, 1) != 0);
	}
	CHECK(close(ends[0]) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	no_event(queue);
	FAILS(change(queue, ends[0], EVFILT_READ, EV_DELETE, 0), EBADF);
	close(go[1]);
	CHECK(waitpid(child, NULL, 0) == child);
	close(queue);
}

static void a_descriptor_that_came_through_a_socket_is_the_queue(void)
{
	struct cmsghdr *header;
	char control[CMSG_SPACE(sizeof(int))] = {0};
	char byte = 'x';
	struct iovec bytes = {&byte, 1};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	int queue = new_queue();
	int ends[2];
	int copy;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &queue, sizeof(int));
	CHECK(sendmsg(ends[0], &message, 0) == 1);
	CHECK(recvmsg(ends[1], &message, 0) == 1);
	memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	CHECK(copy != queue);
	put_with(copy, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	CHECK(one(queue).ident == 1);
	close(queue);
	CHECK(one(copy).ident == 1);
	close(copy);
}

static void another_queue_in_its_place_is_another_queue(void)
{
	int queue = new_queue();
	int other = new_queue();

	put_with(queue, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	put_with(other, 2, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
	CHECK(dup2(other, queue) == queue);
	CHECK(one(queue).ident == 2);
	put(queue, 2, EVFILT_USER, EV_DELETE);
	no_event(other);
	close(queue);
	close(other);
}

MAIN(CASE(enable_wins_over_disable), CASE(add_and_delete_make_a_note_or_end_the_one_that_there_is),
     CASE(oneshot_ends_the_note_whatever_else_it_has),
     CASE(a_dispatched_edge_is_told_again_when_it_is_enabled), CASE(a_dispatched_timer_counts_on),
     CASE(what_was_ready_and_is_no_more_is_told_again_when_it_is),
     CASE(the_flags_of_a_note_are_those_of_its_first_change),
     CASE(flags_of_events_are_no_flags_of_changes), CASE(what_fails_without_room_ends_the_changes),
     CASE(a_receipt_without_any_room_ends_the_changes_too),
     CASE(identifiers_are_as_wide_as_a_pointer), CASE(processes_are_no_groups_and_no_threads),
     CASE(without_descriptors_the_queue_works_and_says_what_does_not),
     CASE(a_limit_that_is_lowered_leaves_what_is_there), CASE(there_is_a_limit_of_queues),
     CASE(a_close_ends_the_note_though_a_child_has_the_descriptor),
     CASE(a_descriptor_that_came_through_a_socket_is_the_queue),
     CASE(another_queue_in_its_place_is_another_queue))
