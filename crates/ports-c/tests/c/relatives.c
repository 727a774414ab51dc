/* Ports that several processes share while some of them close the port, are killed, or wait in it.
 */
#include "test.h"

/* A child waits for one event and ends with its value; it has said so before. */
static pid_t waiting_child(int port, int go[2])
{
	pid_t child = fork();
	char byte;

	CHECK(child >= 0);
	if (child == 0) {
		port_event_t event;

		CHECK(write(go[1], "x", 1) == 1);
		CHECK(port_get(port, &event, NULL) == 0);
		_exit((int)(long)event.portev_user);
	}
	CHECK(read(go[0], &byte, 1) == 1);
	/* It is most likely asleep in the port by then. */
	nanosleep(&soon, NULL);
	return child;
}

static void ends_with(pid_t child, int value)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == value);
}

static void an_alert_wakes_threads_of_all_processes(void)
{
	int port = new_port();
	pid_t children[3];
	int go[2];

	new_pipe(go);
	for (int at = 0; at < 3; at++)
		children[at] = waiting_child(port, go);
	CHECK(port_alert(port, PORT_ALERT_SET, 1, (void *)9) == 0);
	for (int at = 0; at < 3; at++)
		ends_with(children[at], 9);
	CHECK(port_alert(port, PORT_ALERT_SET, 0, NULL) == 0);
	nothing(port);
	close(port);
}

static void an_alert_of_a_child_wakes_its_parent(void)
{
	int port = new_port();
	pid_t child = fork();

	if (child == 0) {
		nanosleep(&soon, NULL);
		_exit(port_alert(port, PORT_ALERT_SET, 4, (void *)8) != 0);
	}
	CHECK(next_user(port, PORT_SOURCE_ALERT, NULL) == 8);
	ends_with(child, 0);
	close(port);
}

static void a_port_lives_until_the_last_process_closes_it(void)
{
	int port = new_port();
	int go[2];
	pid_t waiting;
	pid_t sending;

	new_pipe(go);
	waiting = waiting_child(port, go);
	sending = fork();
	if (sending == 0) {
		char byte;

		CHECK(read(go[0], &byte, 1) == 1);
		_exit(port_send(port, 1, (void *)6) != 0);
	}
	/* Its close ends neither the port nor the other one's wait. */
	CHECK(close(port) == 0);
	CHECK(write(go[1], "x", 1) == 1);
	ends_with(sending, 0);
	ends_with(waiting, 6);
}

static void a_grandchild_shares_the_port(void)
{
	int port = new_port();
	int ends[2];

	new_pipe(ends);
	CHECK(associate(port, ends[0], POLLIN, 4) == 0);
	IN_CHILD({
		int own[2];
		new_pipe(own);
		IN_CHILD({
			CHECK(port_send(port, 1, (void *)3) == 0);
			CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 3);
			CHECK(write(ends[1], "x", 1) == 1);
			CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 4);
			CHECK(associate(port, own[0], POLLIN, 5) == 0);
			FAILS(port_dissociate(port, PORT_SOURCE_FD, ends[0]), ENOENT);
		});
		/* With the grandchild, what it associated has gone. */
		CHECK(write(own[1], "x", 1) == 1);
		nothing(port);
	});
	nothing(port);
	close(port);
}

static void a_process_that_is_killed_in_its_wait_holds_up_nobody(void)
{
	int port = new_port();
	int go[2];

	new_pipe(go);
	for (int round = 0; round < 3; round++) {
		pid_t child = waiting_child(port, go);
		pid_t other = waiting_child(port, go);

		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
		CHECK(port_alert(port, PORT_ALERT_SET, 1, (void *)7) == 0);
		ends_with(other, 7);
		CHECK(port_alert(port, PORT_ALERT_SET, 0, NULL) == 0);
		CHECK(port_send(port, 1, (void *)2) == 0);
		CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 2);
	}
	close(port);
}

static void each_event_goes_to_one_of_several_processes(void)
{
	int port = new_port();
	int totals[2];
	pid_t children[3];
	long total = 0;

	new_pipe(totals);
	for (int at = 0; at < 3; at++) {
		children[at] = fork();
		if (children[at] == 0) {
			port_event_t list[8];
			uint_t nget;
			long sum = 0;

			for (;;) {
				nget = 1;
				CHECK(port_getn(port, list, 8, &nget, NULL) == 0);
				for (uint_t each = 0; each < nget; each++)
					sum += (long)list[each].portev_user;
				if (list[0].portev_source == PORT_SOURCE_ALERT)
					break;
			}
			CHECK(write(totals[1], &sum, sizeof(sum)) == sizeof(sum));
			_exit(0);
		}
	}
	for (long at = 1; at <= 6000; at++)
		while (port_send(port, 1, (void *)at))
			CHECK(errno == EAGAIN);
	for (uint_t left = 1; left;)
		CHECK(port_getn(port, NULL, 0, &left, NULL) == 0);
	CHECK(port_alert(port, PORT_ALERT_SET, 1, NULL) == 0);
	for (int at = 0; at < 3; at++) {
		long sum;

		CHECK(read(totals[0], &sum, sizeof(sum)) == sizeof(sum));
		total += sum;
		ends_with(children[at], 0);
	}
	CHECK(total == 6000L * 6001 / 2);
	close(port);
}

MAIN(CASE(an_alert_wakes_threads_of_all_processes), CASE(an_alert_of_a_child_wakes_its_parent),
     CASE(a_port_lives_until_the_last_process_closes_it), CASE(a_grandchild_shares_the_port),
     CASE(a_process_that_is_killed_in_its_wait_holds_up_nobody),
     CASE(each_event_goes_to_one_of_several_processes))
