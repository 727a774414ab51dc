/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The hot path: entry and return of a call. */

static __always_inline bool never_returns(u16 call)
{
	return call == NR_EXIT || call == NR_EXIT_GROUP || call == NR_EXIT_I386 ||
	       call == NR_EXIT_GROUP_I386;
}

/* A handler's return shows the interrupted program's register: no result of a call's. */
static __always_inline bool restores_registers(u16 call)
{
	return call == NR_RT_SIGRETURN || call == NR_RT_SIGRETURN_I386 || call == NR_SIGRETURN_I386;
}

/* A call of a watched thread begins. */
static __always_inline void enter_call(struct thread *t, struct task_struct *task,
				       struct pt_regs *regs, u16 call, u64 now)
{
	if (t->left) {
		if (t->out_ns)
			come_back_unseen(t, task, now);
		t->user_ns -= t->off_ns - t->off_at_last_ns;
		note_boundary(t);
		t->attached = false; /* it was in user space then */
	}
	t->user_ns += now - t->last_ns;
	t->last_ns = now;
	t->call = call;
	t->in_call = true;
	if (call == NR_EXECVE || call == NR_EXECVEAT)
		note_resident(t, task);
	else if (call == NR_EXIT_GROUP || call == NR_EXIT_GROUP_I386)
		note_last_title(t, task);
	if (knobs.by_file)
		note_transfer(t, regs);
	begin_verdict(t);
	note_facts(t, task, regs);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);
	u16 call;

	if (!t || ended_ns)
		return 0;
	call = call_of(task, id);
	if (passes(t, call)) {
		t->call = CALL_PASSED;
		return 0;
	}
	enter_call(t, task, regs, call, bpf_ktime_get_ns());
	return 0;
}

/* How often a call takes about the same time before it counts as frequent: a power of two. */
#define FREQUENT 16

/* What a call took. */
struct spent {
	u64 wall_ns;
	u64 off_ns;
	u64 blocked_ns;
};

/* A call that left its CPU, or stayed on it for a millisecond. False: there was no room. */
__noinline int count_wait(struct call_key *key, u32 image, struct spent *spent, bool returned)
{
	struct wait_stats *w;
	struct call_key of;
	u64 on_cpu_ns;
	u32 bucket;

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
	on_cpu_ns = spent->wall_ns - spent->off_ns;
	if (spent->wall_ns > w->max_wall_ns)
		w->max_wall_ns = spent->wall_ns;
	if (on_cpu_ns > w->max_on_cpu_ns)
		w->max_on_cpu_ns = on_cpu_ns;
	if (spent->blocked_ns > w->max_blocked_ns)
		w->max_blocked_ns = spent->blocked_ns;
	bucket = bucket_by_call(spent->wall_ns);
	if (bucket < TIMES)
		TICK(w->wall[bucket], &of, image, CARRY_WALL + bucket);
	bucket = bucket_by_call(on_cpu_ns);
	if (bucket < TIMES)
		TICK(w->on_cpu[bucket], &of, image, CARRY_ON_CPU + bucket);
	bucket = bucket_by_call(spent->blocked_ns);
	if (bucket < TIMES)
		TICK(w->blocked[bucket], &of, image, CARRY_BLOCKED + bucket);
	return true;
}

static __always_inline void count_return(struct thread *t, struct call_key *key, u32 image,
					 struct spent *spent, long ret, u64 bytes)
{
	u32 slot, bucket, h = key->call & (HOT - 1);
	struct frequent_stats *frequent = NULL;
	struct call_stats *rare = NULL;
	struct error_count *e = NULL;
	struct call_sums *c;
	struct call_numbers *n;

	if (t->hot_call[h] == key->call + 1 && key->thread == t->id) {
		frequent = &t->hot[h].row;
		c = &frequent->sums;
	} else {
		rare = call_row(key, image);
		/* All of a call's rows, or it is lost as a whole: they are to agree. */
		if (!rare)
			return;
		c = &rare->sums;
	}
	n = &c->numbers;
	if (is_error(ret)) {
		e = numbered_row(&errors, key, image, -ret);
		if (!e)
			return;
	}
	bucket = bucket_by_call(spent->wall_ns);
	if (!spent->off_ns && bucket < PLAIN_TIMES) {
		n->wall_ns += spent->wall_ns;
		if (spent->wall_ns > n->max_ns)
			n->max_ns = spent->wall_ns;
		if (frequent) {
			TICK(frequent->plain[bucket], key, image, CARRY_FREQUENT + bucket);
		} else if (rare) {
			TICK(rare->plain[bucket], key, image, CARRY_PLAIN + bucket);
			if (!(rare->plain[bucket] & (FREQUENT - 1)) && !t->hot_call[h] &&
			    key->thread == t->id)
				warm(t, key->call);
		}
	} else if (!count_wait(key, image, spent, true)) {
		return;
	}
	/* Every call that is counted comes here, or ends `count_usual`. */
	if (e) {
		e->count++;
	} else {
		n->bytes += bytes;
		slot = slot_by_call(ret);
		if (slot < SLOTS)
			TICK(c->returns[slot], key, image, CARRY_RETURNS + slot);
	}
	if (knobs.by_file && t->transfer)
		count_transfer(t, ret, bytes);
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
	struct call_numbers *n;
	struct call_key key;
	struct spent spent;
	u32 image;

	if (!t)
		return 0;
	image = finish_call(t, now, &key, &spent);
	if (!image || !wants(t, key.call) || is_doubtful(key.call))
		return 0;
	/* Who is still `attached` has shown neither end of it. */
	if (!never_returns(key.call) && !t->attached)
		__sync_fetch_and_add(&counters.incomplete_calls, 1);
	c = call_row(&key, image);
	if (!c)
		return 0;
	n = &c->sums.numbers;
	n->in_flight++;
	n->open_ns += spent.wall_ns;
	n->entered_before += !!returned;
	if (spent.wall_ns > n->open_max_ns)
		n->open_max_ns = spent.wall_ns;
	if (spent.off_ns)
		count_wait(&key, image, &spent, false);
	else
		n->wall_ns += spent.wall_ns;
	return 0;
}

/*
 * A return without an entry. A new thread's first one is not a call's, and a call entered before
 * the watch is incomplete; so is a refused one, if it is the first of who was attached to, as
 * nothing tells it from that. Else the call was refused before its entry was traced, as seccomp
 * does: its caller gets the error, so it is counted; the time it took is not known. Where seccomp
 * sends a signal in place of an error, the caller never sees a return: such a call is open, too.
 */
static __always_inline bool begin_refused(struct thread *t, struct task_struct *task,
					  struct pt_regs *regs, long ret, u64 now)
{
	bool newborn = t->newborn, before = !newborn && t->attached;
	bool trapped = !newborn && is_pending(task, SIGSYS);
	bool refused = !newborn && !before && !trapped && !is_killed(task);

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
	struct frequent_stats *c = &hot->row;
	u64 wall = now - t->last_ns;

	if (!t->in_call || t->hot_call[h] != t->call + 1 || t->call_thread || t->left)
		return false;
	took = bucket_of(wall);
	/* A counter at its end is carried by the long way. */
	if (took >= PLAIN_TIMES || c->plain[took] == (u16)-1 || is_slow(wall))
		return false;
	if ((u64)ret != hot->usual || hot->times == -1U) {
		if (ret < 0)
			return false;
		book_usual(t, h);
		hot->usual = ret;
	}
	hot->times++;
	c->plain[took]++;
	c->sums.numbers.wall_ns += wall;
	if (wall > c->sums.numbers.max_ns)
		c->sums.numbers.max_ns = wall;
	t->calls_on_cpu_ns += wall;
	t->last_ns = now;
	t->in_call = false;
	if (knobs.by_file && t->transfer)
		count_transfer(t, ret, ret);
	return true;
}

#ifdef WHERE
/* A call that is left out: its time is the thread's all the same. */
__noinline int pass_over(struct thread *t, u64 now)
{
	struct call_key key;
	struct spent spent;
	u32 image;

	if (!t)
		return 0;
	image = finish_call(t, now, &key, &spent);
	if (image)
		t->left_out++;
	else if (!t->launcher)
		lose(); /* there was no room for the image */
	if (key.thread != t->id)
		announce(key.thread);
	return 0;
}
#endif

/* Any return. Not static: so the verifier looks at it once, not once for each way that leads here.
 */
__noinline int count_long(struct thread *t, u64 now, long ret, u64 bytes)
{
	struct call_key key;
	struct spent spent;
	u32 image;

	if (!t)
		return 0;
	image = finish_call(t, now, &key, &spent);
	if (image && wants(t, key.call))
		count_return(t, &key, image, &spent, ret, bytes);
	else if (image)
		t->left_out++;
	else if (!t->launcher)
		lose(); /* there was no room for the image */
	if (key.thread != t->id)
		announce(key.thread);
	return 0;
}

/*
 * A call of a watched thread returns. `sampled` is a constant: whether just those count that were
 * entered in a window (sampled.bpf.h).
 */
static __always_inline int leave_call(void *ctx, struct thread *t, struct task_struct *task,
				      struct pt_regs *regs, long ret, const bool sampled)
{
	bool counts, refused, ends = false;
	u64 now = bpf_ktime_get_ns();
	long bytes;

	if (t->left && t->out_ns)
		come_back_unseen(t, task, now);
	if (t->in_call && restores_registers(t->call))
		ret = 0;
	/* A return without an entry: of a call that was refused, or of none. */
	refused = !t->in_call;
	if (refused) {
		if (!begin_refused(t, task, regs, ret, now))
			return 0;
		note_facts(t, task, regs);
	}
	bytes = moved_bytes(t->call, regs, ret);
	counts = holds(t, task, regs, now, ret, bytes);
	if (counts)
		ends = ends_watch(t, task, ret);
	if (sampled && counts)
		count_in_series(t, task, now, ret, bytes);
	if (counts && !ends && !refused && bytes == ret && !path_arguments(t) &&
	    !makes_connection(t->call) && !is_over(now) && count_usual(t, now, ret)) {
		end_verdict(t, true);
		group(t);
		return 0;
	}
	if (is_error(ret) && is_killed(task))
		return 0; /* the program never sees it: the call is open until the thread's end */
	end_verdict(t, counts);
	if (ends)
		end_watch(ctx, t, task, regs, now, ret, bytes);
	if (is_over(now))
		return 0;
	if (!counts)
		return pass_over(t, now);
	group(t);
	count_paths(t, regs, now, ret);
	count_connections(t, regs, now, ret);
	note_slow(ctx, t, regs, now, ret, bytes);
	count_long(t, now, ret, bytes);
	if (ends)
		announce_end();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);

	if (!t || ended_ns)
		return 0;
	if (knobs.lets_pass && t->call == CALL_PASSED && !t->in_call) {
		t->call = 0;
		t->passed++;
		return 0;
	}
	return leave_call(ctx, t, task, regs, ret, false);
}
