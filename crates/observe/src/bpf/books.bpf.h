/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* A thread's books: its time by side, and what its image is given of it in the end. */

/* What a task had read from storage; 0 where the kernel does not count it. */
static __always_inline u64 storage_read_bytes(struct task_struct *task)
{
	return bpf_core_field_exists(task->ioac.read_bytes) ? task->ioac.read_bytes : 0;
}

/* The task's own counters, from which an image counts what happened in it. */
static __always_inline void take_baseline(struct thread *t, struct task_struct *task)
{
	t->utime_ns = task->utime;
	t->stime_ns = task->stime;
	t->runtime_ns = task->se.sum_exec_runtime;
	t->minor_faults = task->min_flt;
	t->major_faults = task->maj_flt;
	t->voluntary_switches = task->nvcsw;
	t->involuntary_switches = task->nivcsw;
	t->storage_read_bytes = storage_read_bytes(task);
}

static __always_inline void come_back(struct thread *t, u64 now)
{
	u64 woken = t->woken_ns, slept;

	if (t->slept) {
		/* A sleep whose end was not seen lasted until now. */
		if (woken < t->out_ns || woken > now)
			woken = now;
		slept = woken - t->out_ns;
		t->blocked_ns += slept;
		if (t->sleep == IN_FAULT)
			t->fault_ns += slept;
		else if (t->sleep == STOPPED)
			t->stopped_ns += slept;
	}
	t->off_ns += now - t->out_ns;
	t->out_ns = 0;
}

/*
 * A thread runs whose coming back was not traced: some kernels hide the switches of some tasks.
 * How long it has run since is in its run time, exact to a tick.
 */
static __always_inline void come_back_unseen(struct thread *t, struct task_struct *task, u64 now)
{
	u64 ran = task->se.sum_exec_runtime - t->runtime_out_ns;

	come_back(t, now - t->out_ns > ran ? now - ran : t->out_ns);
}

/* What stands at a boundary between user and kernel. */
static __always_inline void note_boundary(struct thread *t)
{
	t->off_at_last_ns = t->off_ns;
	t->blocked_at_last_ns = t->blocked_ns;
	t->left = false;
}

/* Books the time since the last boundary as the side the thread was on. */
static __always_inline void close_span(struct thread *t, u64 now)
{
	u64 span = now - t->last_ns - (t->off_ns - t->off_at_last_ns);

	if (t->in_call)
		t->calls_on_cpu_ns += span;
	else
		t->user_ns += span;
	t->last_ns = now;
	note_boundary(t);
}

/* Resident pages; the kernel's own sum is exact to some 32 pages a CPU. */
static __always_inline u64 resident_pages(struct mm_struct *mm)
{
	u64 high = mm->hiwater_rss, now = 0;
	s64 part;

	if (bpf_core_field_exists(struct mm_struct___before_6_2, rss_stat.count)) {
		struct mm_struct___before_6_2 *old = (void *)mm;

		now += BPF_CORE_READ(old, rss_stat.count[0].counter);
		now += BPF_CORE_READ(old, rss_stat.count[1].counter);
		now += BPF_CORE_READ(old, rss_stat.count[3].counter);
	} else {
		part = mm->rss_stat[0].count;
		now += part > 0 ? part : 0;
		part = mm->rss_stat[1].count;
		now += part > 0 ? part : 0;
		part = mm->rss_stat[3].count;
		now += part > 0 ? part : 0;
	}
	return high > now ? high : now;
}

static __always_inline void note_resident(struct thread *t, struct task_struct *task)
{
	struct image *image = image_of(t->image);
	struct mm_struct *mm = UNTRUSTED(struct task_struct, task)->mm;
	u64 pages;

	if (!image)
		return;
	/* Before Linux 6.16 a task that exits has lost its memory here; its peak is kept. */
	pages = mm ? resident_pages(mm) : UNTRUSTED(struct task_struct, task)->signal->maxrss;
	if (pages > image->max_rss_pages)
		image->max_rss_pages = pages;
}

/*
 * Makes the row of a thread that begins in an image. Where it leaves the image, which may be its
 * last switch, an allocation may fail.
 */
static __always_inline void begin_thread_row(u32 id, u32 image, struct task_struct *task)
{
	struct thread_row fresh = {.image = image};

	if (!knobs.by_thread || !image)
		return;
	fresh.tid = pid_of(task);
	fresh.is_first = task->pid == task->tgid;
	BPF_CORE_READ_STR_INTO(&fresh.comm, task, comm);
	if (bpf_map_update_elem(&thread_rows, &id, &fresh, BPF_ANY))
		lose();
}

static __always_inline void withdraw_thread_row(u32 id)
{
	if (knobs.by_thread)
		bpf_map_delete_elem(&thread_rows, &id);
}

/* How a thread leaves its image. */
enum leaving {
	BY_EXEC, /* which has given the task another name */
	BY_END,
	WITH_THE_WATCH,
};

static __always_inline void settle_thread_row(struct thread *t, struct task_struct *task, u64 now,
					      enum leaving how)
{
	struct thread_row *row;
	u32 id = t->id;

	if (!knobs.by_thread)
		return;
	row = bpf_map_lookup_elem(&thread_rows, &id);
	if (!row)
		return;
	if (how != BY_EXEC)
		BPF_CORE_READ_STR_INTO(&row->comm, task, comm);
	row->has_ended = how != WITH_THE_WATCH;
	row->thread_ns = now - t->start_ns;
	row->user_ns = t->user_ns;
	row->calls_on_cpu_ns = t->calls_on_cpu_ns;
	row->blocked_ns = t->blocked_ns - t->blocked_before_ns;
	row->runnable_ns = t->off_ns - t->off_before_ns - row->blocked_ns;
	row->voluntary_switches = task->nvcsw - t->voluntary_switches;
	row->involuntary_switches = task->nivcsw - t->involuntary_switches;
}

/*
 * Notes the CPUs on which the thread may run in the end. The bits that two threads add to one word
 * at once may get lost, which those of any other thread of these makes good.
 */
static __always_inline void note_allowed_cpus(struct task_struct *task)
{
	void *mask = (void *)task + bpf_core_field_offset(struct task_struct, cpus_mask);
	u32 bytes = bpf_core_type_size(struct cpumask);
	u64 word;

	for (u32 i = 0; i < CPU_WORDS; i++) {
		if (i * 64 >= knobs.cpus || i * 8 >= bytes)
			break;
		if (bpf_probe_read_kernel(&word, sizeof(word), mask + i * 8))
			break;
		if (word & ~allowed_cpus[i])
			allowed_cpus[i] |= word;
	}
}

/* Adds what the thread did in its image to the image's books. */
static __always_inline void settle_thread(struct thread *t, struct task_struct *task, u64 now)
{
	struct image *image = image_of(t->image);
	u64 blocked;

	if (!image)
		return;
	__sync_fetch_and_add(&image->thread_ns, now - t->start_ns);
	__sync_fetch_and_add(&image->user_ns, t->user_ns);
	__sync_fetch_and_add(&image->calls_on_cpu_ns, t->calls_on_cpu_ns);
	blocked = t->blocked_ns - t->blocked_before_ns;
	__sync_fetch_and_add(&image->blocked_ns, blocked);
	__sync_fetch_and_add(&image->runnable_ns, t->off_ns - t->off_before_ns - blocked);
	__sync_fetch_and_add(&image->fault_ns, t->fault_ns);
	__sync_fetch_and_add(&image->stopped_ns, t->stopped_ns);
	__sync_fetch_and_add(&image->calls_left_out, t->left_out + t->passed);
	__sync_fetch_and_add(&image->calls_passed, t->passed);
	__sync_fetch_and_add(&image->utime_ns, task->utime - t->utime_ns);
	__sync_fetch_and_add(&image->stime_ns, task->stime - t->stime_ns);
	__sync_fetch_and_add(&image->runtime_ns, task->se.sum_exec_runtime - t->runtime_ns);
	__sync_fetch_and_add(&image->minor_faults, task->min_flt - t->minor_faults);
	__sync_fetch_and_add(&image->major_faults, task->maj_flt - t->major_faults);
	__sync_fetch_and_add(&image->voluntary_switches, task->nvcsw - t->voluntary_switches);
	__sync_fetch_and_add(&image->involuntary_switches, task->nivcsw - t->involuntary_switches);
	if (bpf_core_field_exists(task->ioac.read_bytes))
		__sync_fetch_and_add(&image->storage_read_bytes,
				     storage_read_bytes(task) - t->storage_read_bytes);
	else
		image->storage_read_bytes = -1ULL;
	image->end_ns = now;
	if (image->pid != knobs.self_tgid) /* not those of the calibration */
		note_allowed_cpus(task);
}
