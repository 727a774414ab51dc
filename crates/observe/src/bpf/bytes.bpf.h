/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The bytes that a call moved, where these are not what it returned: sendmmsg and recvmmsg return
 * messages; what is received with MSG_PEEK stays where it is, and what MSG_TRUNC makes the kernel
 * tell of may be more than there was room for; without room, calls on extended attributes tell how
 * much there would be. The same in user space: ptrace/bytes.rs.
 */

#define NR_RECVFROM	      45
#define NR_RECVMSG	      47
#define NR_MSGRCV	      70
#define NR_GETXATTR	      191 /* lgetxattr, fgetxattr */
#define NR_LISTXATTR	      194 /* llistxattr, flistxattr */
#define NR_RECVMMSG	      299
#define NR_SENDMMSG	      307
#define NR_GETXATTR_I386      (CALL_I386 | 229)
#define NR_LISTXATTR_I386     (CALL_I386 | 232)
#define NR_RECVMMSG_I386      (CALL_I386 | 337)
#define NR_SENDMMSG_I386      (CALL_I386 | 345)
#define NR_RECVFROM_I386      (CALL_I386 | 371)
#define NR_RECVMSG_I386	      (CALL_I386 | 372)
#define NR_MSGRCV_I386	      (CALL_I386 | 401)
#define NR_RECVMMSG_TIME_I386 (CALL_I386 | 417)

/* The kernel takes no more at once; and of the parts of a message no more are looked at here. */
#define MOST_MESSAGES 1024
#define MOST_PARTS    64

struct messages {
	u64 at;
	u64 bytes;
	u32 count;
	bool is_i386;
	bool is_cut; /* what is told of a message may be more than there was room for */
};

static __always_inline u64 user_word(u64 at, bool is_i386)
{
	u64 word = 0;

	bpf_probe_read_user(&word, is_i386 ? 4 : 8, (void *)at);
	return word;
}

/* The room for a message, whose header is there. Not static, as those below: so the verifier looks
 * at it once. */
__noinline u64 room_of_message(u64 header, bool is_i386)
{
	u64 parts = user_word(header + (is_i386 ? 8 : 16), is_i386), room = 0;
	u64 count = user_word(header + (is_i386 ? 12 : 24), is_i386);

	if (count > MOST_PARTS)
		return -1ULL;
	for (u32 i = 0; i < MOST_PARTS; i++) {
		if (i >= count)
			break;
		room += is_i386 ? user_word(parts + i * 8 + 4, true)
				: user_word(parts + i * 16 + 8, false);
	}
	return room;
}

/* Adds one of the messages, or says 1 where there is none. */
__noinline int add_one(struct messages *m, u32 turn)
{
	u32 bytes = 0;
	u64 at, room;

	if (!m || turn >= m->count)
		return 1;
	at = m->at + turn * (m->is_i386 ? 32 : 64);
	bpf_probe_read_user(&bytes, sizeof(bytes), (void *)(at + (m->is_i386 ? 28 : 56)));
	room = m->is_cut ? room_of_message(at, m->is_i386) : bytes;
	m->bytes += bytes < room ? bytes : room;
	return 0;
}

static long add_message(u32 turn, void *with)
{
	return add_one(with, turn) ? 1 : 0; /* what a turn of bpf_loop() may say */
}

static __always_inline long at_most(long ret, u64 room)
{
	return ret > room ? room : ret;
}

/* As wide_argument(), of registers whose address is a number; the first argument is not asked for.
 */
static __always_inline u64 argument_behind(u64 regs, u16 call, u32 at)
{
	struct pt_regs *r = (void *)regs;

	if (call & CALL_I386) {
		switch (at) {
		case 1:
			return (u32)word_at(&r->cx);
		case 2:
			return (u32)word_at(&r->dx);
		case 3:
			return (u32)word_at(&r->si);
		default:
			return (u32)word_at(&r->di);
		}
	}
	switch (at) {
	case 1:
		return word_at(&r->si);
	case 2:
		return word_at(&r->dx);
	case 3:
		return word_at(&r->r10);
	default:
		return word_at(&r->r8);
	}
}

/*
 * Of a call that returned a positive number. Not static: so the verifier looks at it once, and the
 * stack of who asks has room for the rest.
 */
__noinline long other_bytes(u64 number, u64 regs, long ret)
{
	u16 call = number;
	struct messages messages = {.count = ret, .is_i386 = !!(call & CALL_I386)};
	u32 flags;

	switch (call) {
	case NR_RECVFROM:
	case NR_RECVFROM_I386:
		flags = argument_behind(regs, call, 3);
		if (flags & MSG_PEEK)
			return 0;
		return flags & MSG_TRUNC ? at_most(ret, argument_behind(regs, call, 2)) : ret;
	case NR_RECVMSG:
	case NR_RECVMSG_I386:
		flags = argument_behind(regs, call, 2);
		if (flags & MSG_PEEK)
			return 0;
		if (!(flags & MSG_TRUNC))
			return ret;
		return at_most(ret,
			       room_of_message(argument_behind(regs, call, 1), messages.is_i386));
	case NR_RECVMMSG:
	case NR_RECVMMSG_I386:
	case NR_RECVMMSG_TIME_I386:
		flags = argument_behind(regs, call, 3);
		if (flags & MSG_PEEK)
			return 0;
		messages.is_cut = flags & MSG_TRUNC;
		break;
	case NR_SENDMMSG:
	case NR_SENDMMSG_I386:
		break;
	case NR_GETXATTR ... NR_GETXATTR + 2:
	case NR_GETXATTR_I386 ... NR_GETXATTR_I386 + 2:
		return argument_behind(regs, call, 3) ? ret : 0;
	case NR_LISTXATTR ... NR_LISTXATTR + 2:
	case NR_LISTXATTR_I386 ... NR_LISTXATTR_I386 + 2:
		return argument_behind(regs, call, 2) ? ret : 0;
	case NR_MSGRCV:
	case NR_MSGRCV_I386:
		return argument_behind(regs, call, 4) & MSG_COPY ? 0 : ret;
	default:
		return ret;
	}
	messages.at = argument_behind(regs, call, 1);
	repeat(MOST_MESSAGES, add_message, &messages);
	return messages.bytes;
}

/* The same of a request of io_uring that receives: IORING_OP_RECVMSG, IORING_OP_RECV. */
static __always_inline s64 moved_by_ring(u64 req, u8 op, s64 result)
{
	u32 flags, room;

	if (result <= 0 || !req || (op != 10 && op != 27) ||
	    !bpf_core_field_exists(struct io_sr_msg, msg_flags))
		return result;
	flags = FIELD(struct io_sr_msg, req, msg_flags);
	if (flags & MSG_PEEK)
		return 0;
	/* Of a buffer that the kernel chose, the size is not there. */
	room = op == 27 && flags & MSG_TRUNC ? FIELD(struct io_sr_msg, req, len) : 0;
	return room && result > room ? room : result;
}

#define BIT_OF(call) (1ULL << ((call)&63))

/* By number, 64 a word: the calls that may return another number than that of the bytes that they
 * moved. */
static const u64 counted_otherwise[8] = {
	[0] = BIT_OF(NR_RECVFROM) | BIT_OF(NR_RECVMSG),
	[1] = BIT_OF(NR_MSGRCV),
	[2] = BIT_OF(NR_GETXATTR),
	/* The rest of the calls that read extended attributes: 192 to 196. */
	[3] = 0x1f,
	[4] = BIT_OF(NR_RECVMMSG) | BIT_OF(NR_SENDMMSG),
};

/* Without a branch, which the verifier would follow twice. */
static __always_inline bool counts_otherwise(u16 call)
{
	return (counted_otherwise[(call >> 6) & 7] >> (call & 63) | !!(call & CALL_I386)) & 1;
}

static __always_inline long moved_bytes(u16 call, struct pt_regs *regs, long ret)
{
	u64 address = 0;

	if (ret <= 0 || !counts_otherwise(call))
		return ret;
	/* As a number: a function that is verified by itself takes no pointer of this kind. */
	bpf_probe_read_kernel(&address, sizeof(address), &regs);
	return other_bytes(call, address, ret);
}
