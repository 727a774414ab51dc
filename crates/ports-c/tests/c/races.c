/*
 * Ports whose descriptors, timers and processes end at the worst moment: what a call says to have
 * ended, no call that begins afterwards tells of.
 */
#include "test.h"
#include <sched.h>

#define RECEIVERS 2
#define ROUNDS	  1500

static int shared;
/* The last of the numbers, which rise, that has ended. */
static long ended;
static long delivered;
static int source;

static long has_ended(void)
{
	return __atomic_load_n(&ended, __ATOMIC_SEQ_CST);
}

static void has_ended_now(long number)
{
	__atomic_store_n(&ended, number, __ATOMIC_SEQ_CST);
}

/* Retrieves until the port is in alert mode. */
static void *receive(void *argument)
{
	port_event_t list[3];
	uint_t nget;
	long dead;

	(void)argument;
	for (;;) {
		dead = has_ended();
		nget = 1;
		if (port_getn(shared, list, 3, &nget, &soon))
			CHECK(errno == ETIME);
		for (uint_t at = 0; at < nget; at++) {
			if (list[at].portev_source == PORT_SOURCE_ALERT)
				return NULL;
			CHECK(list[at].portev_source == source);
			CHECK((long)list[at].portev_user > dead);
			__atomic_fetch_add(&delivered, 1, __ATOMIC_SEQ_CST);
		}
	}
}

static void begin(pthread_t threads[RECEIVERS], int source_of_events)
{
	shared = new_port();
	source = source_of_events;
	delivered = 0;
	has_ended_now(0);
	for (int at = 0; at < RECEIVERS; at++)
		CHECK(pthread_create(&threads[at], NULL, receive, NULL) == 0);
}

/* Returns how many events were delivered. */
static long end(pthread_t threads[RECEIVERS])
{
	CHECK(port_alert(shared, PORT_ALERT_SET, 1, NULL) == 0);
	for (int at = 0; at < RECEIVERS; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	CHECK(port_alert(shared, PORT_ALERT_SET, 0, NULL) == 0);
	nothing(shared);
	close(shared);
	return delivered;
}

static void a_number_that_was_closed_sends_nothing(void)
{
	pthread_t threads[RECEIVERS];
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	begin(threads, PORT_SOURCE_FD);
	for (long round = 1; round <= ROUNDS; round++) {
		/* The same number again and again, of a file that stays open. */
		int copy = dup(ends[0]);

		CHECK(associate(shared, copy, POLLIN, round) == 0);
		if (round % 3 == 0)
			sched_yield();
		CHECK(close(copy) == 0);
		has_ended_now(round);
	}
	CHECK(end(threads) <= ROUNDS);
	close(ends[0]);
	close(ends[1]);
}

static void what_is_dissociated_was_not_retrieved_and_the_rest_was_once(void)
{
	pthread_t threads[RECEIVERS];
	long dissociated = 0;
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	begin(threads, PORT_SOURCE_FD);
	for (long round = 1; round <= ROUNDS; round++) {
		CHECK(associate(shared, ends[0], POLLIN, round) == 0);
		if (round % 3 == 0)
			sched_yield();
		if (port_dissociate(shared, PORT_SOURCE_FD, ends[0]) == 0)
			dissociated++;
		else
			CHECK(errno == ENOENT);
		has_ended_now(round);
	}
	CHECK(end(threads) + dissociated == ROUNDS);
	close(ends[0]);
	close(ends[1]);
}

static void what_a_new_association_replaces_is_not_retrieved(void)
{
	pthread_t threads[RECEIVERS];
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	begin(threads, PORT_SOURCE_FD);
	for (long round = 1; round <= ROUNDS; round++) {
		CHECK(associate(shared, ends[0], POLLIN, round) == 0);
		has_ended_now(round - 1);
	}
	/* The last one is retrieved. */
	while (__atomic_load_n(&delivered, __ATOMIC_SEQ_CST) == 0 ||
	       port_dissociate(shared, PORT_SOURCE_FD, ends[0]) == 0)
		CHECK(associate(shared, ends[0], POLLIN, ROUNDS) == 0);
	end(threads);
	close(ends[0]);
	close(ends[1]);
}

static void a_timer_that_is_deleted_sends_nothing(void)
{
	struct itimerspec at_once = {.it_value = {0, 1}, .it_interval = {0, 20000}};
	pthread_t threads[RECEIVERS];

	begin(threads, PORT_SOURCE_TIMER);
	for (long round = 1; round <= ROUNDS / 3; round++) {
		port_notify_t notify = {shared, (void *)round};
		struct sigevent event = {.sigev_notify = SIGEV_PORT};
		timer_t timer;

		event.sigev_value.sival_ptr = &notify;
		CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
		CHECK(timer_settime(timer, 0, &at_once, NULL) == 0);
		for (long turn = 0; turn < round % 5; turn++)
			sched_yield();
		CHECK(timer_delete(timer) == 0);
		has_ended_now(round);
	}
	end(threads);
}

static int stream[2];
static long received;

/* Reads what there is, and waits for more, from one association to the next. */
static void *drain(void *argument)
{
	char bytes[64];
	port_event_t event;
	ssize_t got;

	(void)argument;
	for (;;) {
		CHECK(port_get(shared, &event, NULL) == 0);
		if (event.portev_source == PORT_SOURCE_USER)
			return NULL;
		while ((got = read(stream[0], bytes, sizeof(bytes))) > 0)
			if (__atomic_add_fetch(&received, got, __ATOMIC_SEQ_CST) == 20000)
				for (int at = 0; at < RECEIVERS; at++)
					CHECK(port_send(shared, 1, NULL) == 0);
		CHECK(errno == EAGAIN);
		CHECK(associate(shared, stream[0], POLLIN, 0) == 0);
	}
}

static void no_byte_is_left_by_threads_that_associate_again(void)
{
	pthread_t threads[RECEIVERS];

	CHECK(pipe2(stream, O_CLOEXEC | O_NONBLOCK) == 0);
	shared = new_port();
	received = 0;
	CHECK(associate(shared, stream[0], POLLIN, 0) == 0);
	for (int at = 0; at < RECEIVERS; at++)
		CHECK(pthread_create(&threads[at], NULL, drain, NULL) == 0);
	for (int sent = 0; sent < 20000;)
		sent += write(stream[1], "x", 1) == 1;
	/* A lost event would leave them asleep. */
	for (int at = 0; at < RECEIVERS; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	close(stream[0]);
	close(stream[1]);
	close(shared);
}

static void *open_and_close(void *argument)
{
	int port = *(int *)argument;

	for (int round = 0; round < ROUNDS; round++) {
		int copy = dup(port);

		CHECK(copy >= 0);
		CHECK(port_send(copy, 1, NULL) == 0);
		CHECK(close(copy) == 0);
	}
	return NULL;
}

static void duplicates_that_threads_make_and_close_leave_the_port(void)
{
	pthread_t threads[3];
	port_event_t event;
	int port = new_port();

	for (int at = 0; at < 3; at++)
		CHECK(pthread_create(&threads[at], NULL, open_and_close, &port) == 0);
	for (int at = 0; at < 3 * ROUNDS; at++)
		CHECK(port_get(port, &event, NULL) == 0);
	for (int at = 0; at < 3; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	nothing(port);
	close(port);
}

static void *close_soon(void *argument)
{
	sched_yield();
	CHECK(close(*(int *)argument) == 0);
	return NULL;
}

static void a_port_that_is_closed_under_calls_ends_them_with_an_error(void)
{
	for (int round = 0; round < 200; round++) {
		port_event_t event;
		pthread_t thread;
		int port = new_port();
		int number = port;
		int is_there = 1;

		CHECK(pthread_create(&thread, NULL, close_soon, &number) == 0);
		while (is_there) {
			if (round % 2)
				is_there = port_send(port, 1, NULL) == 0;
			if (is_there)
				is_there = port_get(port, &event, round % 2 ? &now : NULL) == 0 ||
					   errno == ETIME;
		}
		CHECK(errno == EBADF || errno == EBADFD);
		CHECK(pthread_join(thread, NULL) == 0);
	}
}

MAIN(CASE(a_number_that_was_closed_sends_nothing),
     CASE(what_is_dissociated_was_not_retrieved_and_the_rest_was_once),
     CASE(what_a_new_association_replaces_is_not_retrieved),
     CASE(a_timer_that_is_deleted_sends_nothing),
     CASE(no_byte_is_left_by_threads_that_associate_again),
     CASE(duplicates_that_threads_make_and_close_leave_the_port),
     CASE(a_port_that_is_closed_under_calls_ends_them_with_an_error))
