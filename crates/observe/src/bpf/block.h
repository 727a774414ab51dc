/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What block.bpf.c and user space exchange: u64, u32, u16 and u8 in an order without padding, read
 * field by field in this order; both sides assert the sizes.
 */
#ifndef IOTOMY_BLOCK_H
#define IOTOMY_BLOCK_H

/* Who put a request's first bio into the block layer. */
#define VIA_CALL       0 /* a watched thread, in a call */
#define VIA_FAULT      1 /* a watched thread, in no call: it touched a page */
#define VIA_WRITE_BACK 2 /* a kernel thread, pages that a watched thread dirtied */
#define VIA_JOURNAL    3 /* a kernel thread, metadata of a file system that was changed */
#define VIA_OTHER      4 /* another process, pages that a watched thread dirtied */
#define VIA_IO_WORKER  5 /* io_uring's worker of a watched process */

#define NO_CALL	       0xffff
#define RING_OPERATION 0x4000 /* the operation of io_uring, in place of a call */

/* What a call does, for block_knobs.kinds. */
#define KIND_READ  1
#define KIND_WRITE 2
#define KIND_SYNC  3
#define KIND_BITS  3
/* Above them the number of the argument that is the descriptor, and how a read says what it asks
 * for. */
#define KIND_FD(kind)	 ((kind) >> 2 & 3)
#define KIND_ASKED(kind) ((kind) >> 4 & 3)
#define KIND_AT(kind)	 ((kind) >> 6 & 1)
#define ASKED_COUNT	 1 /* bytes, in argument 2; of a ring, in the request */
#define ASKED_VECTOR	 2 /* an array of struct iovec, in arguments 1 and 2 */

/* Of a timeline, beside its kind: its descriptor is the place of a registered file. */
#define KIND_REGISTERED 4

#define MOST_TIMELINES	16
#define WHATS		64 /* kinds of events of a timeline */
#define EVENTS		96 /* of a timeline, at most */
#define FIRST_OF_KIND	6  /* events of a kind that are kept; of the others the last two */
#define ARGS		4

/* Kinds of events that are no entry of user space's table. */
#define WHAT_OUT      (WHATS - 1) /* state, preempted */
#define WHAT_IN	      (WHATS - 2) /* cpu */
#define WHAT_WOKEN    (WHATS - 3) /* two words of the running thread's name, is it the idle task */
#define WHAT_QUEUE    (WHATS - 4) /* a bio: operation and flags, sector, bytes, device */
#define WHAT_INSERT   (WHATS - 5) /* a request, as of a bio */
#define WHAT_ISSUE    (WHATS - 6)
#define WHAT_COMPLETE (WHATS - 7) /* and the status in the upper half of the device */
#define WHAT_MERGE    (WHATS - 8)
#define WHAT_WORKER   (WHATS - 9) /* a request of io_uring is queued for a worker */
#define WHAT_PLANS    (WHATS - 9) /* entries the table may have */

struct block_knobs {
	__u32 timelines; /* how many of each kind to keep; 0: none are followed */
	__u32 page_shift;
	__u8 kinds[2][512];   /* by ABI and call */
	__u8 ring_kinds[256]; /* by operation of io_uring; those that are followed by timelines
			       * alone
			       */
};

struct block_counters {
	__u64 others_requests;
	__u64 others_bytes;
	__u64 lost;	      /* bios, requests and inodes that found no room */
	__u64 lost_pages;     /* pages read ahead that found no room */
	__u64 followed;	      /* calls whose timeline was taken down */
	__u64 not_followed;   /* calls of pipes, sockets, terminals and the like */
	__u64 lost_timelines; /* calls whose timeline found no room */
	__u32 next_buffer;
	__u32 pad;
	__u64 kept[2][MOST_TIMELINES]; /* ns / 16 << 16 | buffer + 1 */
};

struct row_key {
	__u32 image;
	__u32 device;
	__u16 call;
	__u8 via;
	__u8 operation;
};

struct block_row {
	__u64 bios;
	__u64 bio_bytes;
	__u64 requests;
	__u64 bytes;
	__u64 finished;
	__u64 errors;
	__u64 requeued;
	__u64 merged_bios;
	__u64 merged_requests;
	__u64 sync;
	__u64 meta;
	__u64 ahead;
	__u64 fua;
	__u64 preflush;
	__u64 queue_ns;
	__u64 device_ns;
	__u32 sizes[SLOTS];
	__u32 queue[SLOTS];
	__u32 scheduler[SLOTS];
	__u32 device[SLOTS];
};

/* Pages of reads through the page cache, of an image. */
struct ahead_row {
	__u64 asked;
	__u64 missed;
	__u64 ahead;
	__u64 hits;
	__u64 otherwise;
};

/* Where the values of a tracepoint are, for timeline events of a number. */
struct plan {
	__u16 offsets[ARGS];
	__u8 sizes[ARGS]; /* 0: no such value; above 8: signed, of that less 8 */
	__u16 device;	  /* where its device is; 0: not to be taken from other threads */
	__u16 pad;
};

struct timeline_event {
	__u64 at_ns;
	__u16 what;
	__u16 late;
	__u32 cpu;
	__u64 args[ARGS];
};

struct timeline {
	__u64 start_ns;
	__u64 end_ns;
	__u64 off_ns;
	__u64 blocked_ns;
	__u64 dentry; /* as in struct file_key */
	__u64 inode;
	__u32 device;
	__u32 image;
	__s64 ret;
	__u64 argument;
	__u64 offset; /* in the file; all ones: not known */
	__u32 fd;
	__u32 tid;
	__u16 call;
	__u16 kind;
	__u32 open;
	__u32 events_used;
	__u32 unseen; /* events that found no room */
	__u32 counts[WHATS];
	__u8 late_at[WHATS][2]; /* where the last events of a kind are, plus 1 */
	struct timeline_event events[EVENTS];
};

#endif
