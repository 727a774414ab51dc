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

#endif
