/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Which file a call moves bytes from and to. The descriptor is looked up when
 * the call is entered: when it returns, another thread may have closed it.
 */

#include "descriptors.bpf.h"
#include "sockets.bpf.h"
#include "connections.bpf.h"

/* Counted apart: what is asked of files may be more than their rows have room for. */
static __always_inline void lose_file(void)
{
	__sync_fetch_and_add(&counters.lost_files, 1);
}

/* `used` is all ones if bytes of it were moved before: what is cached now says nothing of then. Not
 * a condition: the verifier would follow both of its ways through the whole name. */
static __always_inline void note_name(struct file_key key, struct file *file, u32 image, u64 used)
{
	struct scratch *s;
	struct inode *inode;

	key.thread = 0;
	if (bpf_map_lookup_elem(&file_names, &key))
		return;
	s = scratch();
	if (!s)
		return; /* counted there */
	inode = BPF_CORE_READ(file, f_inode);
	s->file.name.magic = BPF_CORE_READ(inode, i_sb, s_magic);
	s->file.name.mode = BPF_CORE_READ(inode, i_mode);
	s->file.name.whole = 0;
	s->file.name.size_bytes = BPF_CORE_READ(inode, i_size);
	/* Whoever goes past the cache does not find it there. */
	s->file.name.cached_pages = BPF_CORE_READ(file, f_flags) & O_DIRECT
					    ? -1ULL
					    : BPF_CORE_READ(inode, i_mapping, nrpages);
	s->file.name.cached_pages |= used;
	if (s->file.name.magic == SOCKFS_MAGIC) {
		note_socket((struct socket_name *)s->file.name.path, inode);
		meet_connection((struct socket_name *)s->file.name.path, inode, image);
	} else {
		walk(&s->file, file);
	}
	if (bpf_map_update_elem(&file_names, &key, &s->file.name, BPF_ANY))
		lose_file();
}

/* Whether every part of what tells files apart is as it was: an address may be another file's now.
 */
static __always_inline bool is_still(struct side *side, struct file *at)
{
	struct inode *inode;
	struct file *file;

	if (bpf_rdonly_cast) {
		file = AS(struct file, at);
		inode = file->f_inode;
		return side->inode == (u64)inode && side->operations == (u64)file->f_op &&
		       side->key.dentry == name_number(word_at(&file->f_path.dentry)) &&
		       side->key.inode == inode->i_ino && side->super == (u64)inode->i_sb;
	}
	inode = BPF_CORE_READ(at, f_inode);
	return side->inode == (u64)inode && side->operations == (u64)BPF_CORE_READ(at, f_op) &&
	       side->key.dentry == name_number(word_at(&at->f_path.dentry)) &&
	       side->key.inode == BPF_CORE_READ(inode, i_ino) &&
	       side->super == (u64)BPF_CORE_READ(inode, i_sb);
}

/*
 * Sets a side to the file whose address it has. A server reads from a socket and writes to it: what
 * the other side has just found out is not asked again. Not static: the verifier looks at it once.
 */
__noinline int turn_to(struct thread *t, bool reads)
{
	struct side *side, *other;
	struct file *file;
	struct file_stats none = {}, *known;
	struct file_key key = {};
	struct super_block *super;
	struct inode *inode;

	if (!t)
		return 0;
	side = reads ? &t->from : &t->to;
	other = reads ? &t->to : &t->from;
	settle_side(side, reads);
	side->key.inode = 0;
	file = (void *)side->file;
	if (!file)
		return 0;
	if (other->key.inode && other->file == side->file && is_still(other, file)) {
		*side = *other;
		side->calls = 0;
		side->bytes = 0;
		return 0;
	}
	inode = FIELD(struct file, file, f_inode);
	super = FIELD(struct inode, inode, i_sb);
	side->inode = (u64)inode;
	side->super = (u64)super;
	side->operations = (u64)FIELD(struct file, file, f_op);
	key.dentry = name_number(word_at(&file->f_path.dentry));
	key.inode = FIELD(struct inode, inode, i_ino);
	/* Eventfds, timerfds and their kin are one inode. */
	key.device = FIELD(struct super_block, super, s_dev) ^ (u32)side->operations;
	key.thread = t->id;
	if (!bpf_map_lookup_elem(&files, &key)) {
		bpf_map_update_elem(&files, &key, &none, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&files, &key);
		if (!known) {
			lose_file();
			return 0;
		}
		known->image = t->image;
		note_name(key, file, t->image, 0);
	}
	side->key = key;
	return 0;
}

/* Finds the file behind a descriptor: the last one's, most of the time. */
__noinline int identify(struct thread *t, u32 fd, bool reads)
{
	struct file *file = file_of(bpf_get_current_task_btf(), fd);
	struct side *side;

	if (!t)
		return 0;
	side = reads ? &t->from : &t->to;
	if (file && side->key.inode && side->file == (u64)file && is_still(side, file))
		return 0;
	side->file = (u64)file;
	return turn_to(t, reads);
}

static __always_inline void note_transfer(struct thread *t, struct pt_regs *regs)
{
	u32 number = t->call & CALL_NUMBER;
	u8 how;

	t->transfer = 0;
	if (!t->image || number > 511)
		return;
	how = knobs.transfers[t->call & CALL_I386 ? 1 : 0][number];
	if (!how || !wants(t, t->call))
		return;
	t->transfer = how;
	if ((how & 0xf) == SPECIAL) {
		if (!(how >> 4) && regs->r10 & MAP_ANONYMOUS) {
			t->transfer = 0; /* whatever its descriptor says */
			return;
		}
		t->argument = how >> 4 ? argument(regs, t->call, (how >> 4) - 1) : regs->si;
		if (!(how >> 4))
			identify(t, regs->r8, true);
		return;
	}
	if (how & 0xf)
		identify(t, argument(regs, t->call, (how & 0xf) - 1), true);
	if (how >> 4)
		identify(t, argument(regs, t->call, (how >> 4) - 1), false);
}

/* A call that maps a file, or asks after descriptors. */
__noinline int count_special(struct thread *t, long ret)
{
	struct call_key call = {};
	struct file_key key;
	struct error_count *e;
	struct file_stats *f;

	if (!t || is_error(ret))
		return 0;
	call.thread = t->id;
	call.call = t->call;
	if (t->transfer >> 4) {
		e = numbered_row(&asked, &call, t->image, 0);
		if (e)
			e->count += t->argument;
		return 0;
	}
	key = t->from.key;
	f = key.inode ? bpf_map_lookup_elem(&files, &key) : NULL;
	if (f) {
		f->map_calls++;
		f->mapped_bytes += t->argument;
	}
	return 0;
}

static __always_inline void count_transfer(struct thread *t, long ret, u64 bytes)
{
	if (ret < 0)
		bytes = 0;
	if ((t->transfer & 0xf) == SPECIAL) {
		count_special(t, ret);
		return;
	}
	if (t->transfer & 0xf && t->from.key.inode) {
		t->from.calls++;
		t->from.bytes += bytes;
	}
	if (t->transfer >> 4 && t->to.key.inode) {
		t->to.calls++;
		t->to.bytes += bytes;
	}
}
