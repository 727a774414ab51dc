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

const volatile struct where_knobs where SEC(".rodata.where");

/* Of a watched thread: what its condition needs. */
struct filter {
	struct facts facts;
	u64 path_bits;
	u64 path_text;
	u64 image_bits;
	u64 former_bits; /* of the image before the last exec */
	u64 threadname_bits;
	u64 threadname_text;
	u64 cgroup_bits;
	u64 cgroup_text;
	u64 cgroups; /* these bits are of */
	char comm[COMM_LEN];
	u32 image;
	u32 named; /* comm is */
};

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

ROWS(known_names, struct name_key, struct known_name);
ROWS(by_rows, struct by_key, struct by_row);

/* Instructions that user space may put in place of the function's own. */
#define ROOM "2040"

/* 0: the condition does not hold. 1: it does. 2: it divided by zero. */
__noinline int condition(const struct facts *facts)
{
	int holds = 1;

	asm volatile(".rept " ROOM "\n\tgoto +0\n\t.endr" : "+r"(holds) : "r"(facts) : "memory");
	return holds;
}

static __always_inline bool is_in(const volatile u64 (*bits)[8], u16 call)
{
	u32 number = call & CALL_NUMBER;

	if (number > 511)
		return false;
	return bits[call & CALL_I386 ? 1 : 0][(number >> 6) & 7] >> (number & 63) & 1;
}

/* Whether the condition needs more than its number: no return, no truth. */
static __always_inline bool is_doubtful(u16 call)
{
	return is_in(where.doubtful, call);
}

/* Calls beyond the table are not wanted. */
static __always_inline bool is_open(u16 call)
{
	return is_in(where.open, call);
}

static __always_inline struct filter *filter_of(struct task_struct *task)
{
	struct filter *f = bpf_task_storage_get(&filters, task, NULL, 0);

	if (f)
		return f;
	return bpf_task_storage_get(&filters, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The path of an open file. */
__noinline int note_file(struct filter *f, u32 fd)
{
	struct known_name *known, fresh = {};
	struct name_key key = {};
	struct dentry *dentry;
	struct scratch *s;
	struct file *file;
	struct inode *inode;

	if (!f)
		return 0;
	f->path_bits = where.of_no_path;
	f->path_text = 0;
	file = file_of(bpf_get_current_task_btf(), fd);
	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	dentry = BPF_CORE_READ(file, f_path.dentry);
	key.dentry = (u64)dentry;
	key.above = (u64)BPF_CORE_READ(dentry, d_parent);
	key.mount = (u64)BPF_CORE_READ(file, f_path.mnt);
	key.hash = BPF_CORE_READ(dentry, d_name.hash_len);
	key.inode = BPF_CORE_READ(inode, i_ino);
	known = bpf_map_lookup_elem(&known_names, &key);
	if (known) {
		f->path_bits = known->bits;
		f->path_text = known->text;
		return 0;
	}
	s = scratch();
	if (!s)
		return 0;
	s->file.name.magic = BPF_CORE_READ(inode, i_sb, s_magic);
	s->file.name.whole = 0;
	walk(&s->file, file);
	begin_subject(&s->subject, MIDDLE);
	put_path_before(&s->subject, &s->file, key.inode);
	fresh.bits = match_all(where.of_path, &s->subject);
	if (where.keeps & KEEPS_PATH)
		fresh.text = keep_text(&s->subject);
	f->path_bits = fresh.bits;
	f->path_text = fresh.text;
	/* Without room, the next call takes longer. */
	bpf_map_update_elem(&known_names, &key, &fresh, BPF_ANY);
	return 0;
}

/* The path that a call is given, as its program names it, from the directory it begins at. */
__noinline int note_path_text(struct filter *f, struct given *of)
{
	struct dentry *dentry;
	struct program *program;
	struct vfsmount *vfs;
	struct scratch *s;
	struct file *file;
	u64 below = MIDDLE, length;
	u32 image;
	long got;

	if (!f || !of)
		return 0;
	s = scratch();
	if (!s)
		return 0;
	image = of->executed;
	got = 0;
	s->subject.text[MIDDLE + 1] = 0;
	if (!image && !of->is_directory && !of->text && of->directory == AT_FDCWD) {
		f->path_bits |= where.of_no_path;
		return 0;
	}
	if (image) {
		program = bpf_map_lookup_elem(&programs, &image);
		if (program)
			got = bpf_probe_read_kernel_str(&s->subject.text[MIDDLE + 1], EXEC_LEN,
							program->exec);
	} else if (!of->is_directory && of->text) {
		got = bpf_probe_read_user_str(&s->subject.text[MIDDLE + 1], TEXT_MOST,
					      (void *)of->text);
		if (got <= 0) {
			f->path_bits |= where.of_no_path;
			return 0;
		}
	}
	length = got > 0 && got <= TEXT_MOST ? got - 1 : 0;
	if (s->subject.text[MIDDLE + 1] == '/') {
		s->subject.start = MIDDLE + 1;
		s->subject.length = length;
	} else {
		/* `./` says nothing. */
		for (u32 i = 0; i < 4; i++) {
			if (length < 2 || s->subject.text[(below + 1) & SUBJECT_MASK] != '.' ||
			    s->subject.text[(below + 2) & SUBJECT_MASK] != '/')
				break;
			below += 2;
			length -= 2;
		}
		if (length == 1 && s->subject.text[(below + 1) & SUBJECT_MASK] == '.')
			length = 0;
		if (of->directory == AT_FDCWD) {
			dentry = BPF_CORE_READ(bpf_get_current_task_btf(), fs, pwd.dentry);
			vfs = BPF_CORE_READ(bpf_get_current_task_btf(), fs, pwd.mnt);
		} else {
			file = file_of(bpf_get_current_task_btf(), of->directory);
			dentry = BPF_CORE_READ(file, f_path.dentry);
			vfs = BPF_CORE_READ(file, f_path.mnt);
		}
		s->file.name.magic = BPF_CORE_READ(dentry, d_inode, i_sb, s_magic);
		s->file.name.whole = 0;
		walk_from(&s->file, dentry, vfs);
		begin_subject(&s->subject, below);
		put_path_before(&s->subject, &s->file, BPF_CORE_READ(dentry, d_inode, i_ino));
		if (length) {
			/* Not behind the `/` of the root itself. */
			if (s->subject.length == 1 &&
			    s->subject.text[(below - 1) & SUBJECT_MASK] == '/')
				s->subject.start++;
			else
				s->subject.length++;
			s->subject.text[below & SUBJECT_MASK] = '/';
			s->subject.length += length;
		}
	}
	f->path_bits |= match_all(where.of_path, &s->subject);
	if (where.keeps & KEEPS_PATH && !f->path_text)
		f->path_text = keep_text(&s->subject);
	return 0;
}

static __always_inline void note_given(struct filter *f, struct thread *t, struct pt_regs *regs,
				       u32 how, struct given *of)
{
	of->text = wide_argument(regs, t->call, (how & 0xf) - 1);
	of->directory = AT_FDCWD;
	if (how >> 4 && !of->executed)
		of->directory = wide_argument(regs, t->call, (how >> 4) - 1);
	note_path_text(f, of);
}

/* How the arguments of the current call name paths. */
static __always_inline u32 given_paths(struct thread *t)
{
	u32 number = t->call & CALL_NUMBER;

	if (!(where.uses & USES_PATH) || number > 511)
		return 0;
	return knobs.paths[t->call & CALL_I386 ? 1 : 0][number];
}

/* The name of the file that a program was executed by, and that of the file which runs. */
__noinline int note_image(struct filter *f, u32 image, u64 executed)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *s;
	u64 name;
	long got;

	if (!f)
		return 0;
	f->image = image;
	f->image_bits = 0;
	s = scratch();
	if (!s)
		return 0;
	name = (u64)BPF_CORE_READ(task, mm, exe_file, f_path.dentry, d_name.name);
	got = bpf_probe_read_kernel_str(&s->subject.text[MIDDLE], EXEC_LEN, (void *)name);
	s->subject.start = MIDDLE;
	s->subject.length = got > 0 ? got - 1 : 0;
	f->image_bits = match_all(where.of_image, &s->subject);
	if (!executed)
		return 0;
	got = bpf_probe_read_kernel_str(&s->subject.text[MIDDLE], EXEC_LEN, (void *)executed);
	if (got <= 0)
		return 0;
	/* Without its directories. */
	s->subject.length = got - 1;
	for (u32 i = 0; i < EXEC_LEN; i++) {
		if (i >= got - 1)
			break;
		if (s->subject.text[MIDDLE + i] == '/') {
			s->subject.start = MIDDLE + i + 1;
			s->subject.length = got - 2 - i;
		}
	}
	f->image_bits |= match_all(where.of_image, &s->subject);
	return 0;
}

/* At the entry: the descriptor may be another file's, or none's, when the call returns. */
static __always_inline void note_facts(struct thread *t, struct task_struct *task,
				       struct pt_regs *regs)
{
	u32 number = t->call & CALL_NUMBER;
	struct filter *f;
	u32 argument_at;

	if (!(where.uses & (USES_FD | USES_PATH | USES_IMAGE)) || !is_open(t->call) || number > 511)
		return;
	f = filter_of(task);
	if (!f)
		return; /* counted at the return */
	if (where.uses & USES_IMAGE && executes(t->call) && f->image != t->image)
		note_image(f, t->image, 0);
	f->facts.word[FACT_FD] = -1;
	f->path_bits = where.of_no_path;
	f->path_text = 0;
	argument_at = where.descriptors[t->call & CALL_I386 ? 1 : 0][number];
	if (!argument_at)
		return;
	number = wide_argument(regs, t->call, argument_at - 1);
	f->facts.word[FACT_FD] = (s32)number;
	if (where.uses & USES_PATH)
		note_file(f, number);
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
	maker = bpf_task_storage_get(&filters, parent, NULL, 0);
	if (!maker || maker->image != from)
		return;
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

/* Whether the condition holds for the call that returns. */
static __always_inline bool holds(struct thread *t, struct task_struct *task, struct pt_regs *regs,
				  u64 now, long ret)
{
	u32 number = t->call & CALL_NUMBER, abi = t->call & CALL_I386 ? 1 : 0, how;
	struct given of = {};
	struct filter *f;
	u64 bits = 0;
	int outcome;

	/* Iotomy's own calls, which measure its overhead. */
	if (!is_open(t->call) || number > 511 || task->tgid == knobs.self_tgid)
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
	f->facts.word[FACT_BYTES] = ret > 0 && is_in(where.moves, t->call) ? ret : 0;
	f->facts.word[FACT_DURATION] = now - t->last_ns;
	if (t->call_thread)
		f->facts.word[FACT_DURATION] += t->wall_before_ns;
	if (where.uses & USES_IDS) {
		f->facts.word[FACT_THREAD] = pid_of(task);
		f->facts.word[FACT_PID] = tgid_of(task);
	}
	bits = where.calls[abi][number & 511];
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
	f->facts.word[FACT_MATCHES] = bits;
	outcome = condition(&f->facts);
	if (outcome > 1)
		__sync_fetch_and_add(&where_counters.divided_by_zero, 1);
	return outcome == 1;
}

static __always_inline u64 key_word(u8 kind, struct thread *t, struct filter *f)
{
	switch (kind) {
	case KEY_CALL:
		return t->call;
	case KEY_FD:
		return f->facts.word[FACT_FD];
	case KEY_ERRNO:
		return f->facts.word[FACT_ERRNO];
	case KEY_BYTES:
		return slot_of(f->facts.word[FACT_BYTES]);
	case KEY_DURATION:
		return slot_of(f->facts.word[FACT_DURATION]);
	case KEY_THREAD:
		return f->facts.word[FACT_THREAD];
	case KEY_PID:
		return f->facts.word[FACT_PID];
	case KEY_IMAGE:
		return t->call_thread ? t->call_image : t->image;
	case KEY_PATH:
		return f->path_text;
	case KEY_THREADNAME:
		return f->threadname_text;
	case KEY_CGROUP:
		return f->cgroup_text;
	}
	return 0;
}

__noinline int raise(struct by_row *row, u64 wall_ns)
{
	u64 known;

	if (!row)
		return 0;
	for (int i = 0; i < 8; i++) {
		known = row->max_ns;
		if (wall_ns <= known ||
		    __sync_val_compare_and_swap(&row->max_ns, known, wall_ns) == known)
			break;
	}
	return 0;
}

/* A call that is counted. */
__noinline int group_call(struct thread *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct filter *f = bpf_task_storage_get(&filters, task, NULL, 0);
	struct by_row none = {}, *row;
	struct by_key key = {};
	u64 wall_ns;

	if (!t || !f)
		return 0;
	for (int i = 0; i < MOST_KEYS; i++)
		key.word[i] = key_word(where.by[i], t, f);
	row = bpf_map_lookup_elem(&by_rows, &key);
	if (!row) {
		bpf_map_update_elem(&by_rows, &key, &none, BPF_NOEXIST);
		row = bpf_map_lookup_elem(&by_rows, &key);
	}
	if (!row) {
		__sync_fetch_and_add(&where_counters.lost_rows, 1);
		return 0;
	}
	wall_ns = f->facts.word[FACT_DURATION];
	__sync_fetch_and_add(&row->calls, 1);
	if (f->facts.word[FACT_ERRNO])
		__sync_fetch_and_add(&row->errors, 1);
	__sync_fetch_and_add(&row->bytes, f->facts.word[FACT_BYTES]);
	__sync_fetch_and_add(&row->wall_ns, wall_ns);
	raise(row, wall_ns);
	return 0;
}

static __always_inline void group(struct thread *t, struct task_struct *task)
{
	if (where.groups && t->image && is_open(t->call) && task->tgid != knobs.self_tgid)
		group_call(t);
}

#else

static __always_inline bool is_doubtful(u16 call)
{
	return false;
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
				  u64 now, long ret)
{
	return true;
}

static __always_inline void group(struct thread *t, struct task_struct *task)
{
}

static __always_inline int pass_over(struct thread *t, u64 now)
{
	return 0;
}

#endif
