/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * Connections, by image and peer: what came of connects and accepts (connects.bpf.h), and TCP's own
 * figures.
 *
 * Hooks: BTF-typed raw tracepoints inet_sock_set_state and tcp_destroy_sock, and iterators that
 * user space runs: `measure_open` at the end of a watch, `snapshot_open` for a look at the running
 * counts. Without `--peers` none of it is loaded.
 *
 * A TCP socket that the watch has met is tracked by its address from the connect, the accept or the
 * first call that moves bytes through it until the kernel destroys it. A connect that does not wait
 * has its outcome later, in an interrupt: whichever of the call's return and the outcome comes last
 * counts it. So a connect is counted once, and only where its call is.
 *
 * A TCP listener is tracked from its first counted accept, for the requests that it drops.
 */

#ifdef DETAILS

#define NR_CONNECT	  42
#define NR_CONNECT_I386	  (CALL_I386 | 362)
#define NR_IO_URING_ENTER 426 /* by both entries */

ROWS(tracked, u64, struct track); /* by struct sock */
ROWS(connections, struct connection_key, struct connection_row);
ROWS(connection_errors, struct connection_error_key, u64);

/*
 * When a connection was made that has not been accepted yet, or a listener began. Those of others
 * go first.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u64);
} handshakes SEC(".maps");

static const struct connection_row no_connections;

static __always_inline bool is_ring_enter(u16 call)
{
	return (call & CALL_NUMBER) == NR_IO_URING_ENTER;
}

static __always_inline void lose_connection(void)
{
	ADD(counters.lost_connections, 1);
}

static __always_inline struct connection_row *connection_row(const struct connection_key *key)
{
	struct connection_row *found = bpf_map_lookup_elem(&connections, key);

	if (found)
		return found;
	bpf_map_update_elem(&connections, key, &no_connections, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&connections, key);
	if (!found)
		lose_connection();
	return found;
}

static __always_inline void lower_to(u64 *least, u64 number)
{
	u64 known;

	for (int i = 0; i < 4; i++) {
		known = *least;
		if ((known && number >= known) ||
		    __sync_val_compare_and_swap(least, known, number) == known)
			break;
	}
}

/* The row that a socket's connection is in. */
__noinline int lay_key(struct connection_key *key, const struct socket_name *name, u32 role,
		       u32 image)
{
	if (!key || !name)
		return 0;
	__builtin_memset(key, 0, sizeof(*key));
	key->image = image;
	key->role = role;
	key->family = name->family;
	key->type = name->type;
	key->protocol = name->protocol;
	key->peer_pid = name->peer_pid;
	if (name->family == AF_UNIX) {
		key->path_length =
			role == ROLE_CONNECT ? name->peer_path_length : name->path_length;
		if (role == ROLE_CONNECT)
			__builtin_memcpy(key->path, name->peer_path, sizeof(key->path));
		else
			__builtin_memcpy(key->path, name->path, sizeof(key->path));
		return 0;
	}
	__builtin_memcpy(key->remote, name->remote, sizeof(key->remote));
	if (role != ROLE_ACCEPT)
		key->remote_port = name->remote_port;
	if (role != ROLE_CONNECT) {
		__builtin_memcpy(key->local, name->local, sizeof(key->local));
		key->local_port = name->local_port;
	}
	return 0;
}

/* A connection that was made, and the time that took; -1: not known. */
__noinline int count_opened(const struct connection_key *of, u64 took_ns)
{
	struct connection_row *row;
	struct connection_key key;

	if (!of)
		return 0;
	/* Older verifiers want the keys of maps on the stack; to copy it takes as much of it again.
	 */
	bpf_probe_read_kernel(&key, sizeof(key), of);
	row = connection_row(&key);
	if (!row)
		return 0;
	ADD(row->opened, 1);
	if (took_ns == -1ULL)
		return 0;
	ADD(row->timed, 1);
	ADD(row->time_ns, took_ns);
	raise_to(&row->max_ns, took_ns);
	return 0;
}

/* A connect or an accept that failed; by no error: it came to no end. */
__noinline int count_failed(const struct connection_key *of, u32 error)
{
	struct connection_error_key key = {};
	struct connection_row *row;
	u64 none = 0, *count;

	if (!of)
		return 0;
	bpf_probe_read_kernel(&key.key, sizeof(key.key), of);
	key.error = error;
	row = connection_row(&key.key);
	if (!row)
		return 0;
	if (!error) {
		ADD(row->unfinished, 1);
		return 0;
	}
	count = bpf_map_lookup_elem(&connection_errors, &key);
	if (!count) {
		bpf_map_update_elem(&connection_errors, &key, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&connection_errors, &key);
	}
	if (count)
		ADD(*count, 1);
	else
		lose_connection();
	return 0;
}

/*
 * How long a connection has been busy sending, and of that limited by the receiver's window and by
 * its send buffer: as TCP_INFO has it, with the state that lasts.
 */
__noinline int read_busy_times(struct busy_times *times, u64 at)
{
	struct tcp_sock *tcp = (void *)at;
	u32 stats[4] = {}, state, lasts;

	if (!times)
		return 0;
	bpf_core_read(stats, sizeof(tcp->chrono_stat), &tcp->chrono_stat);
	lasts = (u32)bpf_jiffies64() - BPF_CORE_READ(tcp, chrono_start);
	/* Of no state: the last one. */
	state = BPF_CORE_READ_BITFIELD_PROBED(tcp, chrono_type) - 1;
	stats[state & 3] += lasts;
	times->busy = stats[0] + stats[1] + stats[2];
	times->rwnd_limited = stats[1];
	times->sndbuf_limited = stats[2];
	return 0;
}

static __always_inline u64 ticks_since(u32 first, u32 now)
{
	/* Those that were read while the state changed may be fewer. */
	return (s32)(now - first) > 0 ? (u64)(now - first) * knobs.tick_ns : 0;
}

/*
 * Notes TCP's figures; counts are since it was first met. The kernel has eight times the round-trip
 * time, and four times its deviation.
 */
__noinline int note_figures(struct track *track, u64 at)
{
	struct tcp_sock *tcp = (void *)at;
	struct live_connection *now;
	struct busy_times times = {};

	if (!track)
		return 0;
	now = &track->now;
	now->rtt_us = BPF_CORE_READ(tcp, srtt_us) >> 3;
	now->rttvar_us = BPF_CORE_READ(tcp, mdev_us) >> 2;
	now->segments = (u32)(BPF_CORE_READ(tcp, data_segs_out) - track->segments);
	now->retransmits = (u32)(BPF_CORE_READ(tcp, total_retrans) - track->retransmits);
	now->acked_bytes = BPF_CORE_READ(tcp, bytes_acked) - track->acked_bytes;
	now->received_bytes = BPF_CORE_READ(tcp, bytes_received) - track->received_bytes;
	now->cwnd_segments = BPF_CORE_READ(tcp, snd_cwnd);
	now->snd_wnd_bytes = BPF_CORE_READ(tcp, snd_wnd);
	now->rcv_wnd_bytes = BPF_CORE_READ(tcp, rcv_wnd);
	read_busy_times(&times, at);
	now->busy_ns = ticks_since(track->busy.busy, times.busy);
	now->rwnd_limited_ns = ticks_since(track->busy.rwnd_limited, times.rwnd_limited);
	now->sndbuf_limited_ns = ticks_since(track->busy.sndbuf_limited, times.sndbuf_limited);
	return 0;
}

/* Adds figures that were noted. */
__noinline int add_figures(const struct track *track, u32 closes)
{
	const struct live_connection *now;
	struct connection_row *row;
	struct connection_key key;

	if (!track)
		return 0;
	bpf_probe_read_kernel(&key, sizeof(key), &track->key);
	row = connection_row(&key);
	if (!row)
		return 0;
	now = &track->now;
	ADD(row->closed, closes);
	ADD(row->measured, 1);
	if (now->rtt_us) {
		ADD(row->rtts, 1);
		ADD(row->rtt_us, now->rtt_us);
		ADD(row->rttvar_us, now->rttvar_us);
		lower_to(&row->min_rtt_us, now->rtt_us);
		raise_to(&row->max_rtt_us, now->rtt_us);
	}
	ADD(row->segments, now->segments);
	ADD(row->retransmits, now->retransmits);
	ADD(row->acked_bytes, now->acked_bytes);
	ADD(row->received_bytes, now->received_bytes);
	ADD(row->cwnd_segments, now->cwnd_segments);
	lower_to(&row->min_cwnd_segments, now->cwnd_segments);
	raise_to(&row->max_cwnd_segments, now->cwnd_segments);
	ADD(row->snd_wnd_bytes, now->snd_wnd_bytes);
	ADD(row->rcv_wnd_bytes, now->rcv_wnd_bytes);
	ADD(row->busy_ns, now->busy_ns);
	ADD(row->rwnd_limited_ns, now->rwnd_limited_ns);
	ADD(row->sndbuf_limited_ns, now->sndbuf_limited_ns);
	return 0;
}

/* Adds TCP's figures. */
static __always_inline void measure(struct track *track, u64 at, u32 closes)
{
	note_figures(track, at);
	add_figures(track, closes);
}

/* What a listener has dropped since it was last looked at. */
__noinline u32 newly_dropped(struct track *listener, u64 sk)
{
	u64 dropped, known;

	if (!listener)
		return 0;
	dropped = (u32)BPF_CORE_READ((struct sock *)sk, sk_drops.counter);
	known = listener->dropped;
	/* Where another CPU has counted in between, the next look has the rest. */
	if (dropped <= known ||
	    __sync_val_compare_and_swap(&listener->dropped, known, dropped) != known)
		return 0;
	return dropped - known;
}

/* Adds it to the row of the listener. */
static __always_inline void count_dropped(struct track *listener, u64 sk)
{
	struct connection_row *row;
	u32 dropped = newly_dropped(listener, sk);

	row = dropped ? connection_row(&listener->key) : NULL;
	if (row)
		ADD(row->dropped, dropped);
}

static __always_inline bool is_tcp(const struct socket_name *name)
{
	return (name->family == AF_INET || name->family == AF_INET6) &&
	       name->protocol == IPPROTO_TCP;
}

/* Whether bytes can move. */
static __always_inline bool is_open_state(u32 state)
{
	return state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 ||
	       state == TCP_CLOSE_WAIT;
}

/* A TCP socket that a counted call is the first to move bytes through. */
__noinline int meet_tcp(struct socket_name *name, u64 sk, u32 image)
{
	struct tcp_sock *tcp = (void *)sk;
	struct connection_row *row;
	struct track *track;
	struct scratch *s;

	if (!name)
		return 0;
	track = bpf_map_lookup_elem(&tracked, &sk);
	if (track && track->state != TRACK_OPEN)
		return 0;
	if (track) {
		name->role = track->key.role;
		/* Its connect is not counted, but this call is. */
		if (track->counted)
			return 0;
		track->counted = 1;
		row = connection_row(&track->key);
		if (row)
			ADD(row->before, 1);
		return 0;
	}
	if (!is_open_state(name->state))
		return 0;
	s = scratch();
	if (!s)
		return 0;
	track = &s->track;
	__builtin_memset(track, 0, sizeof(*track));
	lay_key(&track->key, name, ROLE_UNKNOWN, image);
	track->state = TRACK_OPEN;
	track->counted = 1;
	track->segments = BPF_CORE_READ(tcp, data_segs_out);
	track->retransmits = BPF_CORE_READ(tcp, total_retrans);
	track->acked_bytes = BPF_CORE_READ(tcp, bytes_acked);
	track->received_bytes = BPF_CORE_READ(tcp, bytes_received);
	read_busy_times(&track->busy, sk);
	if (bpf_map_update_elem(&tracked, &sk, track, BPF_ANY)) {
		lose_connection();
		return 0;
	}
	row = connection_row(&track->key);
	if (row)
		ADD(row->before, 1);
	return 0;
}

static __always_inline void meet_connection(struct socket_name *name, struct inode *inode,
					    u32 image)
{
	if (knobs.by_peer && is_tcp(name))
		meet_tcp(name, (u64)sock_of(inode), image);
}

/* The image for which the current task connects, by a call or a request of io_uring, and since
 * when.
 */
static __always_inline u32 connecting_image(u64 *since_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = watched(task);

	*since_ns = bpf_ktime_get_ns();
	if (!t)
		return knobs.has_rings && task->flags & PF_IO_WORKER ? ring_owner(task) : 0;
	if (!t->in_call)
		return 0;
	if (t->call == NR_CONNECT || t->call == NR_CONNECT_I386) {
		*since_ns = t->last_ns;
		return t->image;
	}
	return knobs.has_rings && is_ring_enter(t->call) ? t->image : 0;
}

/* A socket that a connect has begin a handshake. Sockets of the kernel's have no file. */
static __always_inline void begin_connect(u64 sk)
{
	struct sock *sock = (void *)sk;
	struct socket_name *name;
	struct socket *socket;
	struct file *file;
	struct scratch *s;
	u64 since_ns;
	u32 image;

	image = connecting_image(&since_ns);
	if (!image)
		return;
	socket = BPF_CORE_READ(sock, sk_socket);
	file = socket ? BPF_CORE_READ(socket, file) : NULL;
	if (!file)
		return;
	s = scratch();
	if (!s)
		return;
	name = (struct socket_name *)s->file.name.path;
	note_socket(name, BPF_CORE_READ(file, f_inode));
	__builtin_memset(&s->track, 0, sizeof(s->track));
	lay_key(&s->track.key, name, ROLE_CONNECT, image);
	s->track.began_ns = since_ns;
	if (bpf_map_update_elem(&tracked, &sk, &s->track, BPF_ANY))
		lose_connection();
}

static __always_inline void note_established(u64 sk, u64 now)
{
	struct track *track = bpf_map_lookup_elem(&tracked, &sk);

	if (!track) {
		/* One of a listening socket. */
		bpf_map_update_elem(&handshakes, &sk, &now, BPF_ANY);
		return;
	}
	if (track->state != TRACK_PENDING)
		return;
	track->took_ns = now - track->began_ns;
	track->state = TRACK_OPEN;
	if (track->counted)
		count_opened(&track->key, track->took_ns);
}

/* What it drops from now on is of this watch. */
static __always_inline void note_listener(u64 sk, u64 now)
{
	bpf_map_update_elem(&handshakes, &sk, &now, BPF_ANY);
}

static __always_inline void note_closed(u64 sk)
{
	struct track *track = bpf_map_lookup_elem(&tracked, &sk);

	if (!track)
		return;
	if (track->state == TRACK_PENDING) {
		track->error = BPF_CORE_READ((struct sock *)sk, sk_err);
		track->state = TRACK_FAILED;
		if (track->counted)
			count_failed(&track->key, track->error);
	} else if (track->state == TRACK_OPEN) {
		track->state = TRACK_CLOSED;
		if (track->counted)
			measure(track, sk, 1);
	} else if (track->state == TRACK_LISTENS) {
		count_dropped(track, sk);
	}
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(inet_sock_set_state, const struct sock *sock, int before, int after)
{
	u64 sk = first_argument(ctx);

	if (ended_ns || BPF_CORE_READ(sock, sk_protocol) != IPPROTO_TCP)
		return 0;
	if (after == TCP_SYN_SENT)
		begin_connect(sk);
	else if (after == TCP_ESTABLISHED)
		note_established(sk, bpf_ktime_get_ns());
	else if (after == TCP_LISTEN)
		note_listener(sk, bpf_ktime_get_ns());
	else if (after == TCP_CLOSE)
		note_closed(sk);
	return 0;
}

/* Of one that is open when the watch ends. */
static __always_inline void end_track(struct track *track, u64 sk)
{
	if (!track->counted)
		return;
	if (track->state == TRACK_OPEN)
		measure(track, sk, 0);
	else if (track->state == TRACK_PENDING)
		count_failed(&track->key, 0);
	else if (track->state == TRACK_LISTENS)
		count_dropped(track, sk);
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(tcp_destroy_sock, const struct sock *sock)
{
	u64 sk = first_argument(ctx);
	struct track *track;

	if (ended_ns) {
		track = bpf_map_lookup_elem(&tracked, &sk);
		if (track)
			end_track(track, sk);
	}
	bpf_map_delete_elem(&tracked, &sk);
	bpf_map_delete_elem(&handshakes, &sk);
	return 0;
}

static long end_each(struct bpf_map *map, const u64 *sk, struct track *track, void *unused)
{
	end_track(track, *sk);
	return 0;
}

/* Run when the counting has ended, and before the programs are detached. */
SEC("iter/task")
int measure_open(struct bpf_iter__task *ctx)
{
	/* Behind the last task. An iterator over the rows is not allowed everywhere. */
	if (!ctx->task && KERNEL_HAS(EACH_ROW))
		bpf_for_each_map_elem(&tracked, end_each, NULL, 0);
	return 0;
}

static long note_each(struct bpf_map *map, const u64 *sk, struct track *track, void *unused)
{
	if (track->counted && track->state == TRACK_OPEN)
		note_figures(track, *sk);
	return 0;
}

/* Notes TCP's figures of those that are open: user space reads the table then. */
SEC("iter/task")
int snapshot_open(struct bpf_iter__task *ctx)
{
	if (!ctx->task && KERNEL_HAS(EACH_ROW))
		bpf_for_each_map_elem(&tracked, note_each, NULL, 0);
	return 0;
}

#else

static __always_inline void meet_connection(struct socket_name *name, struct inode *inode,
					    u32 image)
{
}

#endif
