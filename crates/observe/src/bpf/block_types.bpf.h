/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Types of the block layer and the page cache, by name only, as in types.bpf.h. */
#ifndef IOTOMY_BLOCK_TYPES_BPF_H
#define IOTOMY_BLOCK_TYPES_BPF_H

enum {
	BPF_MAP_TYPE_QUEUE = 22,
};

/* Bits of bi_opf and cmd_flags; their places are asked of the running kernel. */
enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	struct block_device *part0;
};

struct block_device {
	u32 bd_dev;
	struct gendisk *bd_disk;
};

struct request_queue {
	struct gendisk *disk;
};

struct bvec_iter {
	unsigned long long bi_sector;
	unsigned int bi_size;
};

struct page {
	unsigned long compound_head;
};

struct address_space___host {
	struct inode *host;
};

struct folio {
	struct address_space *mapping;
};

struct bio_vec {
	struct page *bv_page;
};

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	unsigned long long __sector;
	struct bio *bio;
};

struct super_block___device {
	u32 s_dev;
	struct block_device *s_bdev;
};

struct file___at {
	s64 f_pos;
};

struct iovec {
	void *iov_base;
	u64 iov_len;
};

struct trace_event_raw_mm_filemap_op_page_cache {
	unsigned long i_ino;
	unsigned long index;
	u32 s_dev;
	unsigned char order; /* not in older kernels, where a folio was a page mostly */
};

#pragma clang attribute pop

#endif
