// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * Holds CPUs up as a host does that gives them to another guest: with
 * interrupts off, at ticks of a clock and where a guest is most often left,
 * at the programming of a timer.
 */
#define SEC(name) __attribute__((section(name), used))

typedef unsigned int u32;
typedef unsigned long long u64;

static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static long (*bpf_loop)(u32 times, void *step, void *context, u64 flags) = (void *)181;

/* One tick in so many, and one timer, is held up: powers of two; no longer than this. */
#define TICKS	 16
#define TICK_NS	 8000000
#define TIMERS	 2
#define TIMER_NS 1000000
/* More looks at the clock than there are in that time. */
#define LOOKS (1 << 22)

static int is_over(u32 step, u64 *until_ns)
{
	return bpf_ktime_get_ns() >= *until_ns;
}

static int hold_up(u32 one_in, u32 most_ns)
{
	u64 until_ns;

	if (bpf_get_prandom_u32() & (one_in - 1))
		return 0;
	until_ns = bpf_ktime_get_ns() + bpf_get_prandom_u32() % most_ns;
	bpf_loop(LOOKS, is_over, &until_ns, 0);
	return 0;
}

SEC("perf_event")
int on_tick(void *ctx)
{
	return hold_up(TICKS, TICK_NS);
}

SEC("tp_btf/hrtimer_start")
int on_timer(void *ctx)
{
	return hold_up(TIMERS, TIMER_NS);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
