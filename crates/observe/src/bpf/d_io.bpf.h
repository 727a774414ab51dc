/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Probes of block requests. One begins when a bio enters the block layer, in the thread that sends
 * it, and is done when the bio is, in whatever thread that interrupts. A bio that is done has its
 * place and size no more, so these are kept meanwhile; one without a beginning is a part of
 * another.
 */
#include "block_types.bpf.h"

#define OPERATION    0xff /* of bi_opf */
#define REQ_OP_FLUSH 2
#define WRITES(op)   ((op)&1 || (op) == REQ_OP_FLUSH) /* as op_is_write has it */
#define NOT_A_FILE   3 /* low bits of page->mapping: anonymous or movable memory */

/* Bits of b_flags, as constants.rs of the verb has them. */
#define B_DONE	     0x0002
#define B_ERROR	     0x0004
#define B_PAGEIO     0x0010
#define B_PHYS	     0x0020
#define B_READ	     0x0040
#define B_WRITE	     0x0100
#define B_ASYNC	     0x0400

#define MOST_BIOS    256 /* of a request */
#define FOLDER_BYTES 5	 /* of "/dev/" */

struct flight {
	u64 sector;
	u64 bytes;
	u64 inode; /* of the file whose pages it has: they keep it where it is */
	u64 disk;
	u32 device;
	u32 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct flight);
} flights SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bio___status {
	struct bio *bi_next;
	u8 bi_status;
};

struct gendisk___named {
	char disk_name[32];
};

#pragma clang attribute pop

/* The inode whose page the bio begins with; 0: none, or none that can be told. */
static __always_inline u64 inode_of_bio(struct bio *bio)
{
	struct page *page = BPF_CORE_READ(bio, bi_io_vec, bv_page);
	unsigned long head;
	u64 mapping;

	if (!page)
		return 0;
	head = BPF_CORE_READ(page, compound_head);
	if (head & 1)
		page = (void *)(head - 1);
	mapping = (u64)BPF_CORE_READ((struct folio *)page, mapping);
	if (!mapping || mapping & NOT_A_FILE)
		return 0;
	return (u64)BPF_CORE_READ((struct address_space___host *)mapping, host);
}

static __always_inline bool has_flag(u32 flags, u32 bit)
{
	return flags >> bit & 1;
}

static __always_inline u32 flags_of(struct bio *bio, bool of_file)
{
	u32 asked = BPF_CORE_READ(bio, bi_opf);
	bool writes = WRITES(asked & OPERATION);
	bool waits =
		writes ? has_flag(asked, bpf_core_enum_value(enum req_flag_bits, __REQ_SYNC))
		       : !has_flag(asked, bpf_core_enum_value(enum req_flag_bits, __REQ_RAHEAD));

	return (writes ? B_WRITE : B_READ) | (waits ? 0 : B_ASYNC) | (of_file ? B_PAGEIO : B_PHYS);
}

/* What a firing has of a request, besides what all have. */
static __always_inline void note_request(struct machine *m, u64 bio, const struct flight *f,
					 u64 left, u32 error)
{
	long got;

	m->facts[0] = bio;
	m->facts[IO_FLAGS] = f->flags;
	m->facts[IO_BYTES] = f->bytes;
	m->facts[IO_SECTOR] = f->sector;
	m->facts[IO_LEFT] = left;
	m->facts[IO_ERROR] = error;
	m->facts[IO_DEVICE] = f->device;
	m->facts[IO_INODE] = f->inode;
	m->facts[FACT_DEV_MAJOR] = f->device >> 20;
	m->facts[FACT_DEV_MINOR] = f->device & 0xfffff;
	m->device[0] = '/';
	m->device[1] = 'd';
	m->device[2] = 'e';
	m->device[3] = 'v';
	m->device[4] = '/';
	got = bpf_probe_read_kernel_str(
		m->device + FOLDER_BYTES, 32,
		(void *)(f->disk + bpf_core_field_offset(struct gendisk___named, disk_name)));
	if (got < 1)
		got = 1;
	m->facts[FACT_DEV_NAME] = (u64)m->device + FOLDER_BYTES;
	m->facts[FACT_DEV_NAME + 1] = got - 1;
	m->facts[FACT_DEV_PATH] = (u64)m->device;
	m->facts[FACT_DEV_PATH + 1] = got - 1 + FOLDER_BYTES;
	m->present[FACT_DEV_MAJOR] = 1;
	m->present[FACT_DEV_MINOR] = 1;
	m->present[FACT_DEV_NAME] = 1;
	m->present[FACT_DEV_PATH] = 1;
}

/* `is_whole`: in a function that the verifier looks at once, which has no call to spare for it. */
static __always_inline void fire_request(u32 number, u64 bio, const struct flight *f, u64 left,
					 u32 error, bool is_whole)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe *probe = bpf_map_lookup_elem(&probes, &number);
	u32 *level = level_of_cpu();
	struct machine *m;

	if (!probe || !level)
		return;
	m = enter(level);
	if (!m)
		return;
	note_thread(m, task);
	_Pragma("unroll") for (int i = 0; i < 10; i++) m->facts[i] = 0;
	note_request(m, bio, f, left, error);
	note_probe(m, number, probe);
	if (is_whole)
		run_clauses(m, thread_row(m, task), probe->set);
	else
		d_fire(m, thread_row(m, task), probe->set);
	leave(level);
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_begins, struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct block_device *device = BPF_CORE_READ(bio, bi_bdev);
	struct flight f = {};
	u64 key = (u64)bio;

	if (exited || task->tgid == own_tgid || !is_meant(task))
		return 0;
	f.sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	f.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	f.inode = f.bytes ? inode_of_bio(bio) : 0;
	f.device = BPF_CORE_READ(device, bd_dev);
	f.disk = (u64)BPF_CORE_READ(device, bd_disk);
	f.flags = flags_of(bio, f.inode);
	if (knobs.points[POINT_IO_DONE] && bpf_map_update_elem(&flights, &key, &f, BPF_ANY))
		count(&counters.lost_requests);
	if (knobs.points[POINT_IO_START])
		fire_request(knobs.points[POINT_IO_START], key, &f, 0, 0, false);
	return 0;
}

/* As blk_status_to_errno has it, of those that are told apart here. */
static __always_inline u32 errno_of(u8 status)
{
	switch (status) {
	case 0:
		return 0;
	case 1:
		return 95; /* EOPNOTSUPP */
	case 2:
		return 110; /* ETIMEDOUT */
	case 3:
		return 28; /* ENOSPC */
	default:
		return 5; /* EIO */
	}
}

/* A bio is done; one that did not begin here is not told of. Looked at once by the verifier, for a
 * request has many. */
__noinline int end_bio(u64 bio, u64 left, u32 error)
{
	struct flight *begun = bpf_map_lookup_elem(&flights, &bio), f;

	if (!begun)
		return 0;
	f = *begun;
	bpf_map_delete_elem(&flights, &bio);
	if (exited)
		return 0;
	f.flags |= B_DONE | (error ? B_ERROR : 0);
	fire_request(knobs.points[POINT_IO_DONE], bio, &f, left, error, true);
	return 0;
}

/* Of devices without requests. */
SEC("tp_btf/block_bio_complete")
int BPF_PROG(bio_ends, struct request_queue *queue, struct bio *bio)
{
	struct bio___status *typed = (void *)bio;
	u64 number = 0;

	/* What is verified once takes numbers, and a pointer that is read is one. */
	bpf_probe_read_kernel(&number, sizeof(number), &bio);
	end_bio(number, BPF_CORE_READ(bio, bi_iter.bi_size),
		errno_of(BPF_CORE_READ(typed, bi_status)));
	return 0;
}

/* Of all others: the bios of a request, as far as it is done. */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(request_ends, struct request *request, int status, unsigned int bytes)
{
	/* The kernel's own kind of status since Linux 5.16, before that an error below 0. */
	u32 error = status < 0 ? -status : errno_of(status), size;
	struct bio *bio = BPF_CORE_READ(request, bio);
	struct bio___status *typed;

	for (int i = 0; i < MOST_BIOS && bio; i++) {
		size = BPF_CORE_READ(bio, bi_iter.bi_size);
		if (size > bytes)
			return 0;
		bytes -= size;
		typed = (void *)bio;
		end_bio((u64)bio, 0, error);
		bio = BPF_CORE_READ(typed, bi_next);
	}
	if (bio)
		count(&counters.lost_requests);
	return 0;
}
