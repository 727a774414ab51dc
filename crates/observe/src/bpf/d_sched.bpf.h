/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Probes of the scheduler. When a thread leaves its CPU, the kernel tells of both threads at once:
 * what fires for the next one has that thread's facts, though it does not run yet.
 */

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct about about = {};

	fire_point(knobs.points[!preempt && prev_state ? POINT_SLEEP : POINT_PREEMPT], &about);
	about.other = next;
	fire_point(knobs.points[POINT_OFF_CPU], &about);
	about.other = NULL;
	about.subject = next;
	fire_point(knobs.points[POINT_ON_CPU], &about);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(woken, struct task_struct *task)
{
	struct about about = {.other = task};

	fire_point(knobs.points[POINT_WAKEUP], &about);
	return 0;
}
