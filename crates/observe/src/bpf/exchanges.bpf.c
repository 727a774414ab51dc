// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * The requests of the watched threads over connections of TCP and of UNIX sockets, and what became
 * of the time until they were answered. Loaded beside trace.bpf.c, whose task storage it shares and
 * only reads.
 *
 * Hooks: BTF-typed raw tracepoints sys_enter, sys_exit, tcp_destroy_sock and, where the kernel has
 * it (Linux 6.3), sk_data_ready. Without the latter a request begins when it is first read. Raw
 * tracepoints of io_uring, where the kernel has them (exchange_rings.bpf.h).
 *
 * Of an end that was connected to, a request begins with the first byte that arrives, and its
 * answer ends with the last byte that is written before the next read. Of the end that connected,
 * it begins with the first byte written, and ends with the last one read before the next write. So
 * what ends an exchange is the beginning of the next one, or the end of the connection. What is
 * written is noted at the entry of the call, for the answer to it may be read before that returns.
 *
 * A call of a watched thread costs four look-ups in task storage, one that moves bytes through a
 * connection two in a hash besides for each of its ends, and a clock read at entry, at return, or
 * at both; a request one more and some twenty atomic additions. What arrives costs a hash look-up,
 * on the whole machine.
 *
 * Limits: of more than some thousand connections that wait with bytes to be accepted, those longest
 * there are taken for newly arrived. It knows no protocol. Requests that are read together are one,
 * and so are requests that are written before an answer is read. The thread that serves may serve
 * others meanwhile: its time is split all the same. Every map is bounded, and what finds no room is
 * counted.
 */
#include "types.bpf.h"
#include "exchanges_types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "kernel_numbers.bpf.h"
#include "trace.h"
#include "exchanges.h"
#include "thread.bpf.h"
#include "ids.bpf.h"
#include "slots.bpf.h"
#include "tables.bpf.h"
#include "descriptors.bpf.h"

const volatile struct exchange_knobs knobs SEC(".rodata.knobs");

/* Set when the watch ends: detaching goes program by program. */
u32 over SEC(".data.over");

struct exchange_counters counters;

/* What a descriptor leads to, as numbers: functions take no pointers of the kernel's. */
struct target {
	u64 sk; /* of a stream that may be a connection; else 0 */
	u64 inode;
	u32 is_disk;
	u32 pad;
};

/* A write that is under way. */
struct writing {
	u64 generation; /* of the exchange that it is of */
	u32 wrote;	/* there is one */
	u32 began;	/* the exchange began with it */
};

/* Of a watched thread, what this object adds to its `struct thread`. */
struct serving {
	/* Its blocked time, in all and in page faults, when it was last looked at. */
	u64 blocked_ns;
	u64 fault_ns;
	/* Of its blocked time, what it waited for. */
	u64 disk_ns;
	u64 peer_ns;
	u64 lock_ns;
	struct target asked; /* last */
	/* Its call. */
	u32 in_call;
	u32 waits;
	struct writing write;
	struct target from;
	struct target to;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct serving);
} servings SEC(".maps");

static const struct serving not_serving;

ROWS(channels, u64, struct channel);
ROWS(exchanges, struct connection_key, struct exchange_row);

static __always_inline void lose(void)
{
	ADD(counters.lost, 1);
}

#include "exchange_rows.bpf.h"
#include "channels.bpf.h"
#include "serving.bpf.h"
#include "exchange_rings.bpf.h"

static __always_inline u32 abi_of(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT ? 1 : 0;
}

static __always_inline u64 file_at(struct task_struct *task, struct pt_regs *regs, u32 at)
{
	u16 abi = abi_of(task) ? CALL_I386 : 0;

	return file_number(task, argument(regs, abi, at));
}

/* Whether a receive takes nothing out of the socket, by its flags: it leaves the bytes there, or
 * asks for errors. */
static __always_inline bool leaves(struct pt_regs *regs, u32 abi, u64 number)
{
	u32 at = knobs.flags[abi][number];

	if (!at)
		return false;
	return wide_argument(regs, abi ? CALL_I386 : 0, at - 1) & (MSG_PEEK | MSG_ERRQUEUE);
}

/* What a call reads from. */
static __always_inline void look_at_from(struct serving *s, struct task_struct *task,
					 struct pt_regs *regs, u64 number)
{
	u32 abi = abi_of(task), at = knobs.transfers[abi][number] & 0xf;

	if (at && !leaves(regs, abi, number))
		look_at(file_at(task, regs, at - 1), &s->from);
}

/* A read that was under way when the watch began: the request that it returns with was not seen to
 * arrive. */
static __always_inline void begin_late(struct serving *s, const struct thread *t,
				       struct task_struct *task, struct pt_regs *regs)
{
	u64 number = regs->orig_ax;

	if (number > 511)
		return;
	begin_call(s, t);
	look_at_from(s, task, regs, number);
	begin_transfer(s, t);
	end_call(s, t);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(exchange_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	struct serving *s;
	u64 number = id;
	u32 abi, to;

	if (!t || !t->image || over)
		return 0;
	s = made_task_row(&servings, task, &not_serving);
	if (!s) {
		lose();
		return 0;
	}
	begin_call(s, t);
	if (number > 511)
		return 0;
	abi = abi_of(task);
	s->waits = knobs.waits[abi][number];
	if (s->waits == CLOSES)
		close_file(file_at(task, regs, 0));
	else if (s->waits == CONNECTS)
		look_at(file_at(task, regs, 0), &s->to);
	if (!knobs.transfers[abi][number])
		return 0;
	look_at_from(s, task, regs, number);
	to = knobs.transfers[abi][number] >> 4;
	if (to)
		look_at(file_at(task, regs, to - 1), &s->to);
	begin_transfer(s, t);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(exchange_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	struct serving *s;

	if (!t)
		return 0;
	s = task_row(&servings, task);
	if (s ? !s->in_call : !t->image || ret <= 0 || over)
		return 0;
	if (s) {
		end_call(s, t);
	} else {
		s = made_task_row(&servings, task, &not_serving);
		if (!s)
			return 0;
		begin_late(s, t, task, regs);
	}
	if (over)
		return 0;
	if (s->waits == ACCEPTS && ret >= 0) {
		look_at(file_number(task, ret), &s->from);
		meet(&s->from, t->image, ROLE_ACCEPT);
	} else if (s->waits == CONNECTS) {
		if (!ret)
			meet(&s->to, t->image, ROLE_CONNECT);
	} else if (s->from.sk || s->to.sk) {
		end_transfer(s, t, ret);
	}
	return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(tcp_destroy_sock, const struct sock *sock)
{
	u64 sk = first_argument(ctx);
	struct channel *ch;

	if (over)
		return 0;
	ch = bpf_map_lookup_elem(&channels, &sk);
	if (ch) {
		end_channel(ch, bpf_ktime_get_ns());
		bpf_map_delete_elem(&channels, &sk);
	}
	bpf_map_delete_elem(&early_arrivals, &sk);
	return 0;
}

/* Runs in interrupts, for every socket of the machine. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(sk_data_ready, const struct sock *sock)
{
	u64 sk = first_argument(ctx);

	if (!over)
		arrive(sk);
	return 0;
}

FORGET_TASK
{
	forget_row(&servings, task);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
