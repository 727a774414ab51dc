/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Loops that the verifier need not follow turn by turn. */
#ifndef IOTOMY_LOOP_BPF_H
#define IOTOMY_LOOP_BPF_H

#include "without.bpf.h"

/* Kernels before Linux 5.17 have no such helper. */
#define HAS_LOOPS (KERNEL_HAS(LOOPS) && bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))

/*
 * Does `once` until it says 1, and `most` times at most; or `followed` times, where the verifier
 * has to follow each turn. It follows 8,192 jumps in all.
 */
static __always_inline void repeat_followed(u32 most, u32 followed,
					    long (*once)(u32 turn, void *with), void *with)
{
	if (HAS_LOOPS) {
		bpf_loop(most, once, with, 0);
		return;
	}
	for (u32 turn = 0; turn < followed; turn++)
		if (once(turn, with))
			return;
}

/* Does `once` until it says 1, and so many times at most. */
static __always_inline void repeat(u32 most, long (*once)(u32 turn, void *with), void *with)
{
	repeat_followed(most, most, once, with);
}

#endif
