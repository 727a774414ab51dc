/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The end of the watch by a call (`--until`).
 *
 * The first call for which the condition holds ends the watch where it returns: from then on no
 * program counts anything, and user space is woken to close the books. First is the call whose
 * return was seen first; programs of other CPUs may be under way with one that was seen before, so
 * the one that is kept is replaced by such a one, under a lock. User space reads it when all of
 * these have ended.
 *
 * Where the watch goes on after such a call (`--keep`), user space is woken to keep what came
 * before it, and no further call is asked until user space allows that.
 */

#ifdef WHERE

struct sums {
	u64 count;
	u64 bytes;
	u64 durations_ns;
};

/* Of the counted calls so far, if the condition asks for them. */
struct sums sums SEC(".data.sums");

/* Where the watch goes on: when a call fulfilled the condition; 0 while the next one may. */
u64 fired_ns SEC(".data.fired");

/* The call that ended the watch, and the sums with it; none as long as its end is 0. */
struct firing {
	struct bpf_spin_lock lock;
	u32 pad;
	struct sums sums;
	struct slow_call call;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct firing);
} firings SEC(".maps");

/* As `condition` of where.bpf.h. */
__noinline int end_condition(const struct facts *facts)
{
	int holds = 1;

	asm volatile(".rept " ROOM "\n\tgoto +0\n\t.endr" : "+r"(holds) : "r"(facts) : "memory");
	return holds;
}

/* Adds a call that is counted; the facts have the sums with it. */
static __always_inline void add_up(struct facts *facts)
{
	u64 bytes = facts->word[FACT_BYTES], ns = facts->word[FACT_DURATION];

	facts->word[FACT_COUNT] = __sync_fetch_and_add(&sums.count, 1) + 1;
	facts->word[FACT_SUM_OF_BYTES] = __sync_fetch_and_add(&sums.bytes, bytes) + bytes;
	facts->word[FACT_SUM_OF_DURATIONS] = __sync_fetch_and_add(&sums.durations_ns, ns) + ns;
}

/* Where the moment is noted at which a call fulfilled the condition. */
static __always_inline u64 *moment(void)
{
	return where.goes_on ? &fired_ns : &ended_ns;
}

/* Whether the condition is not asked for now. */
static __always_inline bool is_disarmed(void)
{
	return where.goes_on && fired_ns;
}

/* Whether a call that is about to be counted, whose facts are known, ends the watch. */
static __always_inline bool ends_watch(struct thread *t, struct task_struct *task, long ret)
{
	u32 image = t->call_thread ? t->call_image : t->image;
	struct filter *f;
	int outcome;

	/* Not before the watch begins, nor by one that is not counted or that the program never
	 * sees.
	 */
	if (!where.can_end || !is_in(where.ends, t->call) || !wants(t, t->call) || !has_begun() ||
	    is_disarmed() || !image || descriptor_argument(t) == NOT_KEPT || t->calibrates ||
	    (is_error(ret) && is_killed(task)))
		return false;
	f = task_row(&filters, task);
	if (!f)
		return false;
	if (where.sums)
		add_up(&f->facts);
	outcome = end_condition(&f->facts);
	if (outcome > 1)
		__sync_fetch_and_add(&where_counters.ends_divided_by_zero, 1);
	return outcome == 1;
}

/* Not static: so the verifier looks at it once. Returns whether the call is kept. */
__noinline int put_firing(const struct slow_call *call, const struct facts *facts)
{
	struct firing *firing;
	u32 zero = 0, kept = 0;
	u64 now;

	firing = bpf_map_lookup_elem(&firings, &zero);
	if (!firing || !call || !facts)
		return 0;
	now = call->end_ns;
	bpf_spin_lock(&firing->lock);
	/* User space may have ended the watch before. */
	if (firing->call.end_ns ? now < firing->call.end_ns : !*moment()) {
		copy_call(&firing->call, call);
		firing->sums.count = facts->word[FACT_COUNT];
		firing->sums.bytes = facts->word[FACT_SUM_OF_BYTES];
		firing->sums.durations_ns = facts->word[FACT_SUM_OF_DURATIONS];
		*moment() = now;
		kept = 1;
	}
	bpf_spin_unlock(&firing->lock);
	return kept;
}

/* Ends the watch. The call itself is still to be counted. */
static __always_inline void end_watch(void *ctx, struct thread *t, struct task_struct *task,
				      struct pt_regs *regs, u64 now, long ret, long bytes)
{
	struct filter *f = task_row(&filters, task);
	struct slow_call *call = whole_call(ctx, t, regs, now, ret, bytes);

	if (f && call && put_firing(call, &f->facts))
		copy_stack(2 * knobs.slowest + 1);
}

/* Whether the watch ended before a call returned that has not been counted yet. */
static __always_inline bool is_over(u64 now)
{
	return where.can_end && !where.goes_on && ended_ns && ended_ns < now;
}

static __always_inline void announce_end(void)
{
	struct death nobody = {.thread = WATCH_ENDED};

	if (KERNEL_HAS(RING_BUFFERS))
		bpf_ringbuf_output(&deaths, &nobody, sizeof(nobody), BPF_RB_FORCE_WAKEUP);
}

#else

static __always_inline bool ends_watch(struct thread *t, struct task_struct *task, long ret)
{
	return false;
}

static __always_inline void end_watch(void *ctx, struct thread *t, struct task_struct *task,
				      struct pt_regs *regs, u64 now, long ret, long bytes)
{
}

static __always_inline bool is_over(u64 now)
{
	return false;
}

static __always_inline void announce_end(void)
{
}

#endif
