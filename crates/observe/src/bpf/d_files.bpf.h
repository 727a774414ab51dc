/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Files by name: those of descriptors, that of a block request, and the directories of a process.
 *
 * A path is walked from its last part up, across mounts, and laid from its end on.
 */
#include "path_types.bpf.h"

#define MOST_PARTS   64
#define NAME_MOST    255
#define KERNEL_MOUNT 0x4000 /* MNT_INTERNAL: of pipes, sockets and the like, which have no path */

/* Which name of a file; as files.rs of crates/dtrace/src/kernel has them. */
enum file_text {
	FILE_NAME,
	FILE_DIRECTORY,
	FILE_PATH,
	FILE_SYSTEM,
	FILE_MOUNT,
};

enum file_number {
	FILE_OFFSET,
	FILE_FLAGS,
};

static const char no_file[] = "<none>";
static const char no_path[] = "<unknown>";

static __always_inline int keep_constant(struct machine *m, u64 to, const char *text, u64 length)
{
	u64 at = arena_place(m);

	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	bpf_probe_read_kernel((char *)m->arena + at, length, text);
	return keep_text(m, to, at, length);
}

#define KEEP(m, to, text) keep_constant(m, to, text, sizeof(text) - 1)

struct climb {
	u64 dentry;
	u64 mount; /* 0: it is not known, and the walk ends at the root of the file system */
	u64 from;  /* where the path begins that is laid already */
};

static long climb_on(u32 turn, void *with)
{
	struct machine *m = MACHINE(with);
	struct climb *c = WORK(struct climb, m);
	struct dentry *dentry = (void *)c->dentry;
	struct vfsmount *vfs = (void *)c->mount;
	u64 length, from, up, mount, above;

	if (vfs && c->dentry == word_at(&vfs->mnt_root)) {
		mount = c->mount - bpf_core_field_offset(struct mount, mnt);
		above = word_at(&((struct mount *)mount)->mnt_parent);
		if (above == mount)
			return 1;
		c->dentry = word_at(&((struct mount *)mount)->mnt_mountpoint);
		c->mount = above + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	up = word_at(&dentry->d_parent);
	if (!up || up == c->dentry)
		return 1;
	length = (u32)word_at(&dentry->d_name.len);
	from = c->from;
	if (length > NAME_MOST || length + 1 > from)
		return 1;
	barrier_var(length);
	length &= NAME_MOST;
	from -= length;
	barrier_var(from);
	from &= STRING_MOST - 1;
	bpf_probe_read_kernel((char *)m->one + from, length, (void *)word_at(&dentry->d_name.name));
	from--;
	BYTE(m->one, from) = '/';
	c->from = from;
	c->dentry = up;
	return 0;
}

/* The path that ends with a directory's entry. */
__noinline int d_path(struct machine *m, u64 to, u64 dentry, u64 mount)
{
	u64 at, length, from, most = knobs.strsize - 1;
	struct climb *c;

	if (!m)
		return 0;
	at = arena_place(m);
	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	c = WORK(struct climb, m);
	c->dentry = dentry;
	c->mount = mount;
	c->from = PATH_END;
	bpf_loop(MOST_PARTS, climb_on, &m, 0);
	if (c->from == PATH_END) {
		c->from--;
		BYTE(m->one, PATH_END - 1) = '/';
	}
	from = c->from & (STRING_MOST - 1);
	length = PATH_END - from;
	/* Facts are cut, as all are. */
	if (length > most)
		length = most;
	barrier_var(length);
	length &= STRING_MOST - 1;
	bpf_probe_read_kernel((char *)m->arena + at, length, (char *)m->one + from);
	return keep_text(m, to, at, length);
}

/* A text of the kernel's, with its end. */
static __always_inline int keep_kernel_text(struct machine *m, u64 to, u64 address)
{
	u64 at = arena_place(m), most = knobs.strsize;
	long got;

	if (at == ~0ull)
		return fail(m, FAULT_SCRATCH, 0);
	at &= ARENA_MOST - 8;
	if (most > STRING_MOST)
		most = STRING_MOST;
	got = bpf_probe_read_kernel_str((char *)m->arena + at, most, (void *)address);
	return keep_text(m, to, at, got > 0 ? got - 1 : 0);
}

/* A name of the file with this entry of a directory. Its mount may not be known. */
__noinline int d_file_text(struct machine *m, u64 to, u64 entry, u64 mount_of, u64 which)
{
	struct dentry *dentry = (void *)entry;
	struct vfsmount *vfs = (void *)mount_of;
	struct mount *mount;

	if (!m)
		return 0;
	if (!dentry)
		return KEEP(m, to, no_file);
	if (which == FILE_SYSTEM) {
		struct inode *inode = BPF_CORE_READ(dentry, d_inode);
		struct inode___type *typed = (void *)inode;

		return keep_kernel_text(m, to, (u64)BPF_CORE_READ(typed, i_sb, s_type, name));
	}
	if (vfs && word_at(&((struct vfsmount___flags *)vfs)->mnt_flags) & KERNEL_MOUNT)
		return KEEP(m, to, no_path);
	switch (which) {
	case FILE_NAME:
		return keep_kernel_text(m, to, (u64)BPF_CORE_READ(dentry, d_name.name));
	case FILE_MOUNT:
		if (!vfs)
			return KEEP(m, to, no_path);
		return d_path(m, to, (u64)BPF_CORE_READ(vfs, mnt_root), (u64)vfs);
	case FILE_DIRECTORY:
		if (vfs && dentry == BPF_CORE_READ(vfs, mnt_root)) {
			mount = (void *)vfs - bpf_core_field_offset(struct mount, mnt);
			dentry = BPF_CORE_READ(mount, mnt_mountpoint);
			vfs = (void *)BPF_CORE_READ(mount, mnt_parent) +
			      bpf_core_field_offset(struct mount, mnt);
		}
		dentry = BPF_CORE_READ(dentry, d_parent);
		break;
	}
	return d_path(m, to, (u64)dentry, (u64)vfs);
}

static __always_inline struct file *file_of_descriptor(struct machine *m, u64 fd)
{
	struct task_struct *task = (void *)m->task;
	struct files_struct *files = (void *)word_at(&task->files);
	struct fdtable *table = (void *)word_at(&files->fdt);

	if (!table || fd >= (u32)word_at(&table->max_fds))
		return NULL;
	return (void *)word_at((void *)word_at(&table->fd) + 8 * fd);
}

/* A name of the file behind a descriptor: fds[]. */
__noinline int d_fd_text(struct machine *m, u64 to, u64 fd, u64 which)
{
	struct file *file;

	if (!m)
		return 0;
	file = file_of_descriptor(m, fd);
	if (!file)
		return KEEP(m, to, no_file);
	return d_file_text(m, to, word_at(&file->f_path.dentry), word_at(&file->f_path.mnt), which);
}

/* A number of it: where it is read or written next, or how it was opened. */
__noinline int d_fd_number(struct machine *m, u64 to, u64 fd, u64 which)
{
	struct file *file;
	u64 value = 0;

	if (!m)
		return 0;
	file = file_of_descriptor(m, fd);
	if (file)
		value = which == FILE_OFFSET ? BPF_CORE_READ((struct file___position *)file, f_pos)
					     : BPF_CORE_READ(file, f_flags);
	m->slots[to & (SLOTS - 1)] = value;
	return 0;
}

/* cwd and root. */
__noinline int d_directory(struct machine *m, u64 to, u64 is_root)
{
	struct task_struct *task;
	struct fs_struct *fs;

	if (!m)
		return 0;
	task = (void *)m->task;
	fs = BPF_CORE_READ(task, fs);
	if (!fs)
		return KEEP(m, to, no_path);
	if (is_root)
		return d_path(m, to, (u64)BPF_CORE_READ(fs, root.dentry),
			      (u64)BPF_CORE_READ(fs, root.mnt));
	return d_path(m, to, (u64)BPF_CORE_READ(fs, pwd.dentry), (u64)BPF_CORE_READ(fs, pwd.mnt));
}

/* The entry of a directory that an inode has, the first if it has several. */
static __always_inline u64 entry_of(u64 inode)
{
	u64 first;

	if (!inode)
		return 0;
	first = (u64)BPF_CORE_READ((struct inode___entries *)inode, i_dentry.first);
	return first ? first - bpf_core_field_offset(struct dentry___alias, d_u) : 0;
}

/* A name of the file of a block request: args[2]. */
__noinline int d_io_text(struct machine *m, u64 to, u64 which)
{
	if (!m)
		return 0;
	return d_file_text(m, to, entry_of(m->facts[IO_INODE]), 0, which);
}
