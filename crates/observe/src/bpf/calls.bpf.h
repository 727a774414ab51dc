/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The hot path: entry and return of a call. */

#define NR_EXIT		   60
#define NR_EXIT_GROUP	   231
#define NR_EXIT_I386	   (CALL_I386 | 1)
#define NR_EXIT_GROUP_I386 (CALL_I386 | 252)
#define NR_EXECVE	   59
#define SIGKILL		   9
#define SIGSYS		   31
#define NR_EXECVEAT	   322

static __always_inline bool never_returns(u16 call)
{
	return call == NR_EXIT || call == NR_EXIT_GROUP || call == NR_EXIT_I386 ||
	       call == NR_EXIT_GROUP_I386;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);
	u64 now;
	u16 call;

	if (!t || ended_ns)
		return 0;
	now = bpf_ktime_get_ns();
	if (t->left) {
		if (t->out_ns)
			come_back_unseen(t, task, now);
		t->user_ns -= t->off_ns - t->off_at_last_ns;
		note_boundary(t);
		t->attached = false; /* it was in user space then */
	}
	t->user_ns += now - t->last_ns;
	t->last_ns = now;
	call = call_of(task, id);
	t->call = call;
	t->in_call = true;
	if (call == NR_EXECVE || call == NR_EXECVEAT)
		note_resident(t, task);
	if (knobs.by_file)
		note_transfer(t, regs);
	return 0;
}

static __always_inline bool is_pending(struct task_struct *task, int signal)
{
	return task->pending.signal.sig[0] >> (signal - 1) & 1;
}

static __always_inline bool is_killed(struct task_struct *task)
{
	return is_pending(task, SIGKILL);
}

/* How often a call takes about the same time before it counts as frequent: a power of two. */
#define FREQUENT 64

/* What a call took. */
struct spent {
	u64 wall_ns;
	u64 off_ns;
	u64 blocked_ns;
};

/* A call that left its CPU, or stayed on it for half a second. False: there was no room. */
__noinline int count_wait(struct call_key *key, u32 image, struct spent *spent, bool returned)
{
	struct wait_stats *w;
	struct call_key of;
	u32 slot;

	if (!key || !spent)
		return false;
	of = *key; /* older verifiers want the keys of maps on the stack */
	w = row(&waits, &of, &no_waits);
	if (!w)
		return false;
	w->image = image;
	w->wall_ns += spent->wall_ns;
	w->blocked_ns += spent->blocked_ns;
	w->runnable_ns += spent->off_ns - spent->blocked_ns;
	if (!returned)
		return true;
	slot = slot_of(spent->wall_ns);
	if (slot < SLOTS)
		tick(&w->wall[slot], &of, image, CARRY_WALL + slot);
	slot = slot_of(spent->wall_ns - spent->off_ns);
	if (slot < SLOTS)
		tick(&w->on_cpu[slot], &of, image, CARRY_ON_CPU + slot);
	slot = slot_of(spent->blocked_ns);
	if (slot < SLOTS)
		tick(&w->blocked[slot], &of, image, CARRY_BLOCKED + slot);
	return true;
}

/* The row of the thread's current call: a hot one, or else by look-up. */
static __always_inline struct call_stats *row_of(struct thread *t, struct call_key *key, u32 image)
{
	u32 h = key->call & (HOT - 1);

	if (t->hot_call[h] == key->call + 1 && key->thread == t->id)
		return &t->hot[h].row;
	return call_row(key, image);
}

static __always_inline void count_return(struct thread *t, struct call_key *key, u32 image,
					 struct spent *spent, long ret)
{
	struct call_stats *c = row_of(t, key, image);
	struct error_count *e = NULL;
	u32 slot, h;

	/* All of a call's rows, or it is lost as a whole: they are to agree. */
	if (!c)
		return;
	if (is_error(ret)) {
		e = numbered_row(&errors, key, image, -ret);
		if (!e)
			return;
	}
	slot = slot_of(spent->wall_ns);
	if (!spent->off_ns && slot < PLAIN_SLOTS) {
		c->wall_ns += spent->wall_ns;
		tick(&c->plain[slot], key, image, CARRY_PLAIN + slot);
		h = key->call & (HOT - 1);
		if (!(c->plain[slot] & (FREQUENT - 1)) && !t->hot_call[h] && key->thread == t->id)
			warm(t, key->call);
	} else if (!count_wait(key, image, spent, true)) {
		return;
	}
	if (spent->wall_ns > c->max_ns)
		c->max_ns = spent->wall_ns;
	if (e) {
		e->count++;
	} else {
		c->bytes += ret;
		slot = slot_of(ret);
		if (slot < SLOTS)
			tick(&c->returns[slot], key, image, CARRY_RETURNS + slot);
	}
	if (knobs.by_file && t->transfer)
		count_transfer(t, ret);
}

/* The current call's time, and the row it belongs to: the image's that made it. */
static __always_inline u32 finish_call(struct thread *t, u64 now, struct call_key *key,
				       struct spent *spent)
{
	u32 image = t->image;

	spent->wall_ns = now - t->last_ns;
	spent->off_ns = t->off_ns - t->off_at_last_ns;
	spent->blocked_ns = t->blocked_ns - t->blocked_at_last_ns;
	t->calls_on_cpu_ns += spent->wall_ns - spent->off_ns;
	t->last_ns = now;
	note_boundary(t);
	t->in_call = false;
	key->thread = t->id;
	key->call = t->call;
	key->error = 0;
	if (t->call_thread) {
		key->thread = t->call_thread;
		image = t->call_image;
		spent->wall_ns += t->wall_before_ns;
		spent->off_ns += t->call_off_before_ns;
		spent->blocked_ns += t->call_blocked_before_ns;
		t->call_thread = 0;
	}
	return image;
}

/*
 * A call that will not return, or whose return says nothing of it: its time until now is its row's.
 * Not static: so the verifier looks at it once.
 */
__noinline int abandon_call(struct thread *t, u64 now, long returned)
{
	struct call_stats *c;
	struct call_key key;
	struct spent spent;
	u32 image;

	if (!t)
		return 0;
	image = finish_call(t, now, &key, &spent);
	if (!image || !wants(key.call))
		return 0;
	/* Who is still `attached` has shown neither end of it. */
	if (!never_returns(key.call) && !t->attached)
		__sync_fetch_and_add(&counters.incomplete_calls, 1);
	c = call_row(&key, image);
	if (!c)
		return 0;
	c->in_flight++;
	c->entered_before += !!returned;
	if (spent.wall_ns > c->max_ns)
		c->max_ns = spent.wall_ns;
	if (spent.off_ns)
		count_wait(&key, image, &spent, false);
	else
		c->wall_ns += spent.wall_ns;
	return 0;
}

/*
 * A return without an entry. A new thread's first one is no call's, and a call entered before the
 * watch is incomplete; so is a refused one, if it is the first of who was attached to, as nothing
 * tells it from that. Else the call was refused before its entry was traced, as seccomp does:
 * its caller gets the error, so it is counted; the time it took is not known. Where seccomp sends
 * a signal in place of an error, the caller never sees a return: such a call is open, too.
 */
static __always_inline bool begin_refused(struct thread *t, struct task_struct *task,
					  struct pt_regs *regs, long ret, u64 now)
{
	bool newborn = t->newborn, before = !newborn && t->attached;
	bool trapped = !newborn && is_pending(task, SIGSYS);
	bool refused = !newborn && !before && !trapped && is_error(ret) && !is_killed(task);

	t->newborn = false;
	t->attached = false;
	t->transfer = 0;
	if (before || trapped) {
		/* What came before an entry that was refused was in no call. */
		if (!before)
			close_span(t, now);
		t->call = call_of(task, regs->orig_ax);
		t->in_call = true;
		/* One that ends its thread is open until then. */
		if (!is_dead(task))
			abandon_call(t, now, before && !(is_error(ret) && is_killed(task)));
		return false;
	}
	if (!refused && !newborn && t->image)
		__sync_fetch_and_add(&counters.incomplete_calls, 1);
	t->in_call = !refused && !newborn;
	close_span(t, now);
	t->in_call = refused;
	if (refused)
		t->call = call_of(task, regs->orig_ax);
	return refused;
}

/*
 * The usual return: of a frequent call that succeeded, has its row at hand and stayed on its CPU.
 * Does what the long way does, and no more than that asks for. False: take the long way.
 */
static __always_inline bool count_usual(struct thread *t, u64 now, long ret)
{
	u32 h = t->call & (HOT - 1), took;
	struct hot_row *hot = &t->hot[h];
	struct call_stats *c = &hot->row;
	u64 wall = now - t->last_ns;

	if (!t->in_call || t->hot_call[h] != t->call + 1 || t->call_thread || t->left)
		return false;
	took = slot_of(wall);
	/* A counter at its end is carried by the long way. */
	if (took >= PLAIN_SLOTS || c->plain[took] == -1U)
		return false;
	if ((u64)ret != hot->usual || hot->times == -1U) {
		if (ret < 0)
			return false;
		book_usual(t, h);
		hot->usual = ret;
	}
	hot->times++;
	c->plain[took]++;
	c->wall_ns += wall;
	if (wall > c->max_ns)
		c->max_ns = wall;
	t->calls_on_cpu_ns += wall;
	t->last_ns = now;
	t->in_call = false;
	if (knobs.by_file && t->transfer)
		count_transfer(t, ret);
	return true;
}

/* Any return. Not static: so the verifier looks at it once, not once for each way that leads here.
 */
__noinline int count_long(struct thread *t, u64 now, long ret)
{
	struct call_key key;
	struct spent spent;
	u32 image;

	if (!t)
		return 0;
	image = finish_call(t, now, &key, &spent);
	if (image && wants(key.call))
		count_return(t, &key, image, &spent, ret);
	else if (!image && !t->launcher)
		lose(); /* there was no room for the image */
	if (key.thread != t->id)
		announce(key.thread);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);
	u64 now;

	if (!t || ended_ns)
		return 0;
	now = bpf_ktime_get_ns();
	if (t->left && t->out_ns)
		come_back_unseen(t, task, now);
	if (count_usual(t, now, ret))
		return 0;
	if (!t->in_call && !begin_refused(t, task, regs, ret, now))
		return 0;
	if (is_error(ret) && is_killed(task))
		return 0; /* the program never sees it: the call is open until the thread's end */
	return count_long(t, now, ret);
}
