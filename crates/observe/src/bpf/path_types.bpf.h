/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* More of the types that names of files are found by. */
#ifndef IOTOMY_PATH_TYPES_BPF_H
#define IOTOMY_PATH_TYPES_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct inode___entries {
	struct hlist_head i_dentry;
};

struct dentry___alias {
	struct hlist_node d_u;
};

struct file_system_type {
	const char *name;
};

struct super_block___type {
	struct file_system_type *s_type;
};

struct inode___type {
	struct super_block___type *i_sb;
};

struct vfsmount___flags {
	int mnt_flags;
};

struct file___position {
	s64 f_pos;
};

#pragma clang attribute pop

#endif
