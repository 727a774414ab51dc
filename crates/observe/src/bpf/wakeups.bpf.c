// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * Counts how often some sleeping tasks are woken, in the kernel.
 *
 * Hooks: the BTF-typed raw tracepoint sched_wakeup, and a task iterator run by user space: `mark`
 * marks the children that the process which runs it has at that time.
 *
 * A wake-up of the machine costs a look-up in task storage, one of a marked task an atomic
 * addition besides. Nothing is emitted. The kernel takes the marks of tasks that end.
 */
#include "types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} marks SEC(".maps");

struct {
	u64 wakeups;
	u64 marked;
	u64 unmarked; /* children that found no room for a mark */
} counters;

SEC("iter/task")
int mark(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || task->real_parent->tgid != bpf_get_current_task_btf()->tgid)
		return 0;
	if (bpf_task_storage_get(&marks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		__sync_fetch_and_add(&counters.marked, 1);
	else
		__sync_fetch_and_add(&counters.unmarked, 1);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	if (bpf_task_storage_get(&marks, task, NULL, 0))
		__sync_fetch_and_add(&counters.wakeups, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
