/*
 * A program on libev, whose source is compiled into it unchanged, with its back ends for event
 * ports and kqueue. `libev-client BACKEND` takes a value of libev's EVBACKEND_ and says what came:
 * bytes that go round 2,000 socket pairs, a descriptor that can always be written, a timer, a
 * signal, and the end of a child, which goes on with the loop it inherits.
 */
#define EV_STANDALONE 1
#define EV_USE_POLL   1
#define EV_USE_EPOLL  1
#define EV_USE_KQUEUE 1
#define EV_USE_PORT   1
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ev.c"

#define PAIRS  2000
#define BYTES  200000
#define WRITES 100
#define TICKS  20

static ev_io readers[PAIRS];
static int ends[PAIRS][2];
static long received, sent;
static int writes, ticks, signals_seen, child_status = -1;

static void pass_on(int at)
{
	if (write(ends[at][1], "x", 1) == 1)
		sent++;
}

static void on_read(struct ev_loop *loop, ev_io *watcher, int events)
{
	int at = (int)(watcher - readers);
	char byte;

	(void)events;
	if (read(watcher->fd, &byte, 1) != 1)
		return;
	received++;
	if (sent < BYTES)
		pass_on((at * 7 + 1) % PAIRS);
	if (received == sent)
		ev_break(loop, EVBREAK_ALL);
}

static void on_write(struct ev_loop *loop, ev_io *watcher, int events)
{
	(void)events;
	if (++writes == WRITES)
		ev_io_stop(loop, watcher);
}

static void on_tick(struct ev_loop *loop, ev_timer *watcher, int events)
{
	(void)events;
	if (++ticks == TICKS)
		ev_timer_stop(loop, watcher);
}

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
	(void)loop;
	(void)watcher;
	(void)events;
	signals_seen++;
}

static void on_child(struct ev_loop *loop, ev_child *watcher, int events)
{
	(void)events;
	child_status = watcher->rstatus;
	ev_child_stop(loop, watcher);
	ev_break(loop, EVBREAK_ALL);
}

int main(int argc, char **argv)
{
	unsigned int backend = argc == 2 ? strtoul(argv[1], NULL, 0) : 0;
	struct ev_loop *loop = ev_default_loop(backend);
	ev_io writer;
	ev_timer timer;
	ev_signal usr1;
	ev_child end;
	pid_t child;

	if (!loop || ev_backend(loop) != backend) {
		fprintf(stderr, "libev has no back end %#x here\n", backend);
		return 2;
	}
	for (int at = 0; at < PAIRS; at++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends[at])) {
			perror("socketpair");
			return 2;
		}
		ev_io_init(&readers[at], on_read, ends[at][0], EV_READ);
		ev_io_start(loop, &readers[at]);
	}
	ev_io_init(&writer, on_write, ends[0][1], EV_WRITE);
	ev_io_start(loop, &writer);
	ev_timer_init(&timer, on_tick, 0.001, 0.001);
	ev_timer_start(loop, &timer);
	ev_signal_init(&usr1, on_signal, SIGUSR1);
	ev_signal_start(loop, &usr1);
	raise(SIGUSR1);
	for (int at = 0; at < PAIRS; at += 20)
		pass_on(at);
	ev_run(loop, 0);

	child = fork();
	if (child == 0) {
		ev_loop_fork(loop);
		ev_run(loop, EVRUN_NOWAIT);
		_exit(5);
	}
	ev_child_init(&end, on_child, child, 0);
	ev_child_start(loop, &end);
	ev_run(loop, 0);
	while (ticks < TICKS || writes < WRITES)
		ev_run(loop, EVRUN_ONCE);
	printf("%ld of %ld bytes, %d writes, %d ticks, %d signals, child %d\n", received, sent,
	       writes, ticks, signals_seen, WEXITSTATUS(child_status));
	return received != BYTES || sent != BYTES || signals_seen != 1 ||
	       WEXITSTATUS(child_status) != 5;
}
