/*
 * The rounds of libevent's benchmark with event ports, /dev/poll and kqueue of libiotomy-ports, and
 * with bare epoll. `ports-loops list` prints the names. `ports-loops NAME PAIRS` reads lines of
 * "ACTIVE WRITES", makes a round for each, and answers with "CPU_NS WALL_NS". `ports-loops shared
 * THREADS EVENTS` has threads retrieve as many events of one port and prints how many came, how
 * many twice and how many never. `ports-loops memory NAME PAIRS` prints the bytes of this process
 * that a watched descriptor takes.
 *
 * Each event of a round (rounds.h) receives one byte, is armed again where it must be, and sends a
 * byte while there are WRITES left.
 */
#define _GNU_SOURCE
#include "../rounds.h"
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <port.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/devpoll.h>
#include <sys/epoll.h>
#include <sys/event.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int queue;

static void receive(int at)
{
	char byte;
	int next;

	if (recv(ends[at][0], &byte, 1, 0) != 1)
		return;
	received++;
	if (!writes_left)
		return;
	next = at + 1 == pairs ? 0 : at + 1;
	if (send(ends[next][1], &byte, 1, 0) == 1) {
		writes_left--;
		sent++;
	}
}

/* epoll, level-triggered and one-shot. */

static struct epoll_event found[BATCH];

static void epoll_begin(void)
{
	queue = epoll_create1(EPOLL_CLOEXEC);
	if (queue < 0)
		die("epoll_create1");
}

static void epoll_change(int change, uint32_t events, int at)
{
	struct epoll_event event = {.events = events, .data.u64 = at};

	if (epoll_ctl(queue, change, ends[at][0], &event))
		die("epoll_ctl");
}

static void level_add(int at)
{
	epoll_change(EPOLL_CTL_ADD, EPOLLIN, at);
}

static void oneshot_add(int at)
{
	epoll_change(EPOLL_CTL_ADD, EPOLLIN | EPOLLONESHOT, at);
}

static void epoll_remove(int at)
{
	epoll_change(EPOLL_CTL_DEL, 0, at);
}

static void level_look(void)
{
	int count = epoll_wait(queue, found, BATCH, 0);

	for (int at = 0; at < count; at++)
		receive((int)found[at].data.u64);
}

static void oneshot_look(void)
{
	int count = epoll_wait(queue, found, BATCH, 0);

	for (int at = 0; at < count; at++) {
		receive((int)found[at].data.u64);
		epoll_change(EPOLL_CTL_MOD, EPOLLIN | EPOLLONESHOT, (int)found[at].data.u64);
	}
}

/* epoll as kqueue is used: with each event, the number of bytes that there are is asked for. */

static int bytes_there;

static void count_bytes(int at)
{
	if (ioctl(ends[at][0], FIONREAD, &bytes_there))
		die("FIONREAD");
}

static void level_counted_look(void)
{
	int count = epoll_wait(queue, found, BATCH, 0);

	for (int at = 0; at < count; at++)
		count_bytes((int)found[at].data.u64);
	for (int at = 0; at < count; at++)
		receive((int)found[at].data.u64);
}

static void oneshot_counted_look(void)
{
	int count = epoll_wait(queue, found, BATCH, 0);

	for (int at = 0; at < count; at++)
		count_bytes((int)found[at].data.u64);
	for (int at = 0; at < count; at++) {
		receive((int)found[at].data.u64);
		epoll_change(EPOLL_CTL_MOD, EPOLLIN | EPOLLONESHOT, (int)found[at].data.u64);
	}
}

/* Event ports: all events that there are in a call, and one event in a call. */

static port_event_t events[BATCH];
static timespec_t zero;

static void port_begin(void)
{
	queue = port_create();
	if (queue < 0)
		die("port_create");
}

static void port_add(int at)
{
	if (port_associate(queue, PORT_SOURCE_FD, ends[at][0], POLLIN, (void *)(intptr_t)at))
		die("port_associate");
}

static void port_remove(int at)
{
	if (port_dissociate(queue, PORT_SOURCE_FD, ends[at][0]))
		die("port_dissociate");
}

static void port_look(void)
{
	uint_t count = 1;

	port_getn(queue, events, BATCH, &count, &zero);
	for (uint_t at = 0; at < count; at++) {
		receive((int)(intptr_t)events[at].portev_user);
		port_add((int)(intptr_t)events[at].portev_user);
	}
}

static void port_look_at_one(void)
{
	if (port_get(queue, events, &zero))
		return;
	receive((int)(intptr_t)events->portev_user);
	port_add((int)(intptr_t)events->portev_user);
}

/* kqueue, of levels, and disabled by each event as one-shot epoll is. */

static struct kevent kevents[BATCH];
static struct kevent changes[BATCH];

static void queue_begin(void)
{
	queue = kqueue();
	if (queue < 0)
		die("kqueue");
}

static void queue_change(int at, int flags)
{
	struct kevent change;

	EV_SET(&change, ends[at][0], EVFILT_READ, flags, 0, 0, (void *)(intptr_t)at);
	if (kevent(queue, &change, 1, NULL, 0, NULL))
		die("kevent");
}

static void queue_add(int at)
{
	queue_change(at, EV_ADD);
}

static void dispatch_add(int at)
{
	queue_change(at, EV_ADD | EV_DISPATCH);
}

static void queue_remove(int at)
{
	queue_change(at, EV_DELETE);
}

static void queue_look(void)
{
	int count = kevent(queue, NULL, 0, kevents, BATCH, &zero);

	for (int at = 0; at < count; at++)
		receive((int)(intptr_t)kevents[at].udata);
}

static int enabled;

static void dispatch_look(void)
{
	int count = kevent(queue, changes, enabled, kevents, BATCH, &zero);

	for (int at = 0; at < count; at++) {
		receive((int)(intptr_t)kevents[at].udata);
		changes[at] = kevents[at];
		changes[at].flags = EV_ENABLE;
		changes[at].fflags = 0;
		changes[at].data = 0;
	}
	enabled = count;
}

static void dispatch_remove(int at)
{
	enabled = 0;
	queue_remove(at);
}

/* /dev/poll. */

static struct pollfd polled[BATCH];
static int *by_number;

static void devpoll_begin(void)
{
	int highest = 0;

	for (int at = 0; at < pairs; at++)
		highest = ends[at][0] > highest ? ends[at][0] : highest;
	by_number = calloc(highest + 1, sizeof(*by_number));
	if (!by_number)
		die("calloc");
	for (int at = 0; at < pairs; at++)
		by_number[ends[at][0]] = at;
	queue = open("/dev/poll", O_RDWR);
	if (queue < 0)
		die("/dev/poll");
}

static void devpoll_change(int at, short wanted)
{
	struct pollfd entry = {.fd = ends[at][0], .events = wanted};

	if (write(queue, &entry, sizeof(entry)) != sizeof(entry))
		die("write to /dev/poll");
}

static void devpoll_add(int at)
{
	devpoll_change(at, POLLIN);
}

static void devpoll_remove(int at)
{
	devpoll_change(at, POLLREMOVE);
}

static void devpoll_look(void)
{
	struct dvpoll request = {.dp_fds = polled, .dp_nfds = BATCH};
	int count = ioctl(queue, DP_POLL, &request);

	for (int at = 0; at < count; at++)
		receive(by_number[polled[at].fd]);
}

static const struct mechanism loops[] = {
	{"epoll", epoll_begin, level_add, level_look, epoll_remove, NULL},
	{"epoll-oneshot", epoll_begin, oneshot_add, oneshot_look, epoll_remove, NULL},
	{"epoll-counted", epoll_begin, level_add, level_counted_look, epoll_remove, NULL},
	{"epoll-oneshot-counted", epoll_begin, oneshot_add, oneshot_counted_look, epoll_remove,
	 NULL},
	{"event-port", port_begin, port_add, port_look, port_remove, NULL},
	{"event-port-get", port_begin, port_add, port_look_at_one, port_remove, NULL},
	{"kqueue", queue_begin, queue_add, queue_look, queue_remove, NULL},
	{"kqueue-dispatch", queue_begin, dispatch_add, dispatch_look, dispatch_remove, NULL},
	{"dev-poll", devpoll_begin, devpoll_add, devpoll_look, devpoll_remove, NULL},
};

/* One port, and threads that retrieve from it. */

static unsigned char *counts;
static long wanted, came;

static void *retrieve(void *argument)
{
	port_event_t list[64];
	timespec_t soon = {0, 10 * 1000 * 1000};
	uint_t count;

	(void)argument;
	while (__atomic_load_n(&came, __ATOMIC_RELAXED) < wanted) {
		count = 1;
		port_getn(queue, list, 64, &count, &soon);
		for (uint_t at = 0; at < count; at++)
			__atomic_fetch_add(&counts[(intptr_t)list[at].portev_user], 1,
					   __ATOMIC_RELAXED);
		__atomic_fetch_add(&came, count, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void share(int threads)
{
	pthread_t ids[64];
	long twice = 0, never = 0;

	port_begin();
	counts = calloc(wanted, 1);
	if (!counts || threads > 64)
		die("threads");
	for (int at = 0; at < threads; at++)
		if (pthread_create(&ids[at], NULL, retrieve, NULL))
			die("pthread_create");
	for (long at = 0; at < wanted; at++)
		/* The queue may be full for a moment. */
		while (port_send(queue, 1, (void *)(intptr_t)at))
			sched_yield();
	for (int at = 0; at < threads; at++)
		pthread_join(ids[at], NULL);
	for (long at = 0; at < wanted; at++) {
		twice += counts[at] > 1;
		never += counts[at] == 0;
	}
	printf("%ld %ld %ld\n", came, twice, never);
}

static long resident_kib(void)
{
	char line[256];
	long anonymous = 0, shared = 0;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status)) {
		sscanf(line, "RssAnon: %ld", &anonymous);
		sscanf(line, "RssShmem: %ld", &shared);
	}
	if (status)
		fclose(status);
	return anonymous + shared;
}

int main(int argc, char **argv)
{
	long before;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (size_t at = 0; at < sizeof(loops) / sizeof(*loops); at++)
			puts(loops[at].name);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "shared") && (wanted = atol(argv[3])) > 0) {
		share(atoi(argv[2]));
		return 0;
	}
	for (size_t at = 0; at < sizeof(loops) / sizeof(*loops) && argc >= 3; at++) {
		if (argc == 4 && !strcmp(argv[1], "memory") && !strcmp(argv[2], loops[at].name)) {
			open_pairs(atoi(argv[3]));
			loops[at].open();
			before = resident_kib();
			for (int pair = 0; pair < pairs; pair++)
				loops[at].add(pair);
			printf("%ld\n", (resident_kib() - before) * 1024 / pairs);
			return 0;
		}
		if (argc != 3 || strcmp(loops[at].name, argv[1]) || atoi(argv[2]) < 1)
			continue;
		open_pairs(atoi(argv[2]));
		serve_rounds(&loops[at]);
		return 0;
	}
	fputs("usage: ports-loops list | NAME PAIRS | shared THREADS EVENTS | memory NAME PAIRS\n",
	      stderr);
	return 2;
}
