/*
 * What the programs of tests share: checks, and a main() that runs the cases
 * of the program one after another and names the one that failed.
 */
#ifndef TEST_H
#define TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <port.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(holds)                                                                          \
	do {                                                                                  \
		if (!(holds)) {                                                               \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #holds, \
				errno);                                                       \
			_exit(1);                                                             \
		}                                                                             \
	} while (0)

/* The call fails with this error. */
#define FAILS(call, error)                               \
	do {                                             \
		errno = 0;                               \
		CHECK((call) == -1 && errno == (error)); \
	} while (0)

static const timespec_t now = {0, 0};
static const timespec_t soon = {0, 20 * 1000 * 1000};

static inline int new_port(void)
{
	int port = port_create();

	CHECK(port >= 0);
	return port;
}

static inline void new_pipe(int ends[2])
{
	CHECK(pipe2(ends, O_CLOEXEC) == 0);
}

/* How many descriptors this process has: who started it may have left it some. */
static inline int open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* The user value of the one event that there is, and its events. */
static inline long next_user(int port, int source, int *events)
{
	port_event_t event;

	CHECK(port_get(port, &event, NULL) == 0);
	CHECK(event.portev_source == source);
	if (events)
		*events = event.portev_events;
	return (long)event.portev_user;
}

static inline void nothing(int port)
{
	port_event_t event;

	FAILS(port_get(port, &event, &now), ETIME);
}

static inline int associate(int port, int fd, int events, long user)
{
	return port_associate(port, PORT_SOURCE_FD, fd, events, (void *)user);
}

/* A child does something and ends well. */
#define IN_CHILD(...)                                                      \
	do {                                                               \
		pid_t child = fork();                                      \
		int status;                                                \
		CHECK(child >= 0);                                         \
		if (child == 0) {                                          \
			__VA_ARGS__;                                       \
			_exit(0);                                          \
		}                                                          \
		CHECK(waitpid(child, &status, 0) == child && status == 0); \
	} while (0)

struct test_case {
	const char *name;
	void (*run)(void);
};

#define CASE(name)          \
	{                   \
#name, name \
	}

#define MAIN(...)                                                      \
	int main(void)                                                 \
	{                                                              \
		static const struct test_case cases[] = {__VA_ARGS__}; \
		unsigned int count = sizeof(cases) / sizeof(cases[0]); \
		for (unsigned int at = 0; at < count; at++) {          \
			fprintf(stderr, "%s\n", cases[at].name);       \
			cases[at].run();                               \
		}                                                      \
		printf("%u cases\n", count);                           \
		return 0;                                              \
	}

#endif
