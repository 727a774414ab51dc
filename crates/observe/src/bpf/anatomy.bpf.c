// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * Where in the kernel, and where in user space, the watched threads spend their time.
 *
 * Hooks: a perf event that interrupts every CPU so often a second (`sample`), and sched_switch
 * (`doze`). Both are given the threads of trace.bpf.c by their map: a sample counts for the call
 * and the image that the trace books the same moment for, and a sleep takes exactly as long as
 * there. A sample of a thread of io_uring's counts for the image whose ring it works for; what a
 * ring's submission issues is noted at io_uring_submit_req, or io_uring_submit_sqe of older kernels
 * (issues.bpf.h). Two iterators are run once the watch has ended: `wake` books the sleeps that go
 * on, `name_address` names functions of the kernel.
 *
 * A sample of a watched thread costs the interrupt, the unwinding of the kernel's stack or a look
 * at the mappings lately met, and two hash look-ups; one of any other thread a look-up that fails.
 * A sleep costs the unwinding. Nothing is emitted. Where the stacks of user space are asked for,
 * each costs the unwinding of that, too; otherwise this is not part of the programs that are
 * loaded.
 *
 * Where `--where` decides about a call only when it returns, its samples are set aside for so long:
 * `decide_call`, behind the trace's own program on sys_exit, books them as the trace counts it
 * (undecided.bpf.h).
 *
 * Limits: interrupts that are held back (most of a task switch, the entry of a call) put a sample
 * to where they are let through again. The stack of user space is what frame pointers tell: most
 * programs are built without. Tables are bounded; what finds no room is counted.
 */
#include "types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "trace.h"
#include "thread.bpf.h"
#include "path.bpf.h"
#include "fields.bpf.h"
#include "anatomy.h"
#include "issues.bpf.h"
#include "stacks.bpf.h"

#define TASK_DEAD  0x0080
#define USER_RING  3
#define VDSO_BYTES (16 * 1024) /* more than any */
#define MAPPINGS   4 /* remembered: a program and the libraries it is in most; a power of two */

struct sampling sampling;

/* What a thread sleeps in. */
struct nap {
	u64 blocked_ns; /* of the thread, when it fell asleep */
	u64 returns_to;
	u32 image;
	u16 call;
	u8 in_call;
	u8 open;
	s32 stack;
	s32 user_stack;
	u32 operation;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nap);
} naps SEC(".maps");

static const struct nap no_nap;

/* Sizes are set by user space before loading. All have their room from the start: rows are made in
 * interrupts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sample_key);
	__type(value, struct sample_sum);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct file_key);
	__type(value, struct file_name);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct roomy_name);
} spills SEC(".maps");

/* What is mapped somewhere, in which state of whose mappings. */
struct mapping {
	u64 start;
	u64 end;
	u64 to_place; /* what makes a place in the file of an address; 0 in memory of none */
	struct file_key file;
	u64 mm;
	u32 image; /* the same address may be another's mm later */
	u32 sequence;
	u32 place;
	u32 pad;
};

/*
 * Mappings met lately, good until the mappings change. To look at a thread's mappings in an
 * interrupt takes a second interrupt, in which the kernel lets go of them again (bpf_find_vma). A
 * CPU is inside of one sample at a time, so nothing else writes its own.
 */
struct met {
	struct mapping of[MAPPINGS];
	u64 next;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct met);
} lately SEC(".maps");

#include "undecided.bpf.h"

static __always_inline struct thread *watched(struct task_struct *task)
{
	struct thread *t = thread_of(task);

	return t && (t->image || t->launcher) ? t : NULL;
}

/* The call a thread is in, and whose: an exec's is the image's that made it. */
static __always_inline void note_call(struct sample_key *key, struct thread *t)
{
	key->image = t->call_thread ? t->call_image : t->image;
	key->in_call = t->in_call ? 1 + t->verdict : OUTSIDE;
	key->call = t->in_call ? t->call : 0;
}

/* Of the current task: asked last, for the verifier goes through what follows for each answer. */
static __always_inline u32 issued(const struct thread *t)
{
	return knobs.rings && submits(t) ? current_operation() : NO_OPERATION;
}

static __always_inline void note_place(struct file_key *key, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct roomy_name *spill;
	u32 zero = 0;

	key->dentry = (u64)BPF_CORE_READ(file, f_path.dentry);
	key->inode = BPF_CORE_READ(inode, i_ino);
	key->device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (bpf_map_lookup_elem(&places, key))
		return;
	spill = bpf_map_lookup_elem(&spills, &zero);
	if (!spill)
		return;
	spill->name.magic = BPF_CORE_READ(inode, i_sb, s_magic);
	spill->name.mode = BPF_CORE_READ(inode, i_mode);
	spill->name.size_bytes = BPF_CORE_READ(inode, i_size);
	spill->name.whole = 0;
	walk(spill, file);
	if (bpf_map_update_elem(&places, key, &spill->name, BPF_ANY))
		count(&sampling.lost_names);
}

/* What is mapped where the thread runs. */
static long at_mapping(struct task_struct *task, struct vm_area_struct *vma, void *to)
{
	struct mapping *m = to;
	struct file *file = UNTRUSTED(struct vm_area_struct, vma)->vm_file;

	m->start = vma->vm_start;
	m->end = vma->vm_end;
	m->place = IN_MEMORY;
	if (!file)
		return 0;
	m->place = IN_FILE;
	m->to_place = (vma->vm_pgoff << 12) - vma->vm_start;
	note_place(&m->file, file);
	return 0;
}

static __always_inline bool is_at(const struct mapping *m, const struct mapping *now, u64 ip)
{
	return ip - m->start < m->end - m->start && m->mm == now->mm && m->image == now->image &&
	       m->sequence == now->sequence;
}

/* The state of the mappings; false: this kernel does not tell it. */
static __always_inline bool note_sequence(struct mapping *now, struct mm_struct *mm)
{
	struct mm_struct___since_6_13 *newer = (void *)mm;
	struct mm_struct___since_6_4 *older = (void *)mm;

	if (bpf_core_field_exists(newer->mm_lock_seq.sequence))
		now->sequence = newer->mm_lock_seq.sequence;
	else if (bpf_core_field_exists(older->mm_lock_seq))
		now->sequence = older->mm_lock_seq;
	else
		return false;
	return true;
}

static __always_inline void note_mapping(struct sample_key *key, const struct mapping *m, u64 ip)
{
	key->file = m->file;
	key->place = m->place;
	key->offset = ip + m->to_place;
}

static __always_inline void note_user(struct sample_key *key, struct task_struct *task, u64 ip)
{
	struct mm_struct *mm = UNTRUSTED(struct task_struct, task)->mm;
	u64 vdso = mm ? (u64)mm->context.vdso : 0;
	struct mapping now = {};
	struct met *met;
	bool is_told;
	u32 zero = 0;

	key->stack = NO_STACK;
	key->place = NOWHERE;
	met = bpf_map_lookup_elem(&lately, &zero);
	if (!mm || !met)
		return;
	if (vdso && ip - vdso < VDSO_BYTES) {
		key->place = IN_VDSO;
		key->offset = ip - vdso;
		return;
	}
	now.mm = (u64)mm;
	now.image = key->image;
	is_told = note_sequence(&now, mm);
	for (int i = 0; is_told && i < MAPPINGS; i++) {
		if (is_at(&met->of[i], &now, ip)) {
			note_mapping(key, &met->of[i], ip);
			return;
		}
	}
	if (!KERNEL_HAS(MAPPED_AT) || bpf_find_vma(task, ip, at_mapping, &now, 0))
		return;
	note_mapping(key, &now, ip);
	if (is_told)
		met->of[met->next++ & (MAPPINGS - 1)] = now;
}

/* The image that the current task works for as a thread of io_uring's. */
__noinline u32 current_owner(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->flags & PF_IO_WORKER ? ring_owner(task) : 0;
}

/* Of a thread of io_uring's; false: it is none, or works for nobody that is watched. */
__noinline int note_ring_thread(struct sample_key *key)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!key)
		return false;
	key->image = current_owner();
	if (!key->image)
		return false;
	key->in_call = worker_of(task) ? IN_WORKER : IN_SQ_THREAD;
	key->operation = current_operation();
	return true;
}

/* A task that is not watched, but may be a thread of io_uring's that works for one. */
static __always_inline int sample_other(struct sample_context *ctx)
{
	struct sample_key key = {};

	if (!knobs.rings || !note_ring_thread(&key)) {
		count(&sampling.others);
		return 0;
	}
	count(&sampling.samples);
	key.stack = kernel_stack(ctx);
	key.user_stack = NO_STACK;
	book_at_once(&key, 0);
	return 0;
}

SEC("perf_event")
int sample(struct sample_context *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);
	struct sample_key key = {};

	if (!t)
		return sample_other(ctx);
	note_call(&key, t);
	if (!key.image && !key.in_call)
		return 0; /* the launcher, before the launch */
	count(&sampling.samples);
	if ((ctx->cs & USER_RING) == USER_RING) {
		note_user(&key, task, ctx->ip);
	} else {
		key.stack = kernel_stack(ctx);
		key.offset = returns_to(task);
	}
	key.user_stack = user_stack(ctx);
	key.operation = issued(t);
	book_sample(task, t, &key, 0);
	return 0;
}

/* Books what the thread slept since it was last looked at, as the trace has booked it. */
static __always_inline void book(struct task_struct *task, struct nap *nap, struct thread *t)
{
	struct sample_key key = {.kind = BLOCKED};
	u64 slept = t->blocked_ns - nap->blocked_ns;

	nap->open = false;
	if (!slept)
		return;
	key.image = nap->image;
	key.call = nap->call;
	key.in_call = nap->in_call;
	key.operation = knobs.rings ? nap->operation : NO_OPERATION;
	key.stack = nap->stack;
	key.user_stack = nap->user_stack;
	key.offset = nap->returns_to;
	book_sample(task, t, &key, slept);
}

static __always_inline void book_last(struct task_struct *task, struct thread *t)
{
	struct nap *nap = task_row(&naps, task);

	if (nap && nap->open)
		book(task, nap, t);
}

/* Attached behind the trace's own program: what that books of this switch, it has booked. */
SEC("tp_btf/sched_switch")
int BPF_PROG(doze, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct sample_key key = {};
	struct thread *t;
	struct nap *nap;

	t = watched(prev);
	if (t) {
		book_last(prev, t);
		if (!preempt && prev_state && !(prev_state & TASK_DEAD)) {
			nap = made_task_row(&naps, prev, &no_nap);
			if (nap) {
				note_call(&key, t);
				nap->blocked_ns = t->blocked_ns;
				nap->image = key.image;
				nap->call = key.call;
				nap->in_call = key.in_call;
				nap->stack = kernel_stack(ctx);
				nap->user_stack = user_stack(ctx);
				nap->returns_to = returns_to(prev);
				nap->operation = issued(t);
				nap->open = true;
			} else {
				count(&sampling.lost_sleeps);
			}
		}
	}
	if (prev_state & TASK_DEAD)
		leave_out(prev, thread_of(prev));
	t = watched(next);
	if (t)
		book_last(next, t);
	return 0;
}

/* Books the sleeps that outlive the watch: the trace has settled them. */
SEC("iter/task")
int wake(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;

	if (!task)
		return 0;
	t = watched(task);
	if (t)
		book_last(task, t);
	leave_out(task, thread_of(task));
	return 0;
}

/*
 * The request that is issued when one is submitted: this one, or, of a chain whose last it is, the
 * first; none where it waits for others or goes to a worker.
 */
static __always_inline u64 issued_by(u64 req)
{
	u64 ctx = (u64)FIELD(struct io_kiocb, req, ctx), head = 0;
	u32 flags = FIELD(struct io_kiocb, req, flags);

	if (bpf_core_field_exists(((struct io_ring_ctx *)0)->submit_state.link.head))
		head = (u64)FIELD(struct io_ring_ctx, ctx, submit_state.link.head);
	if (flags & IOSQE_LINKED)
		return 0;
	if (head) {
		req = head;
		flags = FIELD(struct io_kiocb, req, flags);
	}
	return flags & IOSQE_ASYNC ? 0 : req;
}

static const struct issue no_issue;

static __always_inline void note_issue(u64 req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);
	struct issue *issue;

	if (!bpf_core_type_exists(struct io_kiocb))
		return;
	if (!t && !current_owner())
		return;
	issue = made_task_row(&ring_issues, task, &no_issue);
	if (!issue)
		return;
	issue->call_ns = t ? t->last_ns : 0;
	issue->request = issued_by(req);
	issue->operation = issue->request ? operation_of(issue->request) : NO_OPERATION;
}

/* A tracepoint that a kernel does not have is not attached: as in rings.bpf.h. */
SEC("raw_tp/io_uring_submit_req")
int ring_issue_req(struct raw_arguments *ctx)
{
	note_issue(ctx->at[0]);
	return 0;
}

SEC("raw_tp/io_uring_submit_sqe")
int ring_issue_sqe(struct raw_arguments *ctx)
{
	if (!bpf_core_type_exists(btf_trace_io_uring_submit_req))
		note_issue(ctx->at[0]);
	return 0;
}

/* Addresses in the kernel to be named; 0 is none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ADDRESSES);
	__type(key, u32);
	__type(value, u64);
} addresses SEC(".maps");

struct naming {
	struct seq_file *to;
};

static long name_one(u32 turn, void *with)
{
	u64 *address = bpf_map_lookup_elem(&addresses, &turn);
	struct naming *naming = with;

	if (address && *address)
		BPF_SEQ_PRINTF(naming->to, "%llx %ps\n", *address, *address);
	return 0;
}

/*
 * Has the kernel name the functions of addresses: it finds them without going through all of its
 * symbols, which reading /proc/kallsyms does.
 */
SEC("iter/task")
int name_address(struct bpf_iter__task *ctx)
{
	struct naming naming = {.to = ctx->meta->seq};

	/* Behind the last task. An iterator over the rows is not allowed everywhere. */
	if (!ctx->task)
		repeat(ADDRESSES, name_one, &naming);
	return 0;
}

FORGET_TASK
{
	forget_row(&naps, task);
	forget_row(&ring_issues, task);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
