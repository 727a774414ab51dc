/* What the functions do for a C program: values, arrays, counts. */
#include "test.h"

static void events_carry_what_was_given(void)
{
	int port = new_port();
	int ends[2];
	port_event_t event;

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	memset(&event, 0xff, sizeof(event));
	CHECK(associate(port, ends[0], POLLIN, 0x7fffffffffffL) == 0);
	CHECK(port_get(port, &event, NULL) == 0);
	CHECK(event.portev_source == PORT_SOURCE_FD && event.portev_events == POLLIN);
	CHECK(event.portev_object == (uintptr_t)ends[0]);
	CHECK(event.portev_user == (void *)0x7fffffffffffL);
	CHECK(port_send(port, -3, &event) == 0);
	CHECK(port_get(port, &event, NULL) == 0);
	CHECK(event.portev_source == PORT_SOURCE_USER && event.portev_events == -3);
	CHECK(event.portev_user == &event);
	CHECK(port_alert(port, PORT_ALERT_SET, 8, &port) == 0);
	CHECK(port_get(port, &event, NULL) == 0);
	CHECK(event.portev_source == PORT_SOURCE_ALERT && event.portev_events == 8);
	CHECK(event.portev_user == &port);
	CHECK(port_alert(port, PORT_ALERT_SET, 0, NULL) == 0);
	nothing(port);
	close(port);
}

static void getn_with_a_max_of_zero_counts(void)
{
	int port = new_port();
	uint_t nget = 99;

	CHECK(port_getn(port, NULL, 0, &nget, NULL) == 0 && nget == 0);
	CHECK(port_send(port, 1, NULL) == 0 && port_send(port, 1, NULL) == 0);
	nget = 99;
	CHECK(port_getn(port, NULL, 0, &nget, NULL) == 0 && nget == 2);
	CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 0);
	CHECK(port_getn(port, NULL, 0, &nget, &now) == 0 && nget == 1);
	close(port);
}

static void getn_of_zero_events_returns_at_once(void)
{
	int port = new_port();
	port_event_t list[2];
	uint_t nget = 0;

	CHECK(port_getn(port, list, 2, &nget, NULL) == 0 && nget == 0);
	CHECK(port_send(port, 1, NULL) == 0);
	CHECK(port_getn(port, list, 2, &nget, NULL) == 0 && nget == 0);
	close(port);
}

static void getn_writes_no_more_than_it_counts(void)
{
	int port = new_port();
	port_event_t list[5];
	uint_t nget = 1;

	for (long user = 0; user < 5; user++)
		CHECK(port_send(port, 1, (void *)user) == 0);
	memset(list, 0x5a, sizeof(list));
	CHECK(port_getn(port, list, 3, &nget, NULL) == 0 && nget == 3);
	for (long at = 0; at < 3; at++)
		CHECK(list[at].portev_user == (void *)at);
	CHECK(list[3].portev_events == 0x5a5a5a5a);
	nget = 1;
	CHECK(port_getn(port, list, 5, &nget, NULL) == 0 && nget == 2);
	close(port);
}

static void getn_that_times_out_returns_what_there_is(void)
{
	const timespec_t *timeouts[] = {&now, &soon};
	int port = new_port();
	port_event_t list[5];
	uint_t nget;

	for (int at = 0; at < 2; at++) {
		nget = 3;
		FAILS(port_getn(port, list, 5, &nget, timeouts[at]), ETIME);
		CHECK(nget == 0);
		CHECK(port_send(port, 6, NULL) == 0);
		nget = 3;
		FAILS(port_getn(port, list, 5, &nget, timeouts[at]), ETIME);
		CHECK(nget == 1 && list[0].portev_events == 6);
		nothing(port);
	}
	close(port);
}

static void sendn_fills_errors_only_if_there_are_some(void)
{
	int ends[2];
	int ports[5] = {new_port(), new_port(), 0, -1, new_port()};
	int errors[5] = {9, 9, 9, 9, 9};

	new_pipe(ends);
	CHECK(port_sendn(ports, errors, 2, 4, NULL) == 2);
	CHECK(errors[0] == 9 && errors[1] == 9);
	ports[2] = ends[0];
	CHECK(port_sendn(ports, errors, 5, 4, NULL) == 3);
	CHECK(errors[0] == 0 && errors[1] == 0 && errors[4] == 0);
	CHECK(errors[2] == EBADFD && errors[3] == EBADF);
	CHECK(port_sendn(ports + 2, errors, 2, 4, NULL) == 0);
	CHECK(errors[0] == EBADFD && errors[1] == EBADF);
	CHECK(next_user(ports[0], PORT_SOURCE_USER, NULL) == 0);
	CHECK(next_user(ports[0], PORT_SOURCE_USER, NULL) == 0);
	nothing(ports[0]);
	for (int at = 0; at < 5; at++)
		if (at != 2 && at != 3)
			close(ports[at]);
}

static void sendn_sends_twice_to_a_port_that_is_named_twice(void)
{
	int port = new_port();
	int ports[2] = {port, port};
	int errors[2];

	CHECK(port_sendn(ports, errors, 2, 4, (void *)3) == 2);
	CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 3);
	CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 3);
	nothing(port);
	close(port);
}

static void duplicates_of_a_port_are_the_port(void)
{
	int port = new_port();
	int copies[4] = {dup(port), fcntl(port, F_DUPFD, 0), 900, 901};
	int events;

	CHECK(dup2(port, 900) == 900 && dup3(port, 901, O_CLOEXEC) == 901);
	for (int at = 0; at < 4; at++) {
		CHECK(port_send(copies[at], at + 1, NULL) == 0);
		next_user(port, PORT_SOURCE_USER, &events);
		CHECK(events == at + 1);
	}
	close(port);
	CHECK(port_send(copies[0], 7, NULL) == 0);
	next_user(copies[3], PORT_SOURCE_USER, &events);
	CHECK(events == 7);
	for (int at = 0; at < 4; at++)
		CHECK(close(copies[at]) == 0);
	FAILS(port_send(copies[0], 1, NULL), EBADF);
}

static void a_port_can_be_polled(void)
{
	int port = new_port();
	struct pollfd polled = {.fd = port, .events = POLLIN};

	CHECK(poll(&polled, 1, 0) == 0);
	CHECK(port_send(port, 1, NULL) == 0);
	CHECK(poll(&polled, 1, 0) == 1 && polled.revents == POLLIN);
	next_user(port, PORT_SOURCE_USER, NULL);
	CHECK(poll(&polled, 1, 0) == 0);
	close(port);
}

static void ports_without_number_can_be_made_one_after_another(void)
{
	int first = new_port();

	close(first);
	for (int at = 0; at < 3000; at++) {
		int port = new_port();

		CHECK(port == first);
		CHECK(port_send(port, 1, NULL) == 0);
		CHECK(close(port) == 0);
	}
}

static void several_ports_do_not_mix(void)
{
	int ports[100];

	for (long at = 0; at < 100; at++) {
		ports[at] = new_port();
		CHECK(port_send(ports[at], 1, (void *)at) == 0);
	}
	for (long at = 0; at < 100; at++) {
		CHECK(next_user(ports[at], PORT_SOURCE_USER, NULL) == at);
		nothing(ports[at]);
		close(ports[at]);
	}
}

MAIN(CASE(events_carry_what_was_given), CASE(getn_with_a_max_of_zero_counts),
     CASE(getn_of_zero_events_returns_at_once), CASE(getn_writes_no_more_than_it_counts),
     CASE(getn_that_times_out_returns_what_there_is),
     CASE(sendn_fills_errors_only_if_there_are_some),
     CASE(sendn_sends_twice_to_a_port_that_is_named_twice), CASE(duplicates_of_a_port_are_the_port),
     CASE(a_port_can_be_polled), CASE(ports_without_number_can_be_made_one_after_another),
     CASE(several_ports_do_not_mix))
