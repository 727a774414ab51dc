/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The filter of calls, their groups and the end of a watch, of requests of io_uring: a part of
 * rings.bpf.h.
 *
 * A request ends anywhere: in another thread, in a worker. What is known of who submits it, and of
 * its descriptor, is noted when it is submitted; the result decides. A request whose number leaves
 * the condition open is not counted before it has ended, as a call is not before it returns.
 */

#ifdef WHERE

#define OP_OPENAT   18
#define OP_STATX    21
#define OP_OPENAT2  28
#define OP_UNLINKAT 36
#define OP_MKDIRAT  37

/* What becomes of a result. */
#define RESULT_LEFT_OUT 0
#define RESULT_COUNTS	1
#define RESULT_ENDS	2 /* the watch, too */

/* By struct io_kiocb; of those that are open, as `ring_requests`. */
ROWS(ring_facts, u64, struct ring_facts);

/* Whether more than its number is asked of an operation. */
static __always_inline bool is_open_op(u8 op)
{
	return where.rings[op] & RING_OPEN;
}

/* Whether only its result tells if it counts. */
static __always_inline bool is_doubtful_op(u8 op)
{
	return where.rings[op] & RING_DOUBTFUL;
}

static __always_inline void begin_place(struct filter *f)
{
	f->path_bits = where.of_no_path;
	f->path_text = 0;
	f->peer_bits = where.of_no_peer;
	f->peer_text = 0;
}

static __always_inline void take_place(struct ring_facts *of, struct filter *f)
{
	of->place_bits = f->path_bits | f->peer_bits;
	of->path_text = f->path_text;
	of->peer_text = f->peer_text;
}

/* What is known of the file behind its descriptor. */
static __always_inline void note_descriptor(struct filter *f, u64 req, u8 op, u32 fd)
{
	struct making of = {};

	if (where.uses & USES_PATH)
		note_file(f, fd);
	if (!(where.uses & USES_PEER))
		return;
	of.fd = fd;
	if (op == OP_CONNECT)
		take_address(&of, req);
	note_peer(f, &of);
}

/* Where a kernel has another struct, the path is not known. */
#define TAKE_PATH(of, type, req)                                                               \
	do {                                                                                   \
		if (bpf_core_field_exists(struct type, filename->name)) {                      \
			(of)->directory = FIELD(struct type, req, dfd);                        \
			(of)->text = (u64)BPF_CORE_READ((struct type *)(req), filename, name); \
		}                                                                              \
	} while (0)

/* The path that an operation is given, which the kernel has copied. */
static __always_inline void note_given_path(struct filter *f, u64 req, u8 op)
{
	struct given of = {.directory = AT_FDCWD, .is_copy = true};

	switch (op) {
	case OP_OPENAT:
	case OP_OPENAT2:
		TAKE_PATH(&of, io_open, req);
		break;
	case OP_STATX:
		TAKE_PATH(&of, io_statx, req);
		break;
	case OP_UNLINKAT:
		TAKE_PATH(&of, io_unlink, req);
		break;
	case OP_MKDIRAT:
		TAKE_PATH(&of, io_mkdir, req);
		break;
	}
	f->path_bits = 0;
	note_path_text(f, &of);
}

/* What is known of the thread that submits; returns the bits of strings that it matches. */
static __always_inline u64 note_submitter(struct ring_facts *of, struct filter *f, u32 image)
{
	u64 bits = 0;

	if (where.uses & USES_IMAGE) {
		if (f->image != image)
			note_image(f, image, 0);
		bits |= f->image_bits;
	}
	if (where.uses & USES_THREADNAME) {
		note_threadname(f);
		bits |= f->threadname_bits;
		of->threadname_text = f->threadname_text;
	}
	if (where.uses & USES_CGROUP) {
		note_cgroups(f);
		bits |= f->cgroup_bits;
		of->cgroup_text = f->cgroup_text;
	}
	if (where.uses & USES_TITLE) {
		note_title(f);
		bits |= f->title_bits;
		of->title_text = f->title_text;
	}
	return bits;
}

/* Notes who submits an open request. 0: there is no room for it. */
__noinline int note_ring_facts(u64 req, u32 image, u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring_facts *of;
	struct filter *f;
	struct scratch *s;
	u8 op;

	if (!HAS_REQUESTS)
		return 0;
	s = scratch();
	f = filter_of(task);
	if (!s || !f)
		return 0;
	of = &s->ring;
	__builtin_memset(of, 0, sizeof(*of));
	op = FIELD(struct io_kiocb, req, opcode);
	of->flags = flags;
	of->facts.word[FACT_FD] = -1;
	of->facts.word[FACT_THREAD] = pid_of(task);
	of->facts.word[FACT_PID] = tgid_of(task);
	of->facts.word[FACT_MATCHES] = where.ring_calls[op] | note_submitter(of, f, image);
	of->place_bits = where.of_no_path | where.of_no_peer;
	BPF_CORE_READ_STR_INTO(&of->comm, task, comm);
	return !bpf_map_update_elem(&ring_facts, &req, of, BPF_ANY);
}

/* Notes what such a request works on. Not for one that fails before it is issued. */
__noinline int note_ring_place(u64 req)
{
	struct ring_facts *of = bpf_map_lookup_elem(&ring_facts, &req);
	struct scratch *s;
	struct filter *f;
	u32 fd;
	u8 op;

	if (!HAS_REQUESTS || !of)
		return 0;
	s = scratch();
	if (!s)
		return 0;
	op = FIELD(struct io_kiocb, req, opcode);
	f = &s->filter;
	begin_place(f);
	if (where.rings[op] & RING_HAS_DESCRIPTOR && !(of->flags & IOSQE_FIXED_FILE)) {
		fd = FIELD(struct io_kiocb, req, cqe.fd);
		of->facts.word[FACT_FD] = (s32)fd;
		note_descriptor(f, req, op, fd);
	} else if (where.rings[op] & RING_HAS_PATH && where.uses & USES_PATH) {
		note_given_path(f, req, op);
	}
	take_place(of, f);
	return 0;
}

/* A registered file has no descriptor: the request that has ended knows it. */
__noinline int note_registered_file(u64 req)
{
	struct ring_facts *of = bpf_map_lookup_elem(&ring_facts, &req);
	struct filter *f;
	struct scratch *s;

	if (!of || !HAS_REQUESTS || !(of->flags & IOSQE_FIXED_FILE))
		return 0;
	s = scratch();
	if (!s)
		return 0;
	f = &s->filter;
	begin_place(f);
	if (where.uses & USES_PATH)
		note_file_at(f, word_at(&((struct io_kiocb *)req)->file));
	if (where.uses & USES_PEER)
		note_peer_at(f, word_at(&((struct io_kiocb *)req)->file));
	take_place(of, f);
	return 0;
}

static __always_inline u64 ring_key_word(u8 kind, u32 image, u8 op, struct ring_facts *of)
{
	switch (kind) {
	case KEY_CALL:
		return CALL_RING | op;
	case KEY_FD:
		return of->facts.word[FACT_FD];
	case KEY_ERRNO:
		return of->facts.word[FACT_ERRNO];
	case KEY_BYTES:
		return slot_by_call(of->facts.word[FACT_BYTES]);
	case KEY_DURATION:
		return slot_by_call(of->facts.word[FACT_DURATION]);
	case KEY_THREAD:
		return of->facts.word[FACT_THREAD];
	case KEY_PID:
		return of->facts.word[FACT_PID];
	case KEY_IMAGE:
		return image;
	case KEY_PATH:
		return of->path_text;
	case KEY_THREADNAME:
		return of->threadname_text;
	case KEY_CGROUP:
		return of->cgroup_text;
	case KEY_PEER:
		return of->peer_text;
	case KEY_TITLE:
		return of->title_text;
	}
	return 0;
}

__noinline int group_result(u64 req, u32 image, u32 op)
{
	struct ring_facts *of = bpf_map_lookup_elem(&ring_facts, &req);
	struct by_key key = {};
	struct by_row *row;

	if (!of)
		return 0;
	for (int i = 0; i < MOST_KEYS; i++)
		key.word[i] = ring_key_word(where.by[i], image, op, of);
	row = group_row(&key);
	if (row)
		add_to_group(row, &of->facts);
	return 0;
}

/*
 * As `firings`, without its lock, which programs on raw tracepoints may not take: whoever sets the
 * end of the watch is the one. A call that ends it at the same moment may be there, too: user space
 * takes the one that ended first.
 */
struct ring_firing {
	struct sums sums;
	struct slow_call call;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ring_firing);
} ring_firings SEC(".maps");

/* Keeps the request that ends the watch, whole. */
__noinline int end_watch_by_ring(u64 req, u32 image, u32 op, s64 result)
{
	struct ring_facts *of = bpf_map_lookup_elem(&ring_facts, &req);
	struct ring_firing *firing;
	struct slow_call *call;
	struct file_key file;
	struct scratch *s;
	struct file *at;
	u64 now = bpf_ktime_get_ns();
	u32 zero = 0;

	firing = bpf_map_lookup_elem(&ring_firings, &zero);
	s = scratch();
	if (!HAS_REQUESTS || !of || !firing || !s || __sync_val_compare_and_swap(moment(), 0, now))
		return 0;
	call = &firing->call;
	at = (void *)word_at(&((struct io_kiocb *)req)->file);
	if (at) {
		note_place(&file, BPF_CORE_READ(at, f_path.dentry), BPF_CORE_READ(at, f_path.mnt));
		call->file = file;
	}
	call->wall_ns = of->facts.word[FACT_DURATION];
	call->ret = result;
	call->bytes = result;
	call->args[0] = of->facts.word[FACT_FD];
	call->image = image;
	call->tid = of->facts.word[FACT_THREAD];
	call->call = CALL_RING | op;
	__builtin_memcpy(call->comm, of->comm, COMM_LEN);
	firing->sums.count = of->facts.word[FACT_COUNT];
	firing->sums.bytes = of->facts.word[FACT_SUM_OF_BYTES];
	firing->sums.durations_ns = of->facts.word[FACT_SUM_OF_DURATIONS];
	call->end_ns = now;
	return 1;
}

static __always_inline bool ends_by_result(struct facts *facts, u8 op)
{
	int outcome;

	if (!where.can_end || !(where.rings[op] & RING_ENDS) || !has_begun() || is_disarmed())
		return false;
	if (where.sums)
		add_up(facts);
	outcome = end_condition(facts);
	if (outcome > 1)
		__sync_fetch_and_add(&where_counters.ends_divided_by_zero, 1);
	return outcome == 1;
}

/* Whether the result of an open request counts; groups it then. */
__noinline int judge_open(const struct ring_request *r, u64 req, s64 result, u64 wall_ns)
{
	u64 key = req;
	struct ring_facts *of;
	u32 image, ends;
	int outcome;
	u8 op;

	if (!r)
		return RESULT_LEFT_OUT;
	op = r->op;
	image = r->image;
	of = bpf_map_lookup_elem(&ring_facts, &key);
	if (!of)
		return RESULT_LEFT_OUT;
	of->facts.word[FACT_MATCHES] |= of->place_bits;
	of->facts.word[FACT_ERRNO] = is_error(result) ? -result : 0;
	of->facts.word[FACT_BYTES] =
		ring_transfers[op] && result > 0 ? moved_by_ring(req, op, result) : 0;
	of->facts.word[FACT_DURATION] = wall_ns;
	outcome = condition(&of->facts);
	if (outcome > 1)
		__sync_fetch_and_add(&where_counters.divided_by_zero, 1);
	if (outcome != 1)
		return RESULT_LEFT_OUT;
	ends = ends_by_result(&of->facts, op) && end_watch_by_ring(key, image, op, result);
	if (ended_ns && !ends)
		return RESULT_LEFT_OUT;
	if (where.groups)
		group_result(key, image, op);
	return ends ? RESULT_ENDS : RESULT_COUNTS;
}

/* Before a result is judged. */
static __always_inline void meet_registered_file(const struct ring_request *r, u64 req)
{
	if (where.uses & (USES_PATH | USES_PEER) && is_open_op(r->op) &&
	    where.rings[r->op] & RING_HAS_DESCRIPTOR)
		note_registered_file(req);
}

static __always_inline int judge_result(const struct ring_request *r, u64 req, s64 result,
					u64 wall_ns)
{
	return is_open_op(r->op) ? judge_open(r, req, result, wall_ns) : RESULT_COUNTS;
}

/* A request that counts, as its result has told: its submission counts now. */
__noinline int count_doubtful(struct ring_row *row, u64 req)
{
	struct ring_facts *of = bpf_map_lookup_elem(&ring_facts, &req);

	if (!row || !of)
		return 0;
	ADD(row->submitted, 1);
	if (of->flags & IOSQE_FIXED_FILE)
		ADD(row->registered, 1);
	if (of->flags & IOSQE_ASYNC)
		ADD(row->forced, 1);
	if (of->unlinked)
		ADD(row->unlinked, 1);
	return 0;
}

__noinline int note_unlinked(u64 req)
{
	struct ring_facts *of = bpf_map_lookup_elem(&ring_facts, &req);

	if (of)
		of->unlinked = 1;
	return 0;
}

/* One that counts, of which the condition could not ask: it is in no group. */
static __always_inline void lose_group(u8 op)
{
	if (where.groups && is_open_op(op))
		__sync_fetch_and_add(&where_counters.lost_rows, 1);
}

#else

#define RESULT_LEFT_OUT 0
#define RESULT_COUNTS	1
#define RESULT_ENDS	2

static __always_inline bool is_open_op(u8 op)
{
	return false;
}

static __always_inline bool is_doubtful_op(u8 op)
{
	return false;
}

static __always_inline int note_ring_facts(u64 req, u32 image, u32 flags)
{
	return 1;
}

static __always_inline int note_ring_place(u64 req)
{
	return 0;
}

static __always_inline void meet_registered_file(const struct ring_request *r, u64 req)
{
}

static __always_inline int judge_result(const struct ring_request *r, u64 req, s64 result,
					u64 wall_ns)
{
	return RESULT_COUNTS;
}

static __always_inline int count_doubtful(struct ring_row *row, u64 req)
{
	return 0;
}

static __always_inline int note_unlinked(u64 req)
{
	return 0;
}

static __always_inline void lose_group(u8 op)
{
}

#endif
