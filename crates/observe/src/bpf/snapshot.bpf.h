/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * A look at the running counts: iterators that write them down for user space and change nothing.
 * Loaded only for a watch that is looked at. What they read may change meanwhile, so user space
 * treats what does not fit together as none.
 */

#define SUM_OF(counters)                                                           \
	({                                                                         \
		u64 sum = 0;                                                       \
		for (u32 i = 0; i < sizeof(counters) / sizeof((counters)[0]); i++) \
			sum += (counters)[i];                                      \
		sum;                                                               \
	})

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
		.calls = SUM_OF(hot->row.plain),
		.bytes = hot->row.sums.bytes + hot->times * hot->usual,
		.wall_ns = hot->row.sums.wall_ns,
		.max_ns = hot->row.sums.max_ns,
	};

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
	live.now_ns = bpf_ktime_get_ns();
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

SEC("iter/bpf_map_elem")
int snapshot_calls(struct bpf_iter__bpf_map_elem *ctx)
{
	struct call_key *key = ctx->key;
	struct call_stats *row = ctx->value;
	struct live_call live = {};

	if (!key || !row)
		return 0;
	live.image = row->sums.image;
	live.call = key->call;
	live.calls = SUM_OF(row->plain);
	live.bytes = row->sums.bytes;
	live.wall_ns = row->sums.wall_ns;
	live.max_ns = row->sums.max_ns;
	if (row->sums.open_max_ns > live.max_ns)
		live.max_ns = row->sums.open_max_ns;
	bpf_seq_write(ctx->meta->seq, &live, sizeof(live));
	WRITE_TIMES(ctx->meta->seq, row->plain);
	end_times(ctx->meta->seq);
	return 0;
}

/* Rows that went into their table when their thread left its image. */
SEC("iter/bpf_map_elem")
int snapshot_frequent(struct bpf_iter__bpf_map_elem *ctx)
{
	struct call_key *key = ctx->key;
	struct frequent_stats *row = ctx->value;
	struct live_call live = {};

	if (!key || !row)
		return 0;
	live.image = row->sums.image;
	live.call = key->call;
	live.calls = SUM_OF(row->plain);
	live.bytes = row->sums.bytes;
	live.wall_ns = row->sums.wall_ns;
	live.max_ns = row->sums.max_ns;
	bpf_seq_write(ctx->meta->seq, &live, sizeof(live));
	WRITE_TIMES(ctx->meta->seq, row->plain);
	end_times(ctx->meta->seq);
	return 0;
}

SEC("iter/bpf_map_elem")
int snapshot_waits(struct bpf_iter__bpf_map_elem *ctx)
{
	struct call_key *key = ctx->key;
	struct wait_stats *row = ctx->value;
	struct live_call live = {};

	if (!key || !row)
		return 0;
	live.image = row->image;
	live.call = key->call;
	live.calls = SUM_OF(row->wall);
	live.max_ns = row->max_wall_ns;
	live.wall_ns = row->wall_ns;
	live.blocked_ns = row->blocked_ns;
	live.runnable_ns = row->runnable_ns;
	bpf_seq_write(ctx->meta->seq, &live, sizeof(live));
	WRITE_TIMES(ctx->meta->seq, row->wall);
	end_times(ctx->meta->seq);
	return 0;
}

SEC("iter/bpf_map_elem")
int snapshot_errors(struct bpf_iter__bpf_map_elem *ctx)
{
	struct call_key *key = ctx->key;
	struct error_count *row = ctx->value;
	struct live_call live = {};

	if (!key || !row)
		return 0;
	live.image = row->image;
	live.call = key->call | (u32)key->error << 16;
	live.errors = row->count;
	bpf_seq_write(ctx->meta->seq, &live, sizeof(live));
	end_times(ctx->meta->seq);
	return 0;
}

SEC("iter/bpf_map_elem")
int snapshot_files(struct bpf_iter__bpf_map_elem *ctx)
{
	struct file_key *key = ctx->key;
	struct file_stats *row = ctx->value;

	if (!key || !row)
		return 0;
	bpf_seq_write(ctx->meta->seq, key, sizeof(*key));
	bpf_seq_write(ctx->meta->seq, row, sizeof(*row));
	return 0;
}
