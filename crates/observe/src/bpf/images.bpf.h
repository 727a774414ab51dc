/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Program images: their rows, and who is in them. */

static __always_inline struct image *image_of(u32 id)
{
	return bpf_map_lookup_elem(&images, &id);
}

static __always_inline u32 new_image(struct task_struct *task, u32 origin, u64 now)
{
	u32 id = __sync_fetch_and_add(&counters.last_image, 1) + 1;
	struct image fresh = {};

	fresh.pid = tgid_of(task);
	fresh.ppid = tgid_of(BPF_CORE_READ(task, real_parent));
	fresh.origin = origin;
	fresh.threads = 1;
	fresh.live = 1;
	fresh.start_ns = now;
	if (bpf_map_update_elem(&images, &id, &fresh, BPF_NOEXIST)) {
		lose();
		return 0;
	}
	return id;
}

static __always_inline void join_image(u32 id)
{
	struct image *image = image_of(id);

	if (!image)
		return;
	__sync_fetch_and_add(&image->threads, 1);
	__sync_fetch_and_add(&image->live, 1);
}

/* Takes back a thread that is watched already, or cannot be. */
static __always_inline void quit_image(u32 id)
{
	struct image *image = image_of(id);

	if (!image)
		return;
	__sync_fetch_and_sub(&image->threads, 1);
	__sync_fetch_and_sub(&image->live, 1);
}

static __always_inline void note_attached(u32 image, u32 tgid, struct task_struct *task)
{
	struct attached fresh = {.pid = tgid};

	BPF_CORE_READ_STR_INTO(&fresh.comm, task, group_leader, comm);
	bpf_map_update_elem(&attached, &image, &fresh, BPF_ANY);
}

/* The image of a process that was running when the watch began. Several of its threads may ask. */
static __always_inline u32 attach_image(struct task_struct *task, u64 now)
{
	u32 tgid = tgid_of(task), image = new_image(task, 0, now), *known;
	struct found found = {.image = image, .began = began(task)};

	if (!image)
		return 0;
	if (!bpf_map_update_elem(&attached_images, &tgid, &found, BPF_NOEXIST)) {
		note_attached(image, tgid, task);
		return image;
	}
	known = image_found(task);
	if (!known) {
		/* It is of one that had the same id. */
		if (bpf_map_update_elem(&attached_images, &tgid, &found, BPF_EXIST))
			lose();
		else
			note_attached(image, tgid, task);
		return image;
	}
	bpf_map_delete_elem(&images, &image);
	join_image(*known);
	return *known;
}

static __always_inline void leave_image(u32 id)
{
	struct image *image = image_of(id);

	if (image)
		__sync_fetch_and_sub(&image->live, 1);
}

/* Nothing will be added to the rows of this thread any more: they may be taken and freed. */
static __always_inline void announce(u32 thread)
{
	u64 flags = BPF_RB_NO_WAKEUP;
	struct death death = {.thread = thread};

	if (!KERNEL_HAS(RING_BUFFERS))
		return;
	if (!counters.live_threads || bpf_ringbuf_query(&deaths, BPF_RB_AVAIL_DATA) > WAKE_BYTES)
		flags = BPF_RB_FORCE_WAKEUP;
	bpf_ringbuf_output(&deaths, &death, sizeof(death), flags);
}

/* Tells user space to run `adopt` again. */
static __always_inline void announce_newcomer(void)
{
	struct death nobody = {};

	if (KERNEL_HAS(RING_BUFFERS))
		bpf_ringbuf_output(&deaths, &nobody, sizeof(nobody), BPF_RB_FORCE_WAKEUP);
}
