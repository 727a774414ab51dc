/* Requests to io_uring by plain system calls: rings WAY COUNT FILE. */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH 64

static int ring;
static char *sq, *cq;
static struct io_uring_params params;
static struct io_uring_sqe *sqes;
static char buffer[4096];

static unsigned *at(char *queue, unsigned place)
{
	return (unsigned *)(queue + place);
}

static void setup(unsigned results)
{
	params.flags = IORING_SETUP_CQSIZE;
	params.cq_entries = results;
	ring = syscall(SYS_io_uring_setup, DEPTH, &params);
	if (ring < 0) {
		perror("io_uring_setup");
		exit(2);
	}
	sq = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	cq = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqes = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
}

static void push(int op, int fd, unsigned length, int flags)
{
	unsigned *tail = at(sq, params.sq_off.tail), place = *tail & (DEPTH - 1);
	struct io_uring_sqe *sqe = sqes + place;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op;
	sqe->fd = fd;
	sqe->addr = (unsigned long)buffer;
	sqe->len = length;
	sqe->flags = flags;
	at(sq, params.sq_off.array)[place] = place;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
}

static void enter(unsigned submitted, unsigned results)
{
	syscall(SYS_io_uring_enter, ring, submitted, results, results ? IORING_ENTER_GETEVENTS : 0,
		0, 0);
}

/* Takes what is there; counts results that are errors. */
static unsigned take(unsigned *errors)
{
	unsigned *head = at(cq, params.cq_off.head), taken = 0;

	while (*head != __atomic_load_n(at(cq, params.cq_off.tail), __ATOMIC_ACQUIRE)) {
		struct io_uring_cqe *cqes = (void *)(cq + params.cq_off.cqes);

		if (cqes[*head & *at(cq, params.cq_off.ring_mask)].res < 0)
			++*errors;
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
		taken++;
	}
	return taken;
}

int main(int argc, char **argv)
{
	const char *way = argc > 3 ? argv[1] : "";
	unsigned count = argc > 3 ? atoi(argv[2]) : 0, errors = 0, done = 0;
	int fd = argc > 3 ? open(argv[3], O_RDONLY) : -1;

	if (fd < 0)
		return 2;
	if (!strcmp(way, "files")) {
		/* Batches of small reads. */
		setup(DEPTH);
		while (done < count) {
			for (int i = 0; i < DEPTH; i++)
				push(IORING_OP_READ, fd, 16, 0);
			enter(DEPTH, DEPTH);
			done += take(&errors);
		}
	} else if (!strcmp(way, "one")) {
		/* One after another. */
		setup(DEPTH);
		while (done < count) {
			push(IORING_OP_READ, fd, 16, 0);
			enter(1, 1);
			done += take(&errors);
		}
	} else if (!strcmp(way, "overflow")) {
		/* More results than the queue has room for. */
		setup(DEPTH);
		for (unsigned i = 0; i < count; i++) {
			push(IORING_OP_READ, fd, 16, 0);
			enter(1, 0);
		}
		while (done < count) {
			enter(0, 1);
			done += take(&errors);
		}
	} else if (!strcmp(way, "links")) {
		/* A read of nothing that is there, and two that are linked to it. */
		setup(DEPTH);
		while (done < count) {
			push(IORING_OP_READ, -1, 16, IOSQE_IO_LINK);
			push(IORING_OP_READ, fd, 16, IOSQE_IO_LINK);
			push(IORING_OP_READ, fd, 16, 0);
			enter(3, 3);
			done += take(&errors);
		}
	}
	printf("%u results, %u of them errors\n", done, errors);
	return 0;
}
