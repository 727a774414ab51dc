/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What the programs of anatomy.bpf.c and user space exchange; rows.rs beside them reads it field by
 * field.
 */
#ifndef IOTOMY_ANATOMY_H
#define IOTOMY_ANATOMY_H

/* Set before loading: what is not asked for is not part of the programs then. */
struct sample_knobs {
	__u32 user_stacks;
	__u32 undecided; /* calls may be counted or not, as `--where` decides when they return */
	__u32 rings;	 /* what io_uring does is told by operation */
};

/* What a row counts. */
#define ON_CPU	0 /* samples */
#define BLOCKED 1 /* sleeps, and how long they took */

/* Where the instruction stands, besides a mapped file (file.inode is not 0). */
#define IN_KERNEL 0 /* see `stack` */
#define IN_FILE	  1
#define IN_VDSO	  2
#define IN_MEMORY 3 /* mapped, of no file */
#define NOWHERE	  4 /* it could not be asked: the mappings were being changed */

#define NO_STACK  -1 /* none was to be had */
#define COLLIDED  -2 /* its places were others' */

/* In a call: whether the trace counts it. */
#define OUTSIDE	     0
#define IN_COUNTED   (1 + COUNTED)
#define IN_LEFT_OUT  (1 + LEFT_OUT)
#define IN_UNDECIDED (1 + UNDECIDED) /* in no row */
/* No watched thread, but one of io_uring's: in no call. */
#define IN_WORKER    4
#define IN_SQ_THREAD 5

/* In the number of a stack: it is in the second table. */
#define MORE_STACKS 0x40000000

/* Addresses that are named at a time. */
#define ADDRESSES 128

/* All samples and sleeps that were alike. */
struct sample_key {
	struct file_key file; /* of the instruction, in user mode */
	__u64 offset;	      /* in it, or in the vDSO; in the kernel, see returns_to */
	__u32 image;	      /* 0: the launch */
	__u16 call;
	__u8 in_call; /* one of the above */
	__u8 kind;
	__s32 stack; /* of the kernel */
	__u32 place;
	__s32 user_stack;
	__u32 operation; /* of io_uring: that of a worker, or the last that was issued
			    (issues.bpf.h) */
};

struct sample_sum {
	__u64 times;
	__u64 ns;
};

/* Samples and sleeps, each by where it was, of a call whose outcome is to decide about them. */
#define MOST_PENDING 128

struct pending_sample {
	__u64 ns;
	__u64 returns_to;
	__s32 stack;
	__s32 user_stack;
	__u32 times;
	__u32 kind;
};

struct pending {
	__u64 lost[2]; /* by kind: no room for more */
	__u32 image;
	__u16 call;
	__u16 used;
	struct pending_sample sample[MOST_PENDING];
};

struct sampling {
	__u64 samples;	   /* of watched threads */
	__u64 others;	   /* of threads that are not */
	__u64 lost;	   /* of watched ones: no room for a row */
	__u64 lost_sleeps; /* no room for a row, or for what is to be remembered of the thread */
	__u64 lost_names;  /* of mapped files */
};

#endif
