/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Timelines of io_uring's requests that read, write or sync: from submission to completion,
 * wherever they are carried out. A request has a buffer of its own meanwhile.
 *
 * What a thread does is of the request that it is at: a worker says which that is; a thread that
 * submits is at the one it has issued last (issues.bpf.h), until that one goes to a worker or the
 * thread waits for completions. What a device does is of the request that sent it something.
 *
 * Limits: no event says that a thread has left a request that goes on in the device: what
 * interrupts the thread before it submits the next one is told of that request, too. Switches of
 * the submission thread are not told, which does not wait for what it submits. What the journal
 * does for a sync is not told.
 */

/* Where what happens now is told. */
struct chapter {
	u64 began_ns; /* when the call or the request did */
	u32 buffer;   /* plus 1 */
};

/* By request. */
TABLE(request_timelines, BUFFERS, BPF_F_NO_PREALLOC, u64, struct chapter);

static __always_inline bool in_request_timeline(struct task_struct *task, struct chapter *at)
{
	struct chapter *known;
	u64 req;

	if (!knobs.timelines || !bpf_core_type_exists(struct io_kiocb))
		return false;
	req = request_of(task);
	known = req ? bpf_map_lookup_elem(&request_timelines, &req) : NULL;
	if (!known)
		return false;
	*at = *known;
	return true;
}

static __always_inline void free_buffer(u32 buffer)
{
	if (buffer)
		return_buffer(buffer);
}

/* What is asked of a file, by what io_uring has of it before it looks the file up. */
static __always_inline void note_request(struct timeline *timeline, u64 req, u8 kind)
{
	u32 flags = FIELD(struct io_kiocb, req, flags);

	timeline->kind = kind & KIND_BITS;
	if (flags & IOSQE_FIXED_FILE)
		timeline->kind |= KIND_REGISTERED;
	timeline->fd = FIELD(struct io_kiocb, req, cqe.fd);
	timeline->argument = 0;
	timeline->offset = -1ULL;
	if (KIND_ASKED(kind) != ASKED_COUNT || !bpf_core_type_exists(struct io_rw))
		return;
	timeline->argument = FIELD(struct io_rw, req, len);
	timeline->offset = FIELD(struct io_rw, req, kiocb.ki_pos);
}

static __always_inline int begin_request_timeline(u64 req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);
	struct chapter fresh = {}, *known;
	struct timeline *timeline;
	u32 image;
	u8 op, kind;

	if (over || !bpf_core_type_exists(struct io_kiocb))
		return 0;
	op = FIELD(struct io_kiocb, req, opcode);
	kind = knobs.ring_kinds[op];
	image = t ? t->image : image_of_ring_thread();
	if (!kind || !image)
		return 0;
	/* One that is there still has ended, and nobody was told. */
	known = bpf_map_lookup_elem(&request_timelines, &req);
	fresh.buffer = known ? known->buffer : take_buffer();
	fresh.began_ns = bpf_ktime_get_ns();
	timeline = empty_timeline(fresh.buffer);
	if (!timeline)
		return 0;
	timeline->start_ns = fresh.began_ns;
	timeline->image = image;
	timeline->tid = pid_of(bpf_get_current_task_btf());
	timeline->call = RING_OPERATION | op;
	/* It is no thread's time. */
	timeline->off_ns = 0;
	timeline->blocked_ns = 0;
	note_request(timeline, req, kind);
	if (bpf_map_update_elem(&request_timelines, &req, &fresh, BPF_ANY)) {
		__sync_fetch_and_add(&counters.lost_timelines, 1);
		free_buffer(fresh.buffer);
		return 0;
	}
	timeline->open = 1;
	return 0;
}

static __always_inline int end_request_timeline(u64 req, s32 result)
{
	struct chapter *known = bpf_map_lookup_elem(&request_timelines, &req), at;
	struct inode *inode;
	struct timeline *timeline;
	struct file *file;
	u32 mode = 0;

	if (!known)
		return 0;
	at = *known;
	bpf_map_delete_elem(&request_timelines, &req);
	timeline = timeline_at(at.buffer, at.began_ns);
	if (!timeline)
		return 0;
	timeline->open = 0;
	file = (void *)word_at(&((struct io_kiocb *)req)->file);
	if (file) {
		inode = FIELD(struct file, file, f_inode);
		mode = FIELD(struct inode, inode, i_mode) & S_IFMT;
	}
	if (mode == S_IFREG || mode == S_IFBLK) {
		note_file(timeline, file, inode);
		timeline->end_ns = bpf_ktime_get_ns();
		timeline->ret = result;
		__sync_fetch_and_add(&counters.followed, 1);
		keep_timeline(&at.buffer, timeline);
	} else {
		__sync_fetch_and_add(&counters.not_followed, 1);
	}
	free_buffer(at.buffer);
	return 0;
}

/* The current thread goes on without the request, or without any. */
static __always_inline int leave_request(u64 req)
{
	struct issue *issue = task_row(&ring_issues, bpf_get_current_task_btf());

	if (issue && (!req || issue->request == req))
		issue->request = 0;
	return 0;
}

SEC("raw_tp/io_uring_submit_req")
int timeline_ring_submit_req(struct raw_arguments *ctx)
{
	return begin_request_timeline(ctx->at[0]);
}

SEC("raw_tp/io_uring_submit_sqe")
int timeline_ring_submit_sqe(struct raw_arguments *ctx)
{
	if (bpf_core_type_exists(btf_trace_io_uring_submit_req))
		return 0;
	return begin_request_timeline(ctx->at[0]);
}

SEC("raw_tp/io_uring_complete")
int timeline_ring_complete(struct raw_arguments *ctx)
{
	s32 result;

	if (bpf_core_type_exists(btf_trace_io_uring_complete___whole))
		result = word_at((void *)ctx->at[2] + 8);
	else
		result = ctx->at[3];
	return end_request_timeline(ctx->at[1], result);
}

SEC("raw_tp/io_uring_queue_async_work")
int timeline_ring_queue_async_work(struct raw_arguments *ctx)
{
	u64 req = ctx->at[0];
	struct chapter *at = over ? NULL : bpf_map_lookup_elem(&request_timelines, &req);

	if (at)
		tell(at->buffer, at->began_ns, WHAT_WORKER, 0, 0, 0, 0);
	return leave_request(req);
}

SEC("raw_tp/io_uring_cqring_wait")
int timeline_ring_wait(struct raw_arguments *ctx)
{
	return leave_request(0);
}
