/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Exchanges: what ends one, and the rows that count them. */

static const struct exchange_row no_exchanges;

static __always_inline void add(u64 *to, u64 n)
{
	if (n)
		ADD(*to, n);
}

/* The row of a connection; older verifiers want its key on the stack. */
static __always_inline struct exchange_row *row_of(const struct channel *ch)
{
	struct exchange_row *row;
	struct connection_key key;

	bpf_probe_read_kernel(&key, sizeof(key), &ch->key);
	row = bpf_map_lookup_elem(&exchanges, &key);
	if (row)
		return row;
	bpf_map_update_elem(&exchanges, &key, &no_exchanges, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&exchanges, &key);
	if (!row)
		lose();
	return row;
}

/* When the exchange under way began, for who ends it: of two threads that do so at once, one is
 * told 0. */
static __always_inline u64 take_exchange(struct channel *ch)
{
	u64 began_ns = __sync_lock_test_and_set(&ch->began_ns, 0);

	if (began_ns)
		__sync_fetch_and_add(&ch->generation, 1);
	return began_ns;
}

static __always_inline void forget_exchange(struct channel *ch)
{
	ch->end_ns = 0;
	ch->writing = 0;
	ch->moved = 0;
	ch->pipelined = 0;
	ch->unseen = 0;
	__builtin_memset(&ch->spent, 0, sizeof(ch->spent));
}

/* A request without an answer, be it read or not. Not static, as the next one: the verifier looks
 * at it once. */
__noinline int count_unanswered(struct channel *ch)
{
	struct exchange_row *row;

	if (!ch || !(take_exchange(ch) || __sync_lock_test_and_set(&ch->arrived_ns, 0)))
		return 0;
	row = row_of(ch);
	if (row)
		add(&row->unanswered, 1);
	forget_exchange(ch);
	return 0;
}

/*
 * The end of an answer. A call that writes may still be inside of the kernel though the other end
 * has the answer, and has asked again.
 */
static __always_inline u64 end_of(const struct channel *ch, u64 now)
{
	if (!ch->writing)
		return ch->end_ns;
	return ch->arrived_ns > ch->write_ns ? ch->arrived_ns : now;
}

/* An exchange that is over. */
__noinline int finish(struct channel *ch, u64 now)
{
	struct exchange_row *row;
	u64 began_ns, end_ns, wall_ns = 0;
	u32 bucket;

	if (!ch)
		return 0;
	began_ns = take_exchange(ch);
	if (!began_ns)
		return 0;
	row = row_of(ch);
	if (!row) {
		forget_exchange(ch);
		return 0;
	}
	end_ns = end_of(ch, now);
	if (end_ns > began_ns)
		wall_ns = end_ns - began_ns;
	add(&row->requests, 1);
	add(&row->pipelined, ch->pipelined);
	add(&row->moved, ch->moved);
	add(&row->unseen, ch->unseen);
	raise_to(&row->max_ns, wall_ns);
	add(&row->unread_ns, ch->read_ns - began_ns);
	add(&row->spent.on_cpu_ns, ch->spent.on_cpu_ns);
	add(&row->spent.runnable_ns, ch->spent.runnable_ns);
	add(&row->spent.disk_ns, ch->spent.disk_ns);
	add(&row->spent.peer_ns, ch->spent.peer_ns);
	add(&row->spent.lock_ns, ch->spent.lock_ns);
	add(&row->spent.other_ns, ch->spent.other_ns);
	/* Last: who reads the row meanwhile has no part of it too much. */
	add(&row->wall_ns, wall_ns);
	bucket = bucket_by_call(wall_ns);
	if (bucket < TIMES)
		__sync_fetch_and_add(&row->wall[bucket], 1);
	forget_exchange(ch);
	return 0;
}

static __always_inline bool is_answered(const struct channel *ch)
{
	return ch->end_ns || ch->writing;
}

/* The connection has ended. A request that was never read is one without an answer, too. */
__noinline int end_channel(struct channel *ch, u64 now)
{
	if (!ch)
		return 0;
	if (ch->began_ns && is_answered(ch) && ch->key.role)
		finish(ch, now);
	/* What came behind it was no more than read. */
	if (ch->began_ns || (ch->arrived_ns && ch->key.role == ROLE_ACCEPT))
		count_unanswered(ch);
	return 0;
}
