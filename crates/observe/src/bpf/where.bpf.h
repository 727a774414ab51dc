/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The filter of calls (`--where`) and their groups (`--by`).
 *
 * What the condition makes of a call's number alone, user space has found out: `knobs.wanted` and
 * `where.open`. Only open calls come here. What is known of the thread is kept beside it and
 * found anew only when it has changed; the file of a descriptor is known by its name until that
 * changes. The condition itself is `where`, whose instructions user space puts in place of those
 * here before the object is loaded (object/body.rs).
 */

#ifdef WHERE

#include "subject.bpf.h"
#include "peer.bpf.h"

const volatile struct where_knobs where SEC(".rodata.where");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct filter);
} filters SEC(".maps");

/* A name of a file: any part of it changes with a rename. */
struct name_key {
	u64 dentry;
	u64 above;
	u64 mount;
	u64 hash; /* of the name, and its length */
	u64 inode;
};

struct known_name {
	u64 bits;
	u64 text;
};

/* A remote end. */
struct peer_key {
	u64 remote[2];
	u32 port;
	u32 protocol;
	u32 family;
	u32 type;
};

ROWS(known_names, struct name_key, struct known_name);
ROWS(known_peers, struct peer_key, struct known_name);
ROWS(by_rows, struct by_key, struct by_row);

/*
 * By process: the name that it was executed by before it was watched, where that is not its file's.
 * User space writes it (adoption.rs), which alone can look names up.
 */
ROWS(executed_names, u32, struct executed_name);

/* Instructions that user space may put in place of the function's own. */
#define ROOM "2040"

/* 0: the condition does not hold. 1: it does. 2: it divided by zero. */
__noinline int condition(const struct facts *facts)
{
	int holds = 1;

	asm volatile(".rept " ROOM "\n\tgoto +0\n\t.endr" : "+r"(holds) : "r"(facts) : "memory");
	return holds;
}

/* Whether the condition needs more than its number: no return, no truth. */
static __always_inline bool is_doubtful(u16 call)
{
	return is_in(where.doubtful, call);
}

/* Whether the call comes here at all. */
static __always_inline bool is_open(u16 call)
{
	return is_in(where.open, call);
}

static const struct filter no_filter;

static __always_inline struct filter *filter_of(struct task_struct *task)
{
	struct filter *f = task_row(&filters, task);

	return f ? f : made_task_row(&filters, task, &no_filter);
}

#include "where_names.bpf.h"
#include "title.bpf.h"

/* At the entry: the descriptor may be another file's, or none's, when the call returns. */
static __always_inline void note_facts(struct thread *t, struct task_struct *task,
				       struct pt_regs *regs)
{
	struct making of = {};
	struct filter *f;
	u32 argument_at, number;

	if (!(where.uses & (USES_FD | USES_PATH | USES_IMAGE | USES_PEER)) || !is_open(t->call))
		return;
	f = filter_of(task);
	if (!f)
		return; /* counted at the return */
	if (where.uses & USES_IMAGE && executes(t->call) && f->image != t->image)
		note_image(f, t->image, 0);
	f->facts.word[FACT_FD] = -1;
	f->path_bits = where.of_no_path;
	f->path_text = 0;
	f->peer_bits = where.of_no_peer;
	f->peer_text = 0;
	argument_at = where.descriptors[t->call & CALL_I386 ? 1 : 0][place_of(t->call)];
	if (!argument_at)
		return;
	number = wide_argument(regs, t->call, argument_at - 1);
	f->facts.word[FACT_FD] = (s32)number;
	if (where.uses & USES_PATH)
		note_file(f, number);
	of.fd = number;
	if (where.uses & USES_PEER)
		note_peer(f, &of);
}

/* The thread's name, where it is another one than before. */
__noinline int note_threadname(struct filter *f)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *s;
	char comm[COMM_LEN];
	long got;

	if (!f)
		return 0;
	bpf_probe_read_kernel(comm, sizeof(comm), task->comm);
	if (f->named && ((u64 *)comm)[0] == ((u64 *)f->comm)[0] &&
	    ((u64 *)comm)[1] == ((u64 *)f->comm)[1])
		return 0;
	s = scratch();
	if (!s)
		return 0;
	got = bpf_probe_read_kernel_str(&s->subject.text[MIDDLE], COMM_LEN, comm);
	s->subject.start = MIDDLE;
	s->subject.length = got > 0 ? got - 1 : 0;
	f->threadname_bits = match_all(where.of_threadname, &s->subject);
	if (where.keeps & KEEPS_THREADNAME)
		f->threadname_text = keep_text(&s->subject);
	__builtin_memcpy(f->comm, comm, sizeof(comm));
	f->named = 1;
	return 0;
}

/* A program was executed: later, only the file that runs is known. */
static __always_inline void note_executed(struct task_struct *task, u32 image,
					  struct linux_binprm *bprm)
{
	struct filter *f;

	if (!(where.uses & USES_IMAGE))
		return;
	f = filter_of(task);
	if (!f)
		return;
	f->former_bits = f->image_bits;
	note_image(f, image, (u64)BPF_CORE_READ(bprm, filename));
}

/* A new thread or process runs the program of its maker, under whichever name that has. */
static __always_inline void inherit_image(struct task_struct *parent, struct task_struct *child,
					  u32 from, u32 to)
{
	struct filter *maker, *f;

	if (!(where.uses & USES_IMAGE))
		return;
	maker = filter_of(parent);
	if (!maker)
		return;
	/* The maker is the current task. */
	if (maker->image != from)
		note_image(maker, from, 0);
	f = filter_of(child);
	if (!f)
		return;
	f->image = to;
	f->image_bits = maker->image_bits;
}

/* The path of a cgroup. */
static __always_inline void lay_cgroup(struct subject *s, u64 at)
{
	struct cgroup *cgroup = (void *)at;
	struct cgroup_subsys_state *parent;

	begin_subject(s, MIDDLE);
	for (int i = 0; i < CGROUP_DEPTH; i++) {
		parent = BPF_CORE_READ(cgroup, self.parent);
		if (!parent)
			break;
		put_name_before(s, BPF_CORE_READ(cgroup, kn, name));
		cgroup = BPF_CORE_READ(parent, cgroup);
	}
	if (!s->length)
		put_before(s, '/');
}

__noinline int note_cgroup(struct filter *f, u64 cgroup)
{
	struct scratch *s = scratch();

	if (!f || !s)
		return 0;
	lay_cgroup(&s->subject, cgroup);
	f->cgroup_bits |= match_all(where.of_cgroup, &s->subject);
	/* The first that is not the root. */
	if (where.keeps & KEEPS_CGROUP && (!f->cgroup_text || s->subject.length > 1))
		f->cgroup_text = keep_text(&s->subject);
	return s->subject.length > 1;
}

/* The cgroups of a thread, where they are others than before. */
__noinline int note_cgroups(struct filter *f)
{
	u64 set = (u64)BPF_CORE_READ(bpf_get_current_task_btf(), cgroups), head;
	struct cgrp_cset_link *own;
	struct list_head *link;

	if (!f || f->cgroups == set)
		return 0;
	f->cgroups = set;
	f->cgroup_bits = 0;
	f->cgroup_text = 0;
	head = set + bpf_core_field_offset(struct css_set, cgrp_links);
	link = BPF_CORE_READ((struct css_set *)set, cgrp_links.next);
	for (int i = 0; i < MOST_HIERARCHIES; i++) {
		if (!link || (u64)link == head)
			break;
		own = (void *)link - bpf_core_field_offset(struct cgrp_cset_link, cgrp_link);
		if (note_cgroup(f, (u64)BPF_CORE_READ(own, cgrp)) && where.keeps & KEEPS_CGROUP &&
		    !where.of_cgroup)
			break;
		link = BPF_CORE_READ(link, next);
	}
	return 0;
}

/* Of the call that is entered: what its number decides. */
static __always_inline void begin_verdict(struct thread *t)
{
	if (!where.verdicts)
		return;
	if (is_doubtful(t->call))
		t->verdict = UNDECIDED;
	else
		t->verdict = wants(t, t->call) ? COUNTED : LEFT_OUT;
}

/* Of the call that has returned. */
static __always_inline void end_verdict(struct thread *t, bool counts)
{
	if (where.verdicts)
		t->verdict = counts && wants(t, t->call) ? COUNTED : LEFT_OUT;
}

/* Whether the condition holds for the call that returns. */
static __always_inline bool holds(struct thread *t, struct task_struct *task, struct pt_regs *regs,
				  u64 now, long ret, long bytes)
{
	u32 abi = t->call & CALL_I386 ? 1 : 0, how;
	struct given of = {};
	struct filter *f;
	u64 bits = 0;
	int outcome;

	if (!is_open(t->call) || !wants(t, t->call))
		return true;
	f = filter_of(task);
	if (!f) {
		lose();
		return false;
	}
	how = given_paths(t);
	if (how) {
		f->path_bits = 0;
		f->path_text = 0;
		if (!ret && executes(t->call))
			of.executed = t->image;
		of.is_directory = !ret && (t->call == NR_CHDIR || t->call == NR_CHDIR_I386);
		note_given(f, t, regs, how & 0xff, &of);
		if (how >> 8)
			note_given(f, t, regs, how >> 8, &of);
	}
	f->facts.word[FACT_ERRNO] = is_error(ret) ? -ret : 0;
	f->facts.word[FACT_BYTES] = ret > 0 && is_in(where.moves, t->call) ? bytes : 0;
	f->facts.word[FACT_DURATION] = now - t->last_ns;
	if (t->call_thread)
		f->facts.word[FACT_DURATION] += t->wall_before_ns;
	if (where.uses & USES_IDS) {
		f->facts.word[FACT_THREAD] = pid_of(task);
		f->facts.word[FACT_PID] = tgid_of(task);
	}
	bits = where.calls[abi][place_of(t->call)];
	if (where.uses & USES_PEER) {
		note_other_peer(f, t, regs, ret);
		bits |= f->peer_bits;
	}
	if (where.uses & USES_PATH)
		bits |= f->path_bits;
	if (where.uses & USES_IMAGE) {
		if (f->image != t->image)
			note_image(f, t->image, 0);
		bits |= t->call_thread ? f->former_bits : f->image_bits;
	}
	if (where.uses & USES_THREADNAME) {
		note_threadname(f);
		bits |= f->threadname_bits;
	}
	if (where.uses & USES_CGROUP) {
		note_cgroups(f);
		bits |= f->cgroup_bits;
	}
	if (where.uses & USES_TITLE) {
		note_title(f);
		bits |= f->title_bits;
	}
	f->facts.word[FACT_MATCHES] = bits;
	outcome = condition(&f->facts);
	/* Iotomy's own calls measure what this costs, whatever comes of it. */
	if (t->calibrates)
		return true;
	/* Nor are those of iotomy's child, before its exec, the command's. */
	if (outcome > 1 && (t->call_thread ? t->call_image : t->image))
		__sync_fetch_and_add(&where_counters.divided_by_zero, 1);
	return outcome == 1;
}

#include "by.bpf.h"

#else

static __always_inline bool is_doubtful(u16 call)
{
	return false;
}

static __always_inline void begin_verdict(struct thread *t)
{
}

static __always_inline void end_verdict(struct thread *t, bool counts)
{
}

static __always_inline void note_facts(struct thread *t, struct task_struct *task,
				       struct pt_regs *regs)
{
}

static __always_inline void note_executed(struct task_struct *task, u32 image,
					  struct linux_binprm *bprm)
{
}

static __always_inline void inherit_image(struct task_struct *parent, struct task_struct *child,
					  u32 from, u32 to)
{
}

static __always_inline bool holds(struct thread *t, struct task_struct *task, struct pt_regs *regs,
				  u64 now, long ret, long bytes)
{
	return true;
}

static __always_inline void group(struct thread *t)
{
}

static __always_inline int pass_over(struct thread *t, u64 now)
{
	return 0;
}

#endif
