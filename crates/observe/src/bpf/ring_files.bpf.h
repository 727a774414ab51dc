/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The files of io_uring's requests: a part of rings.bpf.h. */

/*
 * The bytes that a request moved, in the row of its file, which is at this address. With `how` and
 * `used` 0 it has not moved any: what is known of the file is noted as it is before.
 */
__noinline int count_ring_file(u64 at, u32 image, u32 how, u64 bytes, u64 used)
{
	struct file_stats none = {.image = image}, *f;
	struct file_key key = {.thread = image};
	struct ring_hot_file *hot;
	struct file *file = (void *)at;
	struct super_block *super;
	struct inode *inode;
	bool is_new = false;
	u64 operations;

	if (!file)
		return 0;
	inode = FIELD(struct file, file, f_inode);
	super = FIELD(struct inode, inode, i_sb);
	key.dentry = name_number(word_at(&file->f_path.dentry));
	key.inode = FIELD(struct inode, inode, i_ino);
	/* Read as a number: the verifier does not let pointers be calculated with. */
	operations = word_at(&file->f_op);
	key.device = FIELD(struct super_block, super, s_dev) ^ (u32)operations;
	hot = &ring_hot_files[(key.inode + image * 5) & (HOT_FILES - 1)];
	if (!hot->state && !__sync_val_compare_and_swap(&hot->state, 0, 1)) {
		hot->key = key;
		hot->stats.image = image;
		__sync_fetch_and_add(&hot->state, 1);
		is_new = true;
	}
	if (hot->state == HOT_READY && hot->key.dentry == key.dentry &&
	    hot->key.inode == key.inode && hot->key.device == key.device &&
	    hot->key.thread == image)
		f = &hot->stats;
	else
		f = bpf_map_lookup_elem(&ring_files, &key);
	if (!f) {
		bpf_map_update_elem(&ring_files, &key, &none, BPF_NOEXIST);
		f = bpf_map_lookup_elem(&ring_files, &key);
		if (!f) {
			lose_file();
			return 0;
		}
		is_new = true;
	}
	if (is_new)
		note_name(key, file, image, used);
	if (how & OP_READS) {
		ADD(f->read_calls, 1);
		ADD(f->read_bytes, bytes);
	} else if (how) {
		ADD(f->write_calls, 1);
		ADD(f->write_bytes, bytes);
	}
	return 0;
}

/* The files of so many requests of each operation are looked up before these move bytes: most
 * programs use few. */
#define FIRST_REQUESTS 64

/* Of a registered file, a request has the place among these, no descriptor. */
__noinline int meet_ring_file(u64 req, u32 image, u32 flags)
{
	u64 file;

	if (flags & IOSQE_FIXED_FILE || !HAS_REQUESTS)
		return 0;
	file = file_number(bpf_get_current_task_btf(), FIELD(struct io_kiocb, req, cqe.fd));
	/* A socket may not be connected yet, and has no pages. */
	if (!file || BPF_CORE_READ((struct file *)file, f_inode, i_sb, s_magic) == SOCKFS_MAGIC)
		return 0;
	return count_ring_file(file, image, 0, 0, 0);
}
