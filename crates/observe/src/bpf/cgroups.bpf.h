/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Processes that are selected by their control groups. In an object of its own: to find the places
 * of these structs in the running kernel takes milliseconds, which only those pay who select so.
 */
#include "cgroup_membership.bpf.h"

/* A process is moved: into a selected cgroup? */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(cgroup_attach_task, struct cgroup *to, const char *path, struct task_struct *task)
{
	if (ended_ns || adoption.stage != FOLLOWING || watched(task))
		return 0;
	if (is_selected_cgroup((u64)BPF_CORE_READ(to, self.cgroup)))
		announce_newcomer();
	return 0;
}
