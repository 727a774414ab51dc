/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Calls that read and write files: which part of the file they ask for, and what of it was in the
 * page cache.
 *
 * A page that a read puts into the cache beyond what it asked for was read ahead. It is a hit when
 * a later read first asks for it. Both are known by page: a bit each, 64 to a row of `ahead_pages`.
 */

#define CHUNK	     64	  /* pages a row */
#define MOST_CHUNKS  1024 /* looked at in a read: 256 MiB of pages of 4 KiB */
#define FEW_CHUNKS   128  /* without bpf_loop: 32 MiB */
#define FOLIO_CHUNKS 9	  /* a folio of 2 MiB, not aligned */
#define VECTORS	     8	  /* parts of a readv that are added up */

struct chunk_key {
	u64 inode;
	u32 device;
	u32 chunk;
};

TABLE(ahead_pages, 65536, BPF_F_NO_PREALLOC, struct chunk_key, u64);

/* Rows of it, at least: while there is none, no read has to look there. */
u32 chunks_ahead SEC(".data.ahead");

static __always_inline struct ahead_row *ahead_of(u32 image)
{
	struct ahead_row *row = bpf_map_lookup_elem(&ahead_rows, &image), none = {};

	if (row)
		return row;
	bpf_map_update_elem(&ahead_rows, &image, &none, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&ahead_rows, &image);
	if (!row)
		lose();
	return row;
}

/* The bits of [from, to) that are in the chunk. */
static __always_inline u64 bits_in(u64 chunk, u64 from, u64 to)
{
	u64 start = chunk * CHUNK, end = start + CHUNK, bits;

	if (from < start)
		from = start;
	if (to > end)
		to = end;
	if (from >= to)
		return 0;
	bits = to - from == CHUNK ? -1ULL : (1ULL << ((to - from) & 63)) - 1;
	return bits << ((from - start) & 63);
}

static __always_inline u32 ones(u64 bits)
{
	bits = bits - (bits >> 1 & 0x5555555555555555ULL);
	bits = (bits & 0x3333333333333333ULL) + (bits >> 2 & 0x3333333333333333ULL);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return bits * 0x0101010101010101ULL >> 56;
}

static __always_inline void note_ahead(struct chunk_key *key, u64 bits)
{
	u64 *known = bpf_map_lookup_elem(&ahead_pages, key);

	if (known) {
		__sync_fetch_and_or(known, bits);
		return;
	}
	__sync_fetch_and_add(&chunks_ahead, 1);
	if (bpf_map_update_elem(&ahead_pages, key, &bits, BPF_NOEXIST)) {
		__sync_fetch_and_add(&chunks_ahead, -1);
		known = bpf_map_lookup_elem(&ahead_pages, key);
		if (known)
			__sync_fetch_and_or(known, bits);
		else
			add(&counters.lost_pages, ones(bits));
	}
}

/* Pages that came into the page cache. */
struct added {
	struct chunk_key key;
	u64 first;
	u64 end;
};

/* Those in the nth chunk; false: there are none. Not static: it is looked at once by the verifier.
 */
__noinline int add_chunk(struct inside *x, struct ahead_row *row, struct added *pages, u32 nth)
{
	u64 chunk, bits, asked;
	struct chunk_key key;

	if (!x || !row || !pages)
		return false;
	chunk = pages->first / CHUNK + nth;
	bits = bits_in(chunk, pages->first, pages->end);
	if (!bits)
		return false;
	asked = bits & bits_in(chunk, x->first_page, x->end_page);
	x->missed += ones(asked);
	bits &= ~asked;
	if (!bits)
		return true;
	add(&row->ahead, ones(bits));
	key = pages->key;
	key.chunk = chunk;
	note_ahead(&key, bits);
	return true;
}

/* A folio came into the page cache. */
SEC("tp/filemap/mm_filemap_add_to_page_cache")
int page_added(struct trace_event_raw_mm_filemap_op_page_cache *added)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = over ? NULL : watched(task);
	struct added pages = {};
	struct ahead_row *row;
	struct inside *x;
	u32 order = 0;

	if (!t)
		return 0;
	x = inside_of(task);
	pages.first = added->index;
	if (bpf_core_field_exists(added->order))
		order = added->order;
	pages.end = pages.first + (1ULL << (order & 15));
	row = ahead_of(t->image);
	if (!row)
		return 0;
	if (!x || !x->reading || x->read_of.inode != added->i_ino ||
	    x->read_of.device != added->s_dev) {
		add(&row->otherwise, pages.end - pages.first);
		return 0;
	}
	pages.key.inode = added->i_ino;
	pages.key.device = added->s_dev;
	for (int i = 0; i < FOLIO_CHUNKS; i++)
		if (!add_chunk(x, row, &pages, i))
			break;
	return 0;
}

struct scan {
	struct chunk_key key;
	u64 first;
	u64 end;
	u64 hits;
};

static long scan_chunk(u32 nth, void *with)
{
	struct scan *scan = with;
	u64 chunk = scan->first / CHUNK + nth, bits, *known, before;

	bits = bits_in(chunk, scan->first, scan->end);
	if (!bits)
		return 1;
	scan->key.chunk = chunk;
	known = bpf_map_lookup_elem(&ahead_pages, &scan->key);
	if (!known)
		return 0;
	before = __sync_fetch_and_and(known, ~bits);
	scan->hits += ones(before & bits);
	/* Rows without a bit give their place to others; one set meanwhile is a hit less. */
	if (!(before & ~bits) && !bpf_map_delete_elem(&ahead_pages, &scan->key))
		__sync_fetch_and_add(&chunks_ahead, -1);
	return 0;
}

/* Pages from `first` on that were read ahead. */
static __noinline u64 hits(struct inside *x, u64 first, u64 end)
{
	struct scan scan = {.first = first, .end = end};

	scan.key.inode = x->read_of.inode;
	scan.key.device = x->read_of.device;
	repeat_followed(MOST_CHUNKS, FEW_CHUNKS, scan_chunk, &scan);
	return scan.hits;
}

/* The read has returned: what it got is looked up among the pages read ahead. */
static __always_inline void end_read(struct inside *x, long ret)
{
	u64 first = x->first_page, end, pages,
	    most = CHUNK * (HAS_LOOPS ? MOST_CHUNKS : FEW_CHUNKS);
	struct ahead_row *row;

	x->reading = 0;
	if (ret <= 0)
		return;
	row = ahead_of(x->image);
	if (!row)
		return;
	end = ((x->read_at + ret - 1) >> knobs.page_shift) + 1;
	pages = end - first;
	add(&row->asked, pages);
	add(&row->missed, x->missed);
	if (pages >= most)
		add(&counters.lost_pages, pages - most);
	if (chunks_ahead)
		add(&row->hits, hits(x, first, end));
}

static __always_inline u64 asked_bytes(struct pt_regs *regs, u8 kind)
{
	struct iovec part;
	u64 bytes = 0;

	if (KIND_ASKED(kind) == ASKED_COUNT)
		return regs->dx;
	if (KIND_ASKED(kind) != ASKED_VECTOR)
		return 0;
	for (u32 i = 0; i < VECTORS && i < regs->dx; i++) {
		if (bpf_probe_read_user(&part, sizeof(part), (struct iovec *)regs->si + i))
			break;
		bytes += part.iov_len;
	}
	return bytes;
}

static __always_inline void begin_read(struct inside *x, struct inode *inode, u64 at, u64 bytes)
{
	u64 size = FIELD(struct inode, inode, i_size);

	x->read_of = key_of_inode(inode);
	x->read_at = at;
	x->missed = 0;
	if (bytes > size || at + bytes > size)
		bytes = at < size ? size - at : 0;
	x->first_page = at >> knobs.page_shift;
	x->end_page = bytes ? ((at + bytes - 1) >> knobs.page_shift) + 1 : x->first_page;
	x->reading = 1;
}

/* The call's data are to be on the device when it returns. */
static __always_inline void begin_sync(struct inside *x, struct thread *t, struct inode *inode)
{
	struct syncer sync = {};
	u32 device;

	sync.key.image = t->image;
	sync.key.call = t->call;
	sync.buffer = x->buffer;
	sync.call_ns = x->call_ns;
	sync.inode = BPF_CORE_READ(inode, i_ino);
	device = device_of(BPF_CORE_READ(inode, i_sb));
	put(&syncs, &device, &sync);
	x->syncing = device;
}

static __always_inline u64 offset_of(struct pt_regs *regs, struct file *file, u8 kind)
{
	if (KIND_AT(kind) && (s64)regs->r10 >= 0)
		return regs->r10;
	return FIELD(struct file___at, file, f_pos);
}

static __always_inline void follow(struct task_struct *task, struct thread *t, struct pt_regs *regs,
				   u8 kind)
{
	u32 fd = argument(regs, t->call, KIND_FD(kind));
	struct file *file = file_of(task, fd);
	struct inode *inode;
	struct inside *x;
	u32 mode, flags;
	u64 at, bytes;

	if (!file)
		return;
	inode = FIELD(struct file, file, f_inode);
	mode = FIELD(struct inode, inode, i_mode) & S_IFMT;
	if (mode != S_IFREG && mode != S_IFBLK) {
		__sync_fetch_and_add(&counters.not_followed, 1);
		return;
	}
	x = own_inside(task);
	if (!x)
		return;
	flags = FIELD(struct file, file, f_flags);
	x->image = t->image;
	x->call_ns = t->last_ns;
	x->off_ns = t->off_ns;
	x->blocked_ns = t->blocked_ns;
	x->of_device = mode == S_IFBLK;
	bytes = t->call & CALL_I386 ? 0 : asked_bytes(regs, kind);
	at = t->call & CALL_I386 ? -1ULL : offset_of(regs, file, kind);
	if (knobs.timelines)
		begin_timeline(x, t, file, inode, kind, fd, bytes, at);
	if ((kind & KIND_BITS) == KIND_READ && mode == S_IFREG && bytes && !(flags & O_DIRECT))
		begin_read(x, inode, at, bytes);
	if ((kind & KIND_BITS) == KIND_SYNC ||
	    ((kind & KIND_BITS) == KIND_WRITE && flags & O_DSYNC))
		begin_sync(x, t, inode);
	x->following = 1;
}

/*
 * What a call does, by its registers: told before anything is looked up, since most calls read and
 * write no file. They are the same at its return: nobody can change them in between.
 */
static __always_inline u8 kind_of(struct task_struct *task, u64 number)
{
	if (number > 511)
		return 0;
	return knobs.kinds[task->thread_info.status & TS_COMPAT ? 1 : 0][number];
}

SEC("tp_btf/sys_enter")
int BPF_PROG(follow_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u8 kind = kind_of(task, id);
	struct thread *t;

	if (!kind || over)
		return 0;
	t = watched(task);
	if (t && t->image && t->in_call)
		follow(task, t, regs, kind);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(follow_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;
	struct inside *x;
	u32 device;

	if (!kind_of(task, regs->orig_ax))
		return 0;
	x = inside_of(task);
	if (!x || !x->following)
		return 0;
	x->following = 0;
	device = x->syncing;
	x->syncing = 0;
	if (device)
		bpf_map_delete_elem(&syncs, &device);
	if (over)
		return 0;
	if (x->reading)
		end_read(x, ret);
	if (knobs.timelines) {
		t = watched(task);
		if (t)
			end_timeline(x, t, ret);
	}
	return 0;
}
