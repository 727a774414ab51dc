/* Completion ports, from their manual page. */
#include "test.h"
#include <iotomy/completion_port.h>
#include <sched.h>

static const struct timespec bad_times[] = {{-1, 0}, {0, -1}, {0, 1000000001}};

static completion_port_t *new_completion_port(unsigned int concurrency)
{
	completion_port_t *port = completion_port_create(concurrency);

	CHECK(port);
	return port;
}

static void post(completion_port_t *port, uintptr_t key)
{
	completion_t completion = {.completion_key = key};

	CHECK(completion_port_post(port, &completion) == 0);
}

static void completions_have_what_was_posted_in_order(void)
{
	completion_port_t *port = new_completion_port(0);
	completion_t list[4];

	for (uint32_t at = 0; at < 3; at++) {
		completion_t completion = {UINTPTR_MAX - at, UINT32_MAX - at, &list[at]};

		CHECK(completion_port_post(port, &completion) == 0);
	}
	memset(list, 0x5a, sizeof(list));
	CHECK(completion_port_get(port, list, 2, NULL) == 2);
	CHECK(completion_port_get(port, list + 2, 2, NULL) == 1);
	for (uint32_t at = 0; at < 3; at++) {
		CHECK(list[at].completion_key == UINTPTR_MAX - at);
		CHECK(list[at].completion_bytes == UINT32_MAX - at);
		CHECK(list[at].completion_user == &list[at]);
	}
	CHECK(list[3].completion_key == 0x5a5a5a5a5a5a5a5aUL);
	completion_port_free(port);
}

static void a_wait_ends_with_its_timeout_and_not_before(void)
{
	completion_port_t *port = new_completion_port(1);
	completion_t completion;
	struct timespec before;
	struct timespec after;

	CHECK(completion_port_get(port, &completion, 1, &now) == 0);
	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK(completion_port_get(port, &completion, 1, &soon) == 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec >=
	      soon.tv_nsec);
	completion_port_free(port);
}

static void each_error_is_the_one_that_the_page_names(void)
{
	completion_port_t *port = new_completion_port(1);
	completion_t completion = {0};

	FAILS(completion_port_post(NULL, &completion), EFAULT);
	FAILS(completion_port_post(port, NULL), EFAULT);
	FAILS(completion_port_get(NULL, &completion, 1, &now), EFAULT);
	FAILS(completion_port_get(port, NULL, 1, &now), EFAULT);
	FAILS(completion_port_get(port, &completion, 0, &now), EINVAL);
	FAILS(completion_port_get(port, NULL, 0, &now), EINVAL);
	FAILS(completion_port_close(NULL), EFAULT);
	for (int at = 0; at < 3; at++)
		FAILS(completion_port_get(port, &completion, 1, &bad_times[at]), EINVAL);
	post(port, 1);
	CHECK(completion_port_close(port) == 0);
	CHECK(completion_port_close(port) == 0);
	FAILS(completion_port_post(port, &completion), EBADF);
	FAILS(completion_port_get(port, &completion, 1, &now), EBADF);
	completion_port_free(port);
	completion_port_free(NULL);
}

static void a_child_has_no_part_in_it(void)
{
	completion_port_t *port = new_completion_port(1);

	post(port, 1);
	IN_CHILD({
		completion_t completion;
		completion_port_t *own;
		FAILS(completion_port_get(port, &completion, 1, &now), EBADF);
		own = new_completion_port(1);
		post(own, 2);
		CHECK(completion_port_get(own, &completion, 1, NULL) == 1);
		completion_port_free(own);
	});
	{
		completion_t completion;

		CHECK(completion_port_get(port, &completion, 1, NULL) == 1);
	}
	completion_port_free(port);
}

#define THREADS	   4
#define TASKS	   8000
#define CONCURRENT 2

static completion_port_t *shared;
static int taken[TASKS];
static int running;
static int most;

static void *work(void *argument)
{
	completion_t completion;
	int now_running;

	(void)argument;
	for (;;) {
		if (completion_port_get(shared, &completion, 1, NULL) < 0) {
			CHECK(errno == EBADF);
			return NULL;
		}
		if (completion.completion_key == TASKS)
			return NULL;
		now_running = __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
		if (now_running > __atomic_load_n(&most, __ATOMIC_SEQ_CST))
			__atomic_store_n(&most, now_running, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&taken[completion.completion_key], 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_sub(&running, 1, __ATOMIC_SEQ_CST);
	}
}

static void each_completion_goes_to_one_thread(void)
{
	pthread_t threads[THREADS];

	shared = new_completion_port(CONCURRENT);
	for (int at = 0; at < THREADS; at++)
		CHECK(pthread_create(&threads[at], NULL, work, NULL) == 0);
	for (int at = 0; at < TASKS; at++)
		post(shared, at);
	for (int at = 0; at < THREADS; at++)
		post(shared, TASKS);
	for (int at = 0; at < THREADS; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	for (int at = 0; at < TASKS; at++)
		CHECK(taken[at] == 1);
	CHECK(most >= 1 && most <= THREADS);
	completion_port_free(shared);
}

static void *wait_for_the_end(void *argument)
{
	completion_t completion;

	(void)argument;
	FAILS(completion_port_get(shared, &completion, 1, NULL), EBADF);
	return NULL;
}

static void a_close_ends_waits(void)
{
	pthread_t threads[THREADS];

	for (int round = 0; round < 20; round++) {
		shared = new_completion_port(1);
		for (int at = 0; at < THREADS; at++)
			CHECK(pthread_create(&threads[at], NULL, wait_for_the_end, NULL) == 0);
		if (round % 2)
			nanosleep(&soon, NULL);
		CHECK(completion_port_close(shared) == 0);
		for (int at = 0; at < THREADS; at++)
			CHECK(pthread_join(threads[at], NULL) == 0);
		completion_port_free(shared);
	}
}

static int let_go;
static int entered;

static void *hold(void *argument)
{
	completion_t completion;

	(void)argument;
	CHECK(completion_port_get(shared, &completion, 1, NULL) == 1);
	__atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
	/* It runs, and does not block. */
	while (!__atomic_load_n(&let_go, __ATOMIC_SEQ_CST))
		;
	return NULL;
}

static void no_more_threads_run_than_the_value_while_none_blocks(void)
{
	pthread_t threads[2];

	shared = new_completion_port(1);
	let_go = entered = 0;
	for (int at = 0; at < 2; at++)
		CHECK(pthread_create(&threads[at], NULL, hold, NULL) == 0);
	post(shared, 1);
	post(shared, 2);
	while (__atomic_load_n(&entered, __ATOMIC_SEQ_CST) == 0)
		sched_yield();
	nanosleep(&soon, NULL);
	CHECK(__atomic_load_n(&entered, __ATOMIC_SEQ_CST) == 1);
	/* The first one's end makes room for the second. */
	__atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
	for (int at = 0; at < 2; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	CHECK(entered == 2);
	completion_port_free(shared);
}

MAIN(CASE(completions_have_what_was_posted_in_order),
     CASE(a_wait_ends_with_its_timeout_and_not_before),
     CASE(each_error_is_the_one_that_the_page_names), CASE(a_child_has_no_part_in_it),
     CASE(each_completion_goes_to_one_thread), CASE(a_close_ends_waits),
     CASE(no_more_threads_run_than_the_value_while_none_blocks))
