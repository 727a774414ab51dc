// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT
/*
 * The requests of the watched threads over connections of TCP and of UNIX sockets, and what became
 * of the time until they were answered. Loaded beside trace.bpf.c, whose task storage it shares and
 * only reads.
 *
 * Hooks: BTF-typed raw tracepoints sys_enter, sys_exit, tcp_destroy_sock and, where the kernel has
 * it (Linux 6.3), sk_data_ready. Without the latter a request begins when it is first read.
 *
 * Of an end that was connected to, a request begins with the first byte that arrives, and its
 * answer ends with the last byte that is written before the next read. Of the end that connected,
 * it begins with the first byte written, and ends with the last one read before the next write. So
 * what ends an exchange is the beginning of the next one, or the end of the connection. What is
 * written is noted at the entry of the call, for the answer to it may be read before that returns.
 *
 * A call of a watched thread costs two look-ups in task storage, one that moves bytes through a
 * connection two hash look-ups and a clock read besides, a request a third and some twenty atomic
 * additions. What arrives costs a hash look-up, on the whole machine.
 *
 * Limits: it knows no protocol. Requests that are read together are one, and so are requests that
 * are written before an answer is read. The thread that serves may serve others meanwhile: its time
 * is split all the same. What io_uring moves is not seen. Every map is bounded, and what finds no
 * room is counted.
 */
#include "types.bpf.h"
#include "exchanges_types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "trace.h"
#include "exchanges.h"
#include "thread.bpf.h"
#include "ids.bpf.h"
#include "slots.bpf.h"
#include "tables.bpf.h"
#include "descriptors.bpf.h"

#define SOCKFS_MAGIC 0x534F434B
#define AF_UNIX	     1
#define AF_INET	     2
#define AF_INET6     10
/* Of a receive that leaves the bytes where they are, or asks for errors. */
#define MSG_PEEK     0x2
#define MSG_ERRQUEUE 0x2000

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

/* Of a watched thread, what this object adds to its `struct thread`. */
struct serving {
	/* Its blocked time, in all and in page faults, when it was last looked at. */
	u64 blocked_ns;
	u64 fault_ns;
	/* Of its blocked time, what it waited for. */
	u64 disk_ns;
	u64 peer_ns;
	u64 lock_ns;
	/* When it last asked, and was last answered. */
	u64 asked_ns;
	u64 answered_ns;
	/* Its call. */
	u32 in_call;
	u32 waits;
	u32 wrote; /* of the exchange of this generation */
	u32 began; /* the exchange began with it */
	u64 generation;
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

static __always_inline u32 abi_of(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT ? 1 : 0;
}

static __always_inline u64 file_at(struct task_struct *task, struct pt_regs *regs, u32 at)
{
	u16 abi = abi_of(task) ? CALL_I386 : 0;

	return file_number(task, argument(regs, abi, at));
}

/* Whether a receive takes nothing out of the socket: by the argument that has its flags. */
static __always_inline bool leaves(struct pt_regs *regs, u32 abi, u32 at)
{
	u32 flags = wide_argument(regs, abi ? CALL_I386 : 0, at);

	return flags & (MSG_PEEK | MSG_ERRQUEUE);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(exchange_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	struct serving *s;
	u64 number = id;
	u32 abi, transfer, flags;

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
	transfer = knobs.transfers[abi][number];
	flags = knobs.flags[abi][number];
	if (s->waits == CLOSES)
		close_file(file_at(task, regs, 0));
	else if (s->waits == CONNECTS)
		look_at(file_at(task, regs, 0), &s->to);
	if (!transfer)
		return 0;
	if (transfer & 0xf && !(flags && leaves(regs, abi, flags - 1)))
		look_at(file_at(task, regs, (transfer & 0xf) - 1), &s->from);
	if (transfer >> 4)
		look_at(file_at(task, regs, (transfer >> 4) - 1), &s->to);
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
	if (!s || !s->in_call)
		return 0;
	end_call(s, t);
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

/* The socket that a tracepoint is given, as a number: functions take no pointers of the kernel's.
 */
static __always_inline u64 first_argument(void *ctx)
{
	u64 at = 0;

	bpf_probe_read_kernel(&at, sizeof(at), ctx);
	return at;
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
