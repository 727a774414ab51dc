/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * On whose behalf a bio is sent. The thread that sends it is asked first; what a kernel thread
 * sends is traced back by the inode of its first page, and what leads to no file by its device.
 */

static __always_inline struct inode *host_of(struct address_space *mapping)
{
	return FIELD(struct address_space___host, mapping, host);
}

/* The device a file system lies on, as bios name it. */
static __always_inline u32 device_of(struct super_block *super)
{
	struct super_block___device *sb = (void *)super;
	struct block_device *bdev = BPF_CORE_READ(sb, s_bdev);

	return bdev ? BPF_CORE_READ(bdev, bd_dev) : BPF_CORE_READ(sb, s_dev);
}

/* The inode whose page the bio begins with; NULL: none, or none that can be told. */
static __always_inline struct inode *inode_of(struct bio *bio)
{
	struct address_space *mapping;
	struct page *page = NULL;
	unsigned long head;

	if (!UNTRUSTED(struct bio, bio)->bi_io_vec || !bio->bi_iter.bi_size)
		return NULL;
	page = BPF_CORE_READ(bio, bi_io_vec, bv_page);
	if (!page)
		return NULL;
	head = BPF_CORE_READ(page, compound_head);
	if (head & 1)
		page = (void *)(head - 1);
	mapping = BPF_CORE_READ((struct folio *)page, mapping);
	if (!mapping || (u64)mapping & NOT_A_FILE)
		return NULL;
	return host_of(mapping);
}

/* In place of a call. */
static __always_inline u16 ring_call(u32 operation, u16 call)
{
	if (operation == NO_OPERATION || operation == UNKNOWN_OPERATION)
		return call;
	return RING_OPERATION | (operation - 1);
}

static __always_inline void ask_request(struct task_struct *task, struct cause *cause)
{
	struct chapter at;

	if (!in_request_timeline(task, &at))
		return;
	cause->buffer = at.buffer;
	cause->call_ns = at.began_ns;
}

/* What a watched thread sends itself, or lets a thread of io_uring send. */
static __always_inline bool own_cause(struct task_struct *task, struct cause *cause)
{
	struct thread *t = watched(task);
	struct inside *x;

	if (!t) {
		cause->key.image = image_of_ring_thread();
		if (!cause->key.image)
			return false;
		cause->key.via = VIA_IO_WORKER;
		cause->key.call = ring_call(current_operation(), NO_CALL);
		ask_request(task, cause);
		return true;
	}
	cause->key.image = t->image;
	if (!t->in_call) {
		cause->key.via = VIA_FAULT;
		cause->key.call = NO_CALL;
		return true;
	}
	cause->key.via = VIA_CALL;
	cause->key.call = submits(t) ? ring_call(current_operation(), t->call) : t->call;
	x = inside_of(task);
	if (x && x->following) {
		cause->buffer = x->buffer;
		cause->call_ns = x->call_ns;
	} else {
		ask_request(task, cause);
	}
	return true;
}

/* Of a call that waits for the device to have all it was told. */
static __always_inline void ask_syncer(struct cause *cause, struct syncer *syncer)
{
	cause->key.image = syncer->key.image;
	cause->key.call = syncer->key.call;
	cause->buffer = syncer->buffer;
	cause->call_ns = syncer->call_ns;
}

static __always_inline bool others_cause(struct task_struct *task, struct bio *bio,
					 struct cause *cause)
{
	struct inode *inode = inode_of(bio);
	bool of_kernel = task->flags & PF_KTHREAD;
	u32 device = cause->key.device;
	u32 *dirtier;
	struct inode_key key;
	struct syncer *sync;

	if (!WRITES(bio->bi_opf & OPERATION))
		return false;
	sync = bpf_map_lookup_elem(&syncs, &device);
	cause->key.call = NO_CALL;
	if (inode) {
		key = key_of_inode(inode);
		dirtier = bpf_map_lookup_elem(&dirtied, &key);
		if (dirtier) {
			cause->key.via = of_kernel ? VIA_WRITE_BACK : VIA_OTHER;
			cause->key.image = *dirtier;
			if (sync && sync->inode == key.inode)
				ask_syncer(cause, sync);
			return true;
		}
		if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFREG)
			return false; /* somebody else's file */
	}
	dirtier = bpf_map_lookup_elem(&changed, &device);
	if (!of_kernel || !dirtier)
		return false;
	cause->key.via = VIA_JOURNAL;
	cause->key.image = *dirtier;
	if (sync)
		ask_syncer(cause, sync);
	return true;
}

static __noinline bool find_cause(struct bio *bio, struct cause *cause)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!bio || !cause)
		return false;
	cause->key.device = BPF_CORE_READ(bio, bi_bdev, bd_dev);
	cause->key.operation = BPF_CORE_READ(bio, bi_opf) & OPERATION;
	return own_cause(task, cause) || others_cause(task, bio, cause);
}

static const struct inside not_inside;

static __always_inline struct inside *own_inside(struct task_struct *task)
{
	struct inside *x = made_task_row(&insides, task, &not_inside);

	if (!x)
		lose();
	return x;
}

/* The image that changes a file; 0 is the launch. */
static __always_inline bool find_writer(struct task_struct *task, u32 *image)
{
	struct thread *t = watched(task);

	*image = t ? t->image : image_of_ring_thread();
	return t || *image;
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(writeback_dirty_folio, struct folio *folio, struct address_space *mapping)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode_key key;
	struct inode *inode;
	struct inside *x;
	u32 image;

	if (over || !mapping || !find_writer(task, &image))
		return 0;
	x = own_inside(task);
	inode = host_of(mapping);
	if (!x || !inode)
		return 0;
	key = key_of_inode(inode);
	if (x->dirtied == key.inode && x->dirtied_on == key.device && x->dirtied_image == image)
		return 0;
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK && !(x->following && x->of_device))
		return 0; /* a file system's metadata: see `changed` */
	put(&dirtied, &key, &image);
	x->dirtied = key.inode;
	x->dirtied_on = key.device;
	x->dirtied_image = image;
	return 0;
}

SEC("tp_btf/writeback_mark_inode_dirty")
int BPF_PROG(writeback_mark_inode_dirty, struct inode *inode, int flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct super_block *super;
	struct inside *x;
	u32 device, image;

	if (over || !find_writer(task, &image))
		return 0;
	x = own_inside(task);
	super = UNTRUSTED(struct inode, inode)->i_sb;
	if (!x || !super || (x->changed == (u64)super && x->changed_image == image))
		return 0;
	device = device_of(super);
	put(&changed, &device, &image);
	x->changed = (u64)super;
	x->changed_image = image;
	return 0;
}
