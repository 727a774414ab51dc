/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Probes of processes and of time. Each is a point, whose number of a probe is 0 where no clause is
 * for it.
 */

#define CLONE	     56
#define FORK	     57
#define VFORK	     58
#define CLONE3	     435
#define CLONE_COMPAT 120
#define FORK_COMPAT  2
#define VFORK_COMPAT 190

/* As waitid(2) has them. */
#define CLD_EXITED 1
#define CLD_KILLED 2
#define CLD_DUMPED 3

/* Set once the end of the process was told: of its leader, which stays until all threads have
 * ended. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} ended SEC(".maps");

/* What a firing at a point has besides the current thread: three arguments, and another thread or
 * none. */
struct about {
	struct task_struct *other;
	struct task_struct *subject; /* whose firing it is, if not the current thread's */
	u64 args[3];
};

static __always_inline void note_other(struct machine *m, struct task_struct *other)
{
	struct task_struct *leader = BPF_CORE_READ(other, group_leader);
	long got = bpf_probe_read_kernel_str(
		m->other_name, sizeof(m->other_name),
		(char *)leader + bpf_core_field_offset(struct task_struct, comm));

	m->facts[FACT_OTHER_PID] = tgid_of(other);
	m->facts[FACT_OTHER_TID] = pid_of(other);
	m->facts[FACT_OTHER_NAME] = (u64)m->other_name;
	m->facts[FACT_OTHER_NAME + 1] = got > 0 ? got - 1 : 0;
	m->present[FACT_OTHER_PID] = 1;
	m->present[FACT_OTHER_TID] = 1;
	m->present[FACT_OTHER_NAME] = 1;
}

/* The firing is about a thread that is not the current one. */
static __always_inline void note_subject(struct machine *m, struct task_struct *task)
{
	m->facts[FACT_PID] = tgid_of(task);
	m->facts[FACT_TID] = pid_of(task);
	m->task = (u64)task;
	/* Read again, it is a number. */
	barrier();
	m->facts[FACT_THREAD_START] = BPF_CORE_READ(task, start_time) ^ m->task;
	m->facts[FACT_ERRNO] = 0;
	m->is_other = 1;
}

static __always_inline void fire_point(u32 number, const struct about *about)
{
	struct task_struct *subject = about->subject;
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe *probe;
	struct machine *m;
	u32 *level;

	if (!number || exited)
		return;
	if (subject) {
		if (BPF_CORE_READ(subject, tgid) == own_tgid || !is_meant(subject))
			return;
	} else if (task->tgid == own_tgid || !is_meant(task)) {
		return;
	}
	probe = bpf_map_lookup_elem(&probes, &number);
	level = level_of_cpu();
	if (!probe || !level)
		return;
	m = enter(level);
	if (!m)
		return;
	if (subject)
		note_subject(m, subject);
	else
		note_thread(m, task);
	_Pragma("unroll") for (int i = 0; i < 10; i++) m->facts[i] = i < 3 ? about->args[i] : 0;
	if (about->other)
		note_other(m, about->other);
	fire_at(m, subject ? NULL : thread_row(m, task), number, probe);
	leave(level);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(created, struct task_struct *parent, struct task_struct *child)
{
	struct about about = {.other = child};

	fire_point(knobs.points[POINT_LWP_CREATE], &about);
	if (BPF_CORE_READ(child, tgid) != BPF_CORE_READ(parent, tgid))
		fire_point(knobs.points[POINT_CREATE], &about);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task)
{
	struct about about = {};

	fire_point(knobs.points[POINT_EXEC_SUCCESS], &about);
	return 0;
}

/* The call that made the current thread returns in it. */
SEC("tp_btf/sys_exit")
int BPF_PROG(started, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number = regs->orig_ax;
	bool is_made;

	if (ret)
		return 0;
	if (task->thread_info.status & TS_COMPAT)
		is_made = number == CLONE_COMPAT || number == FORK_COMPAT || number == VFORK_COMPAT;
	else
		is_made = number == CLONE || number == FORK || number == VFORK;
	if (is_made || number == CLONE3) {
		struct about about = {};

		if (task->pid == task->tgid)
			fire_point(knobs.points[POINT_START], &about);
		fire_point(knobs.points[POINT_LWP_START], &about);
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(over, struct task_struct *task)
{
	struct about about = {};
	struct task_struct *leader;
	const u32 not_told = 0;
	u32 *is_told, code;

	fire_point(knobs.points[POINT_LWP_EXIT], &about);
	if (!knobs.points[POINT_EXIT] || BPF_CORE_READ(task, signal, live.counter))
		return 0;
	/* Of threads that end side by side, each may be the last. */
	leader = task->group_leader;
	is_told = leader ? made_task_row(&ended, leader, &not_told) : NULL;
	if (is_told && __sync_lock_test_and_set(is_told, 1))
		return 0;
	code = BPF_CORE_READ(task, exit_code);
	about.args[0] = code & 0x80 ? CLD_DUMPED : code & 0x7f ? CLD_KILLED : CLD_EXITED;
	fire_point(knobs.points[POINT_EXIT], &about);
	return 0;
}

SEC("tp_btf/signal_generate")
int BPF_PROG(signalled, int signal, struct kernel_siginfo *info, struct task_struct *task)
{
	struct about about = {.other = task, .args = {0, 0, signal}};

	fire_point(knobs.points[POINT_SIGNAL_SEND], &about);
	return 0;
}

/* An event of each CPU; its cookie is the number of the probe. */
SEC("perf_event")
int profile(struct bpf_perf_event_data *at)
{
	u64 address = at->regs.ip;
	struct about about = {};

	/* The kernel's addresses are the upper half. */
	if ((s64)address < 0)
		about.args[0] = address;
	else
		about.args[1] = address;
	fire_point(bpf_get_attach_cookie(at), &about);
	return 0;
}
