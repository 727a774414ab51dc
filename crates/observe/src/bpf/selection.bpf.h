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

/*
 * A selected name matches the kernel's text at an address. One text at a time: before Linux 6.13
 * the stacks of functions that call each other may have 512 bytes in all.
 */
__noinline int matches_selected(u64 text, bool is_comm)
{
	struct matched_name name = {};
	const struct glob *glob;

	if (is_comm)
		bpf_probe_read_kernel_str(name.text, COMM_LEN, (void *)text);
	else
		bpf_probe_read_kernel_str(name.text, sizeof(name.text), (void *)text);
	for (u32 i = 0; i < MOST_NAMES; i++) {
		u32 at = i;

		glob = bpf_map_lookup_elem(&selected_names, &at);
		if (!glob)
			break;
		if (matches(glob, &name))
			return 1;
	}
	return 0;
}

/* A process has a selected name: the kernel's, or that of the file it runs. */
static __always_inline bool is_named(struct task_struct *task)
{
	/* Addresses as numbers, which functions that are not static may be passed. */
	u64 leader = (u64)BPF_CORE_READ(task, group_leader);
	u64 file = (u64)BPF_CORE_READ(task, mm, exe_file, f_path.dentry, d_name.name);

	return matches_selected((u64) & ((struct task_struct *)leader)->comm, true) ||
	       matches_selected(file, false);
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
	if (knobs.selects & BY_NAME && is_named(task))
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
