/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Entry and return of a call where a random part of the time is counted (`--sample`): these
 * programs are loaded in place of those of calls.bpf.h.
 *
 * User space opens a window of time now and then (windows.rs). A call counts if it is entered in
 * one, and is followed to its return. Outside windows an entry costs a look at one word, before the
 * thread is looked up, and a return the look-up. The time of a call that does not count is the
 * thread's outside calls. Switches are seen all the time, so blocked time and run queue delay are
 * exact.
 *
 * Where windows become more or fewer while the watch goes on, a call that was entered before would
 * stand for the calls of another part of the time: it is let go. An exec's own call is not, whose
 * time is kept for its return.
 */

/* Calls after which an image's memory or title can no longer be seen. Of the 32-bit kind, too, that
 * are other calls of the 64-bit kind: what is noted then is noted too often. */
static __always_inline bool ends_image(long id)
{
	return id == NR_EXECVE || id == NR_EXECVEAT || id == NR_EXIT_GROUP;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sampled_enter, struct pt_regs *regs, long id)
{
	u64 closes_ns = window.closes_ns, now;
	struct task_struct *task;
	struct thread *t;
	u16 call;

	if (!closes_ns && !ends_image(id))
		return 0;
	task = bpf_get_current_task_btf();
	t = watched(task);
	if (!t || ended_ns)
		return 0;
	call = call_of(task, id);
	now = bpf_ktime_get_ns();
	if (now >= window.opens_ns && now < closes_ns)
		enter_call(t, task, regs, call, now);
	else if (call == NR_EXIT_GROUP)
		note_last_title(t, task);
	else if (ends_image(call))
		note_resident(t, task);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sampled_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);

	if (!t || ended_ns)
		return 0;
	if (t->in_call && t->last_ns < window.since_ns && !t->call_thread)
		t->in_call = false;
	/* Of a call that does not count, a new thread's start; or of a call that was refused, which
	 * nothing tells from that. */
	if (!t->in_call) {
		if (t->newborn || t->attached)
			t->newborn = t->attached = false;
		return 0;
	}
	return leave_call(ctx, t, task, regs, ret, true);
}
