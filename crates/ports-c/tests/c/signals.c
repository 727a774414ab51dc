/* Signals: they interrupt waits, and their handlers may send events. */
#include "test.h"
#include <sys/time.h>

static int port;
static volatile sig_atomic_t handled;

static void only_return(int signal)
{
	(void)signal;
	handled++;
}

static void send_event(int signal)
{
	(void)signal;
	if (port_send(port, 1, (void *)(long)++handled))
		_exit(99);
}

static void interrupt_every(long microseconds, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	struct itimerval often = {{0, microseconds}, {0, microseconds}};

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static void a_signal_interrupts_a_wait(void)
{
	const timespec_t long_time = {100, 0};
	const timespec_t *timeouts[] = {NULL, &long_time};
	port_event_t list[4];
	uint_t nget;

	port = new_port();
	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
		interrupt_every(2000, only_return, flags);
		for (int at = 0; at < 2; at++) {
			FAILS(port_get(port, list, timeouts[at]), EINTR);
			nget = 2;
			FAILS(port_getn(port, list, 4, &nget, timeouts[at]), EINTR);
			CHECK(nget == 0);
			/* An event is there, but fewer than are wanted. */
			CHECK(port_send(port, 1, (void *)3) == 0);
			nget = 2;
			FAILS(port_getn(port, list, 4, &nget, timeouts[at]), EINTR);
			CHECK(nget == 0);
			interrupt_every(0, only_return, flags);
			CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 3);
			interrupt_every(2000, only_return, flags);
		}
		interrupt_every(0, only_return, flags);
	}
	close(port);
}

static void a_handler_can_send_whatever_it_interrupts(void)
{
	long expected = 0;
	port_event_t list[16];
	int ends[2];
	uint_t nget;

	port = new_port();
	handled = 0;
	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	interrupt_every(50, send_event, 0);
	while (handled < 2000) {
		/* Calls that hold what a sender may need. */
		CHECK(associate(port, ends[0], POLLIN, 0) == 0);
		port_dissociate(port, PORT_SOURCE_FD, ends[0]);
		CHECK(port_send(port, 0, NULL) == 0);
		nget = 1;
		if (port_getn(port, list, 16, &nget, &now) && errno != EINTR && errno != ETIME)
			CHECK(0);
		for (uint_t at = 0; at < nget; at++)
			if (list[at].portev_source == PORT_SOURCE_USER && list[at].portev_events)
				CHECK((long)list[at].portev_user == ++expected);
	}
	interrupt_every(0, send_event, 0);
	for (;;) {
		nget = 1;
		if (port_getn(port, list, 16, &nget, &now))
			break;
		for (uint_t at = 0; at < nget; at++)
			if (list[at].portev_source == PORT_SOURCE_USER && list[at].portev_events)
				CHECK((long)list[at].portev_user == ++expected);
	}
	CHECK(expected == handled);
	close(port);
}

static void an_event_that_a_handler_sends_ends_the_wait_or_is_there_afterwards(void)
{
	port_event_t event;

	port = new_port();
	handled = 0;
	interrupt_every(1000, send_event, 0);
	for (int round = 0; round < 50; round++) {
		while (port_get(port, &event, NULL))
			CHECK(errno == EINTR);
		CHECK(event.portev_source == PORT_SOURCE_USER);
	}
	interrupt_every(0, send_event, 0);
	close(port);
}

MAIN(CASE(a_signal_interrupts_a_wait), CASE(a_handler_can_send_whatever_it_interrupts),
     CASE(an_event_that_a_handler_sends_ends_the_wait_or_is_there_afterwards))
