/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Ids of processes and threads in iotomy's own namespace, which are those that user space has and
 * shows. The kernel's own `pid` and `tgid` are compared with each other, never with one of these.
 */
#ifndef IOTOMY_IDS_BPF_H
#define IOTOMY_IDS_BPF_H

#include "fields.bpf.h"

/* Iotomy's own namespace of process ids, and how deep it is: found by a program that iotomy itself
 * runs. */
struct {
	u64 namespace;
	u64 level;
} sight SEC(".data.sight");

static __always_inline u64 upid_at(u64 pid, u64 level)
{
	return pid + bpf_core_field_offset(struct pid, numbers) +
	       level * bpf_core_type_size(struct upid);
}

static __always_inline u64 namespace_at(u64 upid)
{
	u64 namespace = 0;

	bpf_probe_read_kernel(&namespace, sizeof(namespace),
			      (void *)(upid + bpf_core_field_offset(struct upid, ns)));
	return namespace;
}

static __always_inline void find_sight(void)
{
	u64 pid = (u64)BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid);

	sight.level = BPF_CORE_READ((struct pid *)pid, level);
	sight.namespace = namespace_at(upid_at(pid, sight.level));
}

/* An id as iotomy's own namespace numbers it; 0 when it is outside. */
static __always_inline u32 number_of(struct pid *pid)
{
	u64 upid;
	int nr = 0;

	if (!pid || BPF_CORE_READ(pid, level) < sight.level)
		return 0;
	upid = upid_at((u64)pid, sight.level);
	if (sight.level && namespace_at(upid) != sight.namespace)
		return 0;
	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)(upid + bpf_core_field_offset(struct upid, nr)));
	return nr;
}

/* A task's id there. */
static __always_inline u32 pid_of(struct task_struct *task)
{
	if (!sight.level)
		/* Not by a load: the verifier wants each to have one kind of pointer. */
		return BPF_CORE_READ(task, pid);
	return number_of(BPF_CORE_READ(task, thread_pid));
}

static __always_inline u32 tgid_of(struct task_struct *task)
{
	return sight.level ? pid_of(BPF_CORE_READ(task, group_leader)) : BPF_CORE_READ(task, tgid);
}

#endif
