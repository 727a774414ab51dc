/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Tables of rows, and what several CPUs add to them; for all objects that have such. */
#ifndef IOTOMY_TABLES_BPF_H
#define IOTOMY_TABLES_BPF_H

/* User space sets the size before loading. */
#define ROWS(name, key_type, value_type)              \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_HASH);      \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__uint(max_entries, 1);               \
		__type(key, key_type);                \
		__type(value, value_type);            \
	} name SEC(".maps")

/* For counters that several CPUs may change. */
#define ADD(counter, number) __sync_fetch_and_add(&(counter), (number))

static __always_inline void raise_to(u64 *most, u64 number)
{
	u64 known;

	for (int i = 0; i < 4; i++) {
		known = *most;
		if (number <= known || __sync_val_compare_and_swap(most, known, number) == known)
			break;
	}
}

#endif
