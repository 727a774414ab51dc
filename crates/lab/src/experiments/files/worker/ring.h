/*
 * The loop by io_uring: a chain of linked requests a file, several chains under way at once. The
 * file has no descriptor but a place in the ring's table. What succeeds is not told but for the
 * last of a chain, so that there is one completion a file.
 *
 * The memory that requests refer to (names, buffers) belongs to the caller and outlives the enter
 * that waits for all of them.
 */
#ifndef RING_H
#define RING_H

#include <linux/io_uring.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "calls.h"

/* Requests of a chain at most: create, write, sync, close, open, read, close, unlink. */
#define CHAIN 8

struct ring {
	int fd;
	unsigned depth;
	unsigned *sq_tail, sq_mask;
	unsigned *cq_head, *cq_tail, cq_mask;
	struct io_uring_sqe *requests;
	struct io_uring_cqe *completions;
	unsigned queued;
};

/* Returns 0, or what was tried and failed, with its error's number in errno. */
static const char *ring_open(struct ring *ring, unsigned depth)
{
	struct io_uring_params params = {0};
	struct io_uring_rsrc_register files = {.nr = depth, .flags = IORING_RSRC_REGISTER_SPARSE};
	size_t bytes;
	char *base;
	unsigned *places, at;

	params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
	ring->fd = (int)syscall(SYS_io_uring_setup, depth * CHAIN, &params);
	if (ring->fd < 0 && errno == EINVAL) { /* before Linux 6.1 */
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
}

/* Hands all over and waits for that many chains; the first error, or 0. */
static long ring_run(struct ring *ring, unsigned chains)
{
	unsigned left = ring->queued, head, tail;
	long failed = 0;

	__atomic_store_n(ring->sq_tail, *ring->sq_tail + ring->queued, __ATOMIC_RELEASE);
	ring->queued = 0;
	while (chains > 0 || left > 0) {
		long taken = syscall(SYS_io_uring_enter, ring->fd, left, chains,
				     IORING_ENTER_GETEVENTS, NULL, 0);

		if (taken < 0 && errno != EINTR)
			return -errno;
		left -= taken > 0 ? (unsigned)taken : 0;
		head = *ring->cq_head;
		tail = __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE);
		for (; head != tail; head++) {
			long result = ring->completions[head & ring->cq_mask].res;

			/* Of a chain that breaks the first request tells why, the others that
			 * they were given up. */
			if (result < 0 && (failed == 0 || failed == -ECANCELED))
				failed = result;
			chains -= chains > 0;
		}
		__atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
		if (failed < 0)
			return failed;
	}
	return 0;
}

#endif
