// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * What the block layer did for the watched threads, what read-ahead was worth, and what happened
 * inside their slowest reads and writes, io_uring's too. Loaded beside trace.bpf.c, whose task
 * storage it shares and only reads.
 *
 * Hooks: BTF-typed raw tracepoints of the block layer, sys_enter and sys_exit,
 * writeback_dirty_folio and writeback_mark_inode_dirty, sched_switch and sched_waking; the classic
 * tracepoint mm_filemap_add_to_page_cache; and, one program for them all, the classic tracepoints
 * of the table in block/events.rs. For timelines of requests, the raw tracepoints of
 * ring_timeline.bpf.h.
 *
 * A bio is booked when it enters the block layer, for there it is known who sends it: see
 * find_cause. A request is its first bio's. Rows are shared between CPUs, so they are added to
 * atomically; a request costs some ten such additions and five hash look-ups, which is little
 * beside what a device takes for it.
 *
 * Limits: who dirtied a page is known by inode, not by page: of two that write one file, the last
 * is asked. A kernel thread's metadata cannot be told apart by who changed it: it is booked when
 * the watched threads changed that file system. Encrypted and compressed pages lead to no inode.
 * Every map is bounded, and what finds no room is counted.
 */
#include "types.bpf.h"
#include "block_types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "kernel_numbers.bpf.h"
#include "trace.h"
#include "block.h"
#include "thread.bpf.h"
#include "slots.bpf.h"
#include "descriptors.bpf.h"
#include "issues.bpf.h"
#include "loop.bpf.h"

#define PF_KTHREAD   0x00200000
#define OPERATION    0xff /* of bi_opf and cmd_flags */
#define REQ_OP_FLUSH 2
#define WRITES(op)   ((op)&1 || (op) == REQ_OP_FLUSH) /* as op_is_write has it */
#define O_DIRECT     040000
#define O_DSYNC	     010000
#define NOT_A_FILE   3 /* low bits of page->mapping: anonymous or movable memory */

const volatile struct block_knobs knobs SEC(".rodata.knobs");

/* Set when the watch ends: detaching goes program by program. */
u32 over SEC(".data.over");

struct block_counters counters;

/* Why a bio was sent. */
struct cause {
	struct row_key key;
	u32 buffer;  /* of the timeline it belongs to, plus 1 */
	u64 call_ns; /* when that timeline began */
	u64 queued_ns;
};

struct flight {
	struct cause cause;
	u64 insert_ns;
	u64 issue_ns;
};

struct inode_key {
	u64 inode;
	u32 device;
	u32 pad;
};

/* A call that waits until a file system has written what it was told. */
struct syncer {
	struct row_key key;
	u32 buffer;
	u64 call_ns;
	u64 inode;
};

/* Of a watched thread, what this object adds to its `struct thread`. */
struct inside {
	u64 dirtied; /* the inode and the file system it last dirtied: already noted */
	u64 changed;
	u32 dirtied_on;
	u32 dirtied_image;
	u32 changed_image;
	/* Its call, while it is followed. */
	u32 image;
	u64 call_ns;
	u32 buffer; /* plus 1 */
	u32 following;
	u32 of_device; /* its call is of a block device itself */
	u32 syncing;   /* the device, if its call waits for it */
	/* Its read through the page cache. */
	u32 reading;
	u64 read_at;
	u64 first_page;
	u64 end_page;
	u64 missed;
	struct inode_key read_of;
	/* Where the call began, by the thread's books. */
	u64 off_ns;
	u64 blocked_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct inside);
} insides SEC(".maps");

#define TABLE(name, entries, flags, key_type, value_type) \
	struct {                                          \
		__uint(type, BPF_MAP_TYPE_HASH);          \
		__uint(map_flags, flags);                 \
		__uint(max_entries, entries);             \
		__type(key, key_type);                    \
		__type(value, value_type);                \
	} name SEC(".maps")

/* In flight, so bounded by what devices take at a time. */
TABLE(bios, 32768, 0, u64, struct cause);
TABLE(requests, 16384, 0, u64, struct flight);
TABLE(flushers, 256, 0, u32, struct cause);
TABLE(syncs, 256, 0, u32, struct syncer);
TABLE(changed, 256, 0, u32, u32); /* the image that did it */
TABLE(dirtied, 65536, BPF_F_NO_PREALLOC, struct inode_key, u32);
TABLE(rows, 4096, BPF_F_NO_PREALLOC, struct row_key, struct block_row);
TABLE(ahead_rows, 16384, BPF_F_NO_PREALLOC, u32, struct ahead_row);

static const struct block_row no_row;

/* As in anatomy.bpf.c: not one whose image found no room, for nobody could say whose it is. */
static __always_inline struct thread *watched(struct task_struct *task)
{
	struct thread *t = thread_of(task);

	return t && (t->image || t->launcher) ? t : NULL;
}

/* The image that the current task works for if it is a thread of io_uring's. With a filter, rings
 * have no owners. */
__noinline u32 image_of_ring_thread(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;
	u32 image;

	if (!(task->flags & PF_IO_WORKER))
		return 0;
	image = ring_owner(task);
	if (image)
		return image;
	t = watched(task->group_leader);
	return t ? t->image : 0;
}

static __always_inline void lose(void)
{
	__sync_fetch_and_add(&counters.lost, 1);
}

static __always_inline void put(void *map, const void *key, const void *value)
{
	if (bpf_map_update_elem(map, key, value, BPF_ANY))
		lose();
}

static __always_inline struct block_row *row_of(struct row_key *key)
{
	struct block_row *row = bpf_map_lookup_elem(&rows, key);

	if (row)
		return row;
	bpf_map_update_elem(&rows, key, &no_row, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&rows, key);
	if (!row)
		lose();
	return row;
}

static __always_inline struct inside *inside_of(struct task_struct *task)
{
	return task_row(&insides, task);
}

static __always_inline struct inode_key key_of_inode(struct inode *inode)
{
	struct super_block *super = FIELD(struct inode, inode, i_sb);
	struct inode_key key = {
		.inode = FIELD(struct inode, inode, i_ino),
		.device = FIELD(struct super_block, super, s_dev),
	};
	return key;
}

static __always_inline void add(u64 *to, u64 n)
{
	if (n)
		__sync_fetch_and_add(to, n);
}

static __always_inline void count_in(u32 *slots, u64 value)
{
	u32 slot = slot_of(value);

	if (slot < SLOTS)
		__sync_fetch_and_add(&slots[slot], 1);
}

#define HAS(flags, bit) ((flags) >> bpf_core_enum_value(enum req_flag_bits, bit) & 1)

/* Operation and flags as user space has them, whatever their places in this kernel. */
static __always_inline u64 plain_flags(u32 flags)
{
	return (flags & OPERATION) | HAS(flags, __REQ_SYNC) << 8 | HAS(flags, __REQ_META) << 9 |
	       HAS(flags, __REQ_RAHEAD) << 10 | HAS(flags, __REQ_FUA) << 11 |
	       HAS(flags, __REQ_PREFLUSH) << 12;
}

#include "timeline.bpf.h"
#include "causes.bpf.h"
#include "readahead.bpf.h"
#include "requests.bpf.h"

FORGET_TASK
{
	forget_row(&insides, task);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
