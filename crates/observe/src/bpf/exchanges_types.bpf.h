/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Fields of sockets and files that only exchanges.bpf.c reads, by name only, as in types.bpf.h. */
#ifndef IOTOMY_EXCHANGES_TYPES_BPF_H
#define IOTOMY_EXCHANGES_TYPES_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sk_buff_head {
	u32 qlen;
};

struct sock___queue {
	struct sk_buff_head sk_receive_queue;
	u8 sk_shutdown;
};

struct tcp_sock___sequence {
	u32 rcv_nxt;
	u32 copied_seq;
	u32 snd_nxt;
	u32 snd_una;
	u64 bytes_sent;
	u64 bytes_retrans;
	u64 bytes_acked;
};

/* How many have a file open: since Linux 6.13, one less. */
struct file_ref {
	struct {
		s64 counter;
	} refcnt;
};

struct file___since_6_13 {
	struct file_ref f_ref;
};

struct file___before_6_13 {
	struct {
		s64 counter;
	} f_count;
};

struct io_close {
	int fd;
	u32 file_slot;
};

/* The registered files of a ring: since Linux 6.13, and before. */
struct io_rsrc_node {
	u64 file_ptr;
};

struct io_ring_ctx___nodes {
	struct {
		struct {
			u32 nr;
			struct io_rsrc_node **nodes;
		} data;
	} file_table;
};

struct io_fixed_file {
	u64 file_ptr;
};

struct io_ring_ctx___files {
	u32 nr_user_files;
	struct {
		struct io_fixed_file *files;
	} file_table;
};

#pragma clang attribute pop

#endif
