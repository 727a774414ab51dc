/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What the programs and user space exchange. Every struct is of u64 and u32 in
 * an order without padding; layout.rs reads them field by field in this order,
 * and both sides assert the sizes.
 */
#ifndef IOTOMY_TRACE_H
#define IOTOMY_TRACE_H

/* Slot 0 counts zeroes, slot k + 1 values v with floor(log2(v)) = k. */
#define SLOTS 65
/* Slots of calls that never left their CPU and took less than 2^29 ns; others are wait_stats. */
#define PLAIN_SLOTS 30

#define CALL_I386   0x8000
#define CALL_NUMBER 0x3fff

#define EXEC_LEN    128
#define ARGV_LEN    1024
#define PATH_LEN    1024

struct knobs {
	__u32 self_tgid;
	__u8 by_file;
	__u8 filtered; /* count only the calls in wanted */
	__u8 whole_machine;
	__u8 pad;
	__u64 wanted[2][8];	/* a bit a call: 64-bit, 32-bit */
	__u8 transfers[2][512]; /* from + 1 | (to + 1) << 4, as arguments; or SPECIAL */
};

/*
 * In the low half of a transfer: the call maps a file, if nothing is in the high half, or else asks
 * after as many descriptors as the argument there, less 1, says.
 */
#define SPECIAL 0xf

struct adoption {
	__u32 tgid;	/* 0: every process but iotomy's own */
	__u32 tid;	/* not 0: this one thread */
	__u32 launcher; /* its image is not reported, and ends with its first exec */
};

struct root {
	__u64 dentry;
	__u64 mount;
};

struct counters {
	__u64 lost_events;
	__u64 incomplete_calls;
	__u64 lost_files; /* rows of files that found no room */
	__u32 live_threads;
	__u32 open_books; /* of threads */
	__u32 last_thread;
	__u32 last_image;
};

/*
 * A call of one thread in one program image. The last field is the error's number in `errors`, the
 * counter's in `carries`, HOT_ROW in a second row of `calls`, and else 0.
 */
#define HOT_ROW 1
struct call_key {
	__u32 thread;
	__u16 call;
	__u16 error;
};

/*
 * Calls that stayed on their CPU, for which wall and on-CPU time are the same. Counters are short,
 * so that many rows fit into little memory; one that overflows is carried into `carries`.
 */
struct call_stats {
	__u64 wall_ns;
	__u64 max_ns;
	__u32 plain[PLAIN_SLOTS];
	__u32 image;
	__u32 in_flight;
	__u64 bytes;
	__u32 returns[SLOTS];
	__u32 entered_before; /* of in_flight: under way when the watch began, and returned */
};

/* Calls that left their CPU, by blocking or by preemption, on top of call_stats. */
struct wait_stats {
	__u64 wall_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u32 image;
	__u32 wall[SLOTS];
	__u32 on_cpu[SLOTS];
	__u32 blocked[SLOTS];
};

/* Numbers of the counters in `carries`: the first of each array. */
#define CARRY_RETURNS 0
#define CARRY_PLAIN   128
#define CARRY_WALL    256
#define CARRY_ON_CPU  384
#define CARRY_BLOCKED 512

struct error_count {
	__u64 count;
	__u32 image;
	__u32 pad;
};

/* One program image of one process. */
struct image {
	__u32 pid;
	__u32 ppid;
	__u32 origin; /* the image forked from, whose program it shares; 0 after an exec */
	__u32 threads;
	__u32 live;
	__u32 pad;
	__u64 start_ns;
	__u64 end_ns;
	__u64 thread_ns;
	__u64 user_ns;
	__u64 calls_on_cpu_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 utime_ns;
	__u64 stime_ns;
	__u64 runtime_ns;
	__u64 minor_faults;
	__u64 major_faults;
	__u64 voluntary_switches;
	__u64 involuntary_switches;
	__u64 max_rss_pages;
	__u64 storage_read_bytes; /* all ones: not counted by this kernel */
	__u64 fault_ns;		  /* of blocked_ns, in page faults outside calls */
	__u64 stopped_ns;	  /* of blocked_ns, stopped by a signal or a tracer */
};

struct program {
	__u32 argv_bytes; /* all of them, also those beyond ARGV_LEN */
	__u32 pad;
	char exec[EXEC_LEN];   /* the path executed */
	char binary[EXEC_LEN]; /* the name of the file that is run */
	char argv[ARGV_LEN];
};

struct file_key {
	__u64 dentry;
	__u64 inode;
	__u32 device;
	__u32 thread; /* 0 in file_names */
};

struct file_stats {
	__u64 read_calls;
	__u64 read_bytes;
	__u64 write_calls;
	__u64 write_bytes;
	__u64 map_calls;
	__u64 mapped_bytes;
	__u32 image;
	__u32 pad;
};

struct file_name {
	__u64 magic;
	__u32 mode;
	__u32 length; /* bytes used in path */
	__u32 whole;  /* the path reaches the root */
	__u32 pad;
	/* The file when it was first met. */
	__u64 size_bytes;
	__u64 cached_pages;  /* all ones: not asked */
	char path[PATH_LEN]; /* components, leaf first, each with its NUL */
};

/* What a look at the running counts reads: of rows of calls, waits and errors, and of hot rows. */
struct live_call {
	__u32 image;
	__u32 call;
	__u64 calls;
	__u64 errors;
	__u64 bytes;
	__u64 wall_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 max_ns;
};

#define LIVE_IN_CALL 1
#define LIVE_SLEPT   2

/* A thread as struct thread has it; two live_side follow, and as many live_call as `hot` says. */
struct live_thread {
	__u64 now_ns;
	__u64 last_ns;
	__u64 user_ns;
	__u64 calls_on_cpu_ns;
	__u64 off_ns;
	__u64 blocked_ns;
	__u64 off_at_last_ns;
	__u64 blocked_at_last_ns;
	__u64 out_ns;
	__u64 woken_ns;
	__u64 start_ns;
	__u64 off_before_ns;
	__u64 blocked_before_ns;
	__u32 image;
	__u32 call;
	__u32 state;
	__u32 hot;
};

/* What of a file's use is in no row yet: read from, then written to. */
struct live_side {
	struct file_key key; /* an inode of 0 is none */
	__u64 calls;
	__u64 bytes;
};

/* Announces that a thread's rows are complete. */
struct death {
	__u32 thread;
	__u32 pad;
};

#endif
