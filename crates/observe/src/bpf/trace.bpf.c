// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * Counts and times every system call of the watched threads, in the kernel.
 *
 * Hooks: BTF-typed raw tracepoints sys_enter, sys_exit, sched_switch,
 * sched_wakeup, sched_wakeup_new, sched_process_fork, sched_process_exec,
 * sched_process_exit, cgroup_attach_task and cgroup_mkdir where cgroups are
 * selected, and iterators run by user space: `adopt` begins a
 * watch, `settle` closes the books of threads that outlive it, that of
 * snapshot.bpf.h shows what has been counted so far. Those of connections
 * and of io_uring are in connections.bpf.h and rings.bpf.h.
 *
 * A thread is watched when it has a `struct thread` in task storage; an
 * unwatched one pays a failed look-up. Rows are kept a thread, not a process,
 * so no counter is ever shared between CPUs and none needs an atomic. A call
 * costs two clock reads, two storage look-ups and, unless it has proved
 * frequent, one hash look-up. Nothing is emitted a call; the ring only tells of threads that ended,
 * so that user space can collect their rows and free them, and loses no count when full.
 *
 * Limits: maps are bounded; a row that finds no room is counted in
 * `lost_events`, call by call.
 */
#include "types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "kernel_numbers.bpf.h"
#include "trace.h"
#include "thread.bpf.h"
#include "owners.bpf.h"
#include "path.bpf.h"
#include "fields.bpf.h"
#include "glob.bpf.h"
#include "where.h"

#define PF_KTHREAD	     0x00200000
#define PF_IO_WORKER	     0x00000010 /* io_uring's own threads make no calls */
#define PF_EXITING	     0x00000004
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED	     0x0004
#define TASK_TRACED	     0x0008
#define TASK_DEAD	     0x0080
#define SECCOMP_MODE_DEAD    3
#define MAX_ERRNO	     4095
#define WAKE_BYTES	     (64 * 1024)
#define MAP_ANONYMOUS	     0x20
#define O_DIRECT	     040000
#define SIGKILL		     9
#define SIGSYS		     31

/* Numbers of calls. */
#define NR_EXECVE	     59
#define NR_EXIT		     60
#define NR_CHDIR	     80
#define NR_EXIT_GROUP	     231
#define NR_EXECVEAT	     322
#define NR_EXIT_I386	     (CALL_I386 | 1)
#define NR_RT_SIGRETURN	     15
#define NR_SIGRETURN_I386    (CALL_I386 | 119)
#define NR_RT_SIGRETURN_I386 (CALL_I386 | 173)
#define NR_EXECVE_I386	     (CALL_I386 | 11)
#define NR_CHDIR_I386	     (CALL_I386 | 12)
#define NR_EXIT_GROUP_I386   (CALL_I386 | 252)
#define NR_EXECVEAT_I386     (CALL_I386 | 358)

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

/* The CPUs on which the watched threads might run: a bit each. */
u64 allowed_cpus[CPU_WORDS] SEC(".data.cpus");

struct counters counters;

#include "slots.bpf.h"
#include "tables.bpf.h"

/* What a thread `adopt` finds begins with: whole before the thread itself can see any of it. */
struct thread newcomer SEC(".data.newcomer");

ROWS(calls, struct call_key, struct call_stats);
ROWS(frequent, struct call_key, struct frequent_stats);
ROWS(waits, struct call_key, struct wait_stats);
ROWS(errors, struct call_key, struct error_count);
ROWS(carries, struct call_key, struct error_count);
ROWS(asked, struct call_key, struct error_count);
ROWS(images, u32, struct image);
ROWS(programs, u32, struct program);
ROWS(titles, u32, struct title);
ROWS(attached, u32, struct attached); /* by image, until it is named */
ROWS(files, struct file_key, struct file_stats);
ROWS(file_names, struct file_key, struct file_name);
#ifdef DETAILS
ROWS(paths, struct path_key, struct path_row);
ROWS(directories, struct file_key, struct file_name);
#endif
ROWS(thread_rows, u32, struct thread_row);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} deaths SEC(".maps");

#ifdef DETAILS
#include "track.bpf.h"
#endif

#ifdef WHERE
#include "subject.h"
#include "filter.bpf.h"
#endif

/* Zeroes to insert, and room for what a stack of 512 bytes cannot hold. */
struct scratch {
	struct program program;
	struct roomy_name file;
#ifdef DETAILS
	struct path_row path;
	struct slow_call slow;
	u64 frames[CALLERS];
	u64 registers[USER_KEPT];
	struct track track;
#endif
#ifdef WHERE
	struct subject subject;
	struct kept_text text;
	struct filter filter; /* of a request of io_uring */
	struct ring_facts ring;
#endif
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static const struct call_stats no_calls;
static const struct frequent_stats none_frequent;
static const struct wait_stats no_waits;
static const struct scratch no_scratch;

static __always_inline void lose(void)
{
	__sync_fetch_and_add(&counters.lost_events, 1);
}

static __always_inline struct thread *watched(struct task_struct *task)
{
	return thread_of(task);
}

/* The place of a call in tables by its number. The numbers from the last place on, which no call
 * has, share it. */
static __always_inline u32 place_of(u16 call)
{
	u32 number = call & CALL_NUMBER;

	return number < UNNAMED ? number : UNNAMED;
}

static __always_inline bool is_in(const volatile u64 (*bits)[8], u16 call)
{
	u32 place = place_of(call);

	return bits[call & CALL_I386 ? 1 : 0][(place >> 6) & 7] >> (place & 63) & 1;
}

static __always_inline bool wants(struct thread *t, u16 call)
{
	if (!knobs.filtered)
		return true;
	if (t->calibrates)
		return !adoption.unwanted;
	return is_in(knobs.wanted, call);
}

/*
 * Whether a call is let pass at its entry: its number says that it is not counted, and nothing else
 * needs to know of it. Its time is the thread's outside calls. A thread that may be in a call, or
 * at its start, takes the long way.
 */
static __always_inline bool passes(struct thread *t, u16 call)
{
	if (!knobs.lets_pass || t->in_call || !t->image)
		return false;
	if (t->left && (t->attached || t->newborn))
		return false;
	if (t->calibrates)
		return adoption.unwanted;
	return is_in(knobs.passed, call);
}

static __always_inline bool is_error(long ret)
{
	return ret < 0 && ret >= -MAX_ERRNO;
}

#include "rows.bpf.h"
#include "images.bpf.h"
#include "selection.bpf.h"
#include "books.bpf.h"
#include "untraced.bpf.h"
#include "where_hooks.bpf.h"
#include "io_workers.bpf.h"
#include "life.bpf.h"
#include "files.bpf.h"
#include "bytes.bpf.h"
#include "paths.bpf.h"
#include "connects.bpf.h"
#include "callers.bpf.h"
#include "user_stack.bpf.h"
#include "slowest.bpf.h"
#include "where.bpf.h"
#include "until.bpf.h"
#include "rings.bpf.h"
#include "windows.bpf.h"
#include "calls.bpf.h"
#include "sampled.bpf.h"
#include "sched.bpf.h"
#include "snapshot.bpf.h"

FORGET_TASK
{
	forget_row(&threads, task);
#ifdef WHERE
	forget_row(&filters, task);
#endif
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
