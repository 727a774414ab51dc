/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Calls whose entry was not traced, told by the registers they were entered with. */

static __always_inline u16 call_of(struct task_struct *task, long id)
{
	u16 call = (u64)id < CALL_NUMBER ? id : CALL_NUMBER;

	return task->thread_info.status & TS_COMPAT ? call | CALL_I386 : call;
}

/* Whether the registers of a task can be asked for: since Linux 5.15. */
#define HAS_REGISTERS             \
	(KERNEL_HAS(REGISTERS) && \
	 bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))

#define NO_CALL -1

/* The call that a task which does not run is inside, or that the current one ends in; or NO_CALL.
 */
static __always_inline int call_inside(struct task_struct *task)
{
	struct pt_regs *regs;
	long id;

	if (!HAS_REGISTERS)
		return NO_CALL;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	id = regs->orig_ax;
	/* Interrupted in user space, it is negative: none, or an interrupt's number. */
	return id < 0 ? NO_CALL : call_of(task, id);
}

/* Books what came before `at` to the side the thread was on, and has it in the call from then on.
 */
static __always_inline void enter_untraced(struct thread *t, int call, u64 at)
{
	if (call == NO_CALL)
		return;
	if (at != t->last_ns)
		close_span(t, at);
	t->call = call;
	t->in_call = true;
}

static __always_inline bool is_pending(struct task_struct *task, int signal)
{
	return task->pending.signal.sig[0] >> (signal - 1) & 1;
}

static __always_inline bool is_killed(struct task_struct *task)
{
	return is_pending(task, SIGKILL);
}

/* Whether seccomp has ended the task for a call. */
static __always_inline bool is_dead(struct task_struct *task)
{
	return bpf_core_field_exists(task->seccomp.mode) && task->seccomp.mode == SECCOMP_MODE_DEAD;
}
