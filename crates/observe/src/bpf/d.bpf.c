// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * Runs the clauses of a D program, in the kernel.
 *
 * Hooks: the BTF-typed raw tracepoints sys_enter, sys_exit and sched_switch, those of processes
 * (d_points.bpf.h), the scheduler (d_sched.bpf.h), block requests (d_io.bpf.h) and page faults
 * (d_counts.bpf.h), and timers of the CPUs, of which those are loaded that the program needs, and
 * `fire_probe`, which user space runs for BEGIN, END and what else it fires itself.
 *
 * The clauses are instructions that user space emits (crates/dtrace/src/kernel) and puts in place
 * of `clauses`, the last function of this object. What loops, or handles maps and strings, is a
 * function here that they call: each is global, so that the verifier looks at it once. All pass the
 * machine on, in whose slots the registers of a clause are.
 *
 * A firing costs a look-up by the call's number; one that a clause is for what its steps cost. Rows
 * of aggregations are kept by CPU, so that none is shared: user space adds them up.
 *
 * Loops are those of the helper bpf_loop (Linux 5.17), which no verifier follows turn by turn.
 *
 * Limits: maps are bounded by the options of the program, and what finds no room is counted by its
 * cause.
 */
#include "types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "fields.bpf.h"
#include "ids.bpf.h"
#include "tables.bpf.h"
#include "without.bpf.h"
#include "d.h"

#define TS_COMPAT 0x0002
#define MAX_ERRNO 4095

const volatile struct d_knobs knobs SEC(".rodata.knobs");

/* Strings as written in the program, each with its end. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} literals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct probe);
} probes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct set);
} sets SEC(".maps");

/* The probes of a call's entry, in the lower half, and of its return; 0 is none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CALL_NUMBERS);
	__type(key, u32);
	__type(value, u32);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MOST_LEVELS);
	__type(key, u32);
	__type(value, struct machine);
} machines SEC(".maps");

/* How deep firings interrupt each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} levels SEC(".maps");

/* Bytes that the keys of an aggregation take in its epoch; in the last row, those of all. */
struct room {
	u64 bytes;
	u64 epoch;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AGGREGATIONS + 1);
	__type(key, u32);
	__type(value, struct room);
} taken SEC(".maps");

/* Where a large key is laid, and the value of a string variable. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * MOST_LEVELS);
	__uint(key_size, 4);
	__uint(value_size, LARGE_KEY);
} laid SEC(".maps");

#define KEYED(name, bytes_of_key, bytes_of_value)     \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_HASH);      \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__uint(max_entries, 1);               \
		__uint(key_size, bytes_of_key);       \
		__uint(value_size, bytes_of_value);   \
	} name SEC(".maps")

/* Sizes of what is large are set by user space before loading. */
KEYED(rows, SMALL_KEY, sizeof(struct row));
KEYED(large_rows, LARGE_KEY, sizeof(struct row));
KEYED(numbers, SMALL_KEY, 8);
KEYED(large_numbers, LARGE_KEY, 8);
KEYED(strings, SMALL_KEY, 8 + STRING_MOST);
KEYED(large_strings, LARGE_KEY, 8 + STRING_MOST);

/* The string variables that all threads share. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8 + STRING_MOST);
} global_strings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct given);
} given SEC(".maps");

u64 globals[GLOBALS] SEC(".bss.globals");
/* Raised by user space when it clears an aggregation: rows of before are counted no more. */
u16 epochs[AGGREGATIONS] SEC(".bss.epochs");
struct d_counters counters SEC(".bss.counters");
/* exit() was called, or the program is over. */
u32 exited SEC(".bss.exited");
/* Iotomy's process, as the kernel numbers it. */
u32 own_tgid SEC(".bss.own_tgid");
/* The process that waits to run the command: its calls are none of the command's until its execve.
 */
u32 held SEC(".bss.held");
u64 random_state SEC(".data.random") = 0x2545f4914f6cdd1d;

/* The instructions of the clauses: at the end of this file. */
int clauses(struct machine *m, struct thread_row *row);

static __always_inline void count(u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

static __always_inline int fail(struct machine *m, u32 fault, u64 address)
{
	m->fault = fault;
	m->address = address;
	return 1;
}

/* What a loop works on, by its kind; the loop is passed the address of the machine's. */
#define WORK(kind, m) ((kind *)(m)->work)
#define MACHINE(with) (*(struct machine **)(with))

#ifdef DETAILS
static __always_inline void lose(void)
{
	count(&counters.lost_cgroups);
}

#include "cgroup_membership.bpf.h"
#endif

/* Probes fire in any process, or in those of the selected control groups. */
static __always_inline bool is_meant(struct task_struct *task)
{
#ifdef DETAILS
	return !knobs.by_cgroup || is_in_cgroup(task);
#else
	return true;
#endif
}

#include "d_facts.bpf.h"
#include "d_keys.bpf.h"
#include "d_variables.bpf.h"
#include "d_threads.bpf.h"
#include "d_aggregations.bpf.h"
#include "d_strings.bpf.h"
#include "d_functions.bpf.h"
#include "d_memory.bpf.h"
#include "d_events.bpf.h"
#include "d_probes.bpf.h"
#include "d_points.bpf.h"
#include "d_sched.bpf.h"
#ifdef DETAILS
#include "d_files.bpf.h"
#include "d_io.bpf.h"
#include "d_counts.bpf.h"
#include "d_stacks.bpf.h"
#endif

/* Its instructions are put here by user space: the last function, so that it can be of any length.
 */
__noinline int clauses(struct machine *m, struct thread_row *row)
{
	int outcome = 0;

	asm volatile("" : "+r"(outcome) : "r"(m), "r"(row) : "memory");
	return outcome;
}

FORGET_TASK
{
	forget_row(&threads, task);
	forget_row(&ended, task);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
