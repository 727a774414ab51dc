/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Calls that connect and accept, when they return. */

#ifdef DETAILS

#define NR_ACCEPT	43
#define NR_SENDTO	44
#define NR_ACCEPT4	288
#define NR_ACCEPT4_I386 (CALL_I386 | 364)

#define EINTR		4
#define EISCONN		106
#define EALREADY	114
#define EINPROGRESS	115
#define ERESTARTSYS	512

static __always_inline bool connects(u16 call)
{
	return call == NR_CONNECT || call == NR_CONNECT_I386;
}

static __always_inline bool accepts(u16 call)
{
	return call == NR_ACCEPT || call == NR_ACCEPT4 || call == NR_ACCEPT4_I386;
}

static __always_inline bool makes_connection(u16 call)
{
	return knobs.by_peer && (connects(call) || accepts(call));
}

/* One of them that returns. */
struct making {
	u64 file; /* the address of the socket's, when it is counted */
	u64 address;
	u64 length; /* of the address */
	u64 wall_ns;
	u64 now_ns;
	s64 ret;
	u32 fd; /* when it is the subject of a condition */
	u32 image;
};

/* The address that a connect asks for. */
struct asked_address {
	u16 family;
	u16 port;
	u8 ipv4[4];
	u8 ipv6[16];
};

/* Puts the address that was asked for in place of a remote one. False: none was. */
__noinline int ask(struct socket_name *name, const struct making *of)
{
	struct asked_address asked = {};
	u64 length;
	long got;

	if (!name || !of || of->length < sizeof(asked.family))
		return 0;
	bpf_probe_read_user(&asked.family, sizeof(asked.family), (void *)of->address);
	if (asked.family == AF_UNIX && name->family == AF_UNIX) {
		length = of->length - sizeof(asked.family);
		if (length > UNIX_PATH)
			length = UNIX_PATH;
		__builtin_memset(name->peer_path, 0, sizeof(name->peer_path));
		/* With an end that a path of the full length does not have. */
		got = bpf_probe_read_user_str(name->peer_path, length + 1,
					      (void *)of->address + sizeof(asked.family));
		if (got == 1)
			got = bpf_probe_read_user(name->peer_path, length,
						  (void *)of->address + sizeof(asked.family))
				      ? 0
				      : length;
		name->peer_path_length = got > 0 && got <= UNIX_PATH ? got : UNIX_PATH;
		return 1;
	}
	if (asked.family != AF_INET && asked.family != AF_INET6)
		return 0;
	if (bpf_probe_read_user(&asked, asked.family == AF_INET ? 8 : sizeof(asked),
				(void *)of->address))
		return 0;
	name->family = asked.family;
	name->remote_port = __builtin_bswap16(asked.port);
	__builtin_memset(name->remote, 0, sizeof(name->remote));
	if (asked.family == AF_INET)
		__builtin_memcpy(name->remote, asked.ipv4, sizeof(asked.ipv4));
	else
		__builtin_memcpy(name->remote, asked.ipv6, sizeof(asked.ipv6));
	return 1;
}

/* The socket that a file is, named in the scratch; 0: it is none, or of no such family. */
static __always_inline u64 name_socket(struct scratch *s, struct file *file)
{
	struct socket_name *name;
	struct inode *inode;

	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	if (BPF_CORE_READ(inode, i_sb, s_magic) != SOCKFS_MAGIC)
		return 0;
	name = (struct socket_name *)s->file.name.path;
	note_socket(name, inode);
	if (name->family != AF_INET && name->family != AF_INET6 && name->family != AF_UNIX)
		return 0;
	return (u64)sock_of(inode);
}

/* The same of the one behind a descriptor. */
static __always_inline u64 named_socket(struct scratch *s, u32 fd)
{
	return name_socket(s, file_of(bpf_get_current_task_btf(), fd));
}

/* The same of what is made; a connection that was accepted has a descriptor. */
static __always_inline u64 socket_of(struct scratch *s, const struct making *of, bool accepted)
{
	return accepted ? named_socket(s, of->ret) : name_socket(s, (struct file *)of->file);
}

/* The connect goes on, or there is nothing to connect any more. */
static __always_inline bool says_nothing(s64 ret)
{
	return ret == -EINPROGRESS || ret == -EALREADY || ret == -EISCONN || ret == -EINTR ||
	       ret <= -ERESTARTSYS;
}

/* A connect of which TCP's handshake is tracked. */
static __always_inline void count_tracked(struct track *track, u64 sk, s64 ret)
{
	bool counted = track->counted;

	track->counted = 1;
	switch (track->state) {
	case TRACK_PENDING:
		if (!says_nothing(ret) && ret < 0) {
			track->state = TRACK_FAILED;
			track->error = -ret;
			count_failed(&track->key, -ret);
		}
		break;
	case TRACK_FAILED:
		/* Where it has been counted, this call fetches the error, or fails by another. */
		if (counted && (says_nothing(ret) || ret >= 0 || track->error == -ret))
			break;
		count_failed(&track->key, says_nothing(ret) || ret >= 0 ? track->error : -ret);
		break;
	default:
		if (counted)
			break;
		count_opened(&track->key, track->took_ns);
		if (track->state == TRACK_CLOSED)
			measure(track, sk, 1);
	}
}

__noinline int count_connect(const struct making *of)
{
	struct socket_name *name;
	struct track *track;
	struct scratch *s;
	u64 sk;

	if (!of)
		return 0;
	s = scratch();
	if (!s)
		return 0;
	sk = socket_of(s, of, false);
	if (!sk)
		return 0;
	name = (struct socket_name *)s->file.name.path;
	track = is_tcp(name) ? bpf_map_lookup_elem(&tracked, &sk) : NULL;
	if (track && track->key.role == ROLE_CONNECT) {
		count_tracked(track, sk, of->ret);
		return 0;
	}
	if (says_nothing(of->ret))
		return 0;
	/* Where it failed, the socket has no remote address; nor has one that is disconnected. */
	if (of->ret < 0 && !ask(name, of))
		return 0;
	if (of->ret < 0)
		name->peer_pid = 0;
	else if (name->family != AF_UNIX && !name->remote_port && !ask(name, of))
		return 0;
	lay_key(&s->track.key, name, ROLE_CONNECT, of->image);
	if (of->ret < 0)
		count_failed(&s->track.key, -of->ret);
	else
		count_opened(&s->track.key, of->wall_ns);
	return 0;
}

/* The TCP listener that an accept was from; 0: none. */
static __always_inline u64 listener_of(const struct making *of)
{
	struct file *file = (struct file *)of->file;
	struct inode *inode;
	struct sock *sk;

	inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	if (!inode || BPF_CORE_READ(inode, i_sb, s_magic) != SOCKFS_MAGIC)
		return 0;
	sk = sock_of(inode);
	if (!sk || BPF_CORE_READ(sk, __sk_common.skc_state) != TCP_LISTEN ||
	    BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	return (u64)sk;
}

/* What a listener drops is counted in the row that the scratch has, unless another accept follows.
 */
static __always_inline void track_listener(struct scratch *s, u64 sk)
{
	if (!bpf_map_lookup_elem(&handshakes, &sk))
		s->track.dropped = (u32)BPF_CORE_READ((struct sock *)sk, sk_drops.counter);
	s->track.state = TRACK_LISTENS;
	s->track.counted = 1;
	bpf_map_update_elem(&tracked, &sk, &s->track, BPF_NOEXIST);
	s->track.state = TRACK_PENDING;
	s->track.counted = 0;
	s->track.dropped = 0;
}

/*
 * What is in the queue of a TCP listener when an accept returns: for the row in the scratch, which
 * has counted the accept. `taken`: the connections that it returned.
 */
__noinline int note_queue(const struct making *of, u32 taken)
{
	struct connection_row *row;
	struct track *listener;
	struct scratch *s;
	u64 sk;

	if (!of)
		return 0;
	sk = listener_of(of);
	s = scratch();
	if (!sk || !s)
		return 0;
	row = bpf_map_lookup_elem(&connections, &s->track.key);
	/* What is dropped is left for the next accept, too. */
	if (!row)
		return 0;
	raise_to(&row->max_queued, (u64)BPF_CORE_READ((struct sock *)sk, sk_ack_backlog) + taken);
	row->queue_limit = BPF_CORE_READ((struct sock *)sk, sk_max_ack_backlog);
	listener = bpf_map_lookup_elem(&tracked, &sk);
	if (!listener)
		track_listener(s, sk);
	else if (listener->state == TRACK_LISTENS)
		ADD(row->dropped, newly_dropped(listener, sk));
	return 0;
}

__noinline int count_accept(const struct making *of)
{
	struct socket_name *name;
	struct scratch *s;
	u64 sk, *made_ns, took_ns = -1ULL;

	if (!of || of->ret <= -ERESTARTSYS)
		return 0;
	s = scratch();
	if (!s)
		return 0;
	sk = socket_of(s, of, of->ret >= 0);
	if (!sk)
		return 0;
	name = (struct socket_name *)s->file.name.path;
	__builtin_memset(&s->track, 0, sizeof(s->track));
	lay_key(&s->track.key, name, ROLE_ACCEPT, of->image);
	if (of->ret < 0) {
		count_failed(&s->track.key, -of->ret);
		note_queue(of, 0);
		return 0;
	}
	if (!is_tcp(name)) {
		count_opened(&s->track.key, took_ns);
		return 0;
	}
	made_ns = bpf_map_lookup_elem(&handshakes, &sk);
	if (made_ns)
		took_ns = of->now_ns - *made_ns;
	bpf_map_delete_elem(&handshakes, &sk);
	count_opened(&s->track.key, took_ns);
	note_queue(of, 1);
	s->track.state = TRACK_OPEN;
	s->track.counted = 1;
	if (name->state == TCP_CLOSE)
		measure(&s->track, sk, 1);
	else if (bpf_map_update_elem(&tracked, &sk, &s->track, BPF_ANY))
		lose_connection();
	return 0;
}

/* The call that is about to be counted has returned. */
static __always_inline void count_connections(struct thread *t, struct pt_regs *regs, u64 now,
					      long ret)
{
	struct making of = {};

	if (!makes_connection(t->call) || !wants(t, t->call) || !t->image)
		return;
	of.file = file_number(bpf_get_current_task_btf(), argument(regs, t->call, 0));
	of.address = wide_argument(regs, t->call, 1);
	of.length = (u32)wide_argument(regs, t->call, 2);
	of.wall_ns = now - t->last_ns;
	of.now_ns = now;
	of.ret = ret;
	of.image = t->image;
	if (accepts(t->call))
		count_accept(&of);
	else
		count_connect(&of);
}

#else

static __always_inline bool makes_connection(u16 call)
{
	return false;
}

static __always_inline void count_connections(struct thread *t, struct pt_regs *regs, u64 now,
					      long ret)
{
}

#endif
