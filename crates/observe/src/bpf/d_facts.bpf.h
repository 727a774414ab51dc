/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Facts of a firing that are found when they are first asked for. */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* The kernel's ids are structs of a word. */
struct id_of_kernel {
	u32 val;
};

struct cred {
	struct id_of_kernel uid;
	struct id_of_kernel gid;
};

struct task_struct___owned {
	struct cred *cred;
};

#pragma clang attribute pop

/* A string of the probe's, by its place in it. */
static __always_inline void probe_text(struct machine *m, u32 fact, u32 which, u64 offset)
{
	struct probe *probe = (void *)m->probe;
	u16 length = 0;

	bpf_probe_read_kernel(&length, sizeof(length), &probe->lengths[which]);
	m->facts[fact] = m->probe + offset;
	m->facts[fact + 1] = length;
}

/* The current process's command line: its words, and its name where there are none. */
static __always_inline void psargs(struct machine *m, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	u64 start = BPF_CORE_READ(mm, arg_start), length = BPF_CORE_READ(mm, arg_end) - start;

	if (!start || length > PSARGS_MOST)
		length = start ? PSARGS_MOST : 0;
	/* The memory at hand is the current process's. */
	if (m->is_other)
		length = 0;
	if (length && bpf_probe_read_user(m->psargs, length, (void *)start))
		length = 0;
	/* The end of the last word is none. */
	if (length)
		length--;
	for (u32 i = 0; i < PSARGS_MOST; i++) {
		if (i >= length)
			break;
		if (!m->psargs[i])
			m->psargs[i] = ' ';
	}
	if (!length) {
		struct task_struct *leader = BPF_CORE_READ(task, group_leader);
		long got = bpf_probe_read_kernel_str(
			m->psargs, sizeof(m->execname),
			(char *)leader + bpf_core_field_offset(struct task_struct, comm));

		length = got > 0 ? got - 1 : 0;
	}
	m->facts[FACT_PSARGS] = (u64)m->psargs;
	m->facts[FACT_PSARGS + 1] = length;
	m->present[FACT_PSARGS] = 1;
}

#define ONES 0x0101010101010101ull

/* What is before the first byte of a word that is 0: whether there is one. */
static __always_inline bool cut(u64 *word, u64 *length)
{
	u64 zero = (*word - ONES) & ~*word & 0x80 * ONES, below;

	if (!zero)
		return false;
	below = ((zero & -zero) >> 7) - 1;
	*word &= below;
	*length += (below & ONES) * ONES >> 56;
	return true;
}

/* The name of a thread's process, with nothing behind its end. */
static __always_inline void name_of(struct machine *m, struct task_struct *task)
{
	struct task_struct *leader = (void *)word_at(&task->group_leader);
	char *comm = (char *)leader + bpf_core_field_offset(struct task_struct, comm);
	u64 *name = (u64 *)m->execname, length = 0;

	name[0] = word_at(comm);
	name[1] = word_at(comm + 8);
	if (cut(&name[0], &length)) {
		name[1] = 0;
	} else {
		length = 8;
		cut(&name[1], &length);
	}
	m->facts[FACT_EXECNAME] = (u64)m->execname;
	m->facts[FACT_EXECNAME + 1] = length;
	m->present[FACT_EXECNAME] = 1;
}

__noinline int d_fact(struct machine *m, u64 fact)
{
	struct task_struct *task;
	u64 value = 0;

	if (!m || fact >= FACTS - 1)
		return 0;
	task = (void *)m->task;
	switch (fact) {
	case FACT_PPID:
		value = tgid_of(BPF_CORE_READ(task, real_parent));
		break;
	case FACT_UID:
		value = m->is_other
				? BPF_CORE_READ((struct task_struct___owned *)task, cred, uid.val)
				: (u32)bpf_get_current_uid_gid();
		break;
	case FACT_GID:
		value = m->is_other
				? BPF_CORE_READ((struct task_struct___owned *)task, cred, gid.val)
				: bpf_get_current_uid_gid() >> 32;
		break;
	case FACT_CPU:
		value = bpf_get_smp_processor_id();
		break;
	case FACT_TIMESTAMP:
		value = bpf_ktime_get_ns();
		break;
	case FACT_WALLTIMESTAMP:
		value = bpf_ktime_get_ns() + knobs.wall_offset_ns;
		break;
	case FACT_ID: {
		u32 id = 0;

		bpf_probe_read_kernel(&id, sizeof(id), &((struct probe *)m->probe)->id);
		value = id;
		break;
	}
	case FACT_EXECNAME:
		name_of(m, task);
		return 0;
	case FACT_PSARGS:
		psargs(m, task);
		return 0;
	case FACT_OTHER_NAME:
		/* Of no other. */
		m->facts[FACT_OTHER_NAME + 1] = 0;
		break;
	case FACT_PROBEPROV:
		probe_text(m, FACT_PROBEPROV, 0, __builtin_offsetof(struct probe, provider));
		m->present[FACT_PROBEPROV] = 1;
		return 0;
	case FACT_PROBEMOD:
		probe_text(m, FACT_PROBEMOD, 1, __builtin_offsetof(struct probe, module));
		m->present[FACT_PROBEMOD] = 1;
		return 0;
	case FACT_PROBEFUNC:
		probe_text(m, FACT_PROBEFUNC, 2, __builtin_offsetof(struct probe, function));
		m->present[FACT_PROBEFUNC] = 1;
		return 0;
	case FACT_PROBENAME:
		probe_text(m, FACT_PROBENAME, 3, __builtin_offsetof(struct probe, name));
		m->present[FACT_PROBENAME] = 1;
		return 0;
	}
	fact &= FACTS - 1;
	m->facts[fact] = value;
	m->present[fact] = 1;
	return 0;
}

struct descent {
	struct task_struct *task;
	u64 from;
	int holds;
};

static long ascend(u32 turn, void *with)
{
	struct descent *d = with;
	struct task_struct *task = d->task, *parent;

	if (tgid_of(task) == (u32)d->from) {
		d->holds = 1;
		return 1;
	}
	parent = BPF_CORE_READ(task, real_parent);
	if (!parent || parent == task)
		return 1;
	d->task = parent;
	return 0;
}

/* progenyof(): whether the process is this one, or descends from it. */
__noinline int d_progenyof(struct machine *m, u64 from)
{
	struct descent d = {.from = from};

	if (!m)
		return 0;
	d.task = (void *)m->task;

	bpf_loop(1024, ascend, &d, 0);
	return d.holds;
}

__noinline u64 d_random(void)
{
	u64 state = random_state;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	random_state = state;
	return state & 0x7fffffff;
}
