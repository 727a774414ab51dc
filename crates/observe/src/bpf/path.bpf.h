/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The path of an open or mapped file. */
#ifndef IOTOMY_PATH_BPF_H
#define IOTOMY_PATH_BPF_H

#define DEPTH	 48
#define NAME_LEN 256

#include "loop.bpf.h"
#include "root.bpf.h"

/* A path under way, with room for the whole of its last component. */
struct roomy_name {
	struct file_name name;
	char beyond[NAME_LEN];
};
_Static_assert(__builtin_offsetof(struct file_name, path) + PATH_LEN ==
		       __builtin_offsetof(struct roomy_name, beyond),
	       "the room is behind the path");

/* Where a walk has come to. */
struct walk {
	struct dentry *dentry;
	struct vfsmount *vfs;
	u64 at;
};

/* A component more; 0: that was the last. Not static: it is looked at once by the verifier. */
__noinline int step(struct walk *w, struct roomy_name *to)
{
	struct mount *mount, *above;
	struct dentry *dentry, *up;
	struct vfsmount *vfs;
	u64 at;
	long got;

	if (!w || !to)
		return 0;
	dentry = w->dentry;
	vfs = w->vfs;
	if ((u64)dentry == root.dentry && (u64)vfs == root.mount) {
		to->name.whole = 1;
		return 0;
	}
	mount = (void *)vfs - bpf_core_field_offset(struct mount, mnt);
	if (dentry == BPF_CORE_READ(vfs, mnt_root)) {
		above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount) {
			to->name.whole = 1;
			return 0;
		}
		w->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		w->vfs = (void *)above + bpf_core_field_offset(struct mount, mnt);
		return 1;
	}
	up = BPF_CORE_READ(dentry, d_parent);
	at = w->at;
	if (at > PATH_LEN - NAME_LEN)
		return 0;
	/* Older verifiers forget the bound just checked; a mask they believe. */
	barrier_var(at);
	at &= PATH_LEN - 1;
	got = bpf_probe_read_kernel_str(&to->name.path[at], NAME_LEN,
					BPF_CORE_READ(dentry, d_name.name));
	if (got <= 0 || got > NAME_LEN)
		return 0;
	w->at = at + got;
	if (up == dentry) {
		/* A file without a folder, as memfd_create makes them. */
		to->name.whole = 1;
		return 0;
	}
	w->dentry = up;
	return 1;
}

struct walking {
	struct walk walk;
	struct roomy_name *to;
};

static long step_on(u32 turn, void *with)
{
	struct walking *w = with;

	return !step(&w->walk, w->to);
}

/* The path, leaf first: user space turns it round. */
static __always_inline void walk_from(struct roomy_name *to, struct dentry *dentry,
				      struct vfsmount *vfs)
{
	struct walking w = {.walk = {.dentry = dentry, .vfs = vfs}, .to = to};

	repeat(DEPTH, step_on, &w);
	to->name.length = w.walk.at;
}

static __always_inline void walk(struct roomy_name *to, struct file *file)
{
	walk_from(to, BPF_CORE_READ(file, f_path.dentry), BPF_CORE_READ(file, f_path.mnt));
}

#endif
