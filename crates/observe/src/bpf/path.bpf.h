/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The path of an open or mapped file. */
#ifndef IOTOMY_PATH_BPF_H
#define IOTOMY_PATH_BPF_H

#define DEPTH	 48
#define NAME_LEN 256

/* iotomy's own root folder, where the paths it shows begin; found by `adopt` like `sight`. */
struct root root SEC(".data.root");

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

#endif
