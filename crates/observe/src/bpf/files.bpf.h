/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Which file a call moves bytes from and to. The descriptor is looked up when
 * the call is entered: when it returns, another thread may have closed it.
 */

static __always_inline struct file *file_of(struct task_struct *task, u32 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *fdt;
	struct file *file = NULL;

	if (!files)
		return NULL;
	fdt = files->fdt;
	if (!fdt || fd >= fdt->max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + fd);
	return file;
}

/* A descriptor: the kernel, too, looks at its lower half only. */
static __always_inline u32 argument(struct pt_regs *regs, u16 call, u32 at)
{
	if (call & CALL_I386)
		return at == 0 ? regs->bx : at == 1 ? regs->cx : regs->dx;
	return at == 0 ? regs->di : at == 1 ? regs->si : regs->dx;
}

/* The path, leaf first: user space turns it round. */
static __always_inline void walk(struct file_name *name, struct path *path)
{
	struct dentry *dentry = path->dentry, *up;
	struct vfsmount *vfs = path->mnt;
	struct mount *mount, *above;
	u64 at = 0;
	long got;

	for (int i = 0; i < DEPTH; i++) {
		if ((u64)dentry == root.dentry && (u64)vfs == root.mount) {
			name->whole = 1;
			break;
		}
		mount = (void *)vfs - bpf_core_field_offset(struct mount, mnt);
		if (dentry == BPF_CORE_READ(vfs, mnt_root)) {
			above = BPF_CORE_READ(mount, mnt_parent);
			if (above == mount) {
				name->whole = 1;
				break;
			}
			dentry = BPF_CORE_READ(mount, mnt_mountpoint);
			vfs = (void *)above + bpf_core_field_offset(struct mount, mnt);
			continue;
		}
		up = BPF_CORE_READ(dentry, d_parent);
		if (at > PATH_LEN - NAME_LEN)
			break;
		/* Older verifiers forget the bound just checked; a mask they believe. */
		barrier_var(at);
		at &= PATH_LEN - 1;
		got = bpf_probe_read_kernel_str(&name->path[at], NAME_LEN,
						BPF_CORE_READ(dentry, d_name.name));
		if (got <= 0 || got > NAME_LEN)
			break;
		at += got;
		if (up == dentry) {
			/* A file without a folder, as memfd_create makes them. */
			name->whole = 1;
			break;
		}
		dentry = up;
	}
	name->length = at;
}

static __always_inline void note_name(struct file_key key, struct file *file)
{
	struct scratch *s;
	struct inode *inode;
	struct path path;

	key.thread = 0;
	if (bpf_map_lookup_elem(&file_names, &key))
		return;
	s = scratch();
	if (!s)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	s->file_name.magic = BPF_CORE_READ(inode, i_sb, s_magic);
	s->file_name.mode = BPF_CORE_READ(inode, i_mode);
	s->file_name.whole = 0;
	path.dentry = BPF_CORE_READ(file, f_path.dentry);
	path.mnt = BPF_CORE_READ(file, f_path.mnt);
	walk(&s->file_name, &path);
	if (bpf_map_update_elem(&file_names, &key, &s->file_name, BPF_ANY))
		lose();
}

/* Identifies the file behind a descriptor; an inode of 0 is none. */
static __always_inline void identify(struct thread *t, struct task_struct *task, u32 fd,
				     struct file_key *key)
{
	struct file *file = file_of(task, fd);
	struct file_stats none = {}, *known;
	struct inode *inode;

	key->inode = 0;
	if (!file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	key->dentry = (u64)BPF_CORE_READ(file, f_path.dentry);
	key->inode = BPF_CORE_READ(inode, i_ino);
	key->device = BPF_CORE_READ(inode, i_sb, s_dev);
	key->thread = t->id;
	if (bpf_map_lookup_elem(&files, key))
		return;
	known = row(&files, key, &none);
	if (known)
		known->image = t->image;
	note_name(*key, file);
}

static __always_inline void note_transfer(struct thread *t, struct task_struct *task,
					  struct pt_regs *regs)
{
	u32 number = t->call & CALL_NUMBER;
	u8 how;

	t->transfer = 0;
	if (!t->image || number > 511)
		return;
	how = knobs.transfers[t->call & CALL_I386 ? 1 : 0][number];
	if (!how || !wants(t->call))
		return;
	t->transfer = how;
	if (how & 0xf)
		identify(t, task, argument(regs, t->call, (how & 0xf) - 1), &t->from);
	if (how >> 4)
		identify(t, task, argument(regs, t->call, (how >> 4) - 1), &t->to);
}

/* The key comes by value: older verifiers want the keys of maps on the stack. */
static __always_inline struct file_stats *known_file(struct file_key key)
{
	return key.inode ? bpf_map_lookup_elem(&files, &key) : NULL;
}

static __always_inline void count_transfer(struct thread *t, long ret)
{
	u64 bytes = ret > 0 ? ret : 0;
	struct file_stats *f;

	if (t->transfer & 0xf) {
		f = known_file(t->from);
		if (f) {
			f->read_calls++;
			f->read_bytes += bytes;
		}
	}
	if (t->transfer >> 4) {
		f = known_file(t->to);
		if (f) {
			f->write_calls++;
			f->write_bytes += bytes;
		}
	}
}
