/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Processes: the images they were found with, and the images whose rings the threads of io_uring in
 * them work for. Written by the programs of trace.bpf.c, read by those of others that are given the
 * same maps.
 *
 * The process's image is found by its id, not by its first thread: the verifier takes a
 * millisecond for each load of a task that it is to trust (fields.bpf.h).
 */
#ifndef IOTOMY_OWNERS_BPF_H
#define IOTOMY_OWNERS_BPF_H

#include "ids.bpf.h"

/* By process. Sizes are set by user space before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct found);
} attached_images SEC(".maps");

/* By process: the image that made a ring, or whose request a worker has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct found);
} ring_owners SEC(".maps");

/* When the task's process began, by which one is told from another of the same id. */
static __always_inline u64 began(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_time);
}

/* The image that the task's process was found with, if it was. */
static __always_inline u32 *image_found(struct task_struct *task)
{
	u32 tgid = tgid_of(task);
	struct found *found = bpf_map_lookup_elem(&attached_images, &tgid);

	return found && found->began == began(task) ? &found->image : NULL;
}

/* The image that one of these threads works for; 0 where it is not watched. */
static __always_inline u32 ring_owner(struct task_struct *task)
{
	u32 tgid = task->tgid, *attached;
	struct found *found = bpf_map_lookup_elem(&ring_owners, &tgid);

	if (found && found->began == began(task))
		return found->image;
	attached = image_found(task);
	return attached ? *attached : 0;
}

#endif
