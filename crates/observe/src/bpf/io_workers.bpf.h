/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The threads that io_uring makes in a process to work for it: workers, and submission threads.
 * They make no calls and have no books; what they ran is read when they end, or the watch does.
 */

ROWS(ring_threads, u64,
     u64);		    /* by task: what of its run time is booked, or came before the watch */
ROWS(ring_times, u32, u64); /* by image */

/* The current process has such threads, or may have them soon. */
static __always_inline void note_ring_owner(u32 image)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct found found = {.image = image, .began = began(task)};
	u32 tgid = task->tgid;

	if (bpf_map_update_elem(&ring_owners, &tgid, &found, BPF_ANY))
		lose();
}

/* One that may have been there when its process was found, which may be visited again. */
static __always_inline void meet_ring_thread(struct task_struct *task)
{
	u64 key = (u64)task, ran = task->se.sum_exec_runtime;
	struct image *image = image_of(ring_owner(task));

	if (!knobs.has_rings || !image || BPF_CORE_READ(task, start_time) >= image->start_ns)
		return;
	if (bpf_map_update_elem(&ring_threads, &key, &ran, BPF_NOEXIST) &&
	    !bpf_map_lookup_elem(&ring_threads, &key))
		lose();
}

/*
 * Whether a task that ends was one. Before Linux 6.6 a worker takes the flag from itself when it
 * leaves; its name stays.
 */
static __always_inline bool was_ring_thread(struct task_struct *task)
{
	const u64 worker = 0x2d6b72772d756f69; /* "iou-wrk-" */
	u64 name = 0;

	if (task->flags & PF_IO_WORKER)
		return true;
	bpf_probe_read_kernel(&name, sizeof(name), task->comm);
	return name == worker;
}

/* Books what it has run since it was booked last. Both its last switch and `settle` may do so. */
static __always_inline void book_ring_thread(struct task_struct *task)
{
	u64 key = (u64)task, ran = task->se.sum_exec_runtime, none = 0, *booked, *time;
	u32 image = knobs.has_rings ? ring_owner(task) : 0;

	if (!image)
		return;
	time = row(&ring_times, &image, &none);
	if (!time)
		return;
	booked = bpf_map_lookup_elem(&ring_threads, &key);
	ADD(*time, booked ? ran - *booked : ran);
	if (!ended_ns)
		bpf_map_delete_elem(&ring_threads, &key);
	else if (bpf_map_update_elem(&ring_threads, &key, &ran, BPF_ANY))
		lose();
}
