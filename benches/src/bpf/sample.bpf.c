// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/* The minimal overhead of a program on a perf event: it does nothing. */
#define SEC(name) __attribute__((section(name), used))

SEC("perf_event")
int empty_sample(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
