/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * What a socket is connected to, as the kernel has it when a call first moves bytes through it. It
 * stands where other files have their path.
 */

/* The name of a UNIX socket; not static: the verifier looks at it once. */
__noinline u32 read_unix_name(u64 of, struct socket_name *to, bool is_peer)
{
	struct unix_address *name;
	u32 length;
	char *text;

	if (!to)
		return 0;
	name = BPF_CORE_READ((struct unix_sock *)of, addr);
	if (!name)
		return 0;
	/* With the family in front of it. */
	length = BPF_CORE_READ(name, len) - sizeof(u16);
	text = (char *)name + bpf_core_field_offset(struct unix_address, name) + sizeof(u16);
	if (!length || length > UNIX_PATH)
		return 0;
	bpf_probe_read_kernel(is_peer ? to->peer_path : to->path, length, text);
	return length;
}

/* Its inode is a part of what the kernel allocates for it. */
static __always_inline struct sock *sock_of(struct inode *inode)
{
	struct socket_alloc *whole =
		(void *)inode - bpf_core_field_offset(struct socket_alloc, vfs_inode);

	return BPF_CORE_READ(&whole->socket, sk);
}

static __always_inline void note_socket(struct socket_name *to, struct inode *inode)
{
	struct socket_alloc *whole =
		(void *)inode - bpf_core_field_offset(struct socket_alloc, vfs_inode);
	struct socket *socket = &whole->socket;
	struct sock *sk = BPF_CORE_READ(socket, sk);
	struct sock *peer;
	struct pid *pid;

	__builtin_memset(to, 0, sizeof(*to));
	if (!sk)
		return;
	to->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	to->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	to->type = BPF_CORE_READ(socket, type);
	to->protocol = BPF_CORE_READ(sk, sk_protocol);
	if (to->family == AF_INET || to->family == AF_INET6) {
		to->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
		to->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	}
	if (to->family == AF_INET) {
		BPF_CORE_READ_INTO((u32 *)to->local, sk, __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO((u32 *)to->remote, sk, __sk_common.skc_daddr);
	} else if (to->family == AF_INET6) {
		BPF_CORE_READ_INTO((struct in6_addr *)to->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO((struct in6_addr *)to->remote, sk, __sk_common.skc_v6_daddr);
	} else if (to->family == AF_UNIX) {
		to->path_length = read_unix_name((u64)sk, to, false);
		peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
		if (peer)
			to->peer_path_length = read_unix_name((u64)peer, to, true);
		pid = BPF_CORE_READ(sk, sk_peer_pid);
		if (pid)
			to->peer_pid = number_of(pid);
	}
}
