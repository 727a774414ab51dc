/* Ports: sentences of the manual pages that no other program has a case of. */
#include "test.h"
#include <limits.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

static const timespec_t day = {86400, 0};

static void a_whole_second_of_nanoseconds_is_a_timeout(void)
{
	const timespec_t second = {0, 1000000000};
	int port = new_port();
	port_event_t event;
	uint_t nget = 1;

	CHECK(port_send(port, 1, NULL) == 0 && port_send(port, 1, NULL) == 0);
	CHECK(port_get(port, &event, &second) == 0);
	CHECK(port_getn(port, &event, 1, &nget, &second) == 0);
	close(port);
}

static int shared;

static void *send_one(void *argument)
{
	(void)argument;
	nanosleep(&soon, NULL);
	CHECK(port_send(shared, 7, NULL) == 0);
	return NULL;
}

static void a_wait_ends_with_an_event_however_long_it_may_last(void)
{
	const timespec_t times[] = {{86400, 0}, {LONG_MAX, 999999999}, {LONG_MAX / 2, 0}};
	port_event_t list[2];
	pthread_t thread;
	uint_t nget;

	shared = new_port();
	for (int at = 0; at < 3; at++) {
		CHECK(pthread_create(&thread, NULL, send_one, NULL) == 0);
		CHECK(port_get(shared, list, &times[at]) == 0 && list[0].portev_events == 7);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(pthread_create(&thread, NULL, send_one, NULL) == 0);
		CHECK(port_send(shared, 1, NULL) == 0);
		nget = 2;
		CHECK(port_getn(shared, list, 2, &nget, &times[at]) == 0 && nget == 2);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	close(shared);
}

static void a_count_looks_at_nothing_else(void)
{
	const timespec_t bad = {-1, -1};
	int port = new_port();
	uint_t nget = UINT_MAX;

	CHECK(port_send(port, 1, NULL) == 0);
	CHECK(port_getn(port, NULL, 0, &nget, &bad) == 0 && nget == 1);
	close(port);
}

static void what_is_sent_in_alert_mode_is_counted_and_the_alert_is_not(void)
{
	int port = new_port();
	uint_t nget = 0;

	CHECK(port_alert(port, PORT_ALERT_SET, 9, NULL) == 0);
	CHECK(port_send(port, 1, NULL) == 0 && port_send(port, 1, NULL) == 0);
	CHECK(port_getn(port, NULL, 0, &nget, NULL) == 0 && nget == 2);
	close(port);
}

static void getn_in_alert_mode_returns_the_alert_alone(void)
{
	int port = new_port();
	port_event_t list[4];
	uint_t nget = 3;

	for (int at = 0; at < 4; at++)
		CHECK(port_send(port, 1, NULL) == 0);
	CHECK(port_alert(port, PORT_ALERT_UPDATE, 9, list) == 0);
	memset(list, 0x5a, sizeof(list));
	CHECK(port_getn(port, list, 4, &nget, NULL) == 0 && nget == 1);
	CHECK(list[0].portev_source == PORT_SOURCE_ALERT && list[0].portev_events == 9);
	CHECK(list[0].portev_user == list && list[1].portev_events == 0x5a5a5a5a);
	close(port);
}

static void an_alert_that_has_ended_can_be_entered_again(void)
{
	int port = new_port();

	for (long round = 1; round < 4; round++) {
		CHECK(port_alert(port, PORT_ALERT_UPDATE, 1, (void *)round) == 0);
		FAILS(port_alert(port, PORT_ALERT_UPDATE, 2, (void *)-1L), EBUSY);
		CHECK(next_user(port, PORT_SOURCE_ALERT, NULL) == round);
		CHECK(port_alert(port, PORT_ALERT_UPDATE, 0, NULL) == 0);
		nothing(port);
	}
	/* The mode that there is not can be ended, too. */
	CHECK(port_alert(port, PORT_ALERT_SET, 0, NULL) == 0);
	nothing(port);
	close(port);
}

static void descriptors_and_timers_wait_for_the_end_of_alert_mode(void)
{
	int port = new_port();
	port_notify_t notify = {port, (void *)2};
	struct sigevent event = {.sigev_notify = SIGEV_PORT};
	struct itimerspec at_once = {.it_value = {0, 1}};
	struct pollfd expired = {.fd = port, .events = POLLIN};
	port_event_t list[2];
	uint_t nget = 2;
	timer_t timer;
	int ends[2];

	new_pipe(ends);
	event.sigev_value.sival_ptr = &notify;
	CHECK(port_alert(port, PORT_ALERT_SET, 1, NULL) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &at_once, NULL) == 0);
	next_user(port, PORT_SOURCE_ALERT, NULL);
	CHECK(poll(&expired, 1, -1) == 1);
	CHECK(port_alert(port, PORT_ALERT_SET, 0, NULL) == 0);
	CHECK(port_getn(port, list, 2, &nget, NULL) == 0 && nget == 2);
	CHECK((long)list[0].portev_user + (long)list[1].portev_user == 3);
	timer_delete(timer);
	close(port);
}

static void *want_two(void *argument)
{
	static port_event_t list[2];
	uint_t nget = 2;

	(void)argument;
	if (port_getn(shared, list, 2, &nget, &day))
		return (void *)(long)errno;
	CHECK(nget == 1 && list[0].portev_source == PORT_SOURCE_ALERT);
	return list;
}

/* A thread that finds one event where it wants two sleeps otherwise than on an empty port. */
static void an_alert_and_a_close_end_a_wait_for_more_events_than_there_are(void)
{
	pthread_t thread;
	void *result;

	shared = new_port();
	CHECK(port_send(shared, 1, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, want_two, NULL) == 0);
	nanosleep(&soon, NULL);
	CHECK(port_alert(shared, PORT_ALERT_SET, 1, NULL) == 0);
	CHECK(pthread_join(thread, &result) == 0 && result != (void *)(long)EBADFD);
	CHECK(port_alert(shared, PORT_ALERT_SET, 0, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, want_two, NULL) == 0);
	nanosleep(&soon, NULL);
	CHECK(close(shared) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	CHECK(result == (void *)(long)EBADFD || result == (void *)(long)EBADF);
}

static void a_close_frees_all_that_the_port_has(void)
{
	char name[] = "/tmp/portsXXXXXX";
	file_obj_t file = {.fo_name = name};
	int fd = mkstemp(name);
	int before;
	int ends[2];

	CHECK(fd >= 0);
	new_pipe(ends);
	before = open_descriptors();
	for (int round = 0; round < 20; round++) {
		int port = new_port();
		port_notify_t notify = {port, NULL};
		struct sigevent event = {.sigev_notify = SIGEV_PORT};
		timer_t timer;

		event.sigev_value.sival_ptr = &notify;
		CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
		CHECK(associate(port, ends[0], POLLIN, 0) == 0);
		CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, 0) ==
		      0);
		CHECK(port_send(port, 1, NULL) == 0);
		CHECK(close(port) == 0);
	}
	CHECK(open_descriptors() == before);
	unlink(name);
	close(fd);
}

static void there_is_a_limit_of_ports(void)
{
	int ports[300];
	int count = 0;
	int before;

	while (count < 300 && (ports[count] = port_create()) >= 0)
		count++;
	CHECK(count < 300 && errno == EMFILE);
	before = open_descriptors();
	FAILS(port_create(), EMFILE);
	CHECK(open_descriptors() == before);
	/* One that is closed makes room for one. */
	CHECK(close(ports[--count]) == 0);
	ports[count] = new_port();
	CHECK(port_send(ports[count], 1, NULL) == 0);
	for (int at = 0; at <= count; at++)
		CHECK(close(ports[at]) == 0);
}

static void a_name_is_read_at_the_association_only(void)
{
	int port = new_port();
	char name[] = "/tmp/portsXXXXXX";
	char other[sizeof(name)];
	file_obj_t file = {.fo_name = other};
	struct stat status;
	int fd = mkstemp(name);

	CHECK(fd >= 0 && fstat(fd, &status) == 0);
	memcpy(other, name, sizeof(name));
	file.fo_mtime = status.st_mtim;
	CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_MODIFIED, (void *)3) ==
	      0);
	memset(other, 'x', sizeof(other) - 1);
	file.fo_name = NULL;
	CHECK(write(fd, "x", 1) == 1);
	CHECK(next_user(port, PORT_SOURCE_FILE, NULL) == 3);
	unlink(name);
	close(fd);
	close(port);
}

static void one_object_is_watched_by_two_ports_and_by_another_name_next(void)
{
	int ports[2] = {new_port(), new_port()};
	char names[2][20] = {"/tmp/portsXXXXXX", "/tmp/portsXXXXXX"};
	file_obj_t file = {.fo_name = names[0]};
	int fds[2] = {mkstemp(names[0]), mkstemp(names[1])};
	struct stat status;
	int events;

	CHECK(fds[0] >= 0 && fds[1] >= 0);
	CHECK(fstat(fds[0], &status) == 0);
	file.fo_mtime = status.st_mtim;
	for (long at = 0; at < 2; at++)
		CHECK(port_associate(ports[at], PORT_SOURCE_FILE, (uintptr_t)&file, FILE_MODIFIED,
				     (void *)at) == 0);
	CHECK(write(fds[0], "x", 1) == 1);
	CHECK(next_user(ports[0], PORT_SOURCE_FILE, &events) == 0 && events == FILE_MODIFIED);
	CHECK(next_user(ports[1], PORT_SOURCE_FILE, &events) == 1 && events == FILE_MODIFIED);
	/* The object's association is of the second file now, and of the first one no more. */
	CHECK(fstat(fds[0], &status) == 0);
	file.fo_mtime = status.st_mtim;
	CHECK(port_associate(ports[0], PORT_SOURCE_FILE, (uintptr_t)&file, FILE_MODIFIED, 0) == 0);
	CHECK(fstat(fds[1], &status) == 0);
	file.fo_mtime = status.st_mtim;
	file.fo_name = names[1];
	CHECK(port_associate(ports[0], PORT_SOURCE_FILE, (uintptr_t)&file, FILE_MODIFIED,
			     (void *)5) == 0);
	CHECK(write(fds[0], "x", 1) == 1);
	nothing(ports[0]);
	CHECK(write(fds[1], "x", 1) == 1);
	CHECK(next_user(ports[0], PORT_SOURCE_FILE, NULL) == 5);
	for (int at = 0; at < 2; at++) {
		unlink(names[at]);
		close(fds[at]);
		close(ports[at]);
	}
}

static void names_that_lead_nowhere_are_refused(void)
{
	int port = new_port();
	char folder[] = "/tmp/portsXXXXXX";
	char name[PATH_MAX];
	char longest[300];
	file_obj_t file = {.fo_name = name};

	CHECK(mkdtemp(folder) != NULL);
	snprintf(name, sizeof(name), "%s/loop", folder);
	CHECK(symlink(name, name) == 0);
	FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, NULL), ELOOP);
	/* The link itself is there. */
	CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS | FILE_NOFOLLOW,
			     NULL) == 0);
	CHECK(port_dissociate(port, PORT_SOURCE_FILE, (uintptr_t)&file) == 0);
	unlink(name);
	file.fo_name = "/proc/self/stat/none";
	FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, NULL), ENOTDIR);
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = 0;
	file.fo_name = longest;
	FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ACCESS, NULL),
	      ENAMETOOLONG);
	rmdir(folder);
	close(port);
}

static void a_relative_name_is_of_the_directory_at_the_association(void)
{
	IN_CHILD({
		char folder[] = "/tmp/portsXXXXXX";
		struct stat status;
		file_obj_t file = {.fo_name = "file"};
		int port = new_port();
		int fd;
		CHECK(mkdtemp(folder) != NULL && chdir(folder) == 0);
		fd = open("file", O_CREAT | O_RDWR, 0600);
		CHECK(fd >= 0 && fstat(fd, &status) == 0);
		file.fo_mtime = status.st_mtim;
		CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_MODIFIED,
				     (void *)4) == 0);
		CHECK(chdir("/") == 0);
		CHECK(write(fd, "x", 1) == 1);
		CHECK(next_user(port, PORT_SOURCE_FILE, NULL) == 4);
		CHECK(chdir(folder) == 0 && unlink("file") == 0);
		CHECK(rmdir(folder) == 0);
	});
}

static void there_is_a_limit_of_objects(void)
{
	int port = new_port();
	char name[] = "/tmp/portsXXXXXX";
	file_obj_t *objects = calloc(70000, sizeof(file_obj_t));
	struct stat status;
	int fd = mkstemp(name);
	int count = 0;
	int ends[2];

	CHECK(fd >= 0 && fstat(fd, &status) == 0);
	new_pipe(ends);
	for (; count < 70000; count++) {
		objects[count].fo_name = name;
		objects[count].fo_mtime = status.st_mtim;
		if (port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&objects[count],
				   FILE_MODIFIED, NULL))
			break;
	}
	CHECK(count < 65536 && count > 65000 && errno == EAGAIN);
	FAILS(associate(port, ends[0], POLLIN, 0), EAGAIN);
	/* One that there is can be changed, and one that is gone makes room. */
	CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&objects[7], FILE_ATTRIB, NULL) ==
	      0);
	CHECK(port_dissociate(port, PORT_SOURCE_FILE, (uintptr_t)&objects[8]) == 0);
	CHECK(associate(port, ends[0], POLLIN, 0) == 0);
	CHECK(close(port) == 0);
	unlink(name);
	close(fd);
	free(objects);
}

static void urgent_data_is_pollpri(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	int port = new_port();
	int server;
	int events;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
	CHECK(connect(client, (struct sockaddr *)&address, length) == 0);
	server = accept(listener, NULL, NULL);
	CHECK(server >= 0);
	CHECK(associate(port, server, POLLPRI, 1) == 0);
	CHECK(send(client, "x", 1, 0) == 1);
	CHECK(send(client, "!", 1, MSG_OOB) == 1);
	CHECK(next_user(port, PORT_SOURCE_FD, &events) == 1 && events == POLLPRI);
	CHECK(associate(port, server, POLLRDNORM | POLLIN, 2) == 0);
	CHECK(next_user(port, PORT_SOURCE_FD, &events) == 2 && events == (POLLIN | POLLRDNORM));
	close(client);
	close(server);
	close(listener);
	close(port);
}

static void errors_and_hang_ups_cannot_be_asked_for(void)
{
	int port = new_port();
	int ends[2];
	int events;

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(associate(port, ends[0], POLLHUP | POLLERR | POLLNVAL, 1) == 0);
	nothing(port);
	CHECK(close(ends[1]) == 0);
	CHECK(next_user(port, PORT_SOURCE_FD, &events) == 1 && events == POLLHUP);
	close(ends[0]);
	close(port);
}

static void a_port_is_no_object_of_itself(void)
{
	int port = new_port();
	int other = new_port();

	FAILS(associate(port, port, POLLIN, 0), EINVAL);
	CHECK(associate(port, other, POLLIN, 5) == 0);
	/* It would be told of for ever what it tells. */
	FAILS(associate(other, port, POLLIN, 0), EINVAL);
	CHECK(port_send(other, 1, NULL) == 0);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 5);
	close(port);
	close(other);
}

static void a_long_list_of_ports_gets_an_event_for_each_entry(void)
{
	int ports[2000];
	int errors[2000];
	port_event_t list[2000];
	uint_t nget = 2000;

	ports[0] = new_port();
	for (int at = 0; at < 2000; at++)
		ports[at] = ports[0];
	CHECK(port_sendn(ports, errors, 2000, 3, list) == 2000);
	CHECK(port_getn(ports[0], list, 2000, &nget, NULL) == 0 && nget == 2000);
	CHECK(list[1999].portev_user == list && list[1999].portev_events == 3);
	close(ports[0]);
}

static void a_timer_whose_time_has_passed_expires_at_once_and_names_itself(void)
{
	int port = new_port();
	port_notify_t notify = {port, (void *)6};
	struct sigevent event = {.sigev_notify = SIGEV_PORT};
	struct itimerspec past = {.it_value = {1, 0}};
	port_event_t got;
	timer_t timer;

	event.sigev_value.sival_ptr = &notify;
	CHECK(timer_create(CLOCK_REALTIME, &event, &timer) == 0);
	/* What it was given is read when it is made. */
	notify = (port_notify_t){-1, NULL};
	CHECK(timer_settime(timer, TIMER_ABSTIME, &past, NULL) == 0);
	CHECK(port_get(port, &got, &day) == 0);
	CHECK(got.portev_source == PORT_SOURCE_TIMER && got.portev_user == (void *)6);
	CHECK(got.portev_object == (uintptr_t)timer && got.portev_events == 1);
	nothing(port);
	CHECK(timer_delete(timer) == 0);
	close(port);
}

MAIN(CASE(a_whole_second_of_nanoseconds_is_a_timeout),
     CASE(a_wait_ends_with_an_event_however_long_it_may_last), CASE(a_count_looks_at_nothing_else),
     CASE(what_is_sent_in_alert_mode_is_counted_and_the_alert_is_not),
     CASE(getn_in_alert_mode_returns_the_alert_alone),
     CASE(an_alert_that_has_ended_can_be_entered_again),
     CASE(descriptors_and_timers_wait_for_the_end_of_alert_mode),
     CASE(an_alert_and_a_close_end_a_wait_for_more_events_than_there_are),
     CASE(a_close_frees_all_that_the_port_has), CASE(there_is_a_limit_of_ports),
     CASE(a_name_is_read_at_the_association_only),
     CASE(one_object_is_watched_by_two_ports_and_by_another_name_next),
     CASE(names_that_lead_nowhere_are_refused),
     CASE(a_relative_name_is_of_the_directory_at_the_association),
     CASE(there_is_a_limit_of_objects), CASE(urgent_data_is_pollpri),
     CASE(errors_and_hang_ups_cannot_be_asked_for), CASE(a_port_is_no_object_of_itself),
     CASE(a_long_list_of_ports_gets_an_event_for_each_entry),
     CASE(a_timer_whose_time_has_passed_expires_at_once_and_names_itself))
