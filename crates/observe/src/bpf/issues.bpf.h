/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Which request of io_uring a thread is at.
 *
 * A worker says it itself. A thread that submits, which may be io_uring's own, has each request
 * issued as it submits it: that is noted by `ring_issue_req` (anatomy.bpf.c) for each. It does not
 * tell when the issue ends: who asks has to know that the thread still is inside of it. What
 * io_uring goes on with later, as a read whose page has come, is not noted.
 */
#ifndef IOTOMY_ISSUES_BPF_H
#define IOTOMY_ISSUES_BPF_H

#include "owners.bpf.h"
#include "ring_issues.bpf.h"

#define PF_IO_WORKER	  0x00000010
#define NR_IO_URING_ENTER 426 /* by both entries */

#define IOSQE_FIXED_FILE  0x1
#define IOSQE_LINKED	  (0x4 | 0x8) /* the next one waits for it */
#define IOSQE_ASYNC	  0x10

/* Operations, plus 1. */
#define NO_OPERATION	  0
#define UNKNOWN_OPERATION 0xffff

static __always_inline u32 operation_of(u64 req)
{
	return 1 + FIELD(struct io_kiocb, req, opcode);
}

/* The request a worker is at; 0: none. */
static __always_inline u64 worked_on(u64 worker)
{
	u64 work = (u64)FIELD(struct io_worker, worker, cur_work);

	return work ? work - bpf_core_field_offset(struct io_kiocb, work) : 0;
}

#define KNOWS_WORK                                                   \
	(bpf_core_field_exists(((struct io_worker *)0)->cur_work) && \
	 bpf_core_field_exists(((struct io_kiocb *)0)->work))

/* What a thread has issued last, in the call that began then. */
static __always_inline struct issue *issued_last(struct task_struct *task, u64 call_ns)
{
	struct issue *issue = task_row(&ring_issues, task);

	return issue && issue->call_ns == call_ns ? issue : NULL;
}

/* The worker that a thread of io_uring's is; 0: it submits. */
static __always_inline u64 worker_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(((struct task_struct *)0)->worker_private))
		return 0;
	return (u64)UNTRUSTED(struct task_struct, task)->worker_private;
}

static __always_inline bool submits(const struct thread *t)
{
	return t->in_call && (t->call & CALL_NUMBER) == NR_IO_URING_ENTER;
}

/*
 * The operation that the current task is at, or that it has issued last: in its call, or as a
 * thread of io_uring's. Not static: the verifier goes through it once.
 */
__noinline u32 current_operation(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	struct issue *issue = NULL;
	u64 worker = 0, req;

	if (t)
		issue = submits(t) ? issued_last(task, t->last_ns) : NULL;
	else if (task->flags & PF_IO_WORKER)
		worker = worker_of(task);
	if (worker && !KNOWS_WORK)
		return UNKNOWN_OPERATION;
	if (worker) {
		req = worked_on(worker);
		return req ? operation_of(req) : NO_OPERATION;
	}
	if (!t && task->flags & PF_IO_WORKER)
		issue = issued_last(task, 0);
	return issue ? issue->operation : NO_OPERATION;
}

/* The request that a task is at, as far as it is known; 0: none. */
static __always_inline u64 request_of(struct task_struct *task)
{
	struct thread *t = thread_of(task);
	struct issue *issue;
	u64 worker;

	if (t) {
		issue = submits(t) ? issued_last(task, t->last_ns) : NULL;
		return issue ? issue->request : 0;
	}
	if (!(task->flags & PF_IO_WORKER))
		return 0;
	worker = worker_of(task);
	if (worker)
		return KNOWS_WORK ? worked_on(worker) : 0;
	issue = issued_last(task, 0);
	return issue ? issue->request : 0;
}

#endif
