/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Which processes are watched that run already, or begin elsewhere: by id, name and cgroup. */

#define MOST_NAMES 64
/* Sizes are set by user space before loading. */
ROWS(selected_pids, u32, u32);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct glob);
} selected_names SEC(".maps");

/* A process has a selected name: the kernel's, or that of the file it runs. */
__noinline int is_named(u64 leader, u64 mm)
{
	struct matched_name comm = {}, file = {};
	const struct glob *glob;

	bpf_probe_read_kernel_str(comm.text, COMM_LEN, &((struct task_struct *)leader)->comm);
	bpf_probe_read_kernel_str(
		file.text, sizeof(file.text),
		BPF_CORE_READ((struct mm_struct *)mm, exe_file, f_path.dentry, d_name.name));
	for (u32 i = 0; i < MOST_NAMES; i++) {
		u32 at = i;

		glob = bpf_map_lookup_elem(&selected_names, &at);
		if (!glob)
			break;
		if (matches(glob, &comm) || matches(glob, &file))
			return 1;
	}
	return 0;
}

#ifdef CGROUPS
#include "cgroups.bpf.h"
#else
static __always_inline bool is_in_cgroup(struct task_struct *task)
{
	return false;
}
#endif

/* By itself: not as a descendant. Ids are good only while the first are gathered: later they may be
 * another's. */
static __always_inline bool is_selected(struct task_struct *task, u32 tgid)
{
	if (tgid == knobs.self_tgid || !pid_of(task))
		return false;
	if (knobs.selects & BY_PID && adoption.stage == GATHERING &&
	    bpf_map_lookup_elem(&selected_pids, &tgid))
		return true;
	/* Read as numbers, which functions that are not static may be passed. */
	if (knobs.selects & BY_NAME &&
	    is_named((u64)BPF_CORE_READ(task, group_leader), (u64)BPF_CORE_READ(task, mm)))
		return true;
	return is_in_cgroup(task);
}

/* What `adopt` looks for. */
static __always_inline bool is_asked_for(struct task_struct *task, u32 tgid)
{
	struct task_struct *maker;

	if (adoption.tid)
		return pid_of(task) == adoption.tid;
	if (adoption.launcher)
		return tgid == adoption.launcher;
	if (knobs.whole_machine)
		return tgid != knobs.self_tgid;
	/* Iotomy has been found itself, to measure its overhead. */
	if (tgid == knobs.self_tgid)
		return false;
	if (is_selected(task, tgid) || image_found(task))
		return true;
	maker = BPF_CORE_READ(task, real_parent);
	return !(knobs.selects & ONLY) && tgid_of(maker) != knobs.self_tgid && image_found(maker);
}
