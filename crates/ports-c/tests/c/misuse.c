/* Ports and sets: descriptors at the worst moment, limits, and processes that are killed. */
#include "test.h"
#include <sys/devpoll.h>
#include <sys/event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void a_port_can_be_descriptor_0(void)
{
	IN_CHILD({
		int ends[2];
		new_pipe(ends);
		int port = new_port();
		CHECK(dup2(port, 0) == 0 && close(port) == 0);
		CHECK(associate(0, ends[0], POLLIN, 5) == 0);
		CHECK(write(ends[1], "x", 1) == 1);
		CHECK(next_user(0, PORT_SOURCE_FD, NULL) == 5);
		CHECK(close(0) == 0);
		FAILS(port_send(0, 1, NULL), EBADF);
	});
}

static int by_dup2(int fd)
{
	int copy = dup(2);

	CHECK(dup2(fd, copy) == copy);
	return copy;
}

static int by_fcntl(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 300);
}

static void send_descriptor(int through, int fd)
{
	struct cmsghdr *header;
	char control[CMSG_SPACE(sizeof(int))] = {0};
	char byte = 'x';
	struct iovec bytes = {&byte, 1};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};

	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	CHECK(sendmsg(through, &message, 0) == 1);
}

static int receive_descriptor(int through)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	char byte;
	struct iovec bytes = {&byte, 1};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	int fd;

	CHECK(recvmsg(through, &message, 0) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

static void a_port_that_came_through_a_socket_is_none_elsewhere(void)
{
	int port;
	int ends[2];
	int status;
	pid_t child;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	child = fork();
	if (child == 0) {
		int got = receive_descriptor(ends[1]);

		FAILS(port_send(got, 1, NULL), EBADFD);
		CHECK(close(got) == 0);
		_exit(0);
	}
	port = new_port();
	send_descriptor(ends[0], port);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	nothing(port);
	/* In its own process it is the port. */
	send_descriptor(ends[0], port);
	CHECK(port_send(receive_descriptor(ends[1]), 1, (void *)6) == 0);
	CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 6);
	close(port);
}

static void a_close_dissociates_though_a_child_has_the_descriptor(void)
{
	int port = new_port();
	int ends[2];
	int go[2];
	pid_t child;

	new_pipe(ends);
	new_pipe(go);
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	child = fork();
	if (child == 0) {
		char byte;

		close(go[1]);
		_exit(read(go[0], &byte, 1) != 0);
	}
	CHECK(close(ends[0]) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	nothing(port);
	FAILS(port_dissociate(port, PORT_SOURCE_FD, ends[0]), EBADFD);
	close(go[1]);
	CHECK(waitpid(child, NULL, 0) == child);
	close(port);
}

static void a_port_in_the_place_of_its_own_object_ends_the_association(void)
{
	int port = new_port();
	int ends[2];

	new_pipe(ends);
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	CHECK(dup2(port, ends[0]) == ends[0]);
	CHECK(port_send(ends[0], 1, (void *)2) == 0);
	CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 2);
	nothing(port);
	FAILS(port_dissociate(port, PORT_SOURCE_FD, ends[0]), ENOENT);
	close(port);
	CHECK(port_send(ends[0], 1, (void *)3) == 0);
	CHECK(next_user(ends[0], PORT_SOURCE_USER, NULL) == 3);
	close(ends[0]);
}

static void a_duplicate_that_was_never_used_is_the_port_set_or_queue(void)
{
	static int (*const copies[])(int) = {dup, by_dup2, by_fcntl};
	struct pollfd entry = {.fd = 2, .events = POLLOUT};
	struct kevent change;

	for (int at = 0; at < 3; at++) {
		struct pollfd list[2];
		struct dvpoll request = {.dp_fds = list, .dp_nfds = 2, .dp_timeout = 0};
		int port = new_port();
		int set = open("/dev/poll", O_RDWR);
		int queue = kqueue();
		int copy;

		CHECK(port_send(port, 1, (void *)5) == 0);
		copy = copies[at](port);
		CHECK(close(port) == 0);
		CHECK(next_user(copy, PORT_SOURCE_USER, NULL) == 5);
		CHECK(port_send(copy, 1, (void *)6) == 0);
		CHECK(next_user(copy, PORT_SOURCE_USER, NULL) == 6);
		CHECK(close(copy) == 0);
		FAILS(port_send(copy, 1, NULL), EBADF);
		CHECK(write(set, &entry, sizeof(entry)) == sizeof(entry));
		copy = copies[at](set);
		/* With everything between them, and not the copy. */
		CHECK(close_range(set, set, 0) == 0);
		CHECK(ioctl(copy, DP_POLL, &request) >= 0);
		CHECK(close(copy) == 0);
		EV_SET(&change, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
		CHECK(kevent(queue, &change, 1, NULL, 0, NULL) == 0);
		copy = copies[at](queue);
		CHECK(dup2(2, queue) == queue);
		CHECK(kevent(copy, NULL, 0, &change, 1, &now) == 1 && change.ident == 1);
		CHECK(close(copy) == 0);
		FAILS(kevent(copy, NULL, 0, &change, 1, &now), EBADF);
		close(queue);
	}
}

static void duplicates_that_are_closed_together_end_the_port(void)
{
	IN_CHILD({
		int port = new_port();
		int copy = fcntl(port, F_DUPFD, 500);
		int next;
		CHECK(copy >= 500);
		CHECK(close_range(port, copy, 0) == 0);
		/* Neither number is a port to whatever opens it next. */
		next = fcntl(2, F_DUPFD, 500);
		CHECK(next == copy);
		FAILS(port_send(copy, 1, NULL), EBADFD);
		port = new_port();
		CHECK(port_send(port, 1, NULL) == 0);
	});
}

static void another_port_in_its_place_is_another_port(void)
{
	int port = new_port();
	int other = new_port();

	CHECK(port_send(port, 1, (void *)1) == 0);
	CHECK(port_send(other, 1, (void *)2) == 0);
	CHECK(dup2(other, port) == port);
	CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 2);
	nothing(other);
	close(port);
	close(other);
}

static int replaced;

static void *wait_for_the_end(void *argument)
{
	port_event_t event;

	(void)argument;
	/* Its port ends with its last descriptor, and the number is another one's. */
	FAILS(port_get(replaced, &event, NULL), EBADFD);
	return NULL;
}

static void a_port_that_is_replaced_ends_the_waits_in_it(void)
{
	pthread_t thread;

	replaced = new_port();
	CHECK(pthread_create(&thread, NULL, wait_for_the_end, NULL) == 0);
	nanosleep(&soon, NULL);
	CHECK(dup2(2, replaced) == replaced);
	CHECK(pthread_join(thread, NULL) == 0);
	FAILS(port_send(replaced, 1, NULL), EBADFD);
	close(replaced);
}

static void a_limit_that_is_lowered_leaves_what_is_there(void)
{
	IN_CHILD({
		struct rlimit limit = {8, 8};
		int port = new_port();
		int high = fcntl(port, F_DUPFD, 100);
		int ends[2];

		new_pipe(ends);
		ends[0] = fcntl(ends[0], F_DUPFD, 101);
		CHECK(high >= 100 && ends[0] >= 101);
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		/* Also what is associated from now on. */
		CHECK(associate(high, ends[0], POLLIN, 4) == 0);
		CHECK(write(ends[1], "x", 1) == 1);
		CHECK(next_user(high, PORT_SOURCE_FD, NULL) == 4);
		FAILS(port_create(), EMFILE);
	});
}

static void without_descriptors_the_port_works_and_says_what_does_not(void)
{
	IN_CHILD({
		int port = new_port();
		port_notify_t notify = {port, NULL};
		struct sigevent event = {.sigev_notify = SIGEV_PORT};
		file_obj_t file = {.fo_name = "/tmp"};
		timer_t timer;
		int last = 0;

		event.sigev_value.sival_ptr = &notify;
		while (last >= 0)
			last = dup(2);
		FAILS(timer_create(CLOCK_MONOTONIC, &event, &timer), EAGAIN);
		FAILS(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ATTRIB, NULL),
		      EAGAIN);
		FAILS(port_dissociate(port, PORT_SOURCE_FILE, (uintptr_t)&file), ENOENT);
		CHECK(port_send(port, 1, (void *)3) == 0);
		CHECK(associate(port, 100, 0, 4) == 0);
		CHECK(next_user(port, PORT_SOURCE_USER, NULL) == 3);
		close(100);
		CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
		CHECK(timer_delete(timer) == 0);
	});
}

static void every_port_of_a_list_has_its_own_error(void)
{
	int ends[2];
	int ports[6] = {new_port(), new_port(), -1, 0, new_port(), new_port()};
	int errors[6];

	new_pipe(ends);
	ports[3] = ends[0];
	CHECK(close(ports[4]) == 0);
	while (port_send(ports[1], 1, NULL) == 0)
		;
	memset(errors, 0x5a, sizeof(errors));
	CHECK(port_sendn(ports, errors, 6, 1, (void *)8) == 2);
	CHECK(errors[0] == 0 && errors[1] == EAGAIN && errors[2] == EBADF);
	CHECK(errors[3] == EBADFD && errors[4] == EBADF && errors[5] == 0);
	CHECK(next_user(ports[0], PORT_SOURCE_USER, NULL) == 8);
	CHECK(next_user(ports[5], PORT_SOURCE_USER, NULL) == 8);
	/* None at all. */
	CHECK(port_sendn(ports + 2, errors, 3, 1, NULL) == 0);
	CHECK(errors[0] == EBADF && errors[1] == EBADFD && errors[2] == EBADF);
	close(ports[0]);
	close(ports[1]);
	close(ports[5]);
}

static void a_full_port_takes_descriptors_and_alerts(void)
{
	int port = new_port();
	port_event_t event;
	int ends[2];

	new_pipe(ends);
	CHECK(write(ends[1], "x", 1) == 1);
	while (port_send(port, 1, NULL) == 0)
		;
	CHECK(errno == EAGAIN);
	/* The room of objects is another one. */
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	CHECK(port_alert(port, PORT_ALERT_SET, 2, (void *)7) == 0);
	CHECK(next_user(port, PORT_SOURCE_ALERT, NULL) == 7);
	CHECK(port_alert(port, PORT_ALERT_SET, 0, NULL) == 0);
	for (int at = 0; at < 65537; at++)
		CHECK(port_get(port, &event, &now) == 0);
	nothing(port);
	close(port);
}

static void a_set_is_of_the_process_that_opened_it_also_through_a_socket(void)
{
	int ends[2];
	int status;
	int set;
	struct pollfd entry = {.fd = 2, .events = POLLOUT};
	pid_t child;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	child = fork();
	if (child == 0) {
		struct dvpoll request = {.dp_fds = &entry, .dp_nfds = 1, .dp_timeout = 0};
		int got = receive_descriptor(ends[1]);

		/* It is an epoll set there, which takes neither. */
		CHECK(write(got, &entry, sizeof(entry)) == -1);
		CHECK(ioctl(got, DP_POLL, &request) == -1);
		_exit(0);
	}
	set = open("/dev/poll", O_RDWR);
	CHECK(write(set, &entry, sizeof(entry)) == sizeof(entry));
	send_descriptor(ends[0], set);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	close(set);
}

/* What is mapped or open, is a file with a name, and was not so before. */
static int named_things(const char *folder, char (*names)[512], int count)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	int found = 0;

	CHECK(directory);
	while ((entry = readdir(directory))) {
		char path[400];
		char name[512] = "";
		struct stat status;
		int is_known = 0;

		snprintf(path, sizeof(path), "%.100s/%.250s", folder, entry->d_name);
		if (readlink(path, name, sizeof(name) - 1) <= 0 || name[0] != '/')
			continue;
		/* One without a name any more ends with its last user. */
		if (stat(name, &status) != 0)
			continue;
		for (int at = 0; at < count; at++)
			is_known |= !strcmp(names[at], name);
		if (!is_known && names && found < 64 && count == 0)
			strcpy(names[found], name);
		found += !is_known;
	}
	closedir(directory);
	return found;
}

static int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int count = 0;

	CHECK(tasks);
	while ((task = readdir(tasks)))
		count += task->d_name[0] != '.';
	closedir(tasks);
	return count;
}

static void a_process_that_is_killed_leaves_nothing(void)
{
	char fds[64][512];
	char maps[64][512];
	int go[2];
	char byte;
	int status;
	pid_t child;

	new_pipe(go);
	child = fork();
	if (child == 0) {
		int counts[2] = {named_things("/proc/self/fd", fds, 0),
				 named_things("/proc/self/map_files", maps, 0)};
		int threads_before = threads();
		int port = new_port();
		int set = open("/dev/poll", O_RDWR);
		int queue = kqueue();
		port_notify_t notify = {port, NULL};
		struct sigevent event = {.sigev_notify = SIGEV_PORT};
		struct pollfd entry = {.fd = go[0], .events = POLLIN};
		file_obj_t file = {.fo_name = "/tmp"};
		struct kevent change;
		timer_t timer;

		event.sigev_value.sival_ptr = &notify;
		CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
		CHECK(port_associate(port, PORT_SOURCE_FILE, (uintptr_t)&file, FILE_ATTRIB, NULL) ==
		      0);
		CHECK(associate(port, go[0], POLLIN, 1) == 0 && port_send(port, 1, NULL) == 0);
		CHECK(write(set, &entry, sizeof(entry)) == sizeof(entry));
		EV_SET(&change, getppid(), EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
		CHECK(kevent(queue, &change, 1, NULL, 0, NULL) == 0);
		EV_SET(&change, SIGUSR1, EVFILT_SIGNAL, EV_ADD, 0, 0, NULL);
		CHECK(kevent(queue, &change, 1, NULL, 0, NULL) == 0);
		/* Nothing of it has a name, a thread or a process. */
		CHECK(counts[0] < 64 && counts[1] < 64);
		CHECK(named_things("/proc/self/fd", fds, counts[0]) == 0);
		CHECK(named_things("/proc/self/map_files", maps, counts[1]) == 0);
		CHECK(threads() == threads_before);
		FAILS(waitpid(-1, NULL, WNOHANG), ECHILD);
		CHECK(write(go[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	close(go[1]);
	CHECK(read(go[0], &byte, 1) == 1);
	kill(child, SIGKILL);
	CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL);
}

MAIN(CASE(a_port_can_be_descriptor_0), CASE(a_port_that_came_through_a_socket_is_none_elsewhere),
     CASE(a_close_dissociates_though_a_child_has_the_descriptor),
     CASE(a_port_in_the_place_of_its_own_object_ends_the_association),
     CASE(a_duplicate_that_was_never_used_is_the_port_set_or_queue),
     CASE(duplicates_that_are_closed_together_end_the_port),
     CASE(another_port_in_its_place_is_another_port),
     CASE(a_port_that_is_replaced_ends_the_waits_in_it),
     CASE(a_limit_that_is_lowered_leaves_what_is_there),
     CASE(without_descriptors_the_port_works_and_says_what_does_not),
     CASE(every_port_of_a_list_has_its_own_error), CASE(a_full_port_takes_descriptors_and_alerts),
     CASE(a_set_is_of_the_process_that_opened_it_also_through_a_socket),
     CASE(a_process_that_is_killed_leaves_nothing))
