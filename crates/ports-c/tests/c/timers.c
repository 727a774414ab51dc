/* Timers with SIGEV_PORT, beside those of the C library. */
#include "test.h"

static timer_t port_timer(int port, clockid_t clock, long user)
{
	port_notify_t notify = {port, (void *)user};
	struct sigevent event = {.sigev_notify = SIGEV_PORT};
	timer_t timer;

	event.sigev_value.sival_ptr = &notify;
	CHECK(timer_create(clock, &event, &timer) == 0);
	return timer;
}

static const struct itimerspec once = {.it_value = {0, 2000000}};
static const struct itimerspec stop;

static void an_expiration_names_its_timer(void)
{
	const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_HIGHRES};
	int port = new_port();
	port_event_t event;

	for (int at = 0; at < 3; at++) {
		timer_t timer = port_timer(port, clocks[at], 40 + at);

		CHECK(timer_settime(timer, 0, &once, NULL) == 0);
		CHECK(port_get(port, &event, NULL) == 0);
		CHECK(event.portev_source == PORT_SOURCE_TIMER && event.portev_events == 1);
		CHECK(event.portev_object == (uintptr_t)timer);
		CHECK(event.portev_user == (void *)(long)(40 + at));
		CHECK(timer_getoverrun(timer) == 0);
		CHECK(timer_delete(timer) == 0);
	}
	nothing(port);
	close(port);
}

static void an_interval_expires_again_and_is_counted(void)
{
	const struct itimerspec often = {{0, 1000000}, {0, 1000000}};
	int port = new_port();
	timer_t timer = port_timer(port, CLOCK_MONOTONIC, 1);
	int events;

	CHECK(timer_settime(timer, 0, &often, NULL) == 0);
	usleep(10000);
	CHECK(next_user(port, PORT_SOURCE_TIMER, &events) == 1);
	CHECK(events >= 10 && timer_getoverrun(timer) == events - 1);
	CHECK(next_user(port, PORT_SOURCE_TIMER, &events) == 1 && events >= 1);
	close(port);
}

static void settings_can_be_asked_for(void)
{
	const struct itimerspec late = {{3, 4}, {1000, 0}};
	struct itimerspec now_set;
	int port = new_port();
	timer_t timer = port_timer(port, CLOCK_MONOTONIC, 1);

	CHECK(timer_gettime(timer, &now_set) == 0 && now_set.it_value.tv_sec == 0);
	CHECK(timer_settime(timer, 0, &late, &now_set) == 0 && now_set.it_value.tv_sec == 0);
	CHECK(timer_gettime(timer, &now_set) == 0);
	CHECK(now_set.it_value.tv_sec >= 900 && now_set.it_value.tv_sec <= 1000);
	CHECK(now_set.it_interval.tv_sec == 3 && now_set.it_interval.tv_nsec == 4);
	CHECK(timer_settime(timer, 0, &stop, &now_set) == 0 && now_set.it_interval.tv_sec == 3);
	CHECK(timer_gettime(timer, &now_set) == 0 && now_set.it_value.tv_sec == 0);
	close(port);
}

static void a_time_of_the_clock_can_be_set(void)
{
	struct itimerspec at = {.it_value = {0}};
	struct timespec after;
	int port = new_port();
	timer_t timer = port_timer(port, CLOCK_REALTIME, 1);

	clock_gettime(CLOCK_REALTIME, &at.it_value);
	at.it_value.tv_sec += at.it_value.tv_nsec >= 990000000;
	at.it_value.tv_nsec = (at.it_value.tv_nsec + 10000000) % 1000000000;
	CHECK(timer_settime(timer, TIMER_ABSTIME, &at, NULL) == 0);
	CHECK(next_user(port, PORT_SOURCE_TIMER, NULL) == 1);
	clock_gettime(CLOCK_REALTIME, &after);
	CHECK(after.tv_sec > at.it_value.tv_sec ||
	      (after.tv_sec == at.it_value.tv_sec && after.tv_nsec >= at.it_value.tv_nsec));
	close(port);
}

static void errors_of_timers(void)
{
	port_notify_t notify = {-1, NULL};
	struct sigevent event = {.sigev_notify = SIGEV_PORT};
	const struct itimerspec bad = {.it_value = {0, 1000000000}};
	int port = new_port();
	timer_t timer;

	FAILS(timer_create(CLOCK_MONOTONIC, &event, &timer), EFAULT);
	event.sigev_value.sival_ptr = &notify;
	FAILS(timer_create(CLOCK_MONOTONIC, &event, &timer), EBADF);
	notify.portnfy_port = 0;
	FAILS(timer_create(CLOCK_MONOTONIC, &event, &timer), EBADFD);
	notify.portnfy_port = port;
	FAILS(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer), EINVAL);
	FAILS(timer_create(12345, &event, &timer), EINVAL);
	FAILS(timer_create(CLOCK_MONOTONIC, &event, NULL), EFAULT);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	FAILS(timer_settime(timer, 0, &bad, NULL), EINVAL);
	FAILS(timer_settime(timer, 0, NULL, NULL), EINVAL);
	CHECK(timer_delete(timer) == 0);
	FAILS(timer_delete(timer), EINVAL);
	FAILS(timer_settime(timer, 0, &once, NULL), EINVAL);
	FAILS(timer_getoverrun(timer), EINVAL);
	close(port);
}

static void a_timer_whose_port_is_closed_sends_nothing(void)
{
	int port = new_port();
	timer_t timer = port_timer(port, CLOCK_MONOTONIC, 1);
	struct itimerspec setting;

	CHECK(timer_settime(timer, 0, &once, NULL) == 0);
	close(port);
	FAILS(timer_gettime(timer, &setting), EINVAL);
	FAILS(timer_delete(timer), EINVAL);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static volatile int called;

static void note_call(union sigval value)
{
	called = value.sival_int;
}

static void timers_of_other_kinds_are_the_c_librarys(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec setting;
	timer_t timer;

	signal(SIGUSR1, count_alarm);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &once, NULL) == 0);
	CHECK(timer_gettime(timer, &setting) == 0);
	while (!alarms)
		usleep(100);
	CHECK(timer_getoverrun(timer) == 0 && timer_delete(timer) == 0);
/* The C library's thread for these is unknown to ThreadSanitizer, which cannot run compiled code in
 * it. */
#ifndef __SANITIZE_THREAD__
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD;
	event.sigev_notify_function = note_call;
	event.sigev_value.sival_int = 77;
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &once, NULL) == 0);
	while (called != 77)
		usleep(100);
	CHECK(timer_delete(timer) == 0);
#endif
	CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 && timer_delete(timer) == 0);
}

MAIN(CASE(an_expiration_names_its_timer), CASE(an_interval_expires_again_and_is_counted),
     CASE(settings_can_be_asked_for), CASE(a_time_of_the_clock_can_be_set), CASE(errors_of_timers),
     CASE(a_timer_whose_port_is_closed_sends_nothing),
     CASE(timers_of_other_kinds_are_the_c_librarys))
