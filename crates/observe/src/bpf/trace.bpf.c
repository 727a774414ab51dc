// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * Counts and times every system call of the watched threads, in the kernel.
 *
 * Hooks: BTF-typed raw tracepoints sys_enter, sys_exit, sched_switch,
 * sched_wakeup, sched_wakeup_new, sched_process_fork, sched_process_exec,
 * sched_process_exit, and iterators run by user space: `adopt` begins a
 * watch, `settle` closes the books of threads that outlive it, those of
 * glimpse.bpf.h show what has been counted so far.
 *
 * A thread is watched when it has a `struct thread` in task storage; an
 * unwatched one pays a failed look-up. Rows are kept a thread, not a process,
 * so no counter is ever shared between CPUs and none needs an atomic. A call
 * costs two clock reads, two storage look-ups and, unless it has proved
 * frequent, one hash look-up. Nothing is emitted a call; the ring only tells of threads that ended,
 * so that user space can collect their rows and free them, and loses no count when full.
 *
 * Limits: maps are bounded; a row that finds no room is counted in
 * `lost_events`, call by call. Work done by io_uring shows as io_uring_enter.
 */
#include "types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "trace.h"

#define PF_KTHREAD    0x00200000
#define PF_IO_WORKER  0x00000010 /* io_uring's own threads make no calls */
#define TS_COMPAT     0x0002
#define TASK_DEAD     0x0080
#define MAX_ERRNO     4095
#define WAKE_BYTES    (64 * 1024)
#define HOT	      4 /* a power of two */
#define DEPTH	      48
#define NAME_LEN      256
#define MAP_ANONYMOUS 0x20
#define O_DIRECT      040000

/* Set before loading; constants to the verifier, which drops what they rule out. */
const volatile struct knobs knobs SEC(".rodata.knobs");

/* What `adopt` looks for, set before each run of it. */
struct adoption adoption SEC(".data.adoption");

/*
 * When the watch ended; 0 while it lasts, 1 while user space asks for the time.
 * Detaching takes many milliseconds and goes program by program, so half of them
 * would count what the others do not.
 */
u64 ended_ns SEC(".data.ended");

/* How deep iotomy's own namespace of process ids is; `adopt`, run by iotomy itself, finds it. */
u32 sight SEC(".data.sight");

/* iotomy's own root folder, where the paths it shows begin; found by `adopt` like `sight`. */
struct root root SEC(".data.root");

struct counters counters;

/* floor(log2(v)) + 1 of a byte, 0 for 0. */
#define R2(n)  n, n
#define R4(n)  R2(n), R2(n)
#define R8(n)  R4(n), R4(n)
#define R16(n) R8(n), R8(n)
#define R32(n) R16(n), R16(n)
#define R64(n) R32(n), R32(n)
const volatile u8 bits_of[256] = {
	0, 1, R2(2), R4(3), R8(4), R16(5), R32(6), R64(7), R64(8), R64(8),
};

/*
 * The row of a call that proves frequent, by call number: found without a look-up, and added beside
 * its row in `calls` when the thread leaves the image. Most calls return what they returned before:
 * those are only counted until another value comes.
 */
struct hot_row {
	u64 usual; /* the value last returned */
	u64 times; /* it was returned, not yet in `row` */
	struct call_stats row;
	u64 pad[2];
};
_Static_assert(sizeof(struct hot_row) % 64 == 0, "whole cache lines");

/*
 * The file that the thread's last call in a direction moved bytes of, and what is not in its row
 * yet: most calls go on with the same file, and need no look-up.
 */
struct side {
	struct file_key key; /* an inode of 0 is none */
	u64 file;
	u64 inode;
	u64 super;
	u64 operations;
	u64 calls;
	u64 bytes;
};

/* A watched thread, in one program image. */
struct thread {
	/*
	 * What every call looks at. The kernel places this struct 8 bytes into a cache line: these
	 * fill the rest of it.
	 */
	u64 last_ns; /* the last boundary between user and kernel */
	/* In the current image. */
	u64 user_ns;
	u64 calls_on_cpu_ns;
	u16 hot_call[HOT]; /* of a row in `hot`: its call + 1; 0 is none */
	u16 call;
	bool in_call;
	bool left;	 /* its CPU since the last boundary: the next has more to book */
	u32 call_thread; /* of a call that began in another image (exec): that thread's id */
	u32 id;
	u32 image;
	u64 off_ns; /* off its CPU since it is watched */

	u64 blocked_ns; /* of that, asleep */
	/* What stood at the last boundary; behind it only while `left`. */
	u64 off_at_last_ns;
	u64 blocked_at_last_ns;
	u64 out_ns; /* when it last left its CPU; 0 while on it */
	u64 woken_ns;
	u64 runtime_out_ns; /* the task's run time when it last left its CPU */
	u32 closed;	    /* its books are; the task may stay on as a zombie */
	bool launcher;	    /* iotomy's own child, before its exec: not reported */
	bool newborn;	    /* has yet to return from the call that made it */
	bool attached;	    /* may have been inside a call when the watch began */
	bool slept;	    /* out_ns began a sleep, not a preemption */
	/* A call that began in another image: its image, and its time there. */
	u32 call_image;
	u8 transfer;
	u64 wall_before_ns;
	u64 call_off_before_ns;
	u64 call_blocked_before_ns;
	/* When the image began, of the watch and of the task. */
	u64 start_ns;
	u64 off_before_ns;
	u64 blocked_before_ns;
	u64 utime_ns;
	u64 stime_ns;
	u64 runtime_ns;
	u64 minor_faults;
	u64 major_faults;
	u64 voluntary_switches;
	u64 involuntary_switches;
	/* What calls move bytes from and to. */
	struct side from;
	struct side to;
	u64 argument; /* of the current call: the length it maps, or the descriptors it asks after
		       */
	struct hot_row hot[HOT];
};
_Static_assert((8 + __builtin_offsetof(struct thread, blocked_ns)) % 64 == 0, "one line");
_Static_assert((8 + __builtin_offsetof(struct thread, hot)) % 64 == 0, "rows begin lines");

/* What a thread `adopt` finds begins with: whole before the thread itself can see any of it. */
struct thread newcomer SEC(".data.newcomer");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* Sizes are set by user space before loading. */
#define ROWS(name, key_type, value_type)              \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_HASH);      \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__uint(max_entries, 1);               \
		__type(key, key_type);                \
		__type(value, value_type);            \
	} name SEC(".maps")

ROWS(calls, struct call_key, struct call_stats);
ROWS(waits, struct call_key, struct wait_stats);
ROWS(errors, struct call_key, struct error_count);
ROWS(carries, struct call_key, struct error_count);
ROWS(asked, struct call_key, struct error_count);
ROWS(images, u32, struct image);
ROWS(programs, u32, struct program);
ROWS(attached_images, u32, u32);
ROWS(files, struct file_key, struct file_stats);
ROWS(file_names, struct file_key, struct file_name);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} deaths SEC(".maps");

/* Zeroes to insert, and room for what a stack of 512 bytes cannot hold. */
struct scratch {
	struct program program;
	struct file_name file_name;
	char spill[NAME_LEN]; /* behind file_name.path: see walk */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static const struct call_stats no_calls;
static const struct wait_stats no_waits;
static const struct scratch no_scratch;

static __always_inline void lose(void)
{
	__sync_fetch_and_add(&counters.lost_events, 1);
}

static __always_inline u32 slot_of(u64 value)
{
	u32 shift = 0;

	if (value >> 32) {
		value >>= 32;
		shift = 32;
	}
	if (value >> 16) {
		value >>= 16;
		shift += 16;
	}
	if (value >> 8) {
		value >>= 8;
		shift += 8;
	}
	return shift + bits_of[value & 0xff];
}

static __always_inline struct thread *watched(struct task_struct *task)
{
	return bpf_task_storage_get(&threads, task, NULL, 0);
}

static __always_inline bool wants(u16 call)
{
	u32 number = call & CALL_NUMBER;

	if (!knobs.filtered)
		return true;
	if (number > 511)
		return false;
	return knobs.wanted[call & CALL_I386 ? 1 : 0][(number >> 6) & 7] >> (number & 63) & 1;
}

static __always_inline bool is_error(long ret)
{
	return ret < 0 && ret >= -MAX_ERRNO;
}

#include "rows.bpf.h"
#include "images.bpf.h"
#include "files.bpf.h"
#include "calls.bpf.h"
#include "sched.bpf.h"
#include "glimpse.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
