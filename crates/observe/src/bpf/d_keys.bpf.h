/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Keys of aggregations, associative arrays and thread-local variables: a word that says of which,
 * the integers, then each string as its length (16 bits) and its bytes, up to the next whole word.
 * In keys of aggregations, some strings are words among the integers
 * (crates/dtrace/src/kernel/parts.rs).
 */

/* Appends a string, of a slot and the next one, to the key. */
__noinline int d_key_text(struct machine *m, u64 slot)
{
	u64 at, length, last;

	if (!m || slot >= SLOTS - 1)
		return 0;
	at = m->key_length;
	length = m->slots[slot + 1];
	if (length > STRING_MOST - 1)
		length = STRING_MOST - 1;
	if (at > LARGE_KEY - 8)
		return 0; /* what is emitted has made sure of the room */
	barrier_var(at);
	at &= LARGE_KEY - 8;
	barrier_var(length);
	length &= STRING_MOST - 1;
	/* Whose rest is the same for the same string. */
	last = at + ((length + 1) & ~7ull);
	*(u64 *)((char *)m->key + last) = 0;
	*(u16 *)((char *)m->key + at) = length;
	bpf_probe_read_kernel((char *)m->key + at + 2, length, (void *)m->slots[slot]);
	m->key_length = last + 8;
	return 0;
}

/* A key on the stack, where older verifiers want it, with nothing behind its end. Maps take as many
 * words as the largest of the program's has. */
struct small_key {
	u64 word[SMALL_KEY / 8];
};

static __always_inline void lay_small(struct small_key *key, struct machine *m, u32 words)
{
	u32 length = m->key_length;

	_Pragma("unroll") for (u32 i = 0; i < SMALL_KEY / 8; i++) key->word[i] =
		i < words && 8 * i < length ? m->key[i] : 0;
}

static const u64 zeros[LARGE_KEY / 8];

/* The same of a large one, in a map. */
static __always_inline void *lay_large(struct machine *m)
{
	u32 at = (m->place & 3) * 2;
	void *key = bpf_map_lookup_elem(&laid, &at);
	u32 bytes = knobs.large_key, length = m->key_length;

	if (!key || bytes > LARGE_KEY)
		return NULL;
	bpf_probe_read_kernel(key, bytes, zeros);
	if (length > LARGE_KEY)
		length = LARGE_KEY;
	barrier_var(length);
	if (length > LARGE_KEY)
		return NULL;
	bpf_probe_read_kernel(key, length, m->key);
	return key;
}
