/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The file behind a descriptor, and the arguments of a call. */
#ifndef IOTOMY_DESCRIPTORS_BPF_H
#define IOTOMY_DESCRIPTORS_BPF_H

#include "fields.bpf.h"

static __always_inline struct file *file_of(struct task_struct *task, u32 fd)
{
	struct files_struct *files = UNTRUSTED(struct task_struct, task)->files;
	struct fdtable *fdt;
	struct file *file = NULL;

	if (!files)
		return NULL;
	fdt = files->fdt;
	if (!fdt || fd >= fdt->max_fds)
		return NULL;
	if (bpf_rdonly_cast)
		/* Of anything, the first word is to be had as a list's. */
		return (void *)AS(struct list_head, fdt->fd + fd)->next;
	bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + fd);
	return file;
}

/* The same as a number, which functions that are verified once take. */
static __always_inline u64 file_number(struct task_struct *task, u32 fd)
{
	struct files_struct *files = UNTRUSTED(struct task_struct, task)->files;
	struct fdtable *fdt = files ? files->fdt : NULL;

	return fdt && fd < fdt->max_fds ? word_at(fdt->fd + fd) : 0;
}

/* A descriptor: the kernel, too, looks at its lower half only. */
static __always_inline u32 argument(struct pt_regs *regs, u16 call, u32 at)
{
	if (call & CALL_I386)
		return at == 0 ? regs->bx : at == 1 ? regs->cx : regs->dx;
	return at == 0 ? regs->di : at == 1 ? regs->si : regs->dx;
}

/* An argument, whole. */
static __always_inline u64 wide_argument(struct pt_regs *regs, u16 call, u32 at)
{
	if (call & CALL_I386) {
		switch (at) {
		case 0:
			return (u32)regs->bx;
		case 1:
			return (u32)regs->cx;
		case 2:
			return (u32)regs->dx;
		case 3:
			return (u32)regs->si;
		case 4:
			return (u32)regs->di;
		default:
			return (u32)regs->bp;
		}
	}
	switch (at) {
	case 0:
		return regs->di;
	case 1:
		return regs->si;
	case 2:
		return regs->dx;
	case 3:
		return regs->r10;
	case 4:
		return regs->r8;
	default:
		return regs->r9;
	}
}

/*
 * The name of a file, as a number: the entry of a directory at this address stays the same when it
 * is renamed, while its name, or the directory that it is in, becomes another one; and so for that
 * directory. Not static: the stack of who asks has no room for its words.
 */
__noinline u64 name_number(u64 dentry)
{
	const u64 odd = 0x9e3779b97f4a7c15;
	struct dentry *at = (void *)dentry;
	u64 name = word_at(&at->d_name.hash_len), above = word_at(&at->d_parent);

	at = (void *)above;
	name = (dentry * odd ^ name) * odd ^ above;
	return ((name * odd ^ word_at(&at->d_name.hash_len)) * odd ^ word_at(&at->d_parent)) * odd;
}

#endif
