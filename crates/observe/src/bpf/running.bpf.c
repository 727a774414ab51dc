// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * Knows which of some threads are blocked, in the kernel, and tells user space
 * when one of them blocks or is woken, as long as that is wanted.
 *
 * Hooks: the BTF-typed raw tracepoints sched_switch and sched_wakeup, and two
 * programs run by user space: `join` marks the thread that runs it, `ring` ends
 * the wait of the thread that listens.
 *
 * A switch or wake-up of the machine costs a look-up in task storage, one of a
 * marked thread a store besides. The kernel takes the marks of threads that
 * end. A notice that finds no room is one more of those that are not yet read.
 */
#include "types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define MOST_THREADS 4096

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} slots SEC(".maps");

/* Whether the thread of a slot is blocked. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_THREADS);
	__type(key, u32);
	__type(value, u32);
} blocked SEC(".maps");

/* Whether user space is to be told. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} wanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} bell SEC(".maps");

struct join_args {
	u32 slot;
};

static void tell(void)
{
	u32 zero = 0;

	bpf_ringbuf_output(&bell, &zero, sizeof(zero), BPF_RB_FORCE_WAKEUP);
}

static void set_blocked(struct task_struct *task, u32 is_blocked)
{
	u32 *slot = bpf_task_storage_get(&slots, task, NULL, 0);
	u32 *is_wanted, *state, zero = 0;

	if (!slot)
		return;
	state = bpf_map_lookup_elem(&blocked, slot);
	if (!state || *state == is_blocked)
		return;
	*state = is_blocked;
	is_wanted = bpf_map_lookup_elem(&wanted, &zero);
	if (is_wanted && *is_wanted)
		tell();
}

SEC("syscall")
int join(struct join_args *args)
{
	u32 none = 0, *slot;

	slot = bpf_task_storage_get(&slots, bpf_get_current_task_btf(), &none,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!slot)
		return 1;
	*slot = args->slot;
	return 0;
}

SEC("syscall")
int ring(void *ctx)
{
	tell();
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	if (!preempt && prev_state)
		set_blocked(prev, 1);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	set_blocked(task, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
