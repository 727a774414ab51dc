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
/*
 * Buckets of times: as slots below 2^6 ns and from 2^40 ns on, and in between 16 a power of two, of
 * equal ratio (slots.bpf.h).
 */
#define TIMES 576
/* Buckets of calls that never left their CPU and took less than 2^20 ns; others are wait_stats. */
#define PLAIN_TIMES 232

#define CALL_I386   0x8000
#define CALL_NUMBER 0x3fff
#define UNNAMED	    511	   /* the place of this number, and of those beyond, in tables by number */
#define CALL_PASSED 0x7fff /* one that is let pass, from its entry to its return */
/* Of a path: the second of those that the call is given. */
#define SECOND_PATH 0x4000

#define EXEC_LEN    128
#define ARGV_LEN    1024
#define PATH_LEN    1024
#define COMM_LEN    16
#define TITLE_LEN   256 /* of a first argument, with its NUL */
#define CPU_WORDS   16	/* of 64 CPUs */
/* Of a path that a call is given: what is beyond is cut off. */
#define PATH_TEXT 384

struct knobs {
	__u32 self_tgid;
	__u8 by_file;
	__u8 filtered; /* count only the calls in wanted */
	__u8 whole_machine;
	__u8 selects;		/* running processes: BY_… and ONLY */
	__u64 wanted[2][8];	/* a bit a call: 64-bit, 32-bit */
	__u8 transfers[2][512]; /* from + 1 | (to + 1) << 4, as arguments; or SPECIAL */
	__u32 by_path;
	__u32 slowest; /* how many calls to keep whole */
	__u64 seed;
	/* The text + 1 | (its directory + 1) << 4, as arguments; 8 bits higher the same of a
	 * second.
	 */
	__u16 paths[2][512];
	__u32 by_thread;
	__u32 cpus;		  /* that may ever be there */
	__u8 descriptors[2][512]; /* the argument that is one, + 1; or NOT_KEPT */
	__u32 by_peer;
	__u32 has_rings;    /* what io_uring does is watched */
	__u32 lets_pass;    /* any of the next */
	__u32 tick_ns;	    /* of the kernel's jiffies */
	__u64 passed[2][8]; /* calls that are not wanted, and let pass at their entry */
	__u32 sampled;	    /* just calls that are entered in a window count */
	__u32 no_use;
};

/* When calls count that are entered: from one time until the other; 0: none do. */
struct window {
	__u64 opens_ns;
	__u64 closes_ns;
	__u64 since_ns; /* calls that were entered before do not count any more */
};

/* What windows saw of a call: by number, those of the 32-bit kind behind the others. */
struct series {
	__u64 calls; /* that have returned */
	__u64 errors;
	__u64 bytes;
	__u64 wall_ns;
	__u64 waits; /* that have left their CPU */
};
#define SERIES	1024
#define STRIPES 16 /* a power of two */

/*
 * In the low half of a transfer: the call maps a file, if nothing is in the high half, or else asks
 * after as many descriptors as the argument there, less 1, says.
 */
#define SPECIAL 0xf

/* What processes are selected by; and whether just they are, without those that they make. */
#define BY_PID	  1
#define BY_NAME	  2
#define BY_CGROUP 4
#define ONLY	  8

/* How far `adopt` has come with the selected processes. */
#define GATHERING 1
#define FOLLOWING 2 /* it has found those that ran: others may come */

struct adoption {
	__u32 stage;
	__u32 tid;	/* not 0: this one thread */
	__u32 launcher; /* this process: its image is not reported, and ends with its first exec */
	__u32 unwanted; /* the calls that measure the overhead are of those left out */
};

struct root {
	__u64 dentry;
	__u64 mount;
};

struct counters {
	__u64 lost_events;
	__u64 incomplete_calls;
	__u64 lost_files;	/* rows of files that found no room */
	__u64 lost_paths;	/* calls whose paths found none */
	__u64 lost_connections; /* that found none, or whose errors did */
	__u64 lost_requests;	/* of rings, that found none */
	__u32 live_threads;
	__u32 open_books; /* of threads */
	__u32 last_thread;
	__u32 last_image;
	__u32 adopted; /* threads, by `adopt` */
	__u32 pad;
};

/*
 * A call of one thread in one program image. The last field is the error's number in `errors`, the
 * counter's in `carries`, and else 0.
 */
struct call_key {
	__u32 thread;
	__u16 call;
	__u16 error;
};

/*
 * Numbers of a call. One with the name of a statistic of the record is that statistic;
 * call_numbers.rs has them in this order, and how they add up.
 */
struct call_numbers {
	__u64 wall_ns;
	__u64 max_ns; /* of those that stayed on their CPU */
	__u64 bytes;
	__u64 open_max_ns; /* of those in flight */
	__u64 open_ns;
	__u32 in_flight;
	__u32 entered_before; /* of in_flight: under way when the watch began, and returned */
};

/* All calls, but for the time and the distributions of those in wait_stats. */
struct call_sums {
	struct call_numbers numbers;
	__u32 image;
	__u32 returns[SLOTS];
};

/*
 * Calls that stayed on their CPU, for which wall and on-CPU time are the same. Counters are short,
 * so that many rows fit into little memory; one that overflows is carried into `carries`.
 */
struct call_stats {
	struct call_sums sums;
	__u8 plain[PLAIN_TIMES];
};

/* The same of a call that is frequent in its thread. */
struct frequent_stats {
	struct call_sums sums;
	__u16 plain[PLAIN_TIMES];
};

/* Calls that left their CPU, by blocking or by preemption, on top of call_stats. */
struct wait_stats {
	__u64 wall_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	/* Of those that returned. */
	__u64 max_wall_ns;
	__u64 max_on_cpu_ns;
	__u64 max_blocked_ns;
	__u32 image;
	__u32 pad;
	__u8 wall[TIMES];
	__u8 on_cpu[TIMES];
	__u8 blocked[TIMES];
};

/* Numbers of the counters in `carries`: the first of each array. */
#define CARRY_RETURNS  0
#define CARRY_PLAIN    1024
#define CARRY_FREQUENT 2048
#define CARRY_WALL     3072
#define CARRY_ON_CPU   4096
#define CARRY_BLOCKED  5120

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
	__u64 calls_left_out;	  /* that a filter does not count */
	__u64 calls_passed;	  /* of these, let pass at their entry: in user_ns */
};

/* One thread in one program image; `thread_ns` is 0 as long as it goes on. */
struct thread_row {
	__u32 image;
	__u32 tid;
	char comm[COMM_LEN];
	__u32 has_ended; /* and was not there at the end of the watch */
	__u32 is_first;	 /* of its process */
	__u64 thread_ns;
	__u64 user_ns;
	__u64 calls_on_cpu_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 voluntary_switches;
	__u64 involuntary_switches;
};

/* The image of a process that ran before it was watched. */
struct found {
	__u32 image;
	__u32 pad;
	__u64 began; /* of the process, as the kernel has it */
};

/* Of an image that ran before it was watched: user space names it by these. */
struct attached {
	__u32 pid;
	__u32 pad;
	char comm[COMM_LEN];
};

struct program {
	__u32 argv_bytes;      /* all of them, also those beyond ARGV_LEN */
	__u32 argv_words;      /* likewise */
	char exec[EXEC_LEN];   /* the path executed */
	char binary[EXEC_LEN]; /* the name of the file that is run */
	char argv[ARGV_LEN];
};

/* The first argument of a process that ends, which may be a title. */
struct title {
	char text[TITLE_LEN];
};

struct file_key {
	__u64 dentry; /* with its name: descriptors.bpf.h */
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

struct path_key {
	__u64 hash; /* of the path and its directory */
	__u32 thread;
	__u16 call; /* with SECOND_PATH */
	__u16 error;
};

/* Calls with a path, by outcome. */
struct path_row {
	__u64 calls;
	__u64 wall_ns;
	struct file_key directory; /* of a relative path; else 0 */
	__u32 image;
	__u32 length; /* with the NUL; PATH_TEXT: it may be longer; 0: it could not be read */
	char text[PATH_TEXT];
};

/* A call that is counted for the calibration's sake only. */
#define NOT_KEPT 0xff
/* Beside the argument: a wait for work, which is none of the slowest calls. */
#define IDLE_WAIT 0x40
/* The argument is the number of descriptors that are waited for: of none, it is a sleep. */
#define WAIT_COUNT 0x20
#define ARGUMENT   0xf

/* Most calls that are kept whole. */
#define SLOWEST 100

/* Whose work woke a thread: none did; a task's; that of an interrupt, late or at once. */
#define IN_NOTHING   0
#define IN_TASK	     1
#define IN_SOFTIRQ   2
#define IN_INTERRUPT 3
#define IN_UNKNOWN   4

/* A place in user space that calls come from. */
struct caller {
	struct file_key file; /* that is mapped there; else 0 */
	__u64 at;	      /* in it; without one, the address */
};

/* Most functions that are noted of those that a call was made in. */
#define CALLERS 12

/* A call, whole. */
struct slow_call {
	__u64 end_ns;
	__u64 wall_ns;
	__u64 off_ns;
	__u64 blocked_ns;
	__s64 ret;
	__u64 bytes;
	__u64 args[6];
	struct file_key file;	   /* behind its descriptor; else 0 */
	struct file_key directory; /* as in path_row */
	__u32 image;
	__u32 tid;
	__u32 call;
	__u32 waker_tid;
	__u32 waker_context;
	__s32 waker_call; /* -1: none */
	__u32 length;	  /* as in path_row */
	__u32 callers;	  /* so many of them */
	char comm[COMM_LEN];
	char waker[COMM_LEN];
	char text[PATH_TEXT];
	struct caller on_top; /* where the innermost function returns to, if it has no frame */
	struct caller caller[CALLERS]; /* the innermost first */
};

/* Of a stack: what is copied, in parts that no page's end divides. */
#define STACK_BYTES 8192
#define STACK_PART  512

/* Most mappings of code, and of anything else, that are kept of those that a stack leads to: powers
 * of two.
 */
#define CODES  32
#define OTHERS 16

/* Where registers are in user_stack: those that functions leave as they were. */
#define USER_BX	  0
#define USER_BP	  1
#define USER_R12  2
#define USER_R13  3
#define USER_R14  4
#define USER_R15  5
#define USER_SP	  6
#define USER_IP	  7
#define USER_KEPT 8

struct mapped_range {
	__u64 start;
	__u64 end;
};

/* Mapped code that a word of the stack may return to. */
struct mapped_code {
	struct mapped_range range;
	__u64 to_file;	      /* from an address to its place in the file */
	struct file_key file; /* 0: none */
};

/* The end of the stack that a call was made on, for user space to find who called. */
struct user_stack {
	__u64 busy;   /* a program fills it */
	__u64 end_ns; /* of the call; 0: none */
	__u64 from;   /* the address of the first word */
	__u64 vdso;   /* its address in the process; 0: none */
	__u64 registers[USER_KEPT];
	__u32 tid;   /* of the call */
	__u32 words; /* that could be read */
	__u32 codes;
	__u32 finds; /* of mappings, so far */
	struct mapped_code code[CODES];
	struct mapped_range other[OTHERS];
	__u64 word[STACK_BYTES / 8];
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

/* In place of the path of a file_name that is a socket. */
#define UNIX_PATH 108
struct socket_name {
	__u32 family;
	__u32 type;
	__u32 protocol;
	__u32 state;
	__u32 local_port;
	__u32 remote_port;
	__u8 local[16]; /* an address of IPv4 is in front */
	__u8 remote[16];
	__u32 peer_pid; /* of a UNIX socket: who connected, or listened; else 0 */
	__u32 path_length;
	__u32 peer_path_length;
	__u32 role; /* of TCP: how it was made, where that is known */
	char path[UNIX_PATH + 4];
	char peer_path[UNIX_PATH + 4];
};

/* How a connection is made. */
#define ROLE_UNKNOWN 0 /* before the watch, or by a call that is not counted */
#define ROLE_CONNECT 1
#define ROLE_ACCEPT  2

/*
 * The connections of an image with one peer. Of a connection that the image makes there is just the
 * remote end, of one that it accepts no remote port: the kernel chooses those, so that each
 * connection would be a row.
 */
struct connection_key {
	__u32 image;
	__u32 role;
	__u32 family;
	__u32 type;
	__u32 protocol;
	__u32 local_port;
	__u32 remote_port;
	__u32 peer_pid;
	__u8 local[16];
	__u8 remote[16];
	__u32 path_length; /* of a UNIX socket: the path of who listens */
	__u32 pad;
	char path[UNIX_PATH + 4];
};

struct connection_row {
	__u64 opened;
	__u64 before; /* were open when a call first moved bytes through them */
	__u64 closed;
	__u64 unfinished; /* connects that came to no end */
	/* Of those that were opened: until the connection was made, or accepted. */
	__u64 timed;
	__u64 time_ns;
	__u64 max_ns;
	/* TCP's figures, at the end of a connection or of the watch. */
	__u64 measured;
	__u64 rtt_us; /* sums; of those that know it */
	__u64 rttvar_us;
	__u64 rtts;
	__u64 min_rtt_us; /* 0: none */
	__u64 max_rtt_us;
	/* Since it was first met. */
	__u64 segments;
	__u64 retransmits;
	__u64 acked_bytes;
	__u64 received_bytes;
	/* Windows at the end: sums. */
	__u64 cwnd_segments;
	__u64 min_cwnd_segments; /* 0: none */
	__u64 max_cwnd_segments;
	__u64 snd_wnd_bytes;
	__u64 rcv_wnd_bytes;
	/* Since it was first met, as the counts. */
	__u64 busy_ns;
	__u64 rwnd_limited_ns;
	__u64 sndbuf_limited_ns;
	/* Of listeners, when accepts returned. */
	__u64 max_queued;
	__u64 queue_limit;
	__u64 dropped;
};

struct connection_error_key {
	struct connection_key key;
	__u32 error;
	__u32 pad;
};

/* How a request of a ring was carried out: the last of these that applies. */
#define BY_SUBMITTER 0 /* at once, by the thread that submitted it */
#define BY_SQ_THREAD 1 /* at once, by the ring's submission thread */
#define BY_POLL	     2 /* when its file was ready */
#define BY_WORKER    3 /* of those for work that ends soon, of which there are few */
#define BY_UNBOUNDED 4 /* a worker that may wait for ever, of which there may be many */
#define WAYS	     5

/* The requests of an image by one operation. */
struct ring_key {
	__u32 image;
	__u32 op;
};

struct ring_row {
	__u64 submitted;
	__u64 ways[WAYS]; /* of those that ended */
	__u64 results;	  /* of requests that have many, but for each one's last */
	__u64 overflows;  /* completions that found the ring's queue full */
	__u64 before;	  /* completions of requests from before the watch, in no other count */
	__u64 registered; /* requests whose file is one of the ring's registered files */
	__u64 forced;	  /* for workers without an attempt to do without: REQ_F_FORCE_ASYNC */
	__u64 unlinked;	  /* not carried out, as one that they were linked to failed */
	__u64 bytes;
	/* From submission to completion, where that was seen. */
	__u64 wall_ns;
	__u64 max_ns;
	__u32 wall[TIMES];
	__u32 sizes[SLOTS]; /* results that are added up in bytes */
	__u32 pad;
};

/* Rows of the images and operations that came first: found without a look-up. */
#define HOT_ROWS 64
struct ring_hot_row {
	__u64 owner; /* image << 32 | operation + 1; 0: none, yet */
	struct ring_row row;
};

/* The same of their files. */
#define HOT_FILES 64
#define HOT_READY 2
struct ring_hot_file {
	__u64 state; /* 1: about to be HOT_READY */
	struct file_key key;
	struct file_stats stats;
};

struct ring_error_key {
	__u32 image;
	__u32 op;
	__u32 error;
	__u32 pad;
};

/* What a look at the running counts reads of a hot row. */
struct live_call {
	__u32 image;
	__u32 call;
	struct call_numbers numbers;
};

/* Of its wall times: a bucket that is not empty. The last behind a live_call is NO_BUCKET. */
#define NO_BUCKET 0xffff
struct live_time {
	__u32 bucket;
	__u32 count;
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

/* Announces that a thread's rows are complete, or that processes are to be adopted. */
struct death {
	__u32 thread; /* 0: adopt; or WATCH_ENDED */
	__u32 pad;
};

/* A call has ended the watch. */
#define WATCH_ENDED -1U

#endif
