/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The slot of a distribution that a value counts in. */
#ifndef IOTOMY_SLOTS_BPF_H
#define IOTOMY_SLOTS_BPF_H

/* floor(log2(v)) + 1 of a byte, 0 for 0. */
#define R2(n)  n, n
#define R4(n)  R2(n), R2(n)
#define R8(n)  R4(n), R4(n)
#define R16(n) R8(n), R8(n)
#define R32(n) R16(n), R16(n)
#define R64(n) R32(n), R32(n)
const volatile u8 bits_of[256] = {
	0, 1, R2(2), R4(3), R8(4), R16(5), R32(6), R64(7), R64(8), R64(8),
};

/*
 * Times are counted 16 times as finely: by sixteenths of a power of two that are equally wide as
 * ratios (2^(1/16)), so that a value is known to 2.6 %. By the 8 bits behind the first one.
 */
const volatile u8 sixteenth_of[256] = {
	0,  0,	0,  0,	0,  0,	0,  0,	0,  0,	0,  1,	1,  1,	1,  1,	1,  1,	1,  1,	1,  1,
	1,  2,	2,  2,	2,  2,	2,  2,	2,  2,	2,  2,	2,  2,	3,  3,	3,  3,	3,  3,	3,  3,
	3,  3,	3,  3,	4,  4,	4,  4,	4,  4,	4,  4,	4,  4,	4,  4,	4,  4,	5,  5,	5,  5,
	5,  5,	5,  5,	5,  5,	5,  5,	5,  5,	6,  6,	6,  6,	6,  6,	6,  6,	6,  6,	6,  6,
	6,  6,	6,  7,	7,  7,	7,  7,	7,  7,	7,  7,	7,  7,	7,  7,	7,  7,	8,  8,	8,  8,
	8,  8,	8,  8,	8,  8,	8,  8,	8,  8,	8,  8,	9,  9,	9,  9,	9,  9,	9,  9,	9,  9,
	9,  9,	9,  9,	9,  9,	9,  10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10,
	10, 10, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 12,
	12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 13, 13, 13, 13,
	13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 14, 14, 14, 14, 14, 14,
	14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 15, 15, 15, 15, 15, 15, 15, 15,
	15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
};

static __always_inline u32 slot_of(u64 value)
{
	u32 shift = 0;

	if (value >> 32) {
		value >>= 32;
		shift = 32;
	}
	if (value >> 16) {
		value >>= 16;
		shift += 16;
	}
	if (value >> 8) {
		value >>= 8;
		shift += 8;
	}
	return shift + bits_of[value & 0xff];
}

/* Below this slot, and from the other one on, a power of two is one bucket. */
#define FIRST_FINE 7
#define PAST_FINE  41

/* The bucket of a time; see `TIMES`. */
static __always_inline u32 bucket_of(u64 ns)
{
	u32 slot = slot_of(ns), bits;

	if (slot < FIRST_FINE)
		return slot;
	if (slot >= PAST_FINE)
		return FIRST_FINE + 16 * (PAST_FINE - FIRST_FINE) + slot - PAST_FINE;
	bits = slot > 9 ? ns >> (slot - 9) : ns << (9 - slot);
	return FIRST_FINE + 16 * (slot - FIRST_FINE) + sixteenth_of[bits & 0xff];
}

/* The same for what is not done in every call, by functions that the verifier looks at once. Of 64
 * bits: of a smaller size the compiler leaves out a mask that it wants. */
__noinline int slot_by_call(u64 value)
{
	return slot_of(value);
}

__noinline int bucket_by_call(u64 ns)
{
	return bucket_of(ns);
}

#endif
