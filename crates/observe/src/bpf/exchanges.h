/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What exchanges.bpf.c and user space exchange, laid out as trace.h has it: exchanges/layout.rs
 * reads them. An exchange is a request and its answer.
 */
#ifndef IOTOMY_EXCHANGES_H
#define IOTOMY_EXCHANGES_H

/* What a thread that blocks in a call waits for. */
#define FOR_OTHERS 0 /* or, where the call moves bytes, what is behind its descriptors */
#define FOR_EVENTS 1 /* of descriptors: an answer, if the thread has asked for one */
#define FOR_DISK   2
#define FOR_LOCK   3
#define FOR_PEER   4
/* Calls that begin and end connections. */
#define CONNECTS 5
#define ACCEPTS	 6
#define CLOSES	 7

struct exchange_knobs {
	__u8 waits[2][512];	/* one of these, by ABI and number */
	__u8 transfers[2][512]; /* from + 1 | (to + 1) << 4, as arguments */
	__u8 flags[2][512];	/* the argument that has the flags of a receive, + 1 */
	__u8 operations[256];	/* what those of io_uring do: 1 reads, 2 writes */
};

struct exchange_counters {
	/* Requests whose row found no room, and calls that moved bytes through a connection that
	 * found none, or whose thread did.
	 */
	__u64 lost;
	__u64 unclear; /* connections of which it is not known which end asks */
};

/* Where a thread spent the time between two moments. */
struct spent {
	__u64 on_cpu_ns;
	__u64 runnable_ns;
	/* Blocked. */
	__u64 disk_ns;
	__u64 peer_ns;
	__u64 lock_ns;
	__u64 other_ns;
};

/* The exchanges of an image with one peer: by connection_key. */
struct exchange_row {
	__u64 requests;
	__u64 unanswered;
	__u64 pipelined;
	__u64 moved;
	__u64 unseen;
	__u64 wall_ns;
	__u64 max_ns;
	__u64 unread_ns;
	struct spent spent;
	__u32 wall[TIMES];
};

/* A connection, by its struct sock: the exchange that is under way. */
struct channel {
	struct connection_key key; /* by its role, who asks */
	__u64 inode;		   /* of its socket: another one may get the same struct */
	__u64 generation;	   /* of exchanges: this one's number */
	/* Of what has arrived and is unread, the first byte and the newest; 0: none, or not seen.
	 */
	__u64 arrived_ns;
	__u64 newest_ns;
	/* The request: its first byte, and when the thread went on with it. 0: there is none. */
	__u64 began_ns;
	__u64 read_ns;
	/* The answer: its last byte so far; 0: none. */
	__u64 end_ns;
	__u64 write_ns;	    /* entry of the last call that writes */
	struct spent spent; /* from read_ns to end_ns */
	/* What stood at read_ns in the books of the thread. */
	__u64 off_ns;
	__u64 blocked_ns;
	__u64 disk_ns;
	__u64 peer_ns;
	__u64 lock_ns;
	__u32 tid;
	__u32 writing; /* calls inside of which it is being written to */
	__u32 moved;
	__u32 pipelined;
	__u32 next_pipelined; /* bytes were unread when the answer was written */
	__u32 unseen;	      /* its arrival */
};

#endif
