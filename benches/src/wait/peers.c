/*
 * The rounds of libevent's benchmark with other mechanisms: a loop with nothing between it and the
 * kernel, libevent, and libuv. `wait-peers list` prints the names of those that are built in.
 * `wait-peers NAME PAIRS` reads lines of "ACTIVE WRITES", makes a round for each, and answers
 * with "CPU_NS WALL_NS" (rounds.h).
 */
#define _GNU_SOURCE
#include "../rounds.h"
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef WITH_LIBEVENT
#include <event2/event.h>
#include <event2/event_struct.h>
#endif
#ifdef WITH_LIBUV
#include <uv.h>
#endif

/*
 * Makes a system call with four arguments and two zeroes, without the C library's code around it,
 * which takes some hundredths of a round. The waiters' rounds make their calls in the same manner,
 * so that the comparison is between the loops.
 */
static inline __attribute__((always_inline)) long kernel(long call, long fd, void *at, long length,
							 long last)
{
	register long fourth __asm__("r10") = last;
	register long fifth __asm__("r8") = 0;
	register long sixth __asm__("r9") = 0;
	long done;

	__asm__ volatile("syscall"
			 : "=a"(done)
			 : "0"(call), "D"(fd), "S"(at), "d"(length), "r"(fourth), "r"(fifth),
			   "r"(sixth)
			 : "rcx", "r11", "memory");
	return done;
}

static inline __attribute__((always_inline)) void receive_inline(int at)
{
	char byte;
	int next;

	if (kernel(SYS_recvfrom, ends[at][0], &byte, 1, 0) != 1)
		return;
	received++;
	if (!writes_left)
		return;
	next = at + 1 == pairs ? 0 : at + 1;
	if (kernel(SYS_sendto, ends[next][1], &byte, 1, 0) == 1) {
		writes_left--;
		sent++;
	}
}

static void receive(int at)
{
	receive_inline(at);
}

/* The bare loop. */

static int epoll_fd;
static struct epoll_event found[BATCH];

static void bare_open(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		die("epoll_create1");
}

static void bare_change(int change, int at)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = at};

	if (epoll_ctl(epoll_fd, change, ends[at][0], &event))
		die("epoll_ctl");
}

static void bare_add(int at)
{
	bare_change(EPOLL_CTL_ADD, at);
}

static void bare_remove(int at)
{
	bare_change(EPOLL_CTL_DEL, at);
}

static void bare_look(void)
{
	long n = kernel(SYS_epoll_wait, epoll_fd, found, BATCH, 0);

	for (long at = 0; at < n; at++)
		receive((int)found[at].data.u64);
}

/* The bare loop without any function call or return between two system calls. */
static void inline_run(void)
{
	do {
		long n = kernel(SYS_epoll_wait, epoll_fd, found, BATCH, 0);

		for (long at = 0; at < n; at++)
			receive_inline((int)found[at].data.u64);
	} while (received < sent);
}

#ifdef WITH_LIBEVENT
static struct event_base *base;
static struct event *watched;

static void event_told(evutil_socket_t fd, short what, void *at)
{
	(void)fd;
	(void)what;
	receive((int)(intptr_t)at);
}

static void event_open(void)
{
	base = event_base_new();
	watched = calloc(pairs, sizeof(*watched));
	if (!base || !watched)
		die("event_base_new");
}

static void event_register(int at)
{
	event_assign(&watched[at], base, ends[at][0], EV_READ | EV_PERSIST, event_told,
		     (void *)(intptr_t)at);
	if (event_add(&watched[at], NULL))
		die("event_add");
}

static void event_leave(int at)
{
	event_del(&watched[at]);
}

static void event_look(void)
{
	event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}
#endif

#ifdef WITH_LIBUV
static uv_loop_t loop;
static uv_poll_t *polls;

static void uv_told(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	receive((int)(poll - polls));
}

static void loop_open(void)
{
	polls = calloc(pairs, sizeof(*polls));
	if (!polls || uv_loop_init(&loop))
		die("uv_loop_init");
	for (int at = 0; at < pairs; at++)
		if (uv_poll_init(&loop, &polls[at], ends[at][0]))
			die("uv_poll_init");
}

static void loop_register(int at)
{
	if (uv_poll_start(&polls[at], UV_READABLE, uv_told))
		die("uv_poll_start");
}

static void loop_leave(int at)
{
	uv_poll_stop(&polls[at]);
}

static void loop_look(void)
{
	uv_run(&loop, UV_RUN_NOWAIT);
}
#endif

static const struct mechanism peers[] = {
	{"bare", bare_open, bare_add, bare_look, bare_remove, NULL},
	{"bare-inline", bare_open, bare_add, bare_look, bare_remove, inline_run},
#ifdef WITH_LIBEVENT
	{"libevent", event_open, event_register, event_look, event_leave, NULL},
#endif
#ifdef WITH_LIBUV
	{"libuv", loop_open, loop_register, loop_look, loop_leave, NULL},
#endif
};

/*
 * The overhead of `iotomy_sys::epoll::epoll_wait` on kernels that do not touch the CPU's return
 * stack buffer: a call without its return, after which all returns of the enclosing calls are
 * mispredicted. No system call is made, so this can be measured on any kernel.
 */
#ifdef __x86_64__
__attribute__((noinline)) static void matched(void)
{
	__asm__ volatile("nop" ::: "memory");
}

/* Stays clear of the red zone, the compiler's data below the end of the stack. */
__attribute__((noinline)) static void unmatched(void)
{
	__asm__ volatile("sub $128, %%rsp\n\t"
			 "call 2f\n\t"
			 "int3\n"
			 "2:\tlea 8(%%rsp), %%rsp\n\t"
			 "add $128, %%rsp" ::
				 : "memory");
}

__attribute__((noinline)) static void through(void (*inner)(void))
{
	inner();
	__asm__ volatile("" ::: "memory");
}

static double many(void (*outer)(void (*)(void)), void (*inner)(void))
{
	enum {
		TIMES = 1000000
	};
	long long began = now_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int at = 0; at < TIMES; at++) {
		if (outer)
			outer(inner);
		else
			inner();
	}
	return (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - began) / TIMES;
}

static void returns(void)
{
	for (int round = 0; round < 15; round++) {
		double one = many(NULL, unmatched) - many(NULL, matched);
		double two = many(through, unmatched) - many(through, matched);

		printf("%.2f %.2f\n", one, two);
	}
}
#else
static void returns(void)
{
}
#endif

static void list(void)
{
	puts("bare -");
	puts("bare-inline -");
#ifdef WITH_LIBEVENT
	printf("libevent %s\n", event_get_version());
#endif
#ifdef WITH_LIBUV
	printf("libuv %s\n", uv_version_string());
#endif
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "list")) {
		list();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "returns")) {
		returns();
		return 0;
	}
	if (argc != 3 || atoi(argv[2]) < 1) {
		fputs("usage: wait-peers list | wait-peers returns | wait-peers NAME PAIRS\n",
		      stderr);
		return 2;
	}
	for (size_t at = 0; at < sizeof(peers) / sizeof(*peers); at++) {
		if (strcmp(peers[at].name, argv[1]))
			continue;
		open_pairs(atoi(argv[2]));
		serve_rounds(&peers[at]);
		return 0;
	}
	fprintf(stderr, "wait-peers: %s is not built in\n", argv[1]);
	return 1;
}
