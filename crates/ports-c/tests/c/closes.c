/*
 * Descriptors that are closed, by each function that closes, while a duplicate
 * keeps the file open: their association ends.
 */
#include "test.h"

/* A descriptor is associated and closed; the file, open by another, is ready then. */
#define CLOSED_BY(act)                                             \
	do {                                                       \
		int port = new_port();                             \
		int ends[2];                                       \
		int fd;                                            \
		int copy;                                          \
		new_pipe(ends);                                    \
		fd = ends[0];                                      \
		copy = dup(fd);                                    \
		CHECK(associate(port, fd, POLLIN, 1) == 0);        \
		act;                                               \
		CHECK(write(ends[1], "x", 1) == 1);                \
		nothing(port);                                     \
		CHECK(associate(port, copy, POLLIN, 2) == 0);      \
		CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 2); \
		close(copy);                                       \
		close(ends[1]);                                    \
		close(port);                                       \
	} while (0)

static void by_close(void)
{
	CLOSED_BY(CHECK(close(fd) == 0));
}

static void by_dup2(void)
{
	CLOSED_BY(CHECK(dup2(2, fd) == fd));
}

static void by_dup3(void)
{
	CLOSED_BY(CHECK(dup3(2, fd, O_CLOEXEC) == fd));
}

static void by_close_range(void)
{
	CLOSED_BY(CHECK(close_range(fd, fd, 0) == 0));
}

static void by_fclose(void)
{
	CLOSED_BY(CHECK(fclose(fdopen(fd, "r")) == 0));
}

static void not_by_a_dup2_that_fails(void)
{
	int port = new_port();
	int ends[2];

	new_pipe(ends);
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	FAILS(dup2(-1, ends[0]), EBADF);
	FAILS(dup2(999, ends[0]), EBADF);
	CHECK(dup2(ends[0], ends[0]) == ends[0]);
	CHECK(close_range(ends[0], ends[0], CLOSE_RANGE_CLOEXEC) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 1);
	close(port);
}

static void by_closedir(void)
{
	int port = new_port();
	DIR *directory = opendir("/");
	int fd = dirfd(directory);

	CHECK(associate(port, fd, POLLIN, 1) == 0);
	CHECK(closedir(directory) == 0);
	nothing(port);
	close(port);
}

static void an_event_that_was_not_retrieved_is_void(void)
{
	int port = new_port();
	int ends[2];
	int copy;
	uint_t nget;

	new_pipe(ends);
	copy = dup(ends[0]);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	CHECK(port_getn(port, NULL, 0, &nget, NULL) == 0 && nget == 1);
	close(ends[0]);
	CHECK(port_getn(port, NULL, 0, &nget, NULL) == 0 && nget == 0);
	nothing(port);
	close(copy);
	close(port);
}

static void a_number_that_is_reused_is_another_descriptor(void)
{
	int port = new_port();
	int first[2];
	int second[2];
	int copy;

	new_pipe(first);
	copy = dup(first[0]);
	CHECK(associate(port, first[0], POLLIN, 1) == 0);
	close(first[0]);
	CHECK(pipe(second) == 0 && second[0] == first[0]);
	CHECK(associate(port, second[0], POLLIN, 2) == 0);
	CHECK(write(first[1], "x", 1) == 1);
	nothing(port);
	FAILS(port_dissociate(port, PORT_SOURCE_FD, copy), ENOENT);
	CHECK(write(second[1], "x", 1) == 1);
	CHECK(next_user(port, PORT_SOURCE_FD, NULL) == 2);
	close(copy);
	close(port);
}

static void everything_from_a_number_on(void)
{
	IN_CHILD({
		int ends[2];
		int port = new_port();
		int copy;
		CHECK(dup2(port, 3) == 3);
		port = 3;
		new_pipe(ends);
		copy = fcntl(ends[0], F_DUPFD, 200);
		CHECK(associate(port, copy, POLLIN, 1) == 0);
		CHECK(write(ends[1], "x", 1) == 1);
		/* With what the library itself has open, ports included. */
		closefrom(3);
		FAILS(port_send(port, 1, NULL), EBADF);
		port = new_port();
		CHECK(port_send(port, 1, NULL) == 0);
	});
}

static void *wait_for_one(void *argument)
{
	int port = *(int *)argument;
	port_event_t event;

	if (port_get(port, &event, NULL) == 0)
		return NULL;
	return (void *)(long)errno;
}

/* A thread sleeps in a system call, as its /proc entry tells. */
static void until_asleep(pthread_t thread)
{
	char state[64] = "";
	char path[64];
	(void)thread;

	/* The process has two threads; the other one is not this one. */
	for (;;) {
		DIR *tasks = opendir("/proc/self/task");
		struct dirent *task;

		while ((task = readdir(tasks))) {
			FILE *file;

			if (atoi(task->d_name) <= 0 || atoi(task->d_name) == gettid())
				continue;
			snprintf(path, sizeof(path), "/proc/self/task/%.20s/syscall", task->d_name);
			file = fopen(path, "r");
			if (!file)
				continue;
			if (!fgets(state, sizeof(state), file))
				state[0] = 0;
			fclose(file);
			if (!strncmp(state, "232 ", 4) || !strncmp(state, "441 ", 4)) {
				closedir(tasks);
				return;
			}
		}
		closedir(tasks);
		usleep(1000);
	}
}

static void a_port_that_is_closed_by_another_thread_ends_the_wait(void)
{
	int port = new_port();
	pthread_t thread;
	void *result;

	CHECK(pthread_create(&thread, NULL, wait_for_one, &port) == 0);
	until_asleep(thread);
	CHECK(close(port) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	CHECK(result == (void *)(long)EBADFD);
}

static void a_port_with_another_descriptor_stays(void)
{
	int port = new_port();
	int copy = dup(port);
	pthread_t thread;
	void *result;

	CHECK(port_send(copy, 1, NULL) == 0);
	next_user(port, PORT_SOURCE_USER, NULL);
	CHECK(pthread_create(&thread, NULL, wait_for_one, &copy) == 0);
	until_asleep(thread);
	CHECK(close(port) == 0);
	CHECK(port_send(copy, 1, NULL) == 0);
	CHECK(pthread_join(thread, &result) == 0 && result == NULL);
	close(copy);
}

static void close_sets_errors_as_ever(void)
{
	FAILS(close(-1), EBADF);
	FAILS(close(100000), EBADF);
	FAILS(dup2(0, -1), EBADF);
	FAILS(dup3(1, 1, 0), EINVAL);
	FAILS(close_range(5, 4, 0), EINVAL);
}

static void what_succeeds_leaves_errno(void)
{
	int port = new_port();
	int ends[2];

	new_pipe(ends);
	CHECK(associate(port, ends[0], POLLIN, 1) == 0);
	CHECK(associate(port, ends[1], POLLOUT, 1) == 0);
	next_user(port, PORT_SOURCE_FD, NULL);
	errno = 77;
	CHECK(close(dup(2)) == 0 && errno == 77);
	CHECK(dup2(2, ends[0]) == ends[0] && errno == 77);
	CHECK(close(ends[0]) == 0 && errno == 77);
	CHECK(close_range(ends[1], ends[1], 0) == 0 && errno == 77);
	CHECK(close(port) == 0 && errno == 77);
}

MAIN(CASE(by_close), CASE(by_dup2), CASE(by_dup3), CASE(by_close_range), CASE(by_fclose),
     CASE(not_by_a_dup2_that_fails), CASE(by_closedir),
     CASE(an_event_that_was_not_retrieved_is_void),
     CASE(a_number_that_is_reused_is_another_descriptor), CASE(everything_from_a_number_on),
     CASE(a_port_that_is_closed_by_another_thread_ends_the_wait),
     CASE(a_port_with_another_descriptor_stays), CASE(close_sets_errors_as_ever),
     CASE(what_succeeds_leaves_errno))
