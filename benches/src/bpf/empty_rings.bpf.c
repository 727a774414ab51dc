// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * The minimal overhead of an observer of requests of io_uring: programs that do nothing, on the
 * hooks of iotomy that every request passes.
 */
#define SEC(name) __attribute__((section(name), used))

SEC("raw_tp/io_uring_submit_req")
int empty_submit(void *ctx)
{
	return 0;
}

SEC("raw_tp/io_uring_complete")
int empty_complete(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
