/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Connections whose requests are timed: what they are, and when bytes arrived at them.
 *
 * A connection is known by its struct sock and the number of its socket's inode: the kernel gives
 * the struct of one that has ended to the next. TCP says when one has ended (tcp_destroy_sock). A
 * UNIX socket's end is its last close, or seen when another has its struct, or by user space where
 * the process has ended; until then its row stays.
 *
 * Who asks: the end that connects. Where that was before the watch, the sequence numbers of TCP
 * tell, since the beginning of a connection is a byte to be acknowledged only for who connects. Of
 * a UNIX connection the end that has a name listens.
 */

#define RCV_SHUTDOWN  1
#define SEND_SHUTDOWN 2

/* The first bytes that came to a connection before it was accepted. */
struct early {
	u64 arrived_ns;
	u64 ends; /* as a number */
};

/* Those of others go first. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct early);
} early_arrivals SEC(".maps");

static const struct channel no_channel;

static __always_inline u32 family_of(u64 sk)
{
	return FIELD(struct sock, sk, __sk_common.skc_family);
}

static __always_inline bool is_inet(u32 family)
{
	return family == AF_INET || family == AF_INET6;
}

static __always_inline u32 shutdown_of(u64 sk)
{
	return BPF_CORE_READ((struct sock___queue *)sk, sk_shutdown);
}

/* Messages that wait to be read. */
static __always_inline u32 queued_of(u64 sk)
{
	return BPF_CORE_READ((struct sock___queue *)sk, sk_receive_queue.qlen);
}

/* Whether bytes have arrived that were not read. Not static, as the others below: the verifier
 * looks at it once. */
__noinline int has_unread(u64 sk)
{
	struct tcp_sock___sequence *tcp = (void *)sk;
	s32 unread;

	if (!is_inet(family_of(sk)))
		return queued_of(sk) > 0;
	unread = BPF_CORE_READ(tcp, rcv_nxt) - BPF_CORE_READ(tcp, copied_seq);
	/* The end of what the other end sends counts as a byte. */
	if (shutdown_of(sk) & RCV_SHUTDOWN)
		unread--;
	return unread > 0;
}

/* What tells a connection from an earlier one of the same struct. */
static __always_inline u64 ends_of(u64 at)
{
	struct sock *sk = (void *)at;
	u64 remote[2] = {};
	u64 ports;

	if (family_of(at) == AF_UNIX)
		return (u64)BPF_CORE_READ((struct unix_sock *)at, peer);
	if (family_of(at) == AF_INET6)
		BPF_CORE_READ_INTO((struct in6_addr *)remote, sk, __sk_common.skc_v6_daddr);
	else
		BPF_CORE_READ_INTO((u32 *)remote, sk, __sk_common.skc_daddr);
	ports = (u64)BPF_CORE_READ(sk, __sk_common.skc_dport) << 16 |
		BPF_CORE_READ(sk, __sk_common.skc_num);
	return (remote[0] ^ remote[1]) << 32 ^ remote[1] ^ ports;
}

/* The name of a UNIX socket, where it has one. */
static __always_inline struct unix_address *unix_name(u64 sk)
{
	return BPF_CORE_READ((struct unix_sock *)sk, addr);
}

__noinline int read_path(u64 name, struct connection_key *key)
{
	u32 length;
	char *text;

	if (!key || !name)
		return 0;
	/* With the family in front of it. */
	length = BPF_CORE_READ((struct unix_address *)name, len) - sizeof(u16);
	text = (char *)name + bpf_core_field_offset(struct unix_address, name) + sizeof(u16);
	if (!length || length > UNIX_PATH)
		return 0;
	bpf_probe_read_kernel(key->path, length, text);
	key->path_length = length;
	return 0;
}

static __always_inline u32 tcp_role_of(u64 sk)
{
	struct tcp_sock___sequence *tcp = (void *)sk;
	u64 acknowledged;

	acknowledged = BPF_CORE_READ(tcp, bytes_sent) - BPF_CORE_READ(tcp, bytes_retrans) -
		       (u32)(BPF_CORE_READ(tcp, snd_nxt) - BPF_CORE_READ(tcp, snd_una));
	switch (BPF_CORE_READ(tcp, bytes_acked) - acknowledged) {
	case 0:
		return ROLE_ACCEPT;
	case 1:
		return ROLE_CONNECT;
	}
	return ROLE_UNKNOWN;
}

/* Who asks, of a connection that the watch has not seen being made. */
__noinline u32 role_of(u64 sk)
{
	u32 role = ROLE_UNKNOWN;
	bool has_name;
	u64 peer;

	if (!is_inet(family_of(sk))) {
		peer = (u64)BPF_CORE_READ((struct unix_sock *)sk, peer);
		has_name = unix_name(sk);
		if (!peer || has_name == !!unix_name(peer))
			return ROLE_UNKNOWN;
		return has_name ? ROLE_ACCEPT : ROLE_CONNECT;
	}
	/* The end of what this end sends would be acknowledged as a byte, too. */
	if (shutdown_of(sk) & SEND_SHUTDOWN)
		return ROLE_UNKNOWN;
	/* An acknowledgement may come while its fields are read. */
	for (int i = 0; i < 3 && !role; i++)
		role = tcp_role_of(sk);
	return role;
}

/* As lay_key of connections.bpf.h has the rows of `--peers`. */
__noinline int lay_ends(struct connection_key *key, u64 at, u32 role)
{
	struct sock *sk = (void *)at;
	struct pid *pid;

	if (!key)
		return 0;
	key->role = role;
	key->family = family_of(at);
	key->type = SOCK_STREAM;
	if (key->family == AF_UNIX) {
		pid = BPF_CORE_READ(sk, sk_peer_pid);
		key->peer_pid = pid ? number_of(pid) : 0;
		if (role == ROLE_CONNECT)
			at = (u64)BPF_CORE_READ((struct unix_sock *)at, peer);
		if (at)
			read_path((u64)unix_name(at), key);
		return 0;
	}
	key->protocol = IPPROTO_TCP;
	if (key->family == AF_INET)
		BPF_CORE_READ_INTO((u32 *)key->remote, sk, __sk_common.skc_daddr);
	else
		BPF_CORE_READ_INTO((struct in6_addr *)key->remote, sk, __sk_common.skc_v6_daddr);
	if (role == ROLE_CONNECT) {
		key->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
		return 0;
	}
	key->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	if (key->family == AF_INET)
		BPF_CORE_READ_INTO((u32 *)key->local, sk, __sk_common.skc_rcv_saddr);
	else
		BPF_CORE_READ_INTO((struct in6_addr *)key->local, sk, __sk_common.skc_v6_rcv_saddr);
	return 0;
}

static __always_inline bool is_stream(struct socket *socket, u64 sk)
{
	u32 family = family_of(sk);

	if (FIELD(struct socket, socket, type) != SOCK_STREAM)
		return false;
	if (is_inet(family))
		return FIELD(struct sock, sk, sk_protocol) == IPPROTO_TCP;
	return family == AF_UNIX;
}

__noinline int look_at(u64 file, struct target *to)
{
	struct socket_alloc *whole;
	struct super_block *super;
	struct inode *inode;
	u32 kind;
	u64 sk;

	if (!to || !file)
		return 0;
	inode = FIELD(struct file, file, f_inode);
	kind = FIELD(struct inode, inode, i_mode) & S_IFMT;
	to->is_disk = kind == S_IFREG || kind == S_IFBLK;
	super = FIELD(struct inode, inode, i_sb);
	if (kind != S_IFSOCK || FIELD(struct super_block, super, s_magic) != SOCKFS_MAGIC)
		return 0;
	whole = (void *)inode - bpf_core_field_offset(struct socket_alloc, vfs_inode);
	sk = (u64)FIELD(struct socket_alloc, whole, socket.sk);
	if (!sk || !is_stream(&whole->socket, sk))
		return 0;
	to->sk = sk;
	to->inode = FIELD(struct inode, inode, i_ino);
	return 0;
}

/* Whether a file is closed by who closes it now: nobody else has it open. */
static __always_inline bool is_last(u64 file)
{
	struct file___since_6_13 *newer = (void *)file;
	struct file___before_6_13 *older = (void *)file;

	if (bpf_core_field_exists(newer->f_ref))
		return BPF_CORE_READ(newer, f_ref.refcnt.counter) == 0;
	return BPF_CORE_READ(older, f_count.counter) == 1;
}

/* The connection of a socket, if it is known. */
static __always_inline struct channel *known_channel(u64 sk, u64 inode)
{
	struct channel *ch = bpf_map_lookup_elem(&channels, &sk);

	return ch && ch->inode == inode ? ch : NULL;
}

/* What has arrived at a connection. */
static __always_inline void note_arrival(struct channel *ch, u64 now)
{
	ch->newest_ns = now;
	if (!ch->arrived_ns)
		ch->arrived_ns = now;
}

/* Notes when the first bytes came that were there before the connection was accepted. */
static __always_inline void take_early(struct channel *ch, u64 sk)
{
	struct early *early = bpf_map_lookup_elem(&early_arrivals, &sk);

	if (!early)
		return;
	if (early->ends == ends_of(sk) && has_unread(sk)) {
		ch->newest_ns = early->arrived_ns;
		ch->arrived_ns = early->arrived_ns;
	}
	bpf_map_delete_elem(&early_arrivals, &sk);
}

/* Of both kinds, as TCP numbers it. */
static __always_inline u32 state_of(u64 sk)
{
	return BPF_CORE_READ((struct sock *)sk, __sk_common.skc_state);
}

/* Whether it sends no more. */
static __always_inline bool is_half(u32 state)
{
	return state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2;
}

static __always_inline bool can_send(u32 state)
{
	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
}

/* Makes the connection of a socket known. With a role, if the watch has seen it being made. */
__noinline int meet(const struct target *at, u32 image, u32 role)
{
	bool is_accepted = role == ROLE_ACCEPT;
	struct channel *ch;
	u64 sk;

	if (!at || !at->sk || !(can_send(state_of(at->sk)) || is_half(state_of(at->sk))))
		return 0;
	sk = at->sk;
	ch = bpf_map_lookup_elem(&channels, &sk);
	if (ch && ch->inode == at->inode)
		return 0;
	if (ch)
		end_channel(ch, bpf_ktime_get_ns());
	if (bpf_map_update_elem(&channels, &sk, &no_channel, BPF_ANY)) {
		lose();
		return 0;
	}
	ch = bpf_map_lookup_elem(&channels, &sk);
	if (!ch)
		return 0;
	if (!role)
		role = role_of(sk);
	ch->inode = at->inode;
	ch->key.image = image;
	lay_ends(&ch->key, sk, role);
	take_early(ch, sk);
	/* What came while the call that accepts it was about to return. */
	if (is_accepted && KERNEL_HAS(DATA_READY) && !ch->arrived_ns && has_unread(sk))
		note_arrival(ch, bpf_ktime_get_ns());
	if (!role && ch->key.family != AF_UNIX)
		ADD(counters.unclear, 1);
	return 0;
}

/* Once bytes were read: those that are left came last. */
static __always_inline void note_read(struct channel *ch, u64 sk)
{
	ch->arrived_ns = 0;
	if (has_unread(sk) && !ch->arrived_ns)
		ch->arrived_ns = ch->newest_ns;
}
