/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What is kept of a thread, in one row: its time on a CPU, and its variables that are integers
 * without keys. A row is made when it is first needed, and freed with the thread.
 *
 * Clauses are passed the row of the thread that they fire in, or none: what they have of it costs
 * no call then. What fires with the scheduler's lock held makes no row on older kernels; programs
 * with such probes have their variables among those with keys (points.rs).
 *
 * Where the kernel has no storage by task, rows are in a hash: by the task's address, or by the
 * number of the thread that user space gives a firing.
 */

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_row);
} threads SEC(".maps");

static const struct thread_row no_thread;

/* The row of the firing's thread, if there is one. */
static __always_inline struct thread_row *thread_row(struct machine *m, struct task_struct *task)
{
	u64 key = m->thread;

	if (!knobs.keeps_threads)
		return NULL;
	if (!KERNEL_HAS(TASK_STORAGE))
		return bpf_map_lookup_elem(&threads, &key);
	if (!UNTRUSTED(struct task_struct, task)->bpf_storage)
		return NULL;
	return bpf_task_storage_get(&threads, task, NULL, 0);
}

static __always_inline struct thread_row *made_thread_row(struct machine *m)
{
	u64 key = m->thread;

	if (KERNEL_HAS(TASK_STORAGE))
		return bpf_task_storage_get(&threads, bpf_get_current_task_btf(),
					    (void *)&no_thread, BPF_LOCAL_STORAGE_GET_F_CREATE);
	bpf_map_update_elem(&threads, &key, &no_thread, BPF_NOEXIST);
	return bpf_map_lookup_elem(&threads, &key);
}

/* The variable of a thread that had no row when the clause began. */
__noinline u64 d_load_of_thread(struct machine *m, u64 number)
{
	struct thread_row *row;

	if (!m)
		return 0;
	row = thread_row(m, bpf_get_current_task_btf());
	return row ? row->words[number & (THREAD_WORDS - 1)] : 0;
}

/* Gives a variable of the thread a value, for which it takes so many bytes; 0 frees it. */
__noinline int d_store_of_thread(struct machine *m, struct thread_row *row, u64 number, u64 value,
				 u64 bytes)
{
	u64 before;

	if (!m)
		return 0;
	number &= THREAD_WORDS - 1;
	if (!row)
		row = thread_row(m, bpf_get_current_task_btf());
	before = row ? row->words[number] : 0;
	if (value && !before && !take_room(bytes))
		return 0;
	if (value && !row) {
		row = made_thread_row(m);
		if (!row) {
			free_room(bytes);
			count(&counters.dropped_variables);
		}
	}
	if (!row)
		return 0;
	row->words[number] = value;
	if (value && !before)
		row->bytes += bytes;
	if (before && !value) {
		row->bytes -= bytes;
		free_room(bytes);
	}
	return 0;
}

/* By CPU: the thread that runs there since a time, and what the kernel had booked of it then. */
struct turn {
	u64 task;
	u64 began_ns;
	u64 booked_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct turn);
} turns SEC(".maps");

/*
 * How long the current thread has been on a CPU so far. The kernel books it at ticks and when the
 * thread leaves its CPU; of a thread that has been there since before the program ran, what it has
 * booked is all that is known.
 */
static __always_inline u64 ran_ns(struct task_struct *task, u64 now)
{
	u32 zero = 0;
	struct turn *turn = bpf_map_lookup_elem(&turns, &zero);

	if (turn && turn->task == (u64)task)
		return turn->booked_ns + now - turn->began_ns;
	return BPF_CORE_READ(task, se.sum_exec_runtime);
}

/*
 * vtimestamp: nanoseconds that the thread has been on a CPU. From its first reading on, they are of
 * our own clock: the kernel's time leaves interrupts out, and may be behind what was read before.
 */
__noinline int d_vtimestamp(struct machine *m, struct thread_row *row)
{
	struct task_struct *task;
	u64 value = 0, now;

	if (!m)
		return 0;
	task = (void *)m->task;
	m->present[FACT_VTIMESTAMP] = 1;
	/* Of a thread that comes back, the kernel has it. */
	if (m->is_other) {
		m->facts[FACT_VTIMESTAMP] = BPF_CORE_READ(task, se.sum_exec_runtime);
		return 0;
	}
	if (!row)
		row = made_thread_row(m);
	now = bpf_ktime_get_ns();
	if (row && !row->base_ns) {
		row->base_ns = now - ran_ns(task, now);
		row->off_ns = 0;
		row->out_ns = 0;
	}
	if (row)
		value = now - row->base_ns - row->off_ns;
	m->facts[FACT_VTIMESTAMP] = value;
	return 0;
}

/* The row of a thread that leaves its CPU, or comes back. */
static __always_inline struct thread_row *switched_row(struct task_struct *task)
{
	if (KERNEL_HAS(TASK_STORAGE) && !UNTRUSTED(struct task_struct, task)->bpf_storage)
		return NULL;
	return task_row(&threads, task);
}

/* Who runs on this CPU from now on; the time that threads are off their CPUs, of those that have a
 * row. */
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct thread_row *row = switched_row(prev);
	u64 now = bpf_ktime_get_ns();
	u32 zero = 0;
	struct turn *turn = bpf_map_lookup_elem(&turns, &zero);

	if (turn) {
		turn->task = (u64)next;
		turn->began_ns = now;
		turn->booked_ns = BPF_CORE_READ(next, se.sum_exec_runtime);
	}
	if (row)
		row->out_ns = now;
	row = switched_row(next);
	if (row && row->out_ns) {
		row->off_ns += now - row->out_ns;
		row->out_ns = 0;
	}
	return 0;
}

/* The variables of a thread end with it: their room is that of others. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(give_back, struct task_struct *task)
{
	struct thread_row *row = task_row(&threads, task);

	if (row)
		free_room(row->bytes);
	return 0;
}
