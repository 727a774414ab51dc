// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/* The least a program on a perf event can cost: it does nothing. */
#define SEC(name) __attribute__((section(name), used))

SEC("perf_event")
int empty_sample(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
