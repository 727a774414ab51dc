/*
 * The program of article 004 as a loop: create, write 10 bytes, close, open, read, close; and
 * unlink, so that the next round finds the directory as it was. One source for every backend:
 * through the C library, dynamic or static, by system calls without it (RAW), by io_uring (RING).
 *
 * usage: worker NAME-LENGTH THREADS DEPTH none|fsync|fdatasync normal|realtime [DIR COMMAND...]
 *
 * The program works in its current directory, or in DIR. It executes each line of standard input,
 * or each COMMAND, and prints a line of numbers for each:
 *   fill N       creates N other files in the directory
 *   round N      makes N rounds per thread, timed from the start of the first thread to the end of
 *                the last one
 *   steps N      makes N rounds with the clock read after each call: ns of each step, see STEPS
 *   back N       opens, reads and closes existing files, N times all of them
 *   list N       reads the directory N times
 *   stats N      the same, and reads the attributes of each file, as `ls -l` does
 *   names N TAG  looks up N names that do not exist
 * Except for `steps`, the numbers are the wall time and the CPU time of the process in ns, and the
 * clock is read only around a batch. A line that begins with "error" has the error's number, the
 * call and the file. The program ends with its parent, or when standard input ends.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

#include "calls.h"
#ifdef RING
#include "ring.h"
#else
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#endif

#define LONGEST 255
#define MOST	64 /* threads times depth: as many names as one character distinguishes */
#define BYTES	10 /* per file, as in the article */
#define STEPS	10 /* create, write, sync, close, open, read, close, stat, rename, unlink */

enum sync {
	SYNC_NONE,
	SYNC_FSYNC,
	SYNC_FDATASYNC
};

struct job {
	pthread_t thread;
	char (*names)[LONGEST + 1];
	char buffers[MOST][BYTES];
	long rounds;
	uint64_t began, ended;
};

static size_t name_length;
static unsigned threads, depth;
static enum sync sync_kind;
static const char bytes[BYTES] = "1234567890";
static struct job jobs[MOST];
static char names[MOST][LONGEST + 1];
static char others[MOST][LONGEST + 2];
static pthread_barrier_t gate;
#ifdef RING
static struct ring ring;
#endif

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static _Noreturn void fail(const char *what, long error, const char *name)
{
	printf("error %ld %s %.40s\n", error, what, name);
	fflush(stdout);
	_exit(1);
}

static inline long check(long result, const char *what, const char *name)
{
	if (__builtin_expect(result < 0, 0))
		fail(what, -result, name);
	return result;
}

#ifdef RING

/* Submits the requests for one half of the files, once its previous requests are done. */
static void ring_half(struct job *job, unsigned half)
{
	unsigned middle = (depth + 1) / 2, at = half ? middle : 0, end = half ? depth : middle;

	check(ring_wait(&ring, half), "io_uring_enter", names[at]);
	ring.half = half;
	for (; at < end; at++) {
		ring_open_file(&ring, at, names[at], O_CREAT | O_WRONLY | O_TRUNC);
		ring_bytes(&ring, at, IORING_OP_WRITE, (void *)bytes, BYTES);
		if (sync_kind != SYNC_NONE)
			ring_fsync(&ring, at,
				   sync_kind == SYNC_FDATASYNC ? IORING_FSYNC_DATASYNC : 0);
		ring_close_file(&ring, at);
		ring_open_file(&ring, at, names[at], O_RDONLY);
		ring_bytes(&ring, at, IORING_OP_READ, job->buffers[at], BYTES);
		ring_close_file(&ring, at);
		ring_unlink(&ring, names[at]);
		ring_end(&ring);
	}
	check(ring_submit(&ring), "io_uring_enter", names[0]);
}

static void ring_rounds(struct job *job)
{
	long round;

	for (round = 0; round < job->rounds; round += depth) {
		ring_half(job, 0);
		if (depth > 1)
			ring_half(job, 1);
	}
	check(ring_wait(&ring, 0), "io_uring_enter", names[0]);
	check(ring_wait(&ring, 1), "io_uring_enter", names[0]);
}

#else

static inline void sync_file(long fd, const char *name)
{
	if (sync_kind == SYNC_FSYNC)
		check(do_fsync((int)fd), "fsync", name);
	else if (sync_kind == SYNC_FDATASYNC)
		check(do_fdatasync((int)fd), "fdatasync", name);
}

/* Makes the six calls of the article, and the unlink before the next round. */
static void one_round(struct job *job)
{
	const char *name = job->names[0];
	long fd = check(do_open(name, O_CREAT | O_WRONLY | O_TRUNC), "open O_CREAT", name);

	check(do_write((int)fd, bytes, BYTES), "write", name);
	sync_file(fd, name);
	check(do_close((int)fd), "close", name);
	fd = check(do_open(name, O_RDONLY), "open", name);
	check(do_read((int)fd, job->buffers[0], BYTES), "read", name);
	check(do_close((int)fd), "close", name);
	check(do_unlink(name), "unlink", name);
}

/* Makes the same calls and some more, and reads the clock after each. */
static void one_round_timed(struct job *job, uint64_t *sums)
{
	const char *name = job->names[0], *other = others[0];
	struct stat attributes;
	uint64_t at[STEPS + 1];
	long fd;
	int step;

	at[0] = now();
	fd = check(do_open(name, O_CREAT | O_WRONLY | O_TRUNC), "open O_CREAT", name);
	at[1] = now();
	check(do_write((int)fd, bytes, BYTES), "write", name);
	at[2] = now();
	sync_file(fd, name);
	at[3] = now();
	check(do_close((int)fd), "close", name);
	at[4] = now();
	fd = check(do_open(name, O_RDONLY), "open", name);
	at[5] = now();
	check(do_read((int)fd, job->buffers[0], BYTES), "read", name);
	at[6] = now();
	check(do_close((int)fd), "close", name);
	at[7] = now();
	check(do_stat(name, &attributes), "stat", name);
	at[8] = now();
	check(do_rename(name, other), "rename", name);
	at[9] = now();
	check(do_unlink(other), "unlink", other);
	at[10] = now();
	for (step = 0; step < STEPS; step++)
		sums[step] += at[step + 1] - at[step];
}

static void steps(long count)
{
	uint64_t sums[STEPS] = {0};
	int step;

	for (; count > 0; count--)
		one_round_timed(&jobs[0], sums);
	for (step = 0; step < STEPS; step++)
		printf("%llu%c", (unsigned long long)sums[step], step + 1 < STEPS ? ' ' : '\n');
}

#endif

static void *work(void *argument)
{
	struct job *job = argument;

	if (threads > 1)
		pthread_barrier_wait(&gate);
	job->began = now();
#ifdef RING
	ring_rounds(job);
#else
	long round;

	for (round = 0; round < job->rounds; round++)
		one_round(job);
#endif
	job->ended = now();
	return NULL;
}

static uint64_t rounds(long count)
{
	uint64_t began = UINT64_MAX, ended = 0;
	unsigned at;

	for (at = 0; at < threads; at++) {
		int error;

		jobs[at].rounds = count;
		/* For one thread, create none: the C library has short cuts for such programs. */
		if (threads == 1)
			work(&jobs[0]);
		else if ((error = pthread_create(&jobs[at].thread, NULL, work, &jobs[at])) != 0)
			fail("pthread_create", error, "");
	}
	for (at = 0; at < threads; at++) {
		if (threads > 1)
			pthread_join(jobs[at].thread, NULL);
		if (jobs[at].began < began)
			began = jobs[at].began;
		if (jobs[at].ended > ended)
			ended = jobs[at].ended;
	}
	return ended - began;
}

#include "others.h"

static void carry_out(const char *line)
{
	char what[8] = "", tag[8] = "n";
	long count = 1;
	uint64_t took = 0, cpu;

	if (sscanf(line, "%7s %ld %7s", what, &count, tag) < 1)
		return;
#ifndef RING
	if (strcmp(what, "steps") == 0) {
		steps(count);
		return;
	}
#endif
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (strcmp(what, "fill") == 0)
		fill(count);
	else if (strcmp(what, "round") == 0)
		took = rounds(count);
	else if (strcmp(what, "back") == 0)
		took = back(count);
	else if (strcmp(what, "list") == 0)
		took = list(count, false);
	else if (strcmp(what, "stats") == 0)
		took = list(count, true);
	else if (strcmp(what, "names") == 0)
		took = look_up(count, tag);
	else
		fail("no such command", EINVAL, what);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%llu %llu\n", (unsigned long long)took, (unsigned long long)cpu);
}

/* Sets the names: of the same length, distinguished by the first character. */
static void name_all(void)
{
	const char *first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-";
	unsigned at;

	for (at = 0; at < MOST; at++) {
		memset(names[at], 'n', name_length);
		names[at][0] = first[at];
		/* Of the same length, except for names of one character. */
		memcpy(others[at], names[at], name_length);
		others[at][name_length < 2 ? 1 : name_length - 1] = '=';
	}
	for (at = 0; at < threads; at++)
		jobs[at].names = &names[at];
}

static void begin(char **words)
{
	struct sched_param lowest = {.sched_priority = 1};

	name_length = (size_t)atol(words[1]);
	threads = (unsigned)atoi(words[2]);
	depth = (unsigned)atoi(words[3]);
	if (name_length < 1 || name_length > LONGEST || threads < 1 || depth < 1 ||
	    threads * depth > MOST)
		fail("arguments", EINVAL, words[1]);
	sync_kind = SYNC_NONE;
	if (strcmp(words[4], "fsync") == 0)
		sync_kind = SYNC_FSYNC;
	if (strcmp(words[4], "fdatasync") == 0)
		sync_kind = SYNC_FDATASYNC;
	/* Threads inherit the policy. */
	if (strcmp(words[5], "realtime") == 0 && sched_setscheduler(0, SCHED_FIFO, &lowest) < 0)
		fail("sched_setscheduler SCHED_FIFO", errno, "");
	name_all();
	pthread_barrier_init(&gate, NULL, threads);
#ifdef RING
	const char *failed = ring_open(&ring, depth);

	if (failed != NULL)
		fail(failed, errno, "");
#endif
}

int main(int count, char **words)
{
	char line[64];
	int at;

	if (count < 6)
		fail("arguments", EINVAL, "too few");
	if (count > 6 && chdir(words[6]) < 0)
		fail("chdir", errno, words[6]);
	if (count == 6)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	begin(words);
	count_filled();
	for (at = 7; at < count; at++)
		carry_out(words[at]);
	if (count > 6)
		return 0;
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		carry_out(line);
		fflush(stdout);
	}
	return 0;
}
