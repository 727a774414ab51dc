/* What the programs of tests share that use kqueue. */
#ifndef QUEUE_H
#define QUEUE_H

#include "test.h"
#include <sys/event.h>

static inline int new_queue(void)
{
	int queue = kqueue();

	CHECK(queue >= 0);
	return queue;
}

static inline int change(int queue, uintptr_t ident, int filter, int flags, unsigned int fflags)
{
	struct kevent event;

	EV_SET(&event, ident, filter, flags, fflags, 0, NULL);
	return kevent(queue, &event, 1, NULL, 0, NULL);
}

static inline void put(int queue, uintptr_t ident, int filter, int flags)
{
	CHECK(change(queue, ident, filter, flags, 0) == 0);
}

static inline void put_with(int queue, uintptr_t ident, int filter, int flags, unsigned int fflags,
			    int64_t data, void *udata)
{
	struct kevent event;

	EV_SET(&event, ident, filter, flags, fflags, data, udata);
	CHECK(kevent(queue, &event, 1, NULL, 0, NULL) == 0);
}

/* The next event, which may take a moment. */
static inline struct kevent one(int queue)
{
	struct kevent event;

	CHECK(kevent(queue, NULL, 0, &event, 1, NULL) == 1);
	return event;
}

static inline void no_event(int queue)
{
	struct kevent event;

	CHECK(kevent(queue, NULL, 0, &event, 1, &now) == 0);
}

#endif
