/* Ports that parent and child share after fork(2). */
#include "test.h"

static void sent_events_go_from_child_to_parent_and_back(void)
{
	int port = new_port();

	IN_CHILD(CHECK(port_send(port, 5, (void *)6) == 0));
	CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 6);
	CHECK(port_send(port, 7, (void *)8) == 0);
	IN_CHILD(CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 8));
	nothing(port);
	close(port);
}

static void a_parent_that_waits_is_woken_by_its_child(void)
{
	int port = new_port();
	pid_t child = fork();

	if (child == 0) {
		usleep(2000);
		_exit(port_send(port, 1, (void *)3));
	}
	CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 3);
	CHECK(waitpid(child, NULL, 0) == child);
	close(port);
}

static void alerts_are_seen_by_both(void)
{
	int port = new_port();

	IN_CHILD(CHECK(port_alert(port, PORT_ALERT_SET, 4, (void *)5) == 0));
	CHECK(next_user(port, PORT_SOURCE_ALERT, NULL) == 5);
	FAILS(port_alert(port, PORT_ALERT_UPDATE, 4, NULL), EBUSY);
	IN_CHILD({
		CHECK(next_user(port, PORT_SOURCE_ALERT, NULL) == 5);
		CHECK(port_alert(port, PORT_ALERT_SET, 0, NULL) == 0);
	});
	nothing(port);
	close(port);
}

static void events_of_inherited_descriptors_can_be_retrieved_by_both(void)
{
	int port = new_port();
	int ends[2];

	new_pipe(ends);
	CHECK(associate(port, ends[0], POLLIN, 11) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	IN_CHILD(CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 11));
	nothing(port);
	/* What the child associates, the parent retrieves. */
	IN_CHILD({
		CHECK(associate(port, ends[0], POLLIN, 12) == 0);
		CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 12);
	});
	CHECK(associate(port, ends[0], POLLIN, 13) == 0);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 13);
	close(port);
}

static void only_the_owner_dissociates(void)
{
	int port = new_port();
	int ends[2];

	new_pipe(ends);
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	IN_CHILD({
		FAILS(port_dissociate(port, PORT_SOURCE_FD, ends[0]), EACCES);
		/* An update leaves the owner. */
		CHECK(associate(port, ends[0], POLLIN, 2) == 0);
		FAILS(port_dissociate(port, PORT_SOURCE_FD, ends[0]), EACCES);
		/* Another file of that number is not associated. */
		CHECK(dup2(ends[1], ends[0]) == ends[0]);
		FAILS(port_dissociate(port, PORT_SOURCE_FD, ends[0]), ENOENT);
	});
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 2);
	CHECK(associate(port, ends[0], POLLIN, 3) == 0);
	CHECK(port_dissociate(port, PORT_SOURCE_FD, ends[0]) == 0);
	close(port);
}

static void a_child_that_closes_a_descriptor_leaves_the_parents_association(void)
{
	int port = new_port();
	int ends[2];

	new_pipe(ends);
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	IN_CHILD(CHECK(close(ends[0]) == 0));
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 1);
	close(port);
}

static void numbers_of_different_files_are_different_objects(void)
{
	int port = new_port();
	int ours[2];
	int back[2];
	char byte;
	pid_t child;

	new_pipe(ours);
	new_pipe(back);
	CHECK(associate(port, ours[0], POLLIN, 1) == 0);
	child = fork();
	if (child == 0) {
		int theirs[2];

		new_pipe(theirs);
		CHECK(dup2(theirs[0], ours[0]) == ours[0]);
		CHECK(associate(port, ours[0], POLLIN, 2) == 0);
		CHECK(write(back[1], "x", 1) == 1);
		pause();
		_exit(0);
	}
	CHECK(read(back[0], &byte, 1) == 1);
	/* The child has associated; the parent's own association is untouched. */
	CHECK(write(ours[1], "x", 1) == 1);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 1);
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
	nothing(port);
	close(port);
}

static void events_of_descriptors_that_a_process_lacks_stay_with_the_other(void)
{
	int port = new_port();
	int done[2];
	char byte;
	pid_t child;

	new_pipe(done);
	child = fork();
	if (child == 0) {
		int ends[2];

		new_pipe(ends);
		CHECK(write(ends[1], "x", 1) == 1);
		CHECK(dup2(ends[0], 700) == 700);
		CHECK(associate(port, 700, POLLIN, 9) == 0);
		/* The parent looks first. */
		CHECK(read(done[0], &byte, 1) == 1);
		CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 9);
		_exit(0);
	}
	usleep(5000);
	nothing(port);
	nothing(port);
	CHECK(write(done[1], "x", 1) == 1);
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	close(port);
}

static void what_a_process_associated_ends_with_its_close_of_the_port(void)
{
	int port = new_port();
	int ends[2];

	new_pipe(ends);
	IN_CHILD({
		CHECK(associate(port, ends[0], POLLIN, 1) == 0);
		CHECK(close(port) == 0);
		FAILS(port_send(port, 1, NULL), EBADF);
	});
	CHECK(write(ends[1], "x", 1) == 1);
	nothing(port);
	CHECK(port_send(port, 1, NULL) == 0);
	next_user(port, PORT_SOURCE_USER, NULL);
	close(port);
}

static void what_a_killed_process_associated_is_gone(void)
{
	int port = new_port();
	int ends[2];
	pid_t child;

	new_pipe(ends);
	child = fork();
	if (child == 0) {
		CHECK(associate(port, ends[0], POLLIN, 1) == 0);
		raise(SIGKILL);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	FAILS(port_dissociate(port, PORT_SOURCE_FD, ends[0]), ENOENT);
	/* The parent is the owner now, whether it has met the old association or not. */
	CHECK(associate(port, ends[0], POLLIN, 2) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 2);
	CHECK(associate(port, ends[0], POLLIN, 3) == 0);
	CHECK(port_dissociate(port, PORT_SOURCE_FD, ends[0]) == 0);
	IN_CHILD({
		CHECK(associate(port, ends[0], POLLIN, 4) == 0);
		_exit(0);
	});
	nothing(port);
	close(port);
}

static void processes_killed_at_any_moment_leave_a_port_that_works(void)
{
	int port = new_port();
	port_event_t list[64];
	uint_t nget;
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	for (int round = 0; round < 60; round++) {
		pid_t child = fork();

		if (child == 0) {
			for (;;) {
				port_send(port, 1, NULL);
				associate(port, ends[0], POLLIN, 1);
				nget = 1;
				port_getn(port, list, 64, &nget, &now);
			}
		}
		usleep(500 + 37 * round);
		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
	}
	do {
		nget = 1;
	} while (port_getn(port, list, 64, &nget, &now) == 0);
	CHECK(errno == ETIME);
	CHECK(port_send(port, 1, (void *)4) == 0);
	CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 4);
	CHECK(associate(port, ends[0], POLLIN, 5) == 0);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 5);
	close(port);
}

static void timers_stay_with_their_process(void)
{
	int port = new_port();
	port_notify_t notify = {port, (void *)5};
	struct sigevent event = {.sigev_notify = SIGEV_PORT};
	struct itimerspec soon_once = {.it_value = {0, 1000000}};
	timer_t timer;

	event.sigev_value.sival_ptr = &notify;
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &soon_once, NULL) == 0);
	IN_CHILD({
		usleep(3000);
		nothing(port);
		nothing(port);
		FAILS(timer_settime(timer, 0, &soon_once, NULL), EINVAL);
	});
	CHECK(next_user(port, PORT_SOURCE_TIMER, NULL) == 5);
	close(port);
}

static void watches_of_files_stay_with_their_process(void)
{
	int port = new_port();
	char name[] = "/tmp/portsXXXXXX";
	int fd = mkstemp(name);
	struct stat status;
	file_obj_t file = {.fo_name = name};

	CHECK(fd >= 0 && fstat(fd, &status) == 0);
	file.fo_mtime = status.st_mtim;
	CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_MODIFIED, (void *)5) ==
	      0);
	IN_CHILD({
		CHECK(write(fd, "x", 1) == 1);
		nothing(port);
		nothing(port);
		FAILS(port_dissociate(port, PORT_SOURCE_FILE, (uintptr_t)&file), ENOENT);
	});
	CHECK(next_user(port, PORT_SOURCE_FILE, NULL) == 5);
	unlink(name);
	close(fd);
	close(port);
}

static void *wait_for_ever(void *argument)
{
	port_event_t event;

	port_get(*(int *)argument, &event, NULL);
	return NULL;
}

static void a_fork_while_threads_wait_gives_the_child_a_port_that_works(void)
{
	int port = new_port();
	pthread_t threads[3];

	for (int at = 0; at < 3; at++)
		CHECK(pthread_create(&threads[at], NULL, wait_for_ever, &port) == 0);
	for (int round = 0; round < 20; round++)
		IN_CHILD({
			int own = new_port();
			CHECK(port_send(own, 1, (void *)2) == 0);
			CHECK(next_user(own, PORT_SOURCE_USER, NULL) == 2);
			CHECK(associate(port, 0, 0, 1) == 0);
			CHECK(port_dissociate(port, PORT_SOURCE_FD, 0) == 0);
			CHECK(close(own) == 0 && close(port) == 0);
		});
	CHECK(port_alert(port, PORT_ALERT_SET, 1, NULL) == 0);
	for (int at = 0; at < 3; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	close(port);
}

static volatile int stops;

static void *send_and_receive(void *argument)
{
	int port = *(int *)argument;
	port_event_t event;

	while (!stops) {
		port_send(port, 1, NULL);
		port_get(port, &event, &now);
	}
	return NULL;
}

static void a_fork_while_threads_are_in_calls_gives_the_child_a_port_that_works(void)
{
	int port = new_port();
	pthread_t threads[2];

	for (int at = 0; at < 2; at++)
		CHECK(pthread_create(&threads[at], NULL, send_and_receive, &port) == 0);
	for (int round = 0; round < 100; round++)
		IN_CHILD({
			port_event_t event;
			int own = new_port();
			CHECK(port_send(port, 1, NULL) == 0);
			CHECK(port_get(port, &event, &now) == 0 || errno == ETIME);
			CHECK(port_send(own, 1, (void *)2) == 0);
			CHECK(next_user(own, PORT_SOURCE_USER, NULL) == 2);
			CHECK(close(own) == 0 && close(port) == 0);
		});
	stops = 1;
	for (int at = 0; at < 2; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	close(port);
}

static void a_child_in_its_parents_memory_closes_nothing_of_it(void)
{
	int port = new_port();
	int ends[2];
	int status;
	pid_t child;

	new_pipe(ends);
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	child = vfork();
	if (child == 0) {
		close(ends[0]);
		close(port);
		dup2(2, ends[0]);
		close_range(3, ~0U, 0);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 1);
	close(port);
}

static void a_program_that_is_started_has_no_port(void)
{
	int port = new_port();

	CHECK(fcntl(port, F_GETFD) == FD_CLOEXEC);
	close(port);
}

MAIN(CASE(sent_events_go_from_child_to_parent_and_back),
     CASE(a_parent_that_waits_is_woken_by_its_child), CASE(alerts_are_seen_by_both),
     CASE(events_of_inherited_descriptors_can_be_retrieved_by_both),
     CASE(only_the_owner_dissociates),
     CASE(a_child_that_closes_a_descriptor_leaves_the_parents_association),
     CASE(numbers_of_different_files_are_different_objects),
     CASE(events_of_descriptors_that_a_process_lacks_stay_with_the_other),
     CASE(what_a_process_associated_ends_with_its_close_of_the_port),
     CASE(what_a_killed_process_associated_is_gone),
     CASE(processes_killed_at_any_moment_leave_a_port_that_works),
     CASE(timers_stay_with_their_process), CASE(watches_of_files_stay_with_their_process),
     CASE(a_fork_while_threads_wait_gives_the_child_a_port_that_works),
     CASE(a_fork_while_threads_are_in_calls_gives_the_child_a_port_that_works),
     CASE(a_child_in_its_parents_memory_closes_nothing_of_it),
     CASE(a_program_that_is_started_has_no_port))
