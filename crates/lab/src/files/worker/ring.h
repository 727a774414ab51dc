/*
 * The loop by io_uring: a chain of linked requests a file, several chains under way at once. The
 * file has no descriptor but a place in the ring's table. What succeeds is not told but for the
 * last of a chain, so that there is one completion a file.
 *
 * Creates and unlinks are carried out by threads that the kernel adds to the process (io-wq). How
 * the ring is set up decides what becomes of a chain (Linux 6.18):
 * - With IORING_SETUP_DEFER_TASKRUN a request that such a thread has carried out is completed by
 *   the thread that waits, and the next one of its chain is handed to io-wq anew by that: every
 *   request is two changes of threads. Without, the chain stays with the thread that began it.
 * - A thread asleep in io_uring_enter is woken for every request of a chain all the same, since
 *   links are not completed lazily. So completions are looked for in the ring for a while before
 *   the kernel is asked to wait for them.
 * - As many threads as there are CPUs besides this one's: more only wait for the directory's lock.
 * - The files are two halves, so that there is always one that these threads work on while the
 *   other is being described.
 *
 * The memory that requests refer to (names, buffers) belongs to the caller and outlives the enter
 * that waits for all of them.
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

/* Requests of a chain at most: create, write, sync, close, open, read, close, unlink. */
#define CHAIN 8

/* Looks for a completion before the kernel is waited in; after the first, some 100 us, others get
 * the CPU between two. */
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
	unsigned half;	       /* what the requests that come next belong to */
	unsigned under_way[2]; /* chains of each half */
};

/* Returns 0, or what was tried and failed, with its error's number in errno. */
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
	/* Who looks takes the CPU from who works where there is but one. */
	ring->looks = cpus > 1 ? LOOKS : 0;
	if (cpus > 1) {
		unsigned threads[2] = {(unsigned)cpus - 1, (unsigned)cpus - 1};

		/* Before Linux 5.15 there are as many as there are. */
		syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_IOWQ_MAX_WORKERS, threads,
			2);
	}
	if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_FILES2, &files,
		    sizeof(files)) < 0)
		return "io_uring_register IORING_REGISTER_FILES2";
	return NULL;
}

/* The next request, linked to the one behind it; each chain ends by ring_end(). */
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

/* The chain ends with the last request, which tells that it is done. */
static void ring_end(struct ring *ring)
{
	unsigned last = (*ring->sq_tail + ring->queued - 1) & ring->sq_mask;

	ring->requests[last].flags &= (unsigned char)~(IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS);
	ring->under_way[ring->half]++;
}

/* Hands all over that was described. */
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

/* Looks for completions until there is one, and waits for as many as `wanted` after a while. */
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

/* Waits until no chain of a half is under way; the first error, or 0. */
static long ring_wait(struct ring *ring, unsigned half)
{
	long failed = 0;

	while (failed == 0 && ring->under_way[half] > 0) {
		unsigned head = *ring->cq_head, tail;

		failed = ring_await(ring, ring->under_way[half]);
		tail = __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE);
		for (; head != tail; head++) {
			struct io_uring_cqe *one = &ring->completions[head & ring->cq_mask];

			/* Of a chain that breaks the first request tells why, the others that
			 * they were given up. */
			if (one->res < 0 && (failed == 0 || failed == -ECANCELED))
				failed = one->res;
			ring->under_way[one->user_data]--;
		}
		__atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
	}
	return failed;
}

#endif
