/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Leaving the CPU and coming back, and the end of a thread. */

/*
 * The time, but not beyond the watch, nor before what the thread was last seen to do: a program
 * that began before the watch ended may have read the clock after it.
 */
static __always_inline u64 end_or_now(const struct thread *t)
{
	u64 now = ended_ns, off;

	if (now <= 1)
		return bpf_ktime_get_ns();
	off = t->off_ns - t->off_at_last_ns;
	if (now < t->last_ns + off)
		now = t->last_ns + off;
	if (now < t->start_ns)
		now = t->start_ns;
	return now < t->out_ns ? t->out_ns : now;
}

/* What a thread that is about to sleep sleeps for. */
static __always_inline u8 reason(const struct thread *t, struct task_struct *task, u32 state)
{
	if (state & (TASK_STOPPED | TASK_TRACED))
		return STOPPED;
	/*
	 * Outside calls it may be one entered before the watch, the start of a thread, or its end;
	 * or what a call left to be done on the way back, as the release of a file.
	 */
	if (t->in_call || t->attached || t->newborn || task->flags & PF_EXITING ||
	    !(state & TASK_UNINTERRUPTIBLE) || !HAS_REGISTERS || call_inside(task) != NO_CALL)
		return IN_CALL;
	return IN_FAULT;
}

/* Closes the books of a thread that has ended, or outlives the watch: once `begin_to_close` let it.
 */
static __always_inline void close_books(struct thread *t, struct task_struct *task, u64 now,
					enum leaving how)
{
	if (t->in_call)
		abandon_call(t, now, false);
	else
		close_span(t, now);
	cool(t);
	if (knobs.by_file)
		settle_sides(t);
	settle_thread(t, task, now);
	settle_thread_row(t, task, now, how);
	__sync_fetch_and_sub(&counters.open_books, 1);
}

static __always_inline int come_in(struct task_struct *next)
{
	struct thread *t = watched(next);

	if (t && t->out_ns && !ended_ns)
		come_back(t, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct thread *t;
	u32 before;
	u64 now;

	t = watched(prev);
	if (t) {
		now = end_or_now(t);
		/* Once the watch has ended, only who closes the books changes them. */
		if (t->out_ns && !ended_ns)
			come_back_unseen(t, prev, now);
		if (prev_state & TASK_DEAD) {
			before = begin_to_close(t, CLOSED);
			if (before == WITHDRAWN)
				return come_in(next);
			if (before == OPEN) {
				if (t->out_ns)
					come_back(t, now);
				close_books(t, prev, now, BY_END);
			}
			__sync_fetch_and_sub(&counters.live_threads, 1);
			leave_image(t->image);
			announce(t->id);
		} else if (!ended_ns) {
			t->out_ns = now;
			t->left = true;
			t->runtime_out_ns = prev->se.sum_exec_runtime;
			t->slept = !preempt && prev_state;
			if (t->slept)
				t->sleep = reason(t, prev, prev_state);
		}
	} else if (prev_state & TASK_DEAD && was_ring_thread(prev)) {
		book_ring_thread(prev);
	}
	return come_in(next);
}

static __always_inline int wake(struct task_struct *task)
{
	struct thread *t = watched(task);

	if (t && t->out_ns && !ended_ns)
		t->woken_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	return wake(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *task)
{
	return wake(task);
}

/*
 * Run once the watch has ended: what still lives is booked until that moment. A thread that ends
 * meanwhile is booked by its last switch, whichever comes first; one that has ended but for that
 * switch is in no list of tasks any more.
 */
SEC("iter/task")
int settle(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;
	bool is_away;
	u64 now;

	if (!task)
		return 0;
	if (task->flags & PF_IO_WORKER) {
		book_ring_thread(task);
		return 0;
	}
	t = watched(task);
	if (!t || t->closed || begin_to_close(t, CLOSED) != OPEN)
		return 0;
	if (!t->image) {
		/* It has none to close. */
		__sync_fetch_and_sub(&counters.open_books, 1);
		return 0;
	}
	now = end_or_now(t);
	is_away = t->out_ns;
	if (is_away)
		come_back(t, now);
	if (is_away && t->attached && !t->in_call && !knobs.sampled)
		/* It has been in the call all along that it was in before. */
		enter_untraced(t, call_inside(task), t->last_ns);
	note_resident(t, task);
	close_books(t, task, now, WITH_THE_WATCH);
	return 0;
}
