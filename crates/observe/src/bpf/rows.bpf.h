/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Rows of the tables: how they come into being, and what is added to them.
 *
 * A function that is not static is verified once and alone, not once for each way that leads to it:
 * what several programs do, or one does after it may have done other things, is such a function. To
 * call it costs a nanosecond.
 */

/* Brings a row into being; a lost race to do so is not a loss. */
static __always_inline void *row(void *map, const void *key, const void *zero)
{
	void *found = bpf_map_lookup_elem(map, key);

	if (found)
		return found;
	bpf_map_update_elem(map, key, zero, BPF_NOEXIST);
	found = bpf_map_lookup_elem(map, key);
	if (!found)
		lose();
	return found;
}

static __always_inline struct call_stats *call_row(const struct call_key *key, u32 image)
{
	struct call_stats *c = bpf_map_lookup_elem(&calls, key);

	if (c)
		return c;
	c = row(&calls, key, &no_calls);
	if (c)
		c->sums.image = image;
	return c;
}

/* A row by call and number: of an error, or of a counter that overflowed. */
static __noinline struct error_count *numbered_row(void *map, struct call_key *key, u32 image,
						   u32 number)
{
	struct error_count none = {}, *e;
	struct call_key of = *key;

	of.error = number;
	e = row(map, &of, &none);
	if (e)
		e->image = image;
	return e;
}

/* What a counter has counted when it overflows. */
static __always_inline u64 overflow(u32 number)
{
	if (number < CARRY_PLAIN)
		return 1ULL << 32;
	return number >= CARRY_FREQUENT && number < CARRY_WALL ? 1 << 16 : 1 << 8;
}

__noinline int carry(struct call_key *key, u32 image, u32 number)
{
	struct error_count *e;

	if (!key)
		return 0;
	e = numbered_row(&carries, key, image, number);
	if (e)
		e->count += overflow(number);
	else
		/* One of them has been counted. */
		__sync_fetch_and_add(&counters.lost_events, overflow(number) - 1);
	return 0;
}

/* Counts one in a short counter. */
#define TICK(counter, key, image, number)                \
	do {                                             \
		if (!++(counter))                        \
			carry((key), (image), (number)); \
	} while (0)

/*
 * Gives a call that proves frequent a row at hand. Where that row will go in the end is made now: a
 * thread ends in its last switch, where an allocation may fail.
 */
__noinline int warm(struct thread *t, u16 call)
{
	struct call_key key = {.call = call};

	if (!t)
		return 0;
	key.thread = t->id;
	if (!bpf_map_update_elem(&frequent, &key, &none_frequent, BPF_NOEXIST))
		t->hot_call[call & (HOT - 1)] = call + 1;
	return 0;
}

/* Books the usual returns of a hot row that were only counted so far. */
__noinline int book_usual(struct thread *t, u32 h)
{
	struct call_key key = {};
	u32 slot, *counter, before;
	struct hot_row *hot;

	if (!t)
		return 0;
	h &= HOT - 1;
	hot = &t->hot[h];
	key.thread = t->id;
	key.call = t->hot_call[h] - 1;
	slot = slot_by_call(hot->usual);
	if (slot >= SLOTS)
		return 0;
	counter = &hot->row.sums.returns[slot];
	before = *counter;
	*counter += hot->times;
	if (*counter < before)
		carry(&key, t->image, CARRY_RETURNS + slot);
	hot->row.sums.numbers.bytes += hot->times * hot->usual;
	hot->times = 0;
	return 0;
}

__noinline int cool_row(struct thread *t, u32 h)
{
	struct call_key key = {};
	struct frequent_stats *to;

	if (!t)
		return 0;
	h &= HOT - 1;
	if (!t->hot_call[h])
		return 0;
	key.thread = t->id;
	key.call = t->hot_call[h] - 1;
	book_usual(t, h);
	t->hot_call[h] = 0;
	t->hot[h].row.sums.image = t->image;
	to = bpf_map_lookup_elem(&frequent, &key);
	if (to)
		*to = t->hot[h].row;
	else
		lose();
	__builtin_memset(&t->hot[h].row, 0, sizeof(t->hot[h].row));
	return 0;
}

/* Puts the thread's hot rows into the table, beside those they went on from. */
static __always_inline void cool(struct thread *t)
{
	for (u32 h = 0; h < HOT; h++)
		cool_row(t, h);
}

/* Puts what was counted by a side into its file's row, which was made when the side was set. */
static __always_inline void settle_side(struct side *side, bool reads)
{
	struct file_key key = side->key; /* older verifiers want the keys of maps on the stack */
	struct file_stats *f;

	if (!side->calls)
		return;
	f = bpf_map_lookup_elem(&files, &key);
	if (f && reads) {
		f->read_calls += side->calls;
		f->read_bytes += side->bytes;
	} else if (f) {
		f->write_calls += side->calls;
		f->write_bytes += side->bytes;
	}
	side->calls = 0;
	side->bytes = 0;
}

/* The thread leaves its image, or ends. */
__noinline int settle_sides(struct thread *t)
{
	if (!t)
		return 0;
	settle_side(&t->from, true);
	settle_side(&t->to, false);
	t->from.key.inode = 0;
	t->to.key.inode = 0;
	return 0;
}
