/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Threads and program images: how they begin, change and end. */

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
}

/* A task's id as iotomy's own namespace numbers it; 0 when it is outside. */
static __always_inline u32 pid_of(struct task_struct *task)
{
	struct pid *pid;
	u64 upid;
	int nr = 0;

	if (!sight)
		return task->pid;
	pid = BPF_CORE_READ(task, thread_pid);
	if (!pid || BPF_CORE_READ(pid, level) < sight)
		return 0;
	upid = (u64)pid + bpf_core_field_offset(struct pid, numbers) +
	       sight * bpf_core_type_size(struct upid) + bpf_core_field_offset(struct upid, nr);
	bpf_probe_read_kernel(&nr, sizeof(nr), (void *)upid);
	return nr;
}

static __always_inline u32 tgid_of(struct task_struct *task)
{
	return sight ? pid_of(task->group_leader) : task->tgid;
}

static __always_inline struct image *image_of(u32 id)
{
	return bpf_map_lookup_elem(&images, &id);
}

static __always_inline u32 new_image(struct task_struct *task, u32 origin, u64 now)
{
	u32 id = __sync_fetch_and_add(&counters.last_image, 1) + 1;
	struct image fresh = {};

	fresh.pid = tgid_of(task);
	fresh.ppid = tgid_of(task->real_parent);
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

/* The image of a process that was running when the watch began. Several of its threads may ask. */
static __always_inline u32 attach_image(struct task_struct *task, u64 now)
{
	u32 tgid = tgid_of(task), image = new_image(task, 0, now);

	u32 *known;

	if (!image || !bpf_map_update_elem(&attached_images, &tgid, &image, BPF_NOEXIST))
		return image;
	known = bpf_map_lookup_elem(&attached_images, &tgid);
	if (!known) {
		lose();
		return image;
	}
	bpf_map_delete_elem(&images, &image);
	join_image(*known);
	return *known;
}

static __always_inline struct thread *watch(struct task_struct *task, u32 image, u64 now)
{
	struct thread *t;

	t = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t && !watched(task))
		lose();
	if (!t || t->id)
		return NULL; /* `adopt` was faster */
	t->id = __sync_fetch_and_add(&counters.last_thread, 1) + 1;
	t->image = image;
	t->start_ns = now;
	t->last_ns = now;
	take_baseline(t, task);
	__sync_fetch_and_add(&counters.live_threads, 1);
	return t;
}

static __always_inline void come_back(struct thread *t, u64 now)
{
	u64 woken = t->woken_ns;

	if (t->slept) {
		/* A sleep whose end was not seen lasted until now. */
		if (woken < t->out_ns || woken > now)
			woken = now;
		t->blocked_ns += woken - t->out_ns;
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
	struct mm_struct *mm = task->mm;
	u64 pages;

	if (!image)
		return;
	/* Before Linux 6.16 a task that exits has lost its memory here; its peak is kept. */
	pages = mm ? resident_pages(mm) : task->signal->maxrss;
	if (pages > image->max_rss_pages)
		image->max_rss_pages = pages;
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
	__sync_fetch_and_add(&image->utime_ns, task->utime - t->utime_ns);
	__sync_fetch_and_add(&image->stime_ns, task->stime - t->stime_ns);
	__sync_fetch_and_add(&image->runtime_ns, task->se.sum_exec_runtime - t->runtime_ns);
	__sync_fetch_and_add(&image->minor_faults, task->min_flt - t->minor_faults);
	__sync_fetch_and_add(&image->major_faults, task->maj_flt - t->major_faults);
	__sync_fetch_and_add(&image->voluntary_switches, task->nvcsw - t->voluntary_switches);
	__sync_fetch_and_add(&image->involuntary_switches, task->nivcsw - t->involuntary_switches);
	image->end_ns = now;
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

	if (!counters.live_threads || bpf_ringbuf_query(&deaths, BPF_RB_AVAIL_DATA) > WAKE_BYTES)
		flags = BPF_RB_FORCE_WAKEUP;
	bpf_ringbuf_output(&deaths, &death, sizeof(death), flags);
}

static __always_inline struct scratch *scratch(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return row(&scratches, &cpu, &no_scratch);
}

static __always_inline bool begins(const char *text, const char *with, u32 length)
{
	for (u32 i = 0; i < length; i++)
		if (text[i] != with[i])
			return false;
	return true;
}

/* Names such as /proc/self/exe and /dev/fd/3 say nothing of the program behind them. */
static __always_inline bool leads_elsewhere(const char *path)
{
	return !path[0] || begins(path, "/proc/", 6) || begins(path, "/dev/fd/", 8);
}

static __always_inline void note_program(u32 image, struct task_struct *task,
					 struct linux_binprm *bprm)
{
	struct scratch *s = scratch();
	struct mm_struct *mm = task->mm;
	unsigned long from, bytes;

	if (!s || !mm)
		return;
	from = mm->arg_start;
	bytes = mm->arg_end - from;
	s->program.argv_bytes = bytes;
	barrier_var(bytes); /* or the compiler checks one copy and passes the other */
	if (bytes > ARGV_LEN)
		bytes = ARGV_LEN;
	s->program.argv[0] = 0;
	if (bpf_probe_read_user(s->program.argv, bytes, (void *)from))
		s->program.argv_bytes = 0;
	s->program.exec[0] = 0;
	bpf_probe_read_kernel_str(s->program.exec, EXEC_LEN, bprm->filename);
	if (leads_elsewhere(s->program.exec))
		bpf_probe_read_kernel_str(s->program.exec, EXEC_LEN,
					  BPF_CORE_READ(mm, exe_file, f_path.dentry, d_name.name));
	if (bpf_map_update_elem(&programs, &image, &s->program, BPF_ANY))
		lose();
}

/* Begins the watch of what user space asked for. */
SEC("iter/task")
int adopt(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 tgid, id, image = 0, *known;
	struct thread *t;
	u64 now;

	if (!task || task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return 0;
	sight = bpf_get_current_task_btf()->thread_pid->level;
	root.dentry = (u64)BPF_CORE_READ(bpf_get_current_task_btf(), fs, root.dentry);
	root.mount = (u64)BPF_CORE_READ(bpf_get_current_task_btf(), fs, root.mnt);
	tgid = tgid_of(task);
	if (adoption.tid) {
		if (pid_of(task) != adoption.tid)
			return 0;
	} else if (adoption.tgid ? tgid != adoption.tgid : tgid == knobs.self_tgid) {
		return 0;
	}
	if (watched(task))
		return 0;
	now = bpf_ktime_get_ns();
	if (!adoption.launcher) {
		known = bpf_map_lookup_elem(&attached_images, &tgid);
		if (known) {
			image = *known;
			join_image(image);
		} else {
			image = attach_image(task, now);
		}
	}
	id = __sync_fetch_and_add(&counters.last_thread, 1) + 1;
	/* Its hot rows are never written to. */
	__builtin_memset(&newcomer, 0, __builtin_offsetof(struct thread, hot));
	newcomer.id = id;
	newcomer.image = image;
	newcomer.start_ns = now;
	newcomer.last_ns = now;
	take_baseline(&newcomer, task);
	newcomer.launcher = adoption.launcher;
	newcomer.newborn = adoption.tid; /* the calibration waits for its start in its own call */
	newcomer.attached = !adoption.tid;
	if (!task->on_cpu) {
		newcomer.out_ns = now;
		newcomer.left = true;
		newcomer.runtime_out_ns = newcomer.runtime_ns;
		newcomer.slept = task->__state != 0;
	}
	t = bpf_task_storage_get(&threads, task, &newcomer, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (t && t->id == id) {
		__sync_fetch_and_add(&counters.live_threads, 1);
		return 0;
	}
	if (!t && !watched(task))
		lose();
	quit_image(image);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct thread *maker = watched(parent), *t;
	u32 image = 0, tgid, *known;
	u64 now;

	if (ended_ns)
		return 0;
	if (!maker && !knobs.whole_machine && (!adoption.tgid || adoption.launcher))
		return 0;
	tgid = tgid_of(parent);
	if (maker) {
		image = maker->image;
		if (maker->launcher)
			return 0;
	} else if ((knobs.whole_machine && tgid != knobs.self_tgid &&
		    !(child->flags & PF_KTHREAD)) ||
		   (adoption.tgid && !adoption.launcher && tgid == adoption.tgid)) {
		/* A thread `adopt` has yet to reach, or has passed by, makes another. */
		known = bpf_map_lookup_elem(&attached_images, &tgid);
		if (known)
			image = *known;
	} else {
		return 0;
	}
	if (watched(child))
		return 0; /* `adopt` was faster */
	now = bpf_ktime_get_ns();
	if (!image)
		/* A watched maker's image found no room: nor has this one, and its calls say so. */
		image = maker ? 0 : attach_image(child, now);
	else if (child->tgid == parent->tgid)
		join_image(image);
	else
		image = new_image(child, image, now);
	t = watch(child, image, now);
	if (!t) {
		quit_image(image);
		return 0;
	}
	t->newborn = true;
	t->out_ns = now;
	t->left = true;
	return 0;
}

/* Starts the books of the image an exec made. */
static __always_inline void enter_image(struct thread *t, struct task_struct *task, u64 now)
{
	bool launched = !t->image;

	/* The launch itself is the first call of the command's first image. */
	t->start_ns = launched && t->in_call ? t->last_ns : now;
	t->image = new_image(task, 0, t->start_ns);
	t->launcher = false;
	if (launched) {
		t->off_before_ns = t->off_at_last_ns;
		t->blocked_before_ns = t->blocked_at_last_ns;
	} else {
		t->id = __sync_fetch_and_add(&counters.last_thread, 1) + 1;
		t->off_before_ns = t->off_ns;
		t->blocked_before_ns = t->blocked_ns;
	}
	t->user_ns = 0;
	t->calls_on_cpu_ns = 0;
	take_baseline(t, task);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct thread *t = watched(task);
	u64 now = bpf_ktime_get_ns();

	if (ended_ns)
		return 0;
	if (!t) {
		if (!knobs.whole_machine || tgid_of(task) == knobs.self_tgid)
			return 0;
		t = watch(task, 0, now);
		if (!t)
			return 0;
	}
	if (t->out_ns)
		/* Else the new image would have time off the CPU from before it began. */
		come_back_unseen(t, task, now);
	if (t->image) {
		if (t->in_call) {
			/* The call is the old image's, its time until here too. */
			t->call_thread = t->id;
			t->call_image = t->image;
			t->wall_before_ns = now - t->last_ns;
			t->call_off_before_ns = t->off_ns - t->off_at_last_ns;
			t->call_blocked_before_ns = t->blocked_ns - t->blocked_at_last_ns;
		}
		close_span(t, now);
		cool(t);
		if (knobs.by_file)
			settle_sides(t);
		settle_thread(t, task, now);
		leave_image(t->image);
		/* Entered before the watch, or the kernel's own start of a helper. */
		if (!t->in_call)
			announce(t->id);
	}
	enter_image(t, task, now);
	note_program(t->image, task, bprm);
	return 0;
}

/* The thread's last acts are counted until it leaves its CPU for good: see sched_switch. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	struct thread *t = watched(task);
	struct call_key key = {};

	if (!t || ended_ns)
		return 0;
	note_resident(t, task);
	if (t->in_call && t->image && wants(t->call)) {
		/* The row of the call it ends in, made here: its last switch may fail to. */
		key.thread = t->id;
		key.call = t->call;
		call_row(&key, t->image);
	}
	return 0;
}
