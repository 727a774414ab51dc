/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * A watched thread, in task storage: written by the programs of trace.bpf.c, read by those of
 * others that are given the same map.
 */
#ifndef IOTOMY_THREAD_BPF_H
#define IOTOMY_THREAD_BPF_H

#include "fields.bpf.h"
#include "without.bpf.h"

#define TS_COMPAT 0x0002 /* the task is in a call of the 32-bit kind */

#define HOT	  4 /* a power of two */

/*
 * The row of a call that proves frequent, by call number: found without a look-up, and added beside
 * its row in `calls` when the thread leaves the image. Most calls return what they returned before:
 * those are only counted until another value comes.
 */
struct hot_row {
	u64 usual; /* the value last returned */
	u64 times; /* it was returned, not yet in `row` */
	struct frequent_stats row;
	u64 pad[-(16 + sizeof(struct frequent_stats)) % 64 / 8];
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

/* The books of a thread: their time is in its image's, or it has no part in the watch after all. */
enum books {
	OPEN,
	CLOSED,
	WITHDRAWN,
};

/* What a thread sleeps for, where that is not a call. */
enum sleep {
	IN_CALL, /* or not known */
	IN_FAULT,
	STOPPED, /* by a signal, or a tracer */
};

/* What `--where` makes of the call that a thread is in, or was in last. Without it, all are
 * counted. */
enum verdict {
	COUNTED,
	LEFT_OUT,
	UNDECIDED, /* until it returns */
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
	bool left; /* its CPU since the last boundary, or attached: the next has more to book */
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
	u32 closed;	    /* one of the states of its books; the task may stay on as a zombie */
	bool launcher;	    /* iotomy's own child, before its exec: not reported */
	bool newborn;	    /* has yet to return from the call that made it */
	bool attached;	    /* may have been inside a call when the watch began */
	bool slept;	    /* out_ns began a sleep, not a preemption */
	/* A call that began in another image: its image, and its time there. */
	u32 call_image;
	u8 transfer;
	u8 sleep; /* one of the reasons */
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
	u64 storage_read_bytes;
	/* What calls move bytes from and to. */
	struct side from;
	struct side to;
	u64 argument; /* of the current call: the length it maps, or the descriptors it asks after
		       */
	/* Of blocked_ns, in the current image. */
	u64 fault_ns;
	u64 stopped_ns;
	/* Who woke it last, where that is asked for. */
	u32 waker_tid;
	u32 waker_context;
	char waker[COMM_LEN];
	s32 waker_call;	 /* the call it was inside; or NO_CALL */
	u8 verdict;	 /* where other programs ask for it */
	u8 pending;	 /* anatomy.bpf.c has samples of the call, which is undecided */
	bool calibrates; /* iotomy's own, to measure the overhead: all of its calls count */
	u8 no_use;
	/* Calls that a filter does not count, in the current image; apart, those let pass. */
	u64 left_out;
	u64 passed;
	u64 room[7];
	struct hot_row hot[HOT];
};
_Static_assert((8 + __builtin_offsetof(struct thread, blocked_ns)) % 64 == 0, "one line");
_Static_assert((8 + __builtin_offsetof(struct thread, hot)) % 64 == 0, "rows begin lines");
/* The kernel allocates it with some 70 bytes of its own, in powers of two. */
_Static_assert(sizeof(struct thread) <= 4000, "a page");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* Most tasks have no storage at all, which a load shows: half the price of the look-up. */
static __always_inline struct thread *thread_of(struct task_struct *task)
{
	if (KERNEL_HAS(TASK_STORAGE) && !UNTRUSTED(struct task_struct, task)->bpf_storage)
		return NULL;
	return task_row(&threads, task);
}

#endif
