/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The programs on the tracepoints of io_uring: a part of rings.bpf.h, which says what they are. */

static __always_inline struct ring_request *take_way(u64 req, u8 way)
{
	struct ring_request *r = request_at(req);

	if (r && r->way < way)
		r->way = way;
	return r;
}

SEC("raw_tp/io_uring_create")
int ring_create(struct raw_arguments *ctx)
{
	struct thread *t = watched(bpf_get_current_task_btf());

	if (t && t->image && !t->calibrates && !ended_ns)
		note_ring_owner(t->image);
	return 0;
}

/* Whether the worker that a request is for may wait for ever. */
static __always_inline bool is_unbounded(u64 req)
{
	u32 flags;

	if (bpf_core_field_exists(struct io_kiocb___atomic, work.flags.counter))
		flags = FIELD(struct io_kiocb___atomic, req, work.flags.counter);
	else
		flags = FIELD(struct io_kiocb, req, work.flags);
	return flags & IO_WQ_WORK_UNBOUND;
}

/*
 * For a program that is written for another form than this kernel's: it reads the last argument
 * that there can be, and is refused when it is attached. In other kernels the verifier leaves the
 * read out.
 */
static __always_inline int refuse(struct raw_arguments *ctx)
{
	return ((volatile struct raw_arguments *)ctx)->at[11];
}

SEC("raw_tp/io_uring_submit_req")
int ring_submit_req(struct raw_arguments *ctx)
{
	if (!bpf_core_type_exists(btf_trace_io_uring_submit_req))
		return refuse(ctx);
	return submit(ctx->at[0], true);
}

SEC("raw_tp/io_uring_submit_sqe")
int ring_submit_sqe(struct raw_arguments *ctx)
{
	if (!bpf_core_type_exists(btf_trace_io_uring_submit_sqe))
		return refuse(ctx);
	return submit(ctx->at[0], true);
}

/* It is refused as it is: it has a completion, but was not submitted. */
SEC("raw_tp/io_uring_req_failed")
int ring_req_failed(struct raw_arguments *ctx)
{
	return HAS_REQUESTS ? submit(ctx->at[1], false) : 0;
}

SEC("raw_tp/io_uring_complete")
int ring_complete(struct raw_arguments *ctx)
{
	u64 cqe = ctx->at[2], outcome;

	if (!bpf_core_type_exists(btf_trace_io_uring_complete___whole))
		return refuse(ctx);
	/* What user space is given has one layout: its name of the request, the result, and flags.
	 */
	outcome = word_at((void *)cqe + 8);
	if (outcome >> 32 & IORING_CQE_F_NOTIF)
		return 0;
	return complete(ctx->at[0], ctx->at[1], word_at((void *)cqe), outcome);
}

SEC("raw_tp/io_uring_complete")
int ring_complete_parts(struct raw_arguments *ctx)
{
	if (!bpf_core_type_exists(btf_trace_io_uring_complete___parts))
		return refuse(ctx);
	if (ctx->at[4] & IORING_CQE_F_NOTIF)
		return 0;
	return complete(ctx->at[0], ctx->at[1], ctx->at[2], ctx->at[3]);
}

SEC("raw_tp/io_uring_queue_async_work")
int ring_queue_async_work(struct raw_arguments *ctx)
{
	struct ring_request *r;

	if (!HAS_REQUESTS)
		return 0;
	r = take_way(ctx->at[0], is_unbounded(ctx->at[0]) ? BY_UNBOUNDED : BY_WORKER);
	/* A child that has its parent's ring has workers of its own. */
	if (r && !ring_owner(bpf_get_current_task_btf()))
		note_ring_owner(r->image);
	return 0;
}

SEC("raw_tp/io_uring_poll_arm")
int ring_poll_arm(struct raw_arguments *ctx)
{
	take_way(ctx->at[0], BY_POLL);
	return 0;
}

SEC("raw_tp/io_uring_task_add")
int ring_task_add(struct raw_arguments *ctx)
{
	take_way(ctx->at[0], BY_POLL);
	return 0;
}

/* A request failed: those that are linked to it are not carried out. */
SEC("raw_tp/io_uring_fail_link")
int ring_fail_link(struct raw_arguments *ctx)
{
	struct ring_request *r = ended_ns ? NULL : request_at(ctx->at[1]);
	struct ring_row *row;

	if (!r)
		return 0;
	if (is_doubtful_op(r->op))
		return note_unlinked(ctx->at[1]);
	row = ring_row(r->image, r->op);
	if (row)
		ADD(row->unlinked, 1);
	return 0;
}

/* The queue is full: the completion is kept for later, and no other program is told of it. */
SEC("raw_tp/io_uring_cqe_overflow")
int ring_cqe_overflow(struct raw_arguments *ctx)
{
	struct ring_name name = {.ctx = ctx->at[0], .name = ctx->at[1]};
	s64 result = (s32)ctx->at[2];
	struct ring_request *r = NULL;
	struct ring_row *row;
	int verdict;
	u64 req = 0;
	u8 way;

	if (ended_ns || ctx->at[3] & IORING_CQE_F_NOTIF || !submitter(&way))
		return 0;
	if (ctx->at[3] & IORING_CQE_F_MORE)
		r = with_many(name.ctx, name.name, &req);
	verdict = r && !is_left_out(r->op) ? judge_result(r, req, result, 0) : RESULT_LEFT_OUT;
	row = verdict ? ring_row(r->image, r->op) : NULL;
	if (row) {
		ADD(row->results, 1);
		ADD(row->overflows, 1);
		count_result(r, row, 0, result);
	}
	if (verdict == RESULT_ENDS)
		announce_end();
	if (r)
		return 0;
	if (bpf_map_update_elem(&ring_overflows, &name, &result, BPF_ANY))
		lose_request();
	return 0;
}
