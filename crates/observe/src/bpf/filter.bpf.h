/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* What is known of the one that a condition is asked of. */

/* Of a watched thread: what its condition needs. */
struct filter {
	struct facts facts;
	u64 path_bits;
	u64 path_text;
	u64 image_bits;
	u64 former_bits; /* of the image before the last exec */
	u64 threadname_bits;
	u64 threadname_text;
	u64 cgroup_bits;
	u64 cgroup_text;
	u64 cgroups; /* these bits are of */
	u64 peer_bits;
	u64 peer_text;
	u64 title_bits;
	u64 title_text;
	u64 title_hash; /* these are of; with the file that runs */
	char comm[COMM_LEN];
	u32 image;
	u32 named;  /* comm is */
	u32 titled; /* title_hash is */
	u32 pad;
};

/* Of a request of io_uring, which may end anywhere: what is known when it is submitted. */
struct ring_facts {
	struct facts facts;
	u64 place_bits; /* of strings that its path and its peer match */
	u64 path_text;
	u64 threadname_text;
	u64 cgroup_text;
	u64 peer_text;
	u64 title_text;
	u32 flags;    /* of the request */
	u32 unlinked; /* it is not carried out, as one that it was linked to failed */
	char comm[COMM_LEN];
};
