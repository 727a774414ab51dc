/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What the filter of `--where`, the groups of `--by` and the end by `--until` exchange with user
 * space: condition.rs, groups.rs.
 */
#ifndef IOTOMY_WHERE_H
#define IOTOMY_WHERE_H

/* What a condition may ask of a call that returns. */
enum fact {
	FACT_FD,
	FACT_ERRNO,
	FACT_BYTES,
	FACT_DURATION,
	FACT_THREAD,
	FACT_PID,
	/* Of all counted calls, this one included. */
	FACT_COUNT,
	FACT_SUM_OF_BYTES,
	FACT_SUM_OF_DURATIONS,
	FACT_MATCHES, /* a bit for each string that it compares */
	FACTS,
};

struct facts {
	__u64 word[FACTS];
};

/* A value of `executed_names`. */
struct executed_name {
	char text[EXEC_LEN];
};

/* Most variables that calls are grouped by. */
#define MOST_KEYS 4

/* What a key is made of. */
enum key_kind {
	KEY_NONE,
	KEY_CALL, /* its groups follow from it */
	KEY_FD,
	KEY_ERRNO,
	KEY_BYTES,    /* its slot */
	KEY_DURATION, /* its slot */
	KEY_THREAD,
	KEY_PID,
	KEY_IMAGE, /* its number */
	KEY_PATH,  /* the hash of its text, as all from here on; 0 is none */
	KEY_THREADNAME,
	KEY_CGROUP,
	KEY_PEER,
	KEY_TITLE,
};

/* Bits of `uses`. */
#define USES_FD		1
#define USES_PATH	2
#define USES_IDS	4
#define USES_IMAGE	8
#define USES_THREADNAME 16
#define USES_CGROUP	32
#define USES_PEER	64
#define USES_TITLE	128
/* Bits of `keeps`: the texts are keys. */
#define KEEPS_PATH	 1
#define KEEPS_THREADNAME 2
#define KEEPS_CGROUP	 4
#define KEEPS_PEER	 8
#define KEEPS_TITLE	 16

struct where_knobs {
	__u8 uses;
	__u8 keeps;
	__u8 by[MOST_KEYS];
	__u8 groups;   /* calls are counted by keys */
	__u8 verdicts; /* other programs ask for what becomes of a call */
	__u8 sums;     /* what ends the watch asks for sums */
	__u8 can_end;  /* there is a condition that ends the watch */
	__u8 goes_on;  /* it is told to user space only, and the watch goes on */
	__u8 pad[5];
	/* Bits of the strings that are compared with each. */
	__u64 of_path;
	__u64 of_image;
	__u64 of_threadname;
	__u64 of_cgroup;
	__u64 of_no_path; /* that an empty one matches */
	__u64 of_peer;
	__u64 of_no_peer;
	__u64 of_title;
	__u64 open[2][8];	  /* a bit a call of which not everything is known by its number */
	__u64 doubtful[2][8];	  /* of these, those for which the condition may hold or not */
	__u64 moves[2][8];	  /* a bit a call that returns bytes */
	__u64 ends[2][8];	  /* a bit a call that may end the watch, or is in the sums */
	__u64 calls[2][512];	  /* bits of the strings that a call, or a group of it, matches */
	__u8 descriptors[2][512]; /* the argument that is one, and 1; 0: none */
	__u64 ring_calls[256];	  /* the same bits of an operation of io_uring, as a call */
	__u8 rings[256];	  /* the bits below */
};

/* Of an operation, not everything is known by its number; the condition may hold for it, or not; it
 * may end the watch, or is in the sums; it works on a descriptor, or on a path. */
#define RING_OPEN	    1
#define RING_DOUBTFUL	    2
#define RING_ENDS	    4
#define RING_HAS_DESCRIPTOR 8
#define RING_HAS_PATH	    16

/* In place of a call's number: an operation of io_uring, whose number is added. */
#define CALL_RING  0x10000

#define MOST_TESTS 64
#define PREFIX_LEN 256

struct pattern {
	__u64 prefix_length;
	char prefix[PREFIX_LEN];
	struct glob rest;
};

struct by_key {
	__u64 word[MOST_KEYS];
};

struct by_row {
	__u64 calls;
	__u64 errors;
	__u64 bytes;
	__u64 wall_ns;
	__u64 max_ns;
};

/* In place of a text's hash: there was no room for the text. */
#define NO_ROOM	  1

#define KEPT_TEXT 512
struct kept_text {
	__u64 length;
	char text[KEPT_TEXT];
};

struct where_counters {
	__u64 divided_by_zero;
	__u64 lost_rows;
	__u64 ends_divided_by_zero;
};

#endif
