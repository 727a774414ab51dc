/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* The file behind a descriptor, and the arguments of a call. */
#ifndef IOTOMY_DESCRIPTORS_BPF_H
#define IOTOMY_DESCRIPTORS_BPF_H

#include "fields.bpf.h"

/* Eight bytes of anything, as a number. */
static __always_inline u64 word_at(void *at)
{
	u64 word = 0;

	if (bpf_rdonly_cast)
		return AS(struct timespec64, at)->tv_sec;
	bpf_probe_read_kernel(&word, sizeof(word), at);
	return word;
}

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

#endif
