/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Aggregations. The first word of a key has the aggregation, its epoch, the bin of a distribution,
 * and the CPU and depth whose row it is.
 */

static const struct row no_row;

/* How an aggregation takes a value. */
enum aggregating {
	AGG_SUM,
	AGG_MINIMUM,
	AGG_MAXIMUM,
	AGG_MOMENTS, /* of which an average needs two */
	AGG_BIN,
};

/* Takes room for a new key; false: there is none. What was cleared has given its room back. */
static __always_inline bool take_key(u64 head, u64 bytes)
{
	u32 all_at = AGGREGATIONS, at = head & (AGGREGATIONS - 1);
	struct room *all = bpf_map_lookup_elem(&taken, &all_at);
	struct room *own = bpf_map_lookup_elem(&taken, &at);
	u64 epoch = head >> 16 & 0xffff;

	if (!all || !own)
		return false;
	if (own->epoch != epoch) {
		all->bytes -= own->bytes;
		own->bytes = 0;
		own->epoch = epoch;
	}
	if (all->bytes + bytes > knobs.aggsize) {
		count(&counters.dropped_keys);
		return false;
	}
	all->bytes += bytes;
	own->bytes += bytes;
	return true;
}

/* Of a key whose row found no place. */
static __always_inline void give_back_key(u64 head, u64 bytes)
{
	u32 all_at = AGGREGATIONS, at = head & (AGGREGATIONS - 1);
	struct room *all = bpf_map_lookup_elem(&taken, &all_at);
	struct room *own = bpf_map_lookup_elem(&taken, &at);

	/* A firing on top of this one may have begun another epoch, and has given back all then. */
	if (all && own && own->epoch == (head >> 16 & 0xffff)) {
		all->bytes -= bytes;
		own->bytes -= bytes;
	}
}

static __always_inline struct row *small_row(struct machine *m, u64 bytes, u32 bin)
{
	struct small_key key;
	struct row *row;

	lay_small(&key, m, knobs.key_words);
	key.word[0] |= (u64)bin << 32;
	row = bpf_map_lookup_elem(&rows, &key);
	if (row)
		return row;
	if (bin) {
		/* The first bin of a key takes the room of all. */
		key.word[0] |= (u64)HEAD_BIN << 32;
		row = bpf_map_lookup_elem(&rows, &key);
		if (!row) {
			if (!take_key(m->key[0], bytes))
				return NULL;
			if (bpf_map_update_elem(&rows, &key, &no_row, BPF_ANY))
				goto no_place;
		}
		key.word[0] &= ~((u64)HEAD_BIN << 32);
		key.word[0] |= (u64)bin << 32;
	} else if (!take_key(m->key[0], bytes)) {
		return NULL;
	}
	if (!bpf_map_update_elem(&rows, &key, &no_row, BPF_ANY))
		return bpf_map_lookup_elem(&rows, &key);
	/* A key that has bins keeps its room: others of them may be there. */
	if (bin)
		goto full;
no_place:
	give_back_key(m->key[0], bytes);
full:
	count(&counters.dropped_keys);
	return NULL;
}

static __always_inline struct row *large_row(struct machine *m, u64 bytes, u32 bin)
{
	u64 *key = lay_large(m), head;
	struct row *row;

	if (!key)
		goto full;
	head = *key;
	*key = head | (u64)bin << 32;
	row = bpf_map_lookup_elem(&large_rows, key);
	if (row)
		return row;
	if (bin) {
		*key = head | (u64)HEAD_BIN << 32;
		row = bpf_map_lookup_elem(&large_rows, key);
		if (!row) {
			if (!take_key(m->key[0], bytes))
				return NULL;
			if (bpf_map_update_elem(&large_rows, key, &no_row, BPF_ANY))
				goto no_place;
		}
		*key = head | (u64)bin << 32;
	} else if (!take_key(m->key[0], bytes)) {
		return NULL;
	}
	if (!bpf_map_update_elem(&large_rows, key, &no_row, BPF_ANY))
		return bpf_map_lookup_elem(&large_rows, key);
	/* A key that has bins keeps its room: others of them may be there. */
	if (bin)
		goto full;
no_place:
	give_back_key(m->key[0], bytes);
full:
	count(&counters.dropped_keys);
	return NULL;
}

/* The row of a bin + 1, or of what has no bins (0). `bytes`: what a new key takes. */
static __always_inline struct row *row_of(struct machine *m, u64 aggregation, u64 bytes, u32 bin)
{
	u64 epoch = epochs[aggregation & (AGGREGATIONS - 1)];

	m->key[0] = (aggregation & 0xffff) | epoch << 16 | (u64)m->place << 48;
	return m->key_length <= SMALL_KEY ? small_row(m, bytes, bin) : large_row(m, bytes, bin);
}

/* Adds a value to an aggregation's row, with the key that was laid. */
__noinline int d_aggregate(struct machine *m, u64 how, u64 value, u64 bytes)
{
	s64 size = value;
	struct row *row;
	u64 low, high, middle, square, before;

	if (!m)
		return 0;
	row = row_of(m, how & 0xffff, bytes, 0);
	if (!row)
		return 0;
	switch (how >> 16 & 0xff) {
	case AGG_SUM:
		row->word[0] += value;
		break;
	case AGG_MINIMUM:
		if (knobs.row_words < 2)
			break;
		if (!row->word[1] || size < (s64)row->word[0])
			row->word[0] = value;
		row->word[1] = 1;
		break;
	case AGG_MAXIMUM:
		if (knobs.row_words < 2)
			break;
		if (!row->word[1] || size > (s64)row->word[0])
			row->word[0] = value;
		row->word[1] = 1;
		break;
	case AGG_MOMENTS:
		if (knobs.row_words < 4)
			break;
		row->word[0]++;
		row->word[1] += value;
		if (size < 0)
			value = -value;
		/* The square, of 128 bits. */
		low = value & 0xffffffff;
		high = value >> 32;
		middle = low * high;
		square = low * low;
		before = square;
		square += middle << 33;
		high = high * high + (middle >> 31) + (square < before);
		row->word[2] += square;
		row->word[3] += high + (row->word[2] < square);
		break;
	}
	return 0;
}

/* Adds to a bin of a distribution. */
__noinline int d_add_to_bin(struct machine *m, u64 how, u64 times, u64 bytes)
{
	struct row *row;

	if (!m)
		return 0;
	row = row_of(m, how & 0xffff, bytes, (how >> 16 & 0xffff) + 1);
	if (row)
		row->word[0] += times;
	return 0;
}

/* The bin of quantize(), by the size of a value. */
static __always_inline u64 quantize_bin(u64 value)
{
	bool negative = (s64)value < 0;
	u64 power = 0;

	if (!value)
		return 63;
	if (negative)
		value = -value;
	_Pragma("unroll") for (int step = 32; step; step /= 2)
	{
		if (value >> step) {
			value >>= step;
			power += step;
		}
	}
	if (power > 62)
		power = 62;
	return negative ? 62 - power : 64 + power;
}

/* Adds to the bin of a value, of quantize(). */
__noinline int d_quantize(struct machine *m, u64 aggregation, u64 value, u64 times, u64 bytes)
{
	struct row *row;

	if (!m)
		return 0;
	row = row_of(m, aggregation & 0xffff, bytes, quantize_bin(value) + 1);
	if (row)
		row->word[0] += times;
	return 0;
}

/* The bin of lquantize(), of which the last is that of all above. */
__noinline u64 d_linear_bin(u64 value, u64 lower, u64 step, u64 last)
{
	u64 bin;

	if ((s64)value < (s64)lower || !step)
		return 0;
	bin = (value - lower) / step + 1;
	return bin < last ? bin : last;
}

struct levels_of {
	u64 value;
	u64 factor;
	u64 steps;
	u64 last;
	u64 bin;
	u64 found;
};

/* A power of llquantize() more. */
static long ascend_power(u32 turn, void *with)
{
	struct levels_of *l = with;
	u64 next, bins;

	/* As a signed number stays at its largest. */
	if (!l->factor || l->last > 0x7fffffffffffffffull / l->factor)
		next = 0x7fffffffffffffffull;
	else
		next = l->last * l->factor;
	bins = next < l->steps ? next : l->steps;
	if (!bins)
		return 1;
	if (l->value < next) {
		l->bin += (l->value - l->last) / (next / bins);
		l->found = 1;
		return 1;
	}
	l->bin += bins - bins / l->factor;
	l->last = next;
	return 0;
}

/* The bin of llquantize(); `by`: factor, steps, lowest and highest power, of 16 bits each. */
__noinline u64 d_log_linear_bin(u64 value, u64 by, u64 lowest)
{
	struct levels_of l = {
		.value = value,
		.factor = by & 0xffff,
		.steps = by >> 16 & 0xffff,
		.last = lowest,
		.bin = 1,
	};
	u64 low = by >> 32 & 0xffff, high = by >> 48;

	if ((s64)value < (s64)lowest)
		return 0;
	if (high < low)
		return 1;
	bpf_loop((high - low + 1) & 0xff, ascend_power, &l, 0);
	return l.bin;
}
