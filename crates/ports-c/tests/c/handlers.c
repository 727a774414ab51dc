/*
 * Handlers of signals that close descriptors, whatever they interrupt: close() is safe there, so it
 * must not wait for what the interrupted thread holds.
 */
#include "queue.h"
#include <sys/devpoll.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#define CLOSES 400

/* The descriptor that the handler closes, its number in the order of all, and the last that was
 * closed. */
static volatile sig_atomic_t victim = -1;
static volatile sig_atomic_t number;
static volatile sig_atomic_t closed;
static volatile sig_atomic_t closes;
static volatile sig_atomic_t takes_range;

static void close_it(int signal)
{
	int fd = victim;

	(void)signal;
	if (fd < 0)
		return;
	victim = -1;
	if (takes_range ? close_range(fd, fd, 0) : close(fd))
		_exit(98);
	closed = number;
	closes++;
}

static void interrupt_every(long microseconds)
{
	struct sigaction action = {.sa_handler = close_it, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, microseconds}, {0, microseconds}};

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static void begin(int ends[2])
{
	new_pipe(ends);
	/* Whatever is closed is ready, and a duplicate keeps it open. */
	CHECK(write(ends[1], "x", 1) == 1);
	victim = -1;
	number = closed = closes = 0;
	takes_range = 0;
	interrupt_every(60);
}

/* The next one, which is a number that no descriptor had before. */
static int next(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 100 + number % 400);

	CHECK(copy >= 0);
	number++;
	takes_range = number % 3 == 0;
	return copy;
}

/* It was closed, or is now. */
static void end(int copy)
{
	int is_open = victim == copy;

	victim = -1;
	if (is_open)
		CHECK(close(copy) == 0);
}

static void they_close_what_a_port_has(void)
{
	int port = new_port();
	port_event_t list[4];
	uint_t nget;
	long dead;
	int ends[2];

	begin(ends);
	while (closes < CLOSES) {
		int copy = next(ends[0]);

		CHECK(associate(port, copy, POLLIN, number) == 0);
		victim = copy;
		for (int round = 0; round < 20 && victim >= 0; round++) {
			CHECK(associate(port, ends[0], 0, 0) == 0);
			CHECK(port_dissociate(port, PORT_SOURCE_FD, ends[0]) == 0);
			CHECK(port_send(port, 1, NULL) == 0);
			dead = closed;
			nget = 2;
			if (port_getn(port, list, 4, &nget, &now))
				CHECK(errno == ETIME || errno == EINTR);
			for (uint_t at = 0; at < nget; at++)
				if (list[at].portev_source == PORT_SOURCE_FD)
					CHECK((long)list[at].portev_user > dead);
		}
		end(copy);
	}
	interrupt_every(0);
	do {
		nget = 1;
		if (port_getn(port, list, 4, &nget, &now))
			break;
		for (uint_t at = 0; at < nget; at++)
			CHECK(list[at].portev_source == PORT_SOURCE_USER);
	} while (nget);
	close(ends[0]);
	close(ends[1]);
	close(port);
}

static void they_close_what_a_set_polls(void)
{
	int set = open("/dev/poll", O_RDWR);
	struct pollfd list[4];
	struct dvpoll request = {.dp_fds = list, .dp_nfds = 4, .dp_timeout = 0};
	int ends[2];

	CHECK(set >= 0);
	begin(ends);
	while (closes < CLOSES) {
		int copy = next(ends[0]);
		struct pollfd entry = {.fd = copy, .events = POLLIN};
		struct pollfd gone = {.fd = copy, .events = POLLREMOVE};
		int got;
		int was;

		CHECK(write(set, &entry, sizeof(entry)) == sizeof(entry));
		victim = copy;
		for (int round = 0; round < 20 && victim >= 0; round++) {
			CHECK(write(set, &entry, sizeof(entry)) == sizeof(entry));
			was = victim;
			got = ioctl(set, DP_POLL, &request);
			/* One that is closed during the call may be told of with the next one. */
			CHECK(got == 1 || (got == 0 && was != victim) ||
			      (got == -1 && errno == EINTR));
			if (got == 1)
				CHECK(list[0].fd == copy);
			if (got == 1 && was < 0)
				CHECK(list[0].revents == POLLNVAL);
		}
		end(copy);
		/* It is told until it is removed, and what it was no more. */
		while ((got = ioctl(set, DP_POLL, &request)) == -1)
			CHECK(errno == EINTR);
		CHECK(got == 1 && list[0].revents == POLLNVAL);
		CHECK(write(set, &gone, sizeof(gone)) == sizeof(gone));
		while ((got = ioctl(set, DP_POLL, &request)) == -1)
			CHECK(errno == EINTR);
		CHECK(got == 0);
	}
	interrupt_every(0);
	close(ends[0]);
	close(ends[1]);
	close(set);
}

static void they_close_what_a_queue_watches(void)
{
	int queue = new_queue();
	struct kevent list[4];
	long dead;
	int got;
	int ends[2];

	begin(ends);
	put(queue, 1, EVFILT_USER, EV_ADD | EV_CLEAR);
	while (closes < CLOSES) {
		int copy = next(ends[0]);
		int flags = number % 2 ? EV_CLEAR : 0;

		put_with(queue, copy, EVFILT_READ, EV_ADD | flags, 0, 0, (void *)(long)number);
		victim = copy;
		for (int round = 0; round < 20 && victim >= 0; round++) {
			CHECK(change(queue, 1, EVFILT_USER, 0, NOTE_TRIGGER) == 0);
			dead = closed;
			got = kevent(queue, NULL, 0, list, 4, &now);
			CHECK(got >= 0 || errno == EINTR);
			for (int at = 0; at < got; at++)
				if (list[at].filter == EVFILT_READ)
					CHECK((long)list[at].udata > dead);
		}
		end(copy);
		while ((got = kevent(queue, NULL, 0, list, 4, &now)) < 0)
			CHECK(errno == EINTR);
		for (int at = 0; at < got; at++)
			CHECK(list[at].filter == EVFILT_USER);
		FAILS(change(queue, copy, EVFILT_READ, EV_DELETE, 0), EBADF);
	}
	interrupt_every(0);
	close(ends[0]);
	close(ends[1]);
	close(queue);
}

MAIN(CASE(they_close_what_a_port_has), CASE(they_close_what_a_set_polls),
     CASE(they_close_what_a_queue_watches))
