/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * A look at the running counts: iterators that write them down for user space and change nothing.
 * Loaded only for a watch that is looked at. What they read may change meanwhile, so user space
 * treats what does not fit together as none.
 */

static __always_inline u64 sum_of(const u32 *counters, u32 slots)
{
	u64 sum = 0;

	for (u32 i = 0; i < slots; i++)
		sum += counters[i];
	return sum;
}

/* A frequent call's row, which is in no table as long as its thread is in its image. */
static __always_inline void write_hot(struct seq_file *seq, struct thread *t, u32 h)
{
	struct hot_row *hot = &t->hot[h];
	struct live_call live = {
		.image = t->image,
		.call = t->hot_call[h] - 1,
		.calls = sum_of(hot->row.plain, PLAIN_SLOTS),
		.bytes = hot->row.bytes + hot->times * hot->usual,
		.wall_ns = hot->row.wall_ns,
		.max_ns = hot->row.max_ns,
	};

	bpf_seq_write(seq, &live, sizeof(live));
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
	live.image = row->image;
	live.call = key->call;
	live.calls = sum_of(row->plain, PLAIN_SLOTS);
	live.bytes = row->bytes;
	live.wall_ns = row->wall_ns;
	live.max_ns = row->max_ns;
	bpf_seq_write(ctx->meta->seq, &live, sizeof(live));
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
	live.calls = sum_of(row->wall, SLOTS);
	live.wall_ns = row->wall_ns;
	live.blocked_ns = row->blocked_ns;
	live.runnable_ns = row->runnable_ns;
	bpf_seq_write(ctx->meta->seq, &live, sizeof(live));
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
	live.call = key->call;
	live.errors = row->count;
	bpf_seq_write(ctx->meta->seq, &live, sizeof(live));
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
