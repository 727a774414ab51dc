/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Stacks of the kernel, and of user space where they are asked for. */
#ifndef IOTOMY_STACKS_BPF_H
#define IOTOMY_STACKS_BPF_H

#define EEXIST 17

const volatile struct sample_knobs knobs SEC(".rodata.knobs");

/* Sizes are set by user space before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
} stacks SEC(".maps");

/* Stacks whose place in the first table was another's. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
} more_stacks SEC(".maps");

/* The same of user space; not made unless they are asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
} user_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
} more_user_stacks SEC(".maps");

static __always_inline s32 stack_of(void *ctx, void *table, void *more, u64 flags)
{
	long id = KERNEL_HAS(STACK_TABLES) ? bpf_get_stackid(ctx, table, flags) : NO_STACK;

	if (id >= 0)
		return id;
	if (id == -EEXIST) {
		id = bpf_get_stackid(ctx, more, flags);
		if (id >= 0)
			return id | MORE_STACKS;
	}
	return id == -EEXIST ? COLLIDED : NO_STACK;
}

static __always_inline s32 kernel_stack(void *ctx)
{
	return stack_of(ctx, &stacks, &more_stacks, 0);
}

static __always_inline s32 user_stack(void *ctx)
{
	if (!knobs.user_stacks)
		return NO_STACK;
	return stack_of(ctx, &user_stacks, &more_user_stacks, BPF_F_USER_STACK);
}

/*
 * Where the innermost function of user space returns to, if it has left the stack as it found it,
 * as the C library's around most calls do: what stands on top is an address behind a call then.
 * User space looks into the function before it believes that.
 */
static __always_inline u64 returns_to(struct task_struct *task)
{
	struct pt_regs *regs;
	u8 call[6]; /* call rel32 has five bytes, call *disp32(%rip) six */
	u64 to = 0;

	if (!knobs.user_stacks || !KERNEL_HAS(REGISTERS) ||
	    !UNTRUSTED(struct task_struct, task)->mm)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (bpf_probe_read_user(&to, sizeof(to), (void *)regs->sp) ||
	    bpf_probe_read_user(call, sizeof(call), (void *)(to - sizeof(call))))
		return 0;
	return call[1] == 0xe8 || (call[0] == 0xff && call[1] == 0x15) ? to : 0;
}

#endif
