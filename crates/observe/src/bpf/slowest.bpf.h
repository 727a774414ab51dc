/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The calls that took longest, whole. They are in one table for all CPUs, under a lock: which of
 * them is the least is written beside it, so that only a call that belongs there takes the lock.
 * Of a watch that keeps its last stretch only, user space takes them from time to time: calls are
 * kept in the other of two tables from then on.
 */

#ifdef DETAILS

struct slowest {
	struct bpf_spin_lock lock;
	u32 count;
	u64 keys[SLOWEST];
	struct slow_call calls[SLOWEST];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct slowest);
} slowest SEC(".maps");

/* In two parts: the compiler copies no more than 1,024 bytes at once, and no helper may under a
 * lock.
 */
static __always_inline void copy_call(struct slow_call *to, const struct slow_call *from)
{
	__builtin_memcpy(to, from, __builtin_offsetof(struct slow_call, on_top));
	__builtin_memcpy(&to->on_top, &from->on_top,
			 sizeof(*to) - __builtin_offsetof(struct slow_call, on_top));
}

/* A call that took no longer than this is not in that table: none is before the watch begins. */
u64 slow_floor[2] SEC(".data.slow_floor") = {-1ULL, -1ULL};

/* The table that calls are kept in. */
u32 slow_turn SEC(".data.slow_turn");

static __always_inline bool has_begun(void)
{
	return slow_floor[0] != -1ULL;
}

static __always_inline bool is_slow(u64 wall_ns)
{
	return knobs.slowest && wall_ns > slow_floor[slow_turn & 1];
}

/* Which kind of a task's or of no task's work goes on: from the count that the kernel keeps. */
extern const int __preempt_count __ksym __weak;
extern const struct pcpu_hot pcpu_hot __ksym __weak;

static __always_inline u32 context(void)
{
	int count;

	if (&__preempt_count)
		count = *(int *)bpf_this_cpu_ptr(&__preempt_count);
	else if (&pcpu_hot)
		count = ((struct pcpu_hot *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count;
	else
		return IN_UNKNOWN;
	if (count & 0xff0000)
		return IN_INTERRUPT;
	return count & 0x100 ? IN_SOFTIRQ : IN_TASK;
}

/* Notes who wakes a watched thread. The other tracepoint may come on the CPU it is to run on. */
static __always_inline int note_waker(struct task_struct *task, u32 context)
{
	struct thread *t = watched(task);
	struct task_struct *waker;

	if (!t || !t->out_ns || ended_ns)
		return 0;
	waker = bpf_get_current_task_btf();
	t->waker_call = NO_CALL;
	if (!(waker->flags & PF_KTHREAD))
		t->waker_call = call_inside(waker);
	/* A program outside any call was interrupted there, as the idle task was. */
	if (context == IN_UNKNOWN &&
	    (!waker->pid ||
	     (HAS_REGISTERS && !(waker->flags & PF_KTHREAD) && t->waker_call == NO_CALL)))
		context = IN_INTERRUPT;
	t->waker_context = context;
	t->waker_tid = pid_of(waker);
	BPF_CORE_READ_STR_INTO(&t->waker, waker, comm);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	return note_waker(task, context());
}

/* The same for kernels that do not give the address of that count. */
SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking_unknown, struct task_struct *task)
{
	return note_waker(task, IN_UNKNOWN);
}

/*
 * A place's time, with its number in the lower byte. It is read from memory, so that the verifier
 * cannot tell the ways through the loop apart. Returns the place of the call's stack, + 1; 0: the
 * call is not kept.
 */
__noinline int put_slow(const struct slow_call *slow)
{
	u64 least = -1ULL, next = -1ULL, key;
	u32 turn = slow_turn & 1, at, kept = 0;
	struct slowest *table;

	table = bpf_map_lookup_elem(&slowest, &turn);
	if (!table || !slow)
		return 0;
	bpf_spin_lock(&table->lock);
	at = table->count;
	if (at < knobs.slowest) {
		table->count = at + 1;
		least = 0;
	} else {
		for (u32 i = 0; i < SLOWEST; i++) {
			if (i >= knobs.slowest)
				break;
			key = table->keys[i];
			if (key < least) {
				next = least;
				least = key;
			} else if (key < next) {
				next = key;
			}
		}
		at = least & 0xff;
		next >>= 8;
		slow_floor[turn & 1] = slow->wall_ns < next ? slow->wall_ns : next;
	}
	if (at < SLOWEST && slow->wall_ns > least >> 8) {
		table->keys[at] = slow->wall_ns << 8 | at;
		copy_call(&table->calls[at], slow);
		kept = turn * knobs.slowest + at + 1;
	}
	bpf_spin_unlock(&table->lock);
	return kept;
}

/* Notes the file behind the call's descriptor, or the path that it is given. */
static __always_inline void note_object(struct slow_call *slow, struct scratch *s, struct given *of,
					u32 descriptor)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file;

	__builtin_memset(&slow->file, 0, sizeof(slow->file));
	__builtin_memset(&slow->directory, 0, sizeof(slow->directory));
	slow->length = 0;
	slow->text[0] = 0;
	if (of->text || of->executed) {
		take_path(of);
		slow->directory = s->path.directory;
		slow->length = s->path.length;
		bpf_probe_read_kernel_str(slow->text, PATH_TEXT, s->path.text);
	} else if (descriptor != -1U) {
		file = file_of(task, descriptor);
		if (file)
			note_place(&slow->file, BPF_CORE_READ(file, f_path.dentry),
				   BPF_CORE_READ(file, f_path.mnt));
	}
}

/* Not static: so the verifier looks at it once. */
__noinline int note_whole(struct thread *t, struct slow_call *slow, struct given *of,
			  u32 descriptor)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *s = scratch();

	if (!t || !slow || !of || !s)
		return 0;
	note_object(slow, s, of, descriptor);
	slow->tid = pid_of(task);
	slow->call = t->call;
	BPF_CORE_READ_STR_INTO(&slow->comm, task, comm);
	slow->waker_context = IN_NOTHING;
	if (slow->blocked_ns) {
		slow->waker_context = t->waker_context;
		slow->waker_tid = t->waker_tid;
		slow->waker_call = t->waker_call;
		__builtin_memcpy(slow->waker, t->waker, COMM_LEN);
	}
	return 0;
}

/* The argument that is the call's descriptor, + 1; 0: none is. */
static __always_inline u8 descriptor_argument(struct thread *t)
{
	u32 number = t->call & CALL_NUMBER;

	return number > 511 ? 0 : knobs.descriptors[t->call & CALL_I386 ? 1 : 0][number];
}

static __always_inline bool is_idle_wait(struct thread *t, struct pt_regs *regs)
{
	u8 at = descriptor_argument(t);

	if (at == NOT_KEPT || !(at & IDLE_WAIT))
		return false;
	return !(at & WAIT_COUNT) || wide_argument(regs, t->call, (at & ARGUMENT) - 1);
}

static __always_inline u64 wall_of_call(struct thread *t, u64 now)
{
	return now - t->last_ns + (t->call_thread ? t->wall_before_ns : 0);
}

/* The call that is about to be counted, whole; or NULL. */
static __always_inline struct slow_call *
whole_call(void *ctx, struct thread *t, struct pt_regs *regs, u64 now, long ret, long bytes)
{
	struct slow_call *slow;
	struct given of = {};
	long bytes_of_stack;
	struct scratch *s;
	u32 how;
	u8 at;

	at = descriptor_argument(t);
	if (at == NOT_KEPT)
		return NULL;
	at = at & WAIT_COUNT ? 0 : at & ARGUMENT;
	s = scratch();
	if (!s)
		return NULL;
	slow = &s->slow;
	slow->end_ns = now;
	slow->wall_ns = wall_of_call(t, now);
	slow->off_ns = t->off_ns - t->off_at_last_ns;
	slow->blocked_ns = t->blocked_ns - t->blocked_at_last_ns;
	slow->image = t->image;
	if (t->call_thread) {
		slow->off_ns += t->call_off_before_ns;
		slow->blocked_ns += t->call_blocked_before_ns;
		slow->image = t->call_image;
	}
	if (!slow->image)
		return NULL;
	slow->ret = ret;
	slow->bytes = bytes;
	for (u32 i = 0; i < 6; i++)
		slow->args[i] = wide_argument(regs, t->call, i);
	how = paths_of_call(t);
	of.directory = AT_FDCWD;
	if (how)
		name_path(t, &of, regs, how & 0xff, ret);
	note_whole(t, slow, &of, at ? wide_argument(regs, t->call, at - 1) : -1);
	slow->callers = 0;
	s->registers[USER_IP] = 0;
	/* Of a program that was executed nothing has called. */
	if (t->call & CALL_I386 || of.executed)
		return slow;
	bytes_of_stack = bpf_get_stack(ctx, s->frames, sizeof(s->frames), BPF_F_USER_STACK);
	if (bytes_of_stack <= 0)
		return slow;
	slow->callers = bytes_of_stack / sizeof(u64);
	note_callers(slow, regs->sp);
	keep_registers(s, regs);
	return slow;
}

/* The call that is about to be counted, if it is one of the slowest so far. */
static __always_inline void note_slow(void *ctx, struct thread *t, struct pt_regs *regs, u64 now,
				      long ret, long bytes)
{
	struct slow_call *slow;

	if (!is_slow(wall_of_call(t, now)) || !wants(t, t->call) || is_idle_wait(t, regs))
		return;
	slow = whole_call(ctx, t, regs, now, ret, bytes);
	if (slow)
		copy_stack(put_slow(slow));
}

#else

static __always_inline bool is_slow(u64 wall_ns)
{
	return false;
}

static __always_inline void note_slow(void *ctx, struct thread *t, struct pt_regs *regs, u64 now,
				      long ret, long bytes)
{
}

#endif
