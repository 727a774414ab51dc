/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Threads and program images: how they begin, change and end. */

static __always_inline void count_thread(void)
{
	__sync_fetch_and_add(&counters.live_threads, 1);
	__sync_fetch_and_add(&counters.open_books, 1);
}

/* What the books were before; whoever finds them open has to close them. */
static __always_inline u32 begin_to_close(struct thread *t, u32 as)
{
	return __sync_lock_test_and_set(&t->closed, as);
}

static const struct thread no_thread;

static __always_inline struct thread *watch(struct task_struct *task, u32 image, u64 now)
{
	struct thread *t;

	t = made_task_row(&threads, task, &no_thread);
	if (!t && !watched(task))
		lose();
	if (!t || t->id)
		return NULL; /* `adopt` was faster */
	t->id = __sync_fetch_and_add(&counters.last_thread, 1) + 1;
	t->image = image;
	t->start_ns = now;
	t->last_ns = now;
	take_baseline(t, task);
	begin_thread_row(t->id, image, task);
	count_thread();
	return t;
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
	struct mm_struct *mm = UNTRUSTED(struct task_struct, task)->mm;
	unsigned long from, bytes;

	if (!s || !mm)
		return;
	from = mm->arg_start;
	bytes = mm->arg_end - from;
	s->program.argv_bytes = bytes;
	s->program.argv_words = bprm->argc;
	barrier_var(bytes); /* or the compiler checks one copy and passes the other */
	if (bytes > ARGV_LEN)
		bytes = ARGV_LEN;
	s->program.argv[0] = 0;
	if (bpf_probe_read_user(s->program.argv, bytes, (void *)from))
		s->program.argv_bytes = 0;
	s->program.exec[0] = 0;
	bpf_probe_read_kernel_str(s->program.exec, EXEC_LEN, bprm->filename);
	s->program.binary[0] = 0;
	bpf_probe_read_kernel_str(s->program.binary, EXEC_LEN,
				  BPF_CORE_READ(mm, exe_file, f_path.dentry, d_name.name));
	if (leads_elsewhere(s->program.exec))
		__builtin_memcpy(s->program.exec, s->program.binary, EXEC_LEN);
	if (bpf_map_update_elem(&programs, &image, &s->program, BPF_ANY))
		lose();
}

/* The first argument of a process that is about to end, before it has lost its memory. */
static __always_inline void note_last_title(struct thread *t, struct task_struct *task)
{
	struct scratch *s = scratch();
	struct mm_struct *mm = UNTRUSTED(struct task_struct, task)->mm;
	u32 image = t->image;

	if (!s || !mm || !image)
		return;
	if (bpf_probe_read_user_str(s->program.argv, TITLE_LEN, (void *)mm->arg_start) <= 1)
		return;
	if (bpf_map_update_elem(&titles, &image, s->program.argv, BPF_ANY))
		lose();
}

/*
 * Whether tasks that nobody watches may begin to be: of the machine, or of what is selected, and
 * not before `adopt` was asked for them, which is when iotomy's own namespace is known.
 */
static __always_inline bool chooses(void)
{
	return (knobs.whole_machine || knobs.selects) && adoption.stage;
}

/* Begins the watch of what user space asked for. */
SEC("iter/task")
int adopt(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 tgid, id, image = 0, *known;
	struct thread *t;
	u64 now;

	if (!task || task->flags & PF_KTHREAD)
		return 0;
	if (task->flags & PF_IO_WORKER) {
		meet_ring_thread(task);
		return 0;
	}
	if (task->__state & TASK_DEAD)
		return 0; /* a zombie: its last switch, which closes the books, is over */
	find_sight();
	root.dentry = (u64)BPF_CORE_READ(bpf_get_current_task_btf(), fs, root.dentry);
	root.mount = (u64)BPF_CORE_READ(bpf_get_current_task_btf(), fs, root.mnt);
	tgid = tgid_of(task);
	if (watched(task) || !is_asked_for(task, tgid))
		return 0;
	now = bpf_ktime_get_ns();
	if (!adoption.launcher) {
		known = image_found(task);
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
	newcomer.calibrates = adoption.tid;
	newcomer.left = true; /* also where it has not: the next boundary tells where it was */
	if (!task->on_cpu) {
		newcomer.out_ns = now;
		newcomer.runtime_out_ns = newcomer.runtime_ns;
		newcomer.slept = task->__state != 0;
		if (task->__state & (TASK_STOPPED | TASK_TRACED))
			newcomer.sleep = STOPPED;
	}
	begin_thread_row(id, image, task);
	t = made_task_row(&threads, task, &newcomer);
	if (t && t->id == id) {
		count_thread();
		counters.adopted++;
		/* It ends at this moment, and its last switch may have come before it was watched.
		 */
		if (task->__state & TASK_DEAD && begin_to_close(t, WITHDRAWN) == OPEN) {
			__sync_fetch_and_sub(&counters.open_books, 1);
			__sync_fetch_and_sub(&counters.live_threads, 1);
			quit_image(image);
			withdraw_thread_row(id);
		}
		return 0;
	}
	if (!t && !watched(task))
		lose();
	quit_image(image);
	withdraw_thread_row(id);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct thread *maker = watched(parent), *t;
	u32 image = 0, tgid, *known;
	bool is_thread;
	u64 now;

	if (ended_ns)
		return 0;
	if (!maker && !chooses())
		return 0;
	is_thread = child->tgid == parent->tgid;
	if (maker) {
		image = maker->image;
		if (maker->launcher)
			return 0;
		if (knobs.selects & ONLY && !is_thread && !is_selected(child, tgid_of(child)))
			return 0;
	} else {
		tgid = tgid_of(parent);
		if (tgid == knobs.self_tgid || child->flags & PF_KTHREAD || !pid_of(child))
			return 0;
		/* A thread `adopt` has yet to reach, or has passed by, makes another. */
		known = image_found(parent);
		if (known && (is_thread || !(knobs.selects & ONLY))) {
			image = *known;
		} else if (!knobs.whole_machine) {
			if (!is_selected(child, tgid_of(child)))
				return 0;
			/* It has no name yet, and its maker may have been made a selected one. */
			announce_newcomer();
		}
	}
	if (watched(child))
		return 0; /* `adopt` was faster */
	now = bpf_ktime_get_ns();
	if (!image)
		/* A watched maker's image found no room: nor has this one, and its calls say so. */
		image = maker ? 0 : attach_image(child, now);
	else if (is_thread)
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
	if (maker)
		inherit_image(parent, child, maker->image, image);
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
	t->fault_ns = 0;
	t->stopped_ns = 0;
	t->left_out = 0;
	t->passed = 0;
	take_baseline(t, task);
	begin_thread_row(t->id, t->image, task);
}

/* An unwatched task executes a program: whether it is watched from then on. */
static __always_inline bool begins_by_exec(struct task_struct *task)
{
	u32 tgid = tgid_of(task);

	if (!chooses() || tgid == knobs.self_tgid || !pid_of(task))
		return false;
	return knobs.whole_machine || is_selected(task, tgid) || image_found(task);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct thread *t = watched(task);
	u64 now = bpf_ktime_get_ns();
	struct found found = {};
	u32 tgid;

	if (ended_ns)
		return 0;
	if (!t) {
		if (!begins_by_exec(task))
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
		settle_thread_row(t, task, now, BY_EXEC);
		leave_image(t->image);
		/* Entered before the watch, or the kernel's own start of a helper. */
		if (!t->in_call)
			announce(t->id);
	} else if (!t->in_call) {
		/* Its first exec, which does not count: what came before is no image's. */
		close_span(t, now);
	}
	enter_image(t, task, now);
	note_program(t->image, task, bprm);
	note_executed(task, t->image, bprm);
	if (adoption.stage == GATHERING) {
		/* What it made before it was found is still to be found. */
		tgid = tgid_of(task);
		found.image = t->image;
		found.began = began(task);
		bpf_map_update_elem(&attached_images, &tgid, &found, BPF_ANY);
	}
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
	if (!t->in_call && !knobs.sampled && is_dead(task))
		/* Ended inside a call, before its entry was traced. */
		enter_untraced(t, call_inside(task), bpf_ktime_get_ns());
	if (t->in_call && t->image && wants(t, t->call) && !is_doubtful(t->call)) {
		/* The row of the call it ends in, made here: its last switch may fail to. */
		key.thread = t->id;
		key.call = t->call;
		call_row(&key, t->image);
	}
	return 0;
}
