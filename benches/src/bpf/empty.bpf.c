// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * The minimal overhead of an observer on these two tracepoints: programs that
 * do nothing, on the same hooks as iotomy's. The overhead that remains is the
 * kernel's slower entry path and the two trampolines.
 */
#define SEC(name) __attribute__((section(name), used))

SEC("tp_btf/sys_enter")
int empty_enter(void *ctx)
{
	return 0;
}

SEC("tp_btf/sys_exit")
int empty_exit(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
