/*
 * A round of libevent's benchmark, for the programs in C that make it with different mechanisms.
 *
 * It is the same as in crates/waiters/src/rounds.rs. Untimed: all readers are registered anew and
 * polled once, and a byte is sent to ACTIVE of them. Timed: non-blocking loops until every byte has
 * been received. In these, each event receives one byte and, while there are WRITES left, sends
 * one. How a byte is received and sent is the program's: `received` and `sent` count them.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

/* The most events of a call. */
#define BATCH 4096

/* A way to wait for the pairs. */
struct mechanism {
	const char *name;
	void (*open)(void);
	void (*add)(int at);
	void (*look)(void);
	void (*remove)(int at);
	void (*run)(void); /* replaces the repeated looks, if it is there */
};

static int pairs;
static int (*ends)[2];
static long received, sent, writes_left;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static long long now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void open_pairs(int number)
{
	struct rlimit limit;

	pairs = number;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	ends = calloc(pairs, sizeof(*ends));
	if (!ends)
		die("calloc");
	for (int at = 0; at < pairs; at++) {
		int on = 1;

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[at]))
			die("socketpair");
		/* Only the readers, as with the waiters. */
		if (ioctl(ends[at][0], FIONBIO, &on))
			die("ioctl FIONBIO");
	}
}

static void make_round(const struct mechanism *of, int active, long writes)
{
	long long cpu, wall;
	int space;

	for (int at = 0; at < pairs; at++)
		of->add(at);
	of->look();
	active = active < 1 ? 1 : active > pairs ? pairs : active;
	space = pairs / active;
	for (int at = 0; at < active; at++)
		if (send(ends[at * space][1], "e", 1, 0) != 1)
			die("send");
	received = 0;
	sent = active;
	writes_left = writes;
	wall = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	if (of->run)
		of->run();
	while (received < sent)
		of->look();
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	for (int at = 0; at < pairs; at++)
		of->remove(at);
	printf("%lld %lld\n", cpu, wall);
	fflush(stdout);
}

/* Makes a round for each line of "ACTIVE WRITES", and answers with "CPU_NS WALL_NS". */
static void serve_rounds(const struct mechanism *of)
{
	int active;
	long writes;

	of->open();
	while (scanf("%d %ld", &active, &writes) == 2)
		make_round(of, active, writes);
}

#endif
