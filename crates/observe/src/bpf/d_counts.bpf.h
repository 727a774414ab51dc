/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Probes of sysinfo and vminfo: at the moment when something happens that kernels keep a statistic
 * of. arg0 is by how much it grows. And those of threads that wait for a block request.
 */

/* By their numbers of 64-bit programs. */
#define READ	      0
#define WRITE	      1
#define PREAD64	      17
#define PWRITE64      18
#define READV	      19
#define WRITEV	      20
#define SEMOP	      65
#define MSGSND	      69
#define MSGRCV	      70
#define SEMTIMEDOP    220
#define PREADV	      295
#define PWRITEV	      296
#define EXECVEAT      322
#define PREADV2	      327
#define PWRITEV2      328

#define CLONE_VFORK   0x4000
#define CLONE_THREAD  0x10000

#define OF_PROTECTION 1 /* of a page fault's error code: the page is there */
#define PAGE_BYTES    4096

static __always_inline void fire_count(u32 point, u64 by)
{
	struct about about = {.args = {by}};

	if (point < POINTS && by)
		fire_point(knobs.points[point], &about);
}

static __always_inline bool reads(long id)
{
	return id == READ || id == PREAD64 || id == READV || id == PREADV || id == PREADV2;
}

static __always_inline bool writes(long id)
{
	return id == WRITE || id == PWRITE64 || id == WRITEV || id == PWRITEV || id == PWRITEV2;
}

/* Which a process is made by: POINTS for a thread. */
static __always_inline u32 making(u64 flags)
{
	if (flags & CLONE_THREAD)
		return POINTS;
	return flags & CLONE_VFORK ? POINT_SYSVFORK : POINT_SYSFORK;
}

static __always_inline u32 point_of_call(long id, struct pt_regs *regs)
{
	u64 flags = 0;

	if (reads(id))
		return POINT_SYSREAD;
	if (writes(id))
		return POINT_SYSWRITE;
	switch (id) {
	case EXECVE:
	case EXECVEAT:
		return POINT_SYSEXEC;
	case FORK:
		return POINT_SYSFORK;
	case VFORK:
		return POINT_SYSVFORK;
	case CLONE:
		return making(regs->di);
	case CLONE3:
		bpf_probe_read_user(&flags, sizeof(flags), (void *)regs->di);
		return making(flags);
	case SEMOP:
	case SEMTIMEDOP:
		return POINT_SEMA;
	case MSGSND:
	case MSGRCV:
		return POINT_MSG;
	}
	return POINTS;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(counted_calls, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (exited || is_held(task, id) || task->thread_info.status & TS_COMPAT)
		return 0;
	fire_count(point_of_call(id, regs), 1);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(counted_bytes, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long id = (int)regs->orig_ax;
	u32 point = reads(id) ? POINT_READCH : writes(id) ? POINT_WRITECH : POINTS;

	/* First of all: what is held no more returns 0 from its execve. */
	if (exited || is_held(task, id))
		return 0;
	if (ret > 0 && !(task->thread_info.status & TS_COMPAT))
		fire_count(point, ret);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(counted_switches, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	fire_count(POINT_PSWITCH, 1);
	if (preempt || !prev_state)
		fire_count(POINT_INV_SWTCH, 1);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(counted_faults, unsigned long address, struct pt_regs *regs, unsigned long error)
{
	fire_count(POINT_AS_FAULT, 1);
	if (error & OF_PROTECTION)
		fire_count(POINT_PROT_FAULT, 1);
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(counted_kernel_faults, unsigned long address, struct pt_regs *regs,
	     unsigned long error)
{
	fire_count(POINT_KERNEL_ASFLT, 1);
	return 0;
}

/* As the kernel counts pages in and out: whatever the pages are of. */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(counted_pages, struct bio *bio)
{
	u32 operation = BPF_CORE_READ(bio, bi_opf) & OPERATION;
	u64 pages = (BPF_CORE_READ(bio, bi_iter.bi_size) + PAGE_BYTES - 1) / PAGE_BYTES;

	if (operation > 1 || !pages)
		return 0;
	fire_count(operation ? POINT_PGOUT : POINT_PGIN, 1);
	fire_count(operation ? POINT_PGPGOUT : POINT_PGPGIN, pages);
	return 0;
}

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___waits {
	unsigned int in_iowait : 1;
};

#pragma clang attribute pop

static __always_inline bool waits_for_io(struct task_struct *task)
{
	return BPF_CORE_READ_BITFIELD_PROBED((struct task_struct___waits *)task, in_iowait);
}

/* A thread that waits sleeps, and runs again; which request it waits for is not told. */
SEC("tp_btf/sched_switch")
int BPF_PROG(waited, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct about about = {};

	if (!preempt && prev_state && waits_for_io(prev))
		fire_point(knobs.points[POINT_IO_WAIT_START], &about);
	if (!waits_for_io(next))
		return 0;
	about.subject = next;
	fire_point(knobs.points[POINT_IO_WAIT_DONE], &about);
	return 0;
}
