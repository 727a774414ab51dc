/*
 * Queues whose descriptors and notes end at the worst moment, and whose events several threads
 * take: what a call says to have ended, no call that begins afterwards tells of, and no event is
 * lost or told twice.
 */
#include "queue.h"
#include <sched.h>

#define RECEIVERS 2
#define ROUNDS	  1500

static int shared;
static long ended;
static long delivered;

static long has_ended(void)
{
	return __atomic_load_n(&ended, __ATOMIC_SEQ_CST);
}

static void has_ended_now(long number)
{
	__atomic_store_n(&ended, number, __ATOMIC_SEQ_CST);
}

/* Takes events until the program's own comes, which stays. */
static void *receive(void *argument)
{
	struct kevent list[3];
	long dead;
	int got;
	int is_end = 0;

	(void)argument;
	while (!is_end) {
		dead = has_ended();
		got = kevent(shared, NULL, 0, list, 3, NULL);
		CHECK(got > 0);
		for (int at = 0; at < got; at++) {
			CHECK(!(list[at].flags & EV_ERROR));
			if (list[at].filter == EVFILT_USER && list[at].ident == 0) {
				is_end = 1;
				continue;
			}
			CHECK((long)list[at].udata > dead);
			__atomic_fetch_add(&delivered, 1, __ATOMIC_SEQ_CST);
		}
	}
	return NULL;
}

static void begin(pthread_t threads[RECEIVERS])
{
	shared = new_queue();
	delivered = 0;
	has_ended_now(0);
	put(shared, 0, EVFILT_USER, EV_ADD);
	for (int at = 0; at < RECEIVERS; at++)
		CHECK(pthread_create(&threads[at], NULL, receive, NULL) == 0);
}

static long end(pthread_t threads[RECEIVERS])
{
	CHECK(change(shared, 0, EVFILT_USER, 0, NOTE_TRIGGER) == 0);
	for (int at = 0; at < RECEIVERS; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	put(shared, 0, EVFILT_USER, EV_DELETE);
	no_event(shared);
	close(shared);
	return delivered;
}

static void a_number_that_was_closed_has_no_event(void)
{
	static const int flags[] = {0, EV_CLEAR, EV_ONESHOT, EV_DISPATCH, EV_CLEAR | EV_DISPATCH};
	pthread_t threads[RECEIVERS];
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	begin(threads);
	for (long round = 1; round <= ROUNDS; round++) {
		int copy = dup(ends[0]);

		put_with(shared, copy, EVFILT_READ, EV_ADD | flags[round % 5], 0, 0, (void *)round);
		if (round % 3 == 0)
			sched_yield();
		CHECK(close(copy) == 0);
		has_ended_now(round);
	}
	end(threads);
	close(ends[0]);
	close(ends[1]);
}

static void what_is_deleted_was_not_returned_and_the_rest_was_once(void)
{
	pthread_t threads[RECEIVERS];
	long deleted = 0;

	begin(threads);
	for (long round = 1; round <= ROUNDS; round++) {
		put_with(shared, 1, EVFILT_USER, EV_ADD | EV_ONESHOT, NOTE_TRIGGER, 0,
			 (void *)round);
		if (round % 3 == 0)
			sched_yield();
		if (change(shared, 1, EVFILT_USER, EV_DELETE, 0) == 0)
			deleted++;
		else
			CHECK(errno == ENOENT);
		has_ended_now(round);
	}
	CHECK(end(threads) + deleted == ROUNDS);
}

static void a_timer_that_is_deleted_has_no_event(void)
{
	pthread_t threads[RECEIVERS];

	begin(threads);
	for (long round = 1; round <= ROUNDS / 3; round++) {
		put_with(shared, 1, EVFILT_TIMER, EV_ADD, NOTE_USECONDS, 1 + round % 40,
			 (void *)round);
		for (long turn = 0; turn < round % 5; turn++)
			sched_yield();
		put(shared, 1, EVFILT_TIMER, EV_DELETE);
		has_ended_now(round);
	}
	end(threads);
}

#define PIPES 6
#define BYTES 12000

static int pipes[PIPES][2];
static int users[PIPES];
static long left;

/* Takes one byte for each event, and has the pipe told of again. */
static void *take_bytes(void *argument)
{
	struct kevent list[2];
	char byte;
	int got;

	(void)argument;
	while (__atomic_load_n(&left, __ATOMIC_SEQ_CST) > 0) {
		got = kevent(shared, NULL, 0, list, 2, &soon);
		CHECK(got >= 0);
		for (int at = 0; at < got; at++) {
			int pipe_number = (int)(long)list[at].udata;

			CHECK(__atomic_fetch_add(&users[pipe_number], 1, __ATOMIC_SEQ_CST) == 0);
			CHECK(read(pipes[pipe_number][0], &byte, 1) == 1);
			__atomic_fetch_sub(&left, 1, __ATOMIC_SEQ_CST);
			CHECK(__atomic_fetch_sub(&users[pipe_number], 1, __ATOMIC_SEQ_CST) == 1);
			put_with(shared, list[at].ident, EVFILT_READ, EV_ENABLE | EV_KEEPUDATA, 0,
				 0, NULL);
		}
	}
	return NULL;
}

static void a_dispatched_note_is_of_one_thread_until_it_is_enabled(void)
{
	static const int flags[] = {EV_DISPATCH, EV_DISPATCH | EV_CLEAR};
	pthread_t threads[3];

	for (int kind = 0; kind < 2; kind++) {
		shared = new_queue();
		left = BYTES;
		for (long at = 0; at < PIPES; at++) {
			new_pipe(pipes[at]);
			put_with(shared, pipes[at][0], EVFILT_READ, EV_ADD | flags[kind], 0, 0,
				 (void *)at);
		}
		for (int at = 0; at < 3; at++)
			CHECK(pthread_create(&threads[at], NULL, take_bytes, NULL) == 0);
		for (int at = 0; at < BYTES; at++)
			CHECK(write(pipes[at % PIPES][1], "x", 1) == 1);
		for (int at = 0; at < 3; at++)
			CHECK(pthread_join(threads[at], NULL) == 0);
		no_event(shared);
		for (int at = 0; at < PIPES; at++) {
			close(pipes[at][0]);
			close(pipes[at][1]);
		}
		close(shared);
	}
}

static int stream[2];

static void *drain(void *argument)
{
	char bytes[64];
	struct kevent event;
	long received = 0;
	ssize_t got;

	(void)argument;
	while (received < 20000) {
		CHECK(kevent(shared, NULL, 0, &event, 1, NULL) == 1);
		while ((got = read(stream[0], bytes, sizeof(bytes))) > 0)
			received += got;
		CHECK(errno == EAGAIN);
	}
	return NULL;
}

static void a_reader_that_takes_all_loses_no_edge(void)
{
	pthread_t thread;

	CHECK(pipe2(stream, O_CLOEXEC | O_NONBLOCK) == 0);
	shared = new_queue();
	put(shared, stream[0], EVFILT_READ, EV_ADD | EV_CLEAR);
	CHECK(pthread_create(&thread, NULL, drain, NULL) == 0);
	for (int sent = 0; sent < 20000;)
		sent += write(stream[1], "x", 1) == 1;
	CHECK(pthread_join(thread, NULL) == 0);
	close(stream[0]);
	close(stream[1]);
	close(shared);
}

static int stops;

static void *change_and_wait(void *argument)
{
	struct kevent list[4];
	uintptr_t own = (uintptr_t)argument;

	while (!__atomic_load_n(&stops, __ATOMIC_SEQ_CST)) {
		put_with(shared, own, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
		CHECK(kevent(shared, NULL, 0, list, 4, &now) >= 0);
		put(shared, own, EVFILT_USER, EV_DELETE);
	}
	return NULL;
}

static void a_fork_while_threads_are_in_calls_gives_the_child_queues_of_its_own(void)
{
	pthread_t threads[2];

	shared = new_queue();
	stops = 0;
	for (uintptr_t at = 0; at < 2; at++)
		CHECK(pthread_create(&threads[at], NULL, change_and_wait, (void *)(at + 1)) == 0);
	for (int round = 0; round < 60; round++)
		IN_CHILD({
			struct kevent event;
			int own;
			int ends[2];
			FAILS(kevent(shared, NULL, 0, &event, 1, &now), EBADF);
			own = new_queue();
			new_pipe(ends);
			put(own, ends[1], EVFILT_WRITE, EV_ADD);
			CHECK(one(own).ident == (uintptr_t)ends[1]);
			CHECK(close(ends[1]) == 0);
			no_event(own);
			CHECK(close(own) == 0);
		});
	__atomic_store_n(&stops, 1, __ATOMIC_SEQ_CST);
	for (int at = 0; at < 2; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	close(shared);
}

static void *close_soon(void *argument)
{
	sched_yield();
	CHECK(close(*(int *)argument) == 0);
	return NULL;
}

static void a_queue_that_is_closed_under_calls_ends_them_with_an_error(void)
{
	for (int round = 0; round < 200; round++) {
		struct kevent event;
		pthread_t thread;
		int queue = new_queue();
		int number = queue;

		CHECK(pthread_create(&thread, NULL, close_soon, &number) == 0);
		for (;;) {
			if (round % 2 && change(queue, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER))
				break;
			if (kevent(queue, NULL, 0, &event, 1, round % 2 ? &now : NULL) < 0)
				break;
		}
		CHECK(errno == EBADF);
		CHECK(pthread_join(thread, NULL) == 0);
	}
}

static void a_child_in_its_parents_memory_ends_nothing_of_it(void)
{
	int queue = new_queue();
	int ends[2];
	int status;
	pid_t child;

	new_pipe(ends);
	put(queue, ends[0], EVFILT_READ, EV_ADD);
	child = vfork();
	if (child == 0) {
		close(ends[0]);
		close(queue);
		close_range(3, ~0U, 0);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(one(queue).ident == (uintptr_t)ends[0]);
	close(ends[0]);
	close(ends[1]);
	close(queue);
}

MAIN(CASE(a_number_that_was_closed_has_no_event),
     CASE(what_is_deleted_was_not_returned_and_the_rest_was_once),
     CASE(a_timer_that_is_deleted_has_no_event),
     CASE(a_dispatched_note_is_of_one_thread_until_it_is_enabled),
     CASE(a_reader_that_takes_all_loses_no_edge),
     CASE(a_fork_while_threads_are_in_calls_gives_the_child_queues_of_its_own),
     CASE(a_queue_that_is_closed_under_calls_ends_them_with_an_error),
     CASE(a_child_in_its_parents_memory_ends_nothing_of_it))
