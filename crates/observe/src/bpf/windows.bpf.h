/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The windows of time in which calls count (`--sample`), and what they saw: added up by call, so
 * that user space can tell by how much windows differ. By CPU, so that CPUs do not share lines;
 * where there are more than stripes, some do.
 */

struct window window SEC(".data.window");
struct series series[STRIPES][SERIES] SEC(".bss.series");

/* A call that counts has returned, of which `leave_call` makes rows. */
static __always_inline void count_in_series(struct thread *t, struct task_struct *task, u64 now,
					    long ret, u64 bytes)
{
	u32 number = t->call & CALL_NUMBER, cpu = bpf_get_smp_processor_id();
	struct series *s;

	if (!t->image || !wants(t, t->call) || is_over(now) || (is_error(ret) && is_killed(task)))
		return;
	/* Those of larger numbers share the last one of their kind. */
	if (number >= SERIES / 2)
		number = SERIES / 2 - 1;
	if (t->call & CALL_I386)
		number += SERIES / 2;
	s = &series[cpu & (STRIPES - 1)][number & (SERIES - 1)];
	ADD(s->calls, 1);
	ADD(s->wall_ns, now - t->last_ns);
	if (t->left)
		ADD(s->waits, 1);
	if (is_error(ret))
		ADD(s->errors, 1);
	else if (bytes)
		ADD(s->bytes, bytes);
}
