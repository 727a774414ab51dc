/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What io_uring does for the watched threads, by operation.
 *
 * Hooks: raw tracepoints io_uring_create, io_uring_submit_req (io_uring_submit_sqe in
 * older kernels), io_uring_req_failed, io_uring_complete, io_uring_queue_async_work,
 * io_uring_poll_arm, io_uring_task_add, io_uring_fail_link and io_uring_cqe_overflow. They are not
 * BTF-typed: one that a kernel does not have, or has with other arguments, is refused when it is
 * attached, and the others are loaded all the same. Without a submission or a completion of a known
 * form, none of them stays attached.
 *
 * A request is told by its address from its submission to its completion, which may be another
 * thread's, a worker's or an interrupt's: rows are of an image, and their counters atomic. Three
 * kinds of completions have no request to go by: one of many results of a request, one that finds
 * the queue full, and one that is not to be told of. The first two are found by what user space
 * named the request; the last is counted when the kernel uses the address again, or not at all.
 */

#define OP_POLL_ADD	       6
#define OP_RECVMSG	       10
#define OP_TIMEOUT	       11
#define OP_ACCEPT	       13
#define OP_CONNECT	       16
#define OP_RECV		       27
#define OP_READ_MULTISHOT      49
#define OP_RECV_ZC	       58

#define IOSQE_FIXED_FILE       0x1
#define IOSQE_ASYNC	       0x10 /* the kernel, too, sets it for some operations */
#define IOSQE_CQE_SKIP_SUCCESS 0x40
#define IORING_RECV_MULTISHOT  0x2
#define IO_WQ_WORK_UNBOUND     0x4
#define IORING_CQE_F_MORE      0x2
#define IORING_CQE_F_NOTIF     0x8

/* Kernels without io_uring have no requests: what reads such is not to be verified there. */
#define HAS_REQUESTS bpf_core_type_exists(struct io_kiocb)

/* What an operation does with bytes: it reads them from its file, writes them to it, moves them
 * between two. */
#define OP_READS  1
#define OP_WRITES 2
#define OP_MOVES  4
/* Its requests are not counted. They are followed, since what comes later may be another's. */
#define OP_LEFT_OUT 8

/* Without a completion, if it succeeds; only that tells whether it counts. */
#define ENDS_SILENTLY 1
#define ENDS_IN_DOUBT 2

struct ring_request {
	u64 began_ns;
	u64 ctx;
	u64 name; /* by user space */
	u32 image;
	u8 op;
	u8 way;
	u8 has_many; /* results */
	u8 ending;   /* ENDS_… */
};

/* A ring, and what user space calls a request of it. */
struct ring_name {
	u64 ctx;
	u64 name;
};

/*
 * By struct io_kiocb. A row stays when its request has ended, without an image: rings use their
 * requests again and again, and to make a row takes longer than all else.
 */
ROWS(ring_requests, u64, struct ring_request);
ROWS(ring_named, struct ring_name, u64);     /* those with many results */
ROWS(ring_overflows, struct ring_name, s64); /* their results */
ROWS(ring_operations, struct ring_key, struct ring_row);
ROWS(ring_errors, struct ring_error_key, u64);
ROWS(ring_files, struct file_key, struct file_stats); /* in place of the thread, the image */

/*
 * In front of three of these tables: entries for those that came first, each at the one place where
 * it can be, which it keeps to the end. A table's entry takes a call and a hash to find.
 */
struct ring_slot {
	u64 req; /* 0: none, yet */
	struct ring_request request;
};
#define SLOT_BITS 11
struct ring_slot ring_slots[1 << SLOT_BITS] SEC(".bss.ring_slots");
struct ring_hot_row ring_hot_rows[HOT_ROWS] SEC(".bss.ring_rows");
struct ring_hot_file ring_hot_files[HOT_FILES] SEC(".bss.ring_files");

/* What each operation does with bytes. */
const volatile u8 ring_transfers[256] SEC(".rodata.rings");

static __always_inline bool is_left_out(u8 op)
{
	return ring_transfers[op] & OP_LEFT_OUT;
}

static __always_inline void lose_request(void)
{
	__sync_fetch_and_add(&counters.lost_requests, 1);
}

static const struct ring_row no_operations;

/* The image on whose behalf the current task submits; how: BY_SUBMITTER or BY_SQ_THREAD. */
static __always_inline u32 submitter(u8 *way)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);

	*way = BY_SUBMITTER;
	if (t)
		return t->calibrates ? 0 : t->image;
	if (!(task->flags & PF_IO_WORKER))
		return 0;
	*way = BY_SQ_THREAD;
	return ring_owner(task);
}

/* The row of an operation: none if it is left out, or there is no room. */
static __always_inline struct ring_row *ring_row(u32 image, u8 op)
{
	struct ring_hot_row *hot = &ring_hot_rows[(image * 5 + op) & (HOT_ROWS - 1)];
	u64 owner = (u64)image << 32 | (op + 1);
	struct ring_key key = {.image = image, .op = op};
	struct ring_row *found;

	if (is_left_out(op))
		return NULL;
	if (hot->owner == owner ||
	    (!hot->owner && !__sync_val_compare_and_swap(&hot->owner, 0, owner)))
		return &hot->row;
	found = bpf_map_lookup_elem(&ring_operations, &key);
	if (found)
		return found;
	bpf_map_update_elem(&ring_operations, &key, &no_operations, BPF_NOEXIST);
	return bpf_map_lookup_elem(&ring_operations, &key);
}

__noinline int count_ring_error(u32 image, u32 op, u32 error)
{
	struct ring_error_key key = {.image = image, .op = op, .error = error};
	u64 none = 0, *count = bpf_map_lookup_elem(&ring_errors, &key);

	if (!count) {
		bpf_map_update_elem(&ring_errors, &key, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&ring_errors, &key);
	}
	if (count)
		ADD(*count, 1);
	else
		lose();
	return 0;
}

#include "ring_files.bpf.h"

#ifdef DETAILS
/* The address that a connect asks for. */
static __always_inline void take_address(struct making *of, u64 req)
{
	if (!bpf_core_field_exists(struct io_connect, addr_len))
		return;
	of->address = (u64)FIELD(struct io_connect, req, addr);
	of->length = FIELD(struct io_connect, req, addr_len);
}
#endif

#include "ring_where.bpf.h"
#include "ring_connects.bpf.h"

/* What came of a request, or one of its results. */
static __always_inline void count_result(struct ring_request *r, struct ring_row *row, u64 req,
					 s32 result)
{
	u8 how = ring_transfers[r->op];
	s32 bytes = moved_by_ring(req, r->op, result);
	u32 slot;

	if (is_error(result)) {
		count_ring_error(r->image, r->op, -result);
	} else if (how && result >= 0) {
		ADD(row->bytes, bytes);
		slot = slot_by_call(result);
		if (slot < SLOTS)
			ADD(row->sizes[slot], 1);
	}
	if (how & (OP_READS | OP_WRITES) && knobs.by_file && req)
		count_ring_file(word_at(&((struct io_kiocb *)req)->file), r->image, how,
				is_error(result) ? 0 : bytes, -1ULL);
}

static __always_inline void count_way(struct ring_row *row, u8 way)
{
	if (way < WAYS)
		ADD(row->ways[way], 1);
}

static __always_inline void end_request(struct ring_request *r, u64 req)
{
	struct ring_name name = {.ctx = r->ctx, .name = r->name};
	u64 *known = r->has_many ? bpf_map_lookup_elem(&ring_named, &name) : NULL;

	/* User space may have given another the same name since. */
	if (known && *known == req)
		bpf_map_delete_elem(&ring_named, &name);
	r->image = 0;
}

/* The request that was last at an address. A new address may claim the slot that it shares with
 * others. */
static __always_inline struct ring_request *last_at(u64 req, bool is_new)
{
	struct ring_slot *slot = &ring_slots[req * 0x9E3779B97F4A7C15 >> (64 - SLOT_BITS)];

	if (slot->req == req ||
	    (is_new && !slot->req && !__sync_val_compare_and_swap(&slot->req, 0, req)))
		return &slot->request;
	return bpf_map_lookup_elem(&ring_requests, &req);
}

/* The request at an address, if it has not ended. */
static __always_inline struct ring_request *request_at(u64 req)
{
	struct ring_request *r = last_at(req, false);

	return r && r->image ? r : NULL;
}

/* The kernel uses a request's address again, of which no completion was seen. */
__noinline int end_unseen(u64 req)
{
	struct ring_request *r = request_at(req);
	s64 *overflow;
	struct ring_name name = {};
	struct ring_row *row;

	if (!r)
		return 0;
	name.ctx = r->ctx;
	name.name = r->name;
	overflow = bpf_map_lookup_elem(&ring_overflows, &name);
	/* What would decide on a doubtful one is not known. */
	row = is_doubtful_op(r->op) ? NULL : ring_row(r->image, r->op);
	if (row && (overflow || r->ending & ENDS_SILENTLY)) {
		count_way(row, r->way);
		lose_group(r->op);
	} else if (!is_left_out(r->op)) {
		lose_request();
	}
	if (row && overflow) {
		ADD(row->overflows, 1);
		count_result(r, row, 0, *overflow);
	}
	if (overflow)
		bpf_map_delete_elem(&ring_overflows, &name);
	end_request(r, req);
	return 0;
}

static __always_inline bool has_many_results(u64 req, u8 op)
{
	if (op == OP_RECV || op == OP_RECVMSG)
		return FIELD(struct io_sr_msg, req, flags) & IORING_RECV_MULTISHOT;
	return op == OP_ACCEPT || op == OP_POLL_ADD || op == OP_TIMEOUT ||
	       op == OP_READ_MULTISHOT || op == OP_RECV_ZC;
}

/* One that failed before it was issued does nothing with its file. */
static __always_inline int submit(u64 req, bool is_issued)
{
	struct ring_request fresh = {}, *known;
	struct ring_name name = {};
	struct ring_row *row;
	u32 flags;

	if (ended_ns)
		return 0;
	fresh.image = submitter(&fresh.way);
	if (!fresh.image)
		return 0;
	fresh.op = FIELD(struct io_kiocb, req, opcode);
	fresh.name = FIELD(struct io_kiocb, req, cqe.user_data);
	fresh.ctx = (u64)FIELD(struct io_kiocb, req, ctx);
	flags = FIELD(struct io_kiocb, req, flags);
	fresh.ending = flags & IOSQE_CQE_SKIP_SUCCESS ? ENDS_SILENTLY : 0;
	if (is_doubtful_op(fresh.op) && !is_left_out(fresh.op))
		fresh.ending |= ENDS_IN_DOUBT;
	fresh.has_many = has_many_results(req, fresh.op);
	row = is_doubtful_op(fresh.op) ? NULL : ring_row(fresh.image, fresh.op);
	if (!row && !is_doubtful_op(fresh.op) && !is_left_out(fresh.op)) {
		lose_request();
		return 0;
	}
	if (is_open_op(fresh.op) && !is_left_out(fresh.op) &&
	    !note_ring_facts(req, fresh.image, flags)) {
		lose_request();
		return 0;
	}
	if (is_issued && is_open_op(fresh.op))
		note_ring_place(req);
	if (is_issued && row && row->submitted < FIRST_REQUESTS && knobs.by_file &&
	    ring_transfers[fresh.op] & (OP_READS | OP_WRITES))
		meet_ring_file(req, fresh.image, flags);
	fresh.began_ns = bpf_ktime_get_ns();
	known = last_at(req, true);
	if (known && known->image)
		end_unseen(req);
	if (known) {
		*known = fresh;
	} else if (bpf_map_update_elem(&ring_requests, &req, &fresh, BPF_NOEXIST)) {
		if (!is_left_out(fresh.op))
			lose_request();
		return 0;
	}
	if (row) {
		ADD(row->submitted, 1);
		if (flags & IOSQE_FIXED_FILE)
			ADD(row->registered, 1);
		if (flags & IOSQE_ASYNC)
			ADD(row->forced, 1);
	}
	if (!fresh.has_many)
		return 0;
	name.ctx = fresh.ctx;
	name.name = fresh.name;
	if (bpf_map_update_elem(&ring_named, &name, &req, BPF_ANY))
		lose();
	return 0;
}

/* The request of which this is one of many results: it goes on. */
static __always_inline struct ring_request *with_many(u64 ctx, u64 named, u64 *req)
{
	struct ring_name name = {.ctx = ctx, .name = named};
	struct ring_request *r;
	u64 *known;

	known = bpf_map_lookup_elem(&ring_named, &name);
	if (!known)
		return NULL;
	*req = *known;
	r = request_at(*req);
	return r && r->name == named && r->ctx == ctx ? r : NULL;
}

static __always_inline void count_one_of_many(u64 ctx, u64 named, s32 result)
{
	struct ring_request *r;
	struct ring_row *row;
	int verdict;
	u64 req;

	r = with_many(ctx, named, &req);
	if (!r || is_left_out(r->op))
		return;
	meet_registered_file(r, req);
	verdict = judge_result(r, req, result, 0);
	row = verdict ? ring_row(r->image, r->op) : NULL;
	if (row) {
		ADD(row->results, 1);
		count_result(r, row, req, result);
		count_made(r, req, result, 0);
	}
	if (verdict == RESULT_ENDS)
		announce_end();
}

/*
 * A completion without a submission: in a process that was there before the watch, the request was,
 * too. Where requests found no room, it may be one of those.
 */
static __always_inline void count_before(u64 req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring_row *row;
	struct thread *t;
	u32 *image;
	u8 op;

	if (!(knobs.whole_machine || knobs.selects) || counters.lost_requests)
		return;
	image = image_found(task);
	t = watched(task);
	/* It may have another image since. */
	if (!image || (t && t->image != *image))
		return;
	op = FIELD(struct io_kiocb, req, opcode);
	row = is_doubtful_op(op) ? NULL : ring_row(*image, op);
	if (row)
		ADD(row->before, 1);
}

static __always_inline int complete(u64 ctx, u64 req, u64 named, s32 result)
{
	struct ring_request *r;
	struct ring_row *row;
	u64 wall, bucket;
	int verdict;

	if (ended_ns)
		return 0;
	if (!req) {
		count_one_of_many(ctx, named, result);
		return 0;
	}
	r = request_at(req);
	if (!r) {
		count_before(req);
		return 0;
	}
	if (is_left_out(r->op)) {
		end_request(r, req);
		return 0;
	}
	wall = bpf_ktime_get_ns() - r->began_ns;
	meet_registered_file(r, req);
	verdict = judge_result(r, req, result, wall);
	row = verdict ? ring_row(r->image, r->op) : NULL;
	if (!row) {
		if (verdict)
			lose_request();
		end_request(r, req);
		return 0;
	}
	if (is_doubtful_op(r->op))
		count_doubtful(row, req);
	count_way(row, r->way);
	ADD(row->wall_ns, wall);
	raise_to(&row->max_ns, wall);
	bucket = bucket_by_call(wall);
	if (bucket < TIMES)
		ADD(row->wall[bucket], 1);
	count_result(r, row, req, result);
	count_made(r, req, result, wall);
	end_request(r, req);
	if (verdict == RESULT_ENDS)
		announce_end();
	return 0;
}

#include "ring_hooks.bpf.h"
