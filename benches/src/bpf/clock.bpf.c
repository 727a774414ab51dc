// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * The minimal overhead of an observer that times calls: programs that read
 * the clock once at each end and do nothing with the result.
 */
#define SEC(name) __attribute__((section(name), used))

static unsigned long long (*bpf_ktime_get_ns)(void) = (void *)5;
static volatile unsigned long long seen;

SEC("tp_btf/sys_enter")
int clock_enter(void *ctx)
{
	seen = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int clock_exit(void *ctx)
{
	seen = bpf_ktime_get_ns();
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
