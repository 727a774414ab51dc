/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What the programs of D, the instructions that user space emits for the clauses
 * (crates/dtrace/src/kernel) and the reader of events agree on.
 */
#ifndef IOTOMY_D_H
#define IOTOMY_D_H

#define SLOTS	      512  /* registers of a clause; a string takes two */
#define FACTS	      64   /* a string takes two */
#define LOCALS	      64   /* variables of a firing; a string takes two */
#define GLOBALS	      1024 /* integers that all threads share */
#define STRING_MOST   1024 /* strsize at most */
#define SMALL_KEY     64
#define LARGE_KEY     2048
#define EVENT_MOST    8192
#define ARENA_MOST    8192
#define MOST_IN_SET   62
#define MOST_LEVELS   3
#define LITERALS_MOST 65536
#define AGGREGATIONS  1024
#define PSARGS_MOST   256 /* of the line of a command, its end included */
#define GIVEN_TEXTS   10
#define THREAD_WORDS  16   /* integers of a thread in its row */
#define CALL_NUMBERS  1024 /* of the 32-bit kind from 512 on */

/* Facts by number. Those up to ERRNO are there from the start of a firing, the others on demand. */
enum fact {
	FACT_ARG0 = 0,
	FACT_PID = 10,
	FACT_TID = 11,
	FACT_THREAD_START = 12, /* tells threads apart that had the same number */
	FACT_ERRNO = 13,
	FACT_PPID = 16,
	FACT_UID,
	FACT_GID,
	FACT_CPU,
	FACT_TIMESTAMP,
	FACT_VTIMESTAMP,
	FACT_WALLTIMESTAMP,
	FACT_ID,
	/* Of the other thread that a firing is about. */
	FACT_OTHER_PID,
	FACT_OTHER_TID,
	/* Of the device that a block request is for. */
	FACT_DEV_MAJOR,
	FACT_DEV_MINOR,
	/* Strings: address and length. */
	FACT_EXECNAME = 32,
	FACT_PROBEPROV = 34,
	FACT_PROBEMOD = 36,
	FACT_PROBEFUNC = 38,
	FACT_PROBENAME = 40,
	FACT_OTHER_NAME = 42,
	FACT_PSARGS = 44,
	FACT_DEV_NAME = 46,
	FACT_DEV_PATH = 48,
};

/* A block request has these facts in place of arguments. */
enum io_fact {
	IO_FLAGS = 3,
	IO_BYTES = 4,
	IO_SECTOR = 5,
	IO_LEFT = 6,
	IO_ERROR = 7,
	IO_DEVICE = 8,
	IO_INODE = 9,
};

/* Points that probes are at, by number: as points.rs has them. */
enum point {
	POINT_CREATE,
	POINT_LWP_CREATE,
	POINT_EXEC_SUCCESS,
	POINT_START,
	POINT_LWP_START,
	POINT_EXIT,
	POINT_LWP_EXIT,
	POINT_SIGNAL_SEND,
	POINT_ON_CPU,
	POINT_OFF_CPU,
	POINT_SLEEP,
	POINT_PREEMPT,
	POINT_WAKEUP,
	POINT_IO_START,
	POINT_IO_DONE,
	POINT_IO_WAIT_START,
	POINT_IO_WAIT_DONE,
	POINT_SYSREAD,
	POINT_SYSWRITE,
	POINT_READCH,
	POINT_WRITECH,
	POINT_SYSEXEC,
	POINT_SYSFORK,
	POINT_SYSVFORK,
	POINT_SEMA,
	POINT_MSG,
	POINT_PSWITCH,
	POINT_INV_SWTCH,
	POINT_AS_FAULT,
	POINT_PROT_FAULT,
	POINT_KERNEL_ASFLT,
	POINT_PGIN,
	POINT_PGPGIN,
	POINT_PGOUT,
	POINT_PGPGOUT,
	POINTS
};

/* How a clause ended. */
enum outcome {
	OUTCOME_DONE,
	OUTCOME_FAULT,
	OUTCOME_FULL, /* there was no room for its records */
};

/* As ERROR's arg4 has them. */
enum fault {
	FAULT_ADDRESS = 1,
	FAULT_OPERATION = 3,
	FAULT_DIVISION = 4,
	FAULT_SCRATCH = 5,
	FAULT_STRING = 10,
};

/* A probe that some clause is for. */
struct probe {
	u16 set; /* of clauses */
	u16 lengths[4];
	u16 pad;
	u32 id;
	u64 names; /* as the machine has them */
	char provider[16];
	char module[16];
	char function[64];
	char name[32];
};

/* The clauses of a probe, in their order. */
struct set {
	u16 count;
	u16 clauses[MOST_IN_SET + 1];
};

/* What stands before the records of an event. */
struct event_head {
	u16 fault; /* 0: records */
	u16 clause;
	u16 probe;
	u16 cpu;
	u32 step;
	u32 records;
	u64 address;
};

/* What a clause runs on: one for each CPU and depth of interruption. */
struct machine {
	u32 clause;
	u32 step;
	u32 fault;
	u32 records;
	u64 address; /* of a fault */
	u32 key_length;
	u32 event_length;
	u32 arena_length;
	u32 exits;
	u32 place; /* CPU and depth */
	u32 probe_number;
	u64 probe; /* address */
	u64 literals;
	u64 names; /* of the probe: numbers that stand for its four strings in keys, of 16 bits each
		    */
	u8 present[FACTS];
	u64 facts[FACTS];
	u64 locals[LOCALS];
	u64 saved[24];
	u64 slots[SLOTS];
	/* Each with room for a string that begins at its end. */
	u64 key[(LARGE_KEY + STRING_MOST) / 8 + 1];
	u64 event[(EVENT_MOST + STRING_MOST) / 8 + 1];
	u64 arena[(ARENA_MOST + STRING_MOST) / 8 + 1];
	u64 one[STRING_MOST / 8 + 1];
	u64 other[STRING_MOST / 8 + 1];
	char execname[16];
	char other_name[16];
	char psargs[PSARGS_MOST];
	u64 work[8]; /* of a loop: nothing that a verifier follows from turn to turn */
	/* What strtok() has left of its text. */
	u64 token;
	u64 token_length;
	u64 task;     /* that the firing is about */
	u64 is_other; /* it is not the current one */
	u64 thread;   /* whose row is in a hash, where it is */
	char device[40];
};
/* As layout.rs of crates/dtrace/src/kernel has them. */
_Static_assert(__builtin_offsetof(struct machine, literals) == 56, "literals");
_Static_assert(__builtin_offsetof(struct machine, names) == 64, "names");
_Static_assert(__builtin_offsetof(struct machine, execname) == 29040, "execname");
_Static_assert(__builtin_offsetof(struct machine, present) == 72, "present");
_Static_assert(__builtin_offsetof(struct machine, locals) == 648, "locals");
_Static_assert(__builtin_offsetof(struct machine, slots) == 1352, "slots");
_Static_assert(__builtin_offsetof(struct machine, key) == 5448, "key");
_Static_assert(sizeof(struct machine) <= 32768, "the most that the kernel keeps by CPU");
_Static_assert(sizeof(struct event_head) == 24, "before the records");

/* What is kept of a thread. */
struct thread_row {
	/* Of its time off its CPU, since vtimestamp was first asked for. */
	u64 base_ns;
	u64 off_ns;
	u64 out_ns;
	u64 bytes; /* that its variables take */
	u64 words[THREAD_WORDS];
};
_Static_assert(__builtin_offsetof(struct thread_row, words) == 32, "words");

/* The value of an aggregation's key, or how many a bin of its distribution has. Maps have as many
 * words of it as the program's aggregations need. */
struct row {
	u64 word[4];
};

#define HEAD_BIN 0xffff /* of a distribution's key: counts its room */

/* What was not kept, and how often clauses failed. */
struct d_counters {
	u64 dropped_events;
	u64 dropped_keys;
	u64 dropped_variables;
	u64 errors_in_error;
	u64 nested; /* firings in interrupts of interrupts */
	u64 faults[16];
	s64 variable_bytes;
	u64 lost_cgroups;  /* made anew, and not followed */
	u64 lost_requests; /* of the block layer: too many at a time */
};

/* What a firing by user space is given. */
struct given {
	u8 present[FACTS];
	u64 facts[FACTS];
	char texts[GIVEN_TEXTS][64]; /* of the strings, by (fact - 32) / 2 */
};

/* How a program is run. */
struct d_knobs {
	u32 by_cgroup; /* probes fire in selected control groups only */
	u32 strsize;
	u32 error_probe;
	u32 large_key;	    /* bytes of a key in the maps of large ones */
	u32 key_words;	    /* of a key in the map of small rows */
	u32 variable_words; /* and in those of small variables */
	u32 locals;	    /* words that are used */
	u32 most_in_set;    /* clauses of any probe */
	u32 keeps_threads;  /* clauses need rows of threads */
	u32 row_words;	    /* of the value of any aggregation */
	u64 aggsize;
	u64 dynvarsize;
	u64 bufsize;
	s64 wall_offset_ns;
	u32 points[POINTS]; /* numbers of probes */
};

#endif
