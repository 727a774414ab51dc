/* /dev/poll: sentences of the page that devpoll.c has no case of, and threads that change a set in
 * use. */
#include "test.h"
#include <sched.h>
#include <sys/devpoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/time.h>

static int new_set(void)
{
	int set = open("/dev/poll", O_RDWR);

	CHECK(set >= 0);
	return set;
}

static void put(int set, int fd, int events)
{
	struct pollfd entry = {.fd = fd, .events = events};

	CHECK(write(set, &entry, sizeof(entry)) == sizeof(entry));
}

static int ask(int set, struct pollfd *list, int room, int timeout)
{
	struct dvpoll request = {.dp_fds = list, .dp_nfds = room, .dp_timeout = timeout};

	return ioctl(set, DP_POLL, &request);
}

static void only_return(int signal)
{
	(void)signal;
}

static void a_call_that_fails_leaves_the_room_as_it_is(void)
{
	struct sigaction action = {.sa_handler = only_return};
	struct itimerval often = {{0, 2000}, {0, 2000}};
	struct itimerval never = {{0, 0}, {0, 0}};
	struct pollfd list[2];
	int set = new_set();
	int ends[2];

	new_pipe(ends);
	put(set, ends[0], POLLIN);
	memset(list, 0x5a, sizeof(list));
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	FAILS(ask(set, list, 2, -1), EINTR);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(list[0].fd == 0x5a5a5a5a && list[1].fd == 0x5a5a5a5a);
	close(set);
}

static void without_room_it_waits_for_the_time(void)
{
	struct timespec before;
	struct timespec after;
	struct rusage used[2];
	int set = new_set();
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	put(set, ends[0], POLLIN);
	CHECK(ask(set, NULL, 0, 0) == 0);
	CHECK(getrusage(RUSAGE_THREAD, &used[0]) == 0);
	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK(ask(set, NULL, 0, 30) == 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >=
	      29);
	/* What is ready does not keep it from sleeping. */
	CHECK(getrusage(RUSAGE_THREAD, &used[1]) == 0);
	CHECK(used[1].ru_nvcsw > used[0].ru_nvcsw);
	close(set);
}

static void a_time_below_zero_is_none(void)
{
	struct pollfd list[2];
	int set = new_set();
	int ends[2];
	pid_t child;

	new_pipe(ends);
	put(set, ends[0], POLLIN);
	child = fork();
	if (child == 0) {
		nanosleep(&soon, NULL);
		_exit(write(ends[1], "x", 1) != 1);
	}
	CHECK(ask(set, list, 2, -5) == 1 && list[0].fd == ends[0]);
	CHECK(waitpid(child, NULL, 0) == child);
	close(set);
}

static void many_entries_are_written_at_once_with_some_twice(void)
{
	static struct pollfd entries[4000];
	static struct pollfd list[64];
	int set = new_set();
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	/* Two descriptors, again and again, and others that are removed at once. */
	for (int at = 0; at < 4000; at++) {
		entries[at].fd = at % 4 == 3 ? 500 : ends[at % 2];
		entries[at].events = at % 4 == 3 ? POLLREMOVE : at % 2 ? POLLOUT : POLLIN;
	}
	CHECK(write(set, entries, sizeof(entries)) == sizeof(entries));
	CHECK(ask(set, list, 64, 0) == 2);
	CHECK(list[0].revents + list[1].revents == POLLIN + POLLOUT);
	close(set);
}

static void a_closed_number_is_still_in_the_set(void)
{
	struct pollfd entry = {.events = 77, .revents = 77};
	struct pollfd list[2];
	int set = new_set();
	int ends[2];

	new_pipe(ends);
	put(set, ends[0], POLLIN | POLLPRI);
	close(ends[0]);
	entry.fd = ends[0];
	CHECK(ioctl(set, DP_ISPOLLED, &entry) == 1);
	CHECK(entry.events == 0 && entry.revents == (POLLIN | POLLPRI));
	CHECK(ask(set, list, 2, -1) == 1 && list[0].revents == POLLNVAL);
	CHECK(list[0].events == (POLLIN | POLLPRI));
	put(set, ends[0], POLLREMOVE);
	CHECK(ioctl(set, DP_ISPOLLED, &entry) == 0);
	close(set);
}

static void a_child_makes_a_set_of_its_own_by_the_same_number(void)
{
	int set = new_set();
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	put(set, ends[0], POLLIN);
	IN_CHILD({
		struct pollfd list[2];
		int own;
		FAILS(ask(set, list, 2, 0), EACCES);
		CHECK(close(set) == 0);
		own = new_set();
		CHECK(ask(own, list, 2, 0) == 0);
		put(own, ends[1], POLLOUT);
		CHECK(ask(own, list, 2, 0) == 1 && list[0].fd == ends[1]);
		CHECK(close(ends[0]) == 0 && close(own) == 0);
	});
	{
		struct pollfd list[2];

		CHECK(ask(set, list, 2, 0) == 1 && list[0].fd == ends[0]);
	}
	close(set);
}

static int shared;
static int stops;

/* Polls a set whose descriptors come and go. */
static void *poll_on(void *argument)
{
	struct pollfd list[8];
	int got;

	(void)argument;
	while (!__atomic_load_n(&stops, __ATOMIC_SEQ_CST)) {
		got = ask(shared, list, 8, 1);
		CHECK(got >= 0);
		for (int at = 0; at < got; at++) {
			CHECK(list[at].events == POLLIN);
			CHECK(list[at].revents == POLLIN || list[at].revents == POLLNVAL);
		}
	}
	return NULL;
}

static void descriptors_are_closed_and_opened_while_threads_poll(void)
{
	struct pollfd list[8];
	pthread_t threads[2];
	int ends[2];

	shared = new_set();
	stops = 0;
	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	for (int at = 0; at < 2; at++)
		CHECK(pthread_create(&threads[at], NULL, poll_on, NULL) == 0);
	for (int round = 0; round < 1500; round++) {
		int copy = dup(ends[0]);

		put(shared, copy, POLLIN);
		if (round % 3 == 0)
			sched_yield();
		CHECK(close(copy) == 0);
		if (round % 2)
			put(shared, copy, POLLREMOVE);
	}
	__atomic_store_n(&stops, 1, __ATOMIC_SEQ_CST);
	for (int at = 0; at < 2; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	/* The last one was removed, and the others had its number. */
	CHECK(ask(shared, list, 8, 0) == 0);
	close(shared);
	close(ends[0]);
	close(ends[1]);
}

static void *open_and_close(void *argument)
{
	int ends[2];
	struct pollfd list[2];

	(void)argument;
	new_pipe(ends);
	for (int round = 0; round < 300; round++) {
		int set = new_set();

		put(set, ends[1], POLLOUT);
		CHECK(ask(set, list, 2, -1) == 1 && list[0].fd == ends[1]);
		CHECK(close(set) == 0);
	}
	close(ends[0]);
	close(ends[1]);
	return NULL;
}

static void sets_are_made_and_closed_by_threads_at_once(void)
{
	pthread_t threads[3];

	for (int at = 0; at < 3; at++)
		CHECK(pthread_create(&threads[at], NULL, open_and_close, NULL) == 0);
	for (int at = 0; at < 3; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
}

MAIN(CASE(a_call_that_fails_leaves_the_room_as_it_is), CASE(without_room_it_waits_for_the_time),
     CASE(a_time_below_zero_is_none), CASE(many_entries_are_written_at_once_with_some_twice),
     CASE(a_closed_number_is_still_in_the_set),
     CASE(a_child_makes_a_set_of_its_own_by_the_same_number),
     CASE(descriptors_are_closed_and_opened_while_threads_poll),
     CASE(sets_are_made_and_closed_by_threads_at_once))
