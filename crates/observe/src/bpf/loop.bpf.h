/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Loops that the verifier need not follow turn by turn. */
#ifndef IOTOMY_LOOP_BPF_H
#define IOTOMY_LOOP_BPF_H

#include "without.bpf.h"

/* Does `once` until it says 1, and so many times at most. Kernels before Linux 5.17 have no such
 * helper. */
static __always_inline void repeat(u32 most, long (*once)(u32 turn, void *with), void *with)
{
	if (KERNEL_HAS(LOOPS) && bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) {
		bpf_loop(most, once, with, 0);
		return;
	}
	for (u32 turn = 0; turn < most; turn++)
		if (once(turn, with))
			return;
}

#endif
