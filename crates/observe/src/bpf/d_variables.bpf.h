/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Variables that live longer than a firing. Those with keys, or by thread, come and go. */

__noinline int d_load_global(struct machine *m, u64 number, u64 slot)
{
	if (!m || slot >= SLOTS)
		return 0;
	m->slots[slot] = globals[number & (GLOBALS - 1)];
	return 0;
}

__noinline int d_store_global(u64 number, u64 value)
{
	globals[number & (GLOBALS - 1)] = value;
	return 0;
}

static __always_inline u64 *number_row(struct machine *m)
{
	struct small_key key;
	void *large;

	if (m->key_length <= SMALL_KEY) {
		lay_small(&key, m, knobs.variable_words);
		return bpf_map_lookup_elem(&numbers, &key);
	}
	large = lay_large(m);
	return large ? bpf_map_lookup_elem(&large_numbers, large) : NULL;
}

/* The value of the variable with the key that was laid; 0 without. */
__noinline int d_load(struct machine *m, u64 slot)
{
	u64 *row;

	if (!m || slot >= SLOTS)
		return 0;
	row = number_row(m);
	m->slots[slot] = row ? *row : 0;
	return 0;
}

/* Takes so many bytes for a new variable, if there are. */
static __always_inline bool take_room(u64 bytes)
{
	s64 before = __sync_fetch_and_add(&counters.variable_bytes, bytes);

	if (before + (s64)bytes <= (s64)knobs.dynvarsize)
		return true;
	__sync_fetch_and_add(&counters.variable_bytes, -bytes);
	count(&counters.dropped_variables);
	return false;
}

static __always_inline void free_room(u64 bytes)
{
	__sync_fetch_and_add(&counters.variable_bytes, -bytes);
}

/* Gives it a value, which takes so many bytes with its key; 0 frees it. */
__noinline int d_store(struct machine *m, u64 value, u64 bytes)
{
	struct small_key key;
	void *large = NULL;
	u64 *row;
	long got;

	if (!m)
		return 0;
	if (m->key_length <= SMALL_KEY) {
		lay_small(&key, m, knobs.variable_words);
		row = bpf_map_lookup_elem(&numbers, &key);
	} else {
		large = lay_large(m);
		if (!large)
			return 0;
		row = bpf_map_lookup_elem(&large_numbers, large);
	}
	if (row && value) {
		*row = value;
		return 0;
	}
	if (row) {
		got = large ? bpf_map_delete_elem(&large_numbers, large)
			    : bpf_map_delete_elem(&numbers, &key);
		if (!got)
			free_room(bytes);
		return 0;
	}
	if (!value || !take_room(bytes))
		return 0;
	got = large ? bpf_map_update_elem(&large_numbers, large, &value, BPF_ANY)
		    : bpf_map_update_elem(&numbers, &key, &value, BPF_ANY);
	if (got) {
		free_room(bytes);
		count(&counters.dropped_variables);
	}
	return 0;
}

/* The string of a row, if there is one, into the arena and a slot. */
static __always_inline int take_text(struct machine *m, u64 slot, u64 *row)
{
	u64 at = m->arena_length, length = 0;

	if (row)
		length = *row & (STRING_MOST - 1);
	if (at > ARENA_MOST - 8)
		return fail(m, FAULT_SCRATCH, 0);
	barrier_var(at);
	at &= ARENA_MOST - 8;
	barrier_var(length);
	length &= STRING_MOST - 1;
	if (row)
		bpf_probe_read_kernel((char *)m->arena + at, length, row + 1);
	m->slots[slot] = (u64)m->arena + at;
	m->slots[slot + 1] = length;
	m->arena_length = at + ((length + 7) & ~7ull);
	return 0;
}

__noinline int d_load_global_text(struct machine *m, u64 number, u64 slot)
{
	u32 at = number;

	if (!m || slot >= SLOTS - 1)
		return 0;
	return take_text(m, slot, bpf_map_lookup_elem(&global_strings, &at));
}

__noinline int d_load_text(struct machine *m, u64 slot)
{
	struct small_key key;
	void *large;
	u64 *row;

	if (!m || slot >= SLOTS - 1)
		return 0;
	if (m->key_length <= SMALL_KEY) {
		lay_small(&key, m, knobs.variable_words);
		row = bpf_map_lookup_elem(&strings, &key);
	} else {
		large = lay_large(m);
		row = large ? bpf_map_lookup_elem(&large_strings, large) : NULL;
	}
	return take_text(m, slot, row);
}

/* A slot's string, as maps hold it. */
static __always_inline u64 *lay_text(struct machine *m, u64 slot)
{
	u32 at = (m->place & 3) * 2 + 1;
	u64 *value = bpf_map_lookup_elem(&laid, &at), length;

	if (!value)
		return NULL;
	*value = 0;
	/* Beyond all slots there is none. */
	if (slot >= SLOTS - 1)
		return value;
	length = m->slots[slot + 1];
	if (length > STRING_MOST - 1)
		length = STRING_MOST - 1;
	barrier_var(length);
	length &= STRING_MOST - 1;
	*value = length;
	bpf_probe_read_kernel(value + 1, length, (void *)m->slots[slot]);
	return value;
}

__noinline int d_store_global_text(struct machine *m, u64 number, u64 slot)
{
	u32 at = number;
	u64 *value;

	if (!m)
		return 0;
	value = lay_text(m, slot);
	if (value)
		bpf_map_update_elem(&global_strings, &at, value, BPF_ANY);
	return 0;
}

/* The same of one with a key; a slot beyond all frees it. */
__noinline int d_store_text(struct machine *m, u64 slot, u64 bytes)
{
	struct small_key key;
	void *large = NULL;
	u64 *value, *row;
	long got;

	if (!m)
		return 0;
	if (m->key_length <= SMALL_KEY) {
		lay_small(&key, m, knobs.variable_words);
		row = bpf_map_lookup_elem(&strings, &key);
	} else {
		large = lay_large(m);
		if (!large)
			return 0;
		row = bpf_map_lookup_elem(&large_strings, large);
	}
	if (slot >= SLOTS - 1) {
		if (!row)
			return 0;
		got = large ? bpf_map_delete_elem(&large_strings, large)
			    : bpf_map_delete_elem(&strings, &key);
		if (!got)
			free_room(bytes);
		return 0;
	}
	if (!row && !take_room(bytes))
		return 0;
	value = lay_text(m, slot);
	got = -1;
	if (value)
		got = large ? bpf_map_update_elem(&large_strings, large, value, BPF_ANY)
			    : bpf_map_update_elem(&strings, &key, value, BPF_ANY);
	if (got) {
		if (!row)
			free_room(bytes);
		count(&counters.dropped_variables);
	}
	return 0;
}
