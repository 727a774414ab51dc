/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * A look at the running counts: what threads have that is in no table yet, written down for user
 * space by an iterator that changes nothing. Loaded only for a watch that is looked at. What it
 * reads may change meanwhile, so user space treats what does not fit together as none.
 */

/* The buckets of a row's wall times that are not empty, behind it. */
#define WRITE_TIMES(seq, counters)                                                   \
	do {                                                                         \
		struct live_time time = {};                                          \
		for (u32 i = 0; i < sizeof(counters) / sizeof((counters)[0]); i++) { \
			if (!(counters)[i])                                          \
				continue;                                            \
			time.bucket = i;                                             \
			time.count = (counters)[i];                                  \
			bpf_seq_write((seq), &time, sizeof(time));                   \
		}                                                                    \
	} while (0)

static __always_inline void end_times(struct seq_file *seq)
{
	struct live_time end = {.bucket = NO_BUCKET};

	bpf_seq_write(seq, &end, sizeof(end));
}

/* A frequent call's row, which is in no table as long as its thread is in its image. */
static __always_inline void write_hot(struct seq_file *seq, struct thread *t, u32 h)
{
	struct hot_row *hot = &t->hot[h];
	struct live_call live = {
		.image = t->image,
		.call = t->hot_call[h] - 1,
		.numbers = hot->row.sums.numbers,
	};

	live.numbers.bytes += hot->times * hot->usual;
	bpf_seq_write(seq, &live, sizeof(live));
	WRITE_TIMES(seq, hot->row.plain);
	end_times(seq);
}

static __always_inline void write_side(struct seq_file *seq, const struct side *side)
{
	struct live_side live = {
		.key = side->key,
		.calls = side->calls,
		.bytes = side->bytes,
	};

	bpf_seq_write(seq, &live, sizeof(live));
}

SEC("iter/task")
int snapshot_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct live_thread live = {};
	struct thread *t;

	if (!task)
		return 0;
	t = watched(task);
	if (!t || !t->image || t->closed)
		return 0;
	live.now_ns = end_or_now(t);
	live.last_ns = t->last_ns;
	live.user_ns = t->user_ns;
	live.calls_on_cpu_ns = t->calls_on_cpu_ns;
	live.off_ns = t->off_ns;
	live.blocked_ns = t->blocked_ns;
	live.off_at_last_ns = t->left ? t->off_at_last_ns : t->off_ns;
	live.blocked_at_last_ns = t->left ? t->blocked_at_last_ns : t->blocked_ns;
	live.out_ns = t->out_ns;
	live.woken_ns = t->woken_ns;
	live.start_ns = t->start_ns;
	live.off_before_ns = t->off_before_ns;
	live.blocked_before_ns = t->blocked_before_ns;
	live.image = t->image;
	live.call = t->call;
	live.state = (t->in_call ? LIVE_IN_CALL : 0) | (t->slept ? LIVE_SLEPT : 0);
	for (u32 h = 0; h < HOT; h++)
		live.hot += !!t->hot_call[h];
	bpf_seq_write(seq, &live, sizeof(live));
	write_side(seq, &t->from);
	write_side(seq, &t->to);
	for (u32 h = 0; h < HOT; h++)
		if (t->hot_call[h])
			write_hot(seq, t, h);
	return 0;
}
