/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* What the filter of where.bpf.h learns of the life of threads. */

static __always_inline void note_executed(struct task_struct *task, u32 image,
					  struct linux_binprm *bprm);
static __always_inline void inherit_image(struct task_struct *parent, struct task_struct *child,
					  u32 from, u32 to);
static __always_inline bool is_doubtful(u16 call);
