/*
 * The loop by io_uring: a chain of linked requests per file, with several chains in progress at
 * once. A file has no descriptor, but a slot in the ring's file table. Successful requests post no
 * completion except for the last of a chain, so that there is one completion per file.
 *
 * Threads that the kernel adds to the process (io-wq) carry out creates and unlinks. The setup of
 * the ring determines how a chain is processed (Linux 6.18):
 * - With IORING_SETUP_DEFER_TASKRUN, the waiting thread completes a request that an io-wq thread
 *   has carried out, and then passes the next request of the chain to io-wq again: every request
 *   costs two thread switches. Without the flag, the chain stays with the thread that began it.
 * - A thread blocked in io_uring_enter is still woken for every request of a chain, since links
 *   are not completed lazily. So the ring is polled for completions for a while before the thread
 *   blocks in the kernel.
 * - There are as many io-wq threads as CPUs besides this thread's: more threads would only wait
 *   for the directory's lock.
 * - The files are divided into two halves, so that the io-wq threads always have one half to work
 *   on while the requests of the other are being written.
 *
 * The memory that requests refer to (names, buffers) belongs to the caller and must remain valid
 * until the enter that waits for all of them has returned.
 */
#ifndef RING_H
#define RING_H

#include <linux/io_uring.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "calls.h"

/* Maximum length of a chain: create, write, sync, close, open, read, close, unlink. */
#define CHAIN 8

/* Number of polls for a completion before blocking in the kernel. The first PAUSES polls take about
 * 100 us; after them the thread yields the CPU between two polls. */
#define LOOKS  6000
#define PAUSES 4000

struct ring {
	int fd;
	unsigned depth;
	unsigned *sq_tail, sq_mask;
	unsigned *cq_head, *cq_tail, cq_mask;
	struct io_uring_sqe *requests;
	struct io_uring_cqe *completions;
	unsigned queued;
	long looks;
	unsigned half;	       /* the half of the next requests */
	unsigned under_way[2]; /* chains in progress of each half */
};

/* Returns NULL, or the name of the call that failed, with the error in errno. */
static const char *ring_open(struct ring *ring, unsigned depth)
{
	struct io_uring_params params = {0};
	struct io_uring_rsrc_register files = {.nr = depth, .flags = IORING_RSRC_REGISTER_SPARSE};
	cpu_set_t allowed;
	int cpus = sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ? 1 : CPU_COUNT(&allowed);
	size_t bytes;
	char *base;
	unsigned *places, at;

	params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN;
	ring->fd = (int)syscall(SYS_io_uring_setup, depth * CHAIN, &params);
	if (ring->fd < 0 && errno == EINVAL) { /* before Linux 6.0 */
		memset(&params, 0, sizeof(params));
		ring->fd = (int)syscall(SYS_io_uring_setup, depth * CHAIN, &params);
	}
	if (ring->fd < 0)
		return "io_uring_setup";
	bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
	if (bytes < params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe))
		bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
		    IORING_OFF_SQ_RING);
	if (base == MAP_FAILED)
		return "mmap of the ring";
	ring->requests =
		mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQES);
	if (ring->requests == MAP_FAILED)
		return "mmap of the requests";
	ring->sq_tail = (unsigned *)(base + params.sq_off.tail);
	ring->sq_mask = *(unsigned *)(base + params.sq_off.ring_mask);
	ring->cq_head = (unsigned *)(base + params.cq_off.head);
	ring->cq_tail = (unsigned *)(base + params.cq_off.tail);
	ring->cq_mask = *(unsigned *)(base + params.cq_off.ring_mask);
	ring->completions = (struct io_uring_cqe *)(base + params.cq_off.cqes);
	places = (unsigned *)(base + params.sq_off.array);
	for (at = 0; at < params.sq_entries; at++)
		places[at] = at;
	ring->depth = depth;
	ring->queued = 0;
	ring->half = 0;
	/* With a single CPU, polling would take it from the working threads. */
	ring->looks = cpus > 1 ? LOOKS : 0;
	if (cpus > 1) {
		unsigned threads[2] = {(unsigned)cpus - 1, (unsigned)cpus - 1};

		/* Linux before 5.15 does not support this limit. */
		syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_IOWQ_MAX_WORKERS, threads,
			2);
	}
	if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_FILES2, &files,
		    sizeof(files)) < 0)
		return "io_uring_register IORING_REGISTER_FILES2";
	return NULL;
}

/* Returns the next request, linked to its successor; ring_end() ends each chain. */
static struct io_uring_sqe *ring_next(struct ring *ring, unsigned char opcode)
{
	struct io_uring_sqe *request =
		&ring->requests[(*ring->sq_tail + ring->queued) & ring->sq_mask];

	ring->queued++;
	memset(request, 0, sizeof(*request));
	request->opcode = opcode;
	request->flags = IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
	request->user_data = ring->half;
	return request;
}

static void ring_open_file(struct ring *ring, unsigned place, const char *name, int flags)
{
	struct io_uring_sqe *request = ring_next(ring, IORING_OP_OPENAT);

	request->fd = AT_FDCWD;
	request->addr = (uintptr_t)name;
	request->len = MODE;
	request->open_flags = (unsigned)flags;
	request->file_index = place + 1;
}

static void ring_bytes(struct ring *ring, unsigned place, unsigned char opcode, void *memory,
		       unsigned bytes)
{
	struct io_uring_sqe *request = ring_next(ring, opcode);

	request->fd = (int)place;
	request->flags |= IOSQE_FIXED_FILE;
	request->addr = (uintptr_t)memory;
	request->len = bytes;
	request->off = (uint64_t)-1;
}

static void ring_fsync(struct ring *ring, unsigned place, unsigned flags)
{
	struct io_uring_sqe *request = ring_next(ring, IORING_OP_FSYNC);

	request->fd = (int)place;
	request->flags |= IOSQE_FIXED_FILE;
	request->fsync_flags = flags;
}

static void ring_close_file(struct ring *ring, unsigned place)
{
	ring_next(ring, IORING_OP_CLOSE)->file_index = place + 1;
}

static void ring_unlink(struct ring *ring, const char *name)
{
	struct io_uring_sqe *request = ring_next(ring, IORING_OP_UNLINKAT);

	request->fd = AT_FDCWD;
	request->addr = (uintptr_t)name;
}

/* Ends the chain with the last request, which posts a completion. */
static void ring_end(struct ring *ring)
{
	unsigned last = (*ring->sq_tail + ring->queued - 1) & ring->sq_mask;

	ring->requests[last].flags &= (unsigned char)~(IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS);
	ring->under_way[ring->half]++;
}

/* Submits all queued requests. */
static long ring_submit(struct ring *ring)
{
	unsigned left = ring->queued;

	__atomic_store_n(ring->sq_tail, *ring->sq_tail + left, __ATOMIC_RELEASE);
	ring->queued = 0;
	while (left > 0) {
		long taken = syscall(SYS_io_uring_enter, ring->fd, left, 0, 0, NULL, 0);

		if (taken < 0 && errno != EINTR)
			return -errno;
		left -= taken > 0 ? (unsigned)taken : 0;
	}
	return 0;
}

/* Polls for a completion; after a while blocks until there are `wanted` completions. */
static long ring_await(struct ring *ring, unsigned wanted)
{
	long looks;

	for (looks = 0; looks < ring->looks; looks++) {
		if (*ring->cq_head != __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
			return 0;
		if (looks < PAUSES)
			__builtin_ia32_pause();
		else
			sched_yield();
	}
	while (syscall(SYS_io_uring_enter, ring->fd, 0, wanted, IORING_ENTER_GETEVENTS, NULL, 0) <
	       0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Waits until no chain of a half is in progress; returns the first error, or 0. */
static long ring_wait(struct ring *ring, unsigned half)
{
	long failed = 0;

	while (failed == 0 && ring->under_way[half] > 0) {
		unsigned head = *ring->cq_head, tail;

		failed = ring_await(ring, ring->under_way[half]);
		tail = __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE);
		for (; head != tail; head++) {
			struct io_uring_cqe *one = &ring->completions[head & ring->cq_mask];

			/* If a chain breaks, its first failed request has the cause, and the
			 * others have -ECANCELED. */
			if (one->res < 0 && (failed == 0 || failed == -ECANCELED))
				failed = one->res;
			ring->under_way[one->user_data]--;
		}
		__atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
	}
	return failed;
}

#endif
