/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What io_uring reads from connections and writes to them: a part of exchanges.bpf.c.
 *
 * Hooks: raw tracepoints io_uring_submit_req (io_uring_submit_sqe in older kernels) and
 * io_uring_complete, as in rings.bpf.h; attached where the kernel has both in a known form.
 *
 * An operation that reads is a read that returns when its completion is posted. One that writes is
 * a write from its submission to its completion, unless it is linked to one before it: it begins
 * after that, nobody says when, and is a write at its completion only. One that is not to be told
 * of (IOSQE_CQE_SKIP_SUCCESS) is a write at its submission.
 *
 * Cost: of operations that move no bytes, a read of the opcode; of those of watched threads, a
 * look-up in task storage and one in a hash, of writes two more.
 *
 * Limits: what finds the completion queue full, what was submitted with many results before the
 * watch, and splices are not seen.
 */

#define PF_IO_WORKER	       0x00000010

#define OP_RECVMSG	       10
#define OP_ACCEPT	       13
#define OP_CONNECT	       16
#define OP_CLOSE	       19
#define OP_SEND		       26
#define OP_RECV		       27
#define OP_READ_MULTISHOT      49
#define OP_RECV_ZC	       58

#define OP_READS	       1
#define OP_WRITES	       2

#define IOSQE_FIXED_FILE       0x1
#define IOSQE_CQE_SKIP_SUCCESS 0x40
#define IORING_RECV_MULTISHOT  0x2
#define IORING_CQE_F_MORE      0x2
#define IORING_CQE_F_NOTIF     0x8

/* Kernels without io_uring have no requests. */
#define HAS_REQUESTS bpf_core_type_exists(struct io_kiocb)

/* A ring, and what user space calls a request of it. */
struct ring_name {
	u64 ctx;
	u64 name;
};

ROWS(ring_writes, u64, struct writing);	      /* that are under way, by struct io_kiocb */
ROWS(ring_multishots, struct ring_name, u64); /* requests with many results */

/* Who carries an operation out now: without `t`, a thread of io_uring's own. */
struct ring_thread {
	struct task_struct *task;
	struct thread *t;
	struct serving *s;
	u32 image; /* 0: it is not watched */
};

static __always_inline void look_at_thread(struct ring_thread *me)
{
	struct task_struct *task = bpf_get_current_task_btf(), *leader;
	struct thread *t = thread_of(task);

	me->task = task;
	me->t = NULL;
	me->s = NULL;
	me->image = 0;
	if (t) {
		me->image = t->image;
		if (!t->image)
			return;
		me->s = made_task_row(&servings, task, &not_serving);
		if (!me->s)
			return;
		me->t = t;
		if (me->s->in_call)
			settle_call(me->s, t);
		return;
	}
	if (!(task->flags & PF_IO_WORKER))
		return;
	leader = task->group_leader;
	t = leader ? thread_of(leader) : NULL;
	if (t)
		me->image = t->image;
}

static __always_inline bool ring_has_many(u64 req, u8 op)
{
	if (op == OP_RECV || op == OP_RECVMSG)
		return FIELD(struct io_sr_msg, req, flags) & IORING_RECV_MULTISHOT;
	return op == OP_ACCEPT || op == OP_READ_MULTISHOT || op == OP_RECV_ZC;
}

/* A receive that leaves the bytes in the socket, or asks for errors. */
static __always_inline bool ring_leaves(u64 req, u8 op)
{
	if (op != OP_RECV && op != OP_RECVMSG)
		return false;
	return FIELD(struct io_sr_msg, req, msg_flags) & (MSG_PEEK | MSG_ERRQUEUE);
}

/* The request that is being submitted goes on behind another one. */
static __always_inline bool is_linked(u64 ctx)
{
	return BPF_CORE_READ((struct io_ring_ctx *)ctx, submit_state.link.head);
}

/* A registered file. Not static: the verifier looks at it once. */
__noinline u64 registered_file(u64 ctx, u32 slot)
{
	struct io_ring_ctx___nodes *newer = (void *)ctx;
	struct io_ring_ctx___files *older = (void *)ctx;
	u64 node;

	if (bpf_core_field_exists(newer->file_table.data.nodes)) {
		if (slot >= BPF_CORE_READ(newer, file_table.data.nr))
			return 0;
		node = word_at(BPF_CORE_READ(newer, file_table.data.nodes) + slot);
		return node ? BPF_CORE_READ((struct io_rsrc_node *)node, file_ptr) & ~3ULL : 0;
	}
	if (!bpf_core_field_exists(older->file_table.files) ||
	    slot >= BPF_CORE_READ(older, nr_user_files))
		return 0;
	node = (u64)BPF_CORE_READ(older, file_table.files);
	node += slot * bpf_core_type_size(struct io_fixed_file);
	return node ? BPF_CORE_READ((struct io_fixed_file *)node, file_ptr) & ~7ULL : 0;
}

/* A submission. What it writes to a connection is being written from now on. */
__noinline int submit_to_channel(u64 req)
{
	struct ring_name name = {};
	struct ring_thread me;
	struct target at = {};
	struct writing w = {};
	struct channel *ch;
	bool follows;
	u32 flags, fd;
	u64 file;
	u8 op;

	if (over || !req)
		return 0;
	op = FIELD(struct io_kiocb, req, opcode);
	if (!(knobs.operations[op] & (OP_READS | OP_WRITES)) && op != OP_ACCEPT && op != OP_CLOSE)
		return 0;
	look_at_thread(&me);
	if (!me.image)
		return 0;
	name.ctx = word_at(&((struct io_kiocb *)req)->ctx);
	if (ring_has_many(req, op)) {
		name.name = FIELD(struct io_kiocb, req, cqe.user_data);
		if (bpf_map_update_elem(&ring_multishots, &name, &req, BPF_ANY))
			lose();
	}
	if (op == OP_ACCEPT)
		return 0;
	follows = is_linked(name.ctx);
	if (op == OP_CLOSE) {
		if (!follows && !FIELD(struct io_close, req, file_slot))
			close_file(file_number(me.task, FIELD(struct io_close, req, fd)));
		return 0;
	}
	flags = FIELD(struct io_kiocb, req, flags);
	fd = FIELD(struct io_kiocb, req, cqe.fd);
	file = flags & IOSQE_FIXED_FILE ? registered_file(name.ctx, fd) : file_number(me.task, fd);
	look_at(file, &at);
	ch = channel_of(&at, me.image);
	if (!ch || follows || !(knobs.operations[op] & OP_WRITES))
		return 0;
	begin_write(ch, &w, me.s, me.t, at.sk);
	if (flags & IOSQE_CQE_SKIP_SUCCESS)
		end_write(ch, &w, me.s, me.t, 1);
	else if (w.wrote && bpf_map_update_elem(&ring_writes, &req, &w, BPF_ANY))
		end_write(ch, &w, me.s, me.t, 1);
	return 0;
}

/* A completion, or one of many results of a request. */
__noinline int complete_at_channel(u64 ctx, u64 req, u64 named, s64 result, u32 flags)
{
	struct ring_name name = {.ctx = ctx, .name = named};
	struct ring_thread me;
	struct writing w = {}, *under_way;
	struct target at = {};
	struct channel *ch;
	u64 *known;
	bool has_many;
	u8 op;

	if (over || flags & IORING_CQE_F_NOTIF)
		return 0;
	if (!req) {
		known = bpf_map_lookup_elem(&ring_multishots, &name);
		if (!known)
			return 0;
		req = *known;
	}
	op = FIELD(struct io_kiocb, req, opcode);
	if (!(knobs.operations[op] & (OP_READS | OP_WRITES)) && op != OP_ACCEPT && op != OP_CONNECT)
		return 0;
	look_at_thread(&me);
	if (!me.image)
		return 0;
	has_many = ring_has_many(req, op);
	if (has_many && !(flags & IORING_CQE_F_MORE))
		bpf_map_delete_elem(&ring_multishots, &name);
	if (op == OP_ACCEPT) {
		/* One that becomes a registered file is met when it is read. */
		if (result < 0 || FIELD(struct io_accept, req, file_slot))
			return 0;
		look_at(file_number(me.task, result), &at);
		meet(&at, me.image, ROLE_ACCEPT);
		return 0;
	}
	look_at(word_at(&((struct io_kiocb *)req)->file), &at);
	if (!at.sk)
		return 0;
	if (op == OP_CONNECT) {
		if (!result)
			meet(&at, me.image, ROLE_CONNECT);
		return 0;
	}
	ch = channel_of(&at, me.image);
	if (!ch)
		return 0;
	if (knobs.operations[op] & OP_READS) {
		/* The last of a multishot recvmsg has a header, and nothing behind it. */
		if (op == OP_RECVMSG && has_many && !(flags & IORING_CQE_F_MORE))
			return 0;
		if (result > 0 && !ring_leaves(req, op))
			end_read(ch, me.s, me.t, at.sk);
		return 0;
	}
	under_way = bpf_map_lookup_elem(&ring_writes, &req);
	if (under_way) {
		w = *under_way;
		bpf_map_delete_elem(&ring_writes, &req);
	} else if (result > 0) {
		/* It was linked, or submitted before the watch. */
		begin_write(ch, &w, me.s, me.t, at.sk);
	}
	end_write(ch, &w, me.s, me.t, result);
	return 0;
}

/*
 * For a program that is written for another form than this kernel's: it reads the last argument
 * that there can be, and is refused when it is attached.
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
	return submit_to_channel(ctx->at[0]);
}

SEC("raw_tp/io_uring_submit_sqe")
int ring_submit_sqe(struct raw_arguments *ctx)
{
	if (!bpf_core_type_exists(btf_trace_io_uring_submit_sqe))
		return refuse(ctx);
	return submit_to_channel(ctx->at[0]);
}

SEC("raw_tp/io_uring_complete")
int ring_complete(struct raw_arguments *ctx)
{
	u64 cqe = ctx->at[2], outcome;

	if (!bpf_core_type_exists(btf_trace_io_uring_complete___whole))
		return refuse(ctx);
	outcome = word_at((void *)cqe + 8);
	return complete_at_channel(ctx->at[0], ctx->at[1], word_at((void *)cqe), (s32)outcome,
				   outcome >> 32);
}

SEC("raw_tp/io_uring_complete")
int ring_complete_parts(struct raw_arguments *ctx)
{
	if (!bpf_core_type_exists(btf_trace_io_uring_complete___parts))
		return refuse(ctx);
	return complete_at_channel(ctx->at[0], ctx->at[1], ctx->at[2], (s32)ctx->at[3], ctx->at[4]);
}
