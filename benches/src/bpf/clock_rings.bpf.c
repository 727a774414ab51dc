// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * The minimal overhead of an observer that times requests of io_uring: programs that read the
 * clock once at each end and do nothing with the result.
 */
#define SEC(name) __attribute__((section(name), used))

static unsigned long long (*bpf_ktime_get_ns)(void) = (void *)5;
static volatile unsigned long long seen;

SEC("raw_tp/io_uring_submit_req")
int clock_submit(void *ctx)
{
	seen = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/io_uring_complete")
int clock_complete(void *ctx)
{
	seen = bpf_ktime_get_ns();
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
