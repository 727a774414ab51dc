/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What this kernel has refused, set by the loader before the programs are loaded again: a bit each.
 * The numbers are those of `FEATURES` (features.rs). Constants to the verifier, which removes the
 * branches that call what is not there.
 */
#ifndef IOTOMY_WITHOUT_BPF_H
#define IOTOMY_WITHOUT_BPF_H

#define TASK_STORAGE 1
#define RING_BUFFERS 2
#define STACK_TABLES 3
#define QUEUES	     4
#define LOOPS	     8
#define REGISTERS    9
#define MAPPED_AT    10
#define EACH_ROW     12
#define DATA_READY   23

const volatile u32 without SEC(".rodata.without");

#define KERNEL_HAS(feature) (!(without >> (feature)&1))

/*
 * A task's row in a table of task storage, which is a hash by the task's address where the kernel
 * has no such storage.
 */
static __always_inline void *task_row(void *table, struct task_struct *task)
{
	u64 key;

	if (KERNEL_HAS(TASK_STORAGE))
		return bpf_task_storage_get(table, task, NULL, 0);
	key = (u64)task;
	return bpf_map_lookup_elem(table, &key);
}

/* The same, made as `fresh` where it is not there yet. */
static __always_inline void *made_task_row(void *table, struct task_struct *task, const void *fresh)
{
	void *row;
	u64 key;

	if (KERNEL_HAS(TASK_STORAGE))
		return bpf_task_storage_get(table, task, (void *)fresh,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	key = (u64)task;
	row = bpf_map_lookup_elem(table, &key);
	if (row)
		return row;
	bpf_map_update_elem(table, &key, fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(table, &key);
}

/* Frees the rows of a task that is freed, which the kernel does where it has the storage. */
#define FORGET_TASK                      \
	SEC("tp_btf/sched_process_free") \
	int BPF_PROG(forget, struct task_struct *task)

static __always_inline void forget_row(void *table, struct task_struct *task)
{
	u64 key = (u64)task;

	bpf_map_delete_elem(table, &key);
}

#endif
