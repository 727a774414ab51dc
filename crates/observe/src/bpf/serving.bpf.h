/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/*
 * The calls of threads that serve and ask: what they wait for in them, and how exchanges begin and
 * go on with them. Functions that are not static are looked at by the verifier once.
 */

/* What the thread was blocked for since it was last looked at, page faults apart. */
static __always_inline u64 newly_blocked(struct serving *s, const struct thread *t)
{
	u64 blocked_ns = t->blocked_ns - s->blocked_ns, fault_ns = 0;

	/* Of page faults, its image's. */
	if (t->fault_ns > s->fault_ns)
		fault_ns = t->fault_ns - s->fault_ns;
	s->blocked_ns = t->blocked_ns;
	s->fault_ns = t->fault_ns;
	s->disk_ns += fault_ns;
	return blocked_ns > fault_ns ? blocked_ns - fault_ns : 0;
}

/* Blocked time outside calls is of page faults, or of nothing that is known here. */
static __always_inline void begin_call(struct serving *s, const struct thread *t)
{
	newly_blocked(s, t);
	s->in_call = 1;
	s->waits = FOR_OTHERS;
	__builtin_memset(&s->write, 0, sizeof(s->write));
	__builtin_memset(&s->from, 0, sizeof(s->from));
	__builtin_memset(&s->to, 0, sizeof(s->to));
}

/* Whether the thread has no answer yet to what it asked last. */
static __always_inline bool waits_for_answer(const struct serving *s)
{
	struct channel *ch = NULL;

	if (s->asked.sk)
		ch = known_channel(s->asked.sk, s->asked.inode);
	return ch && ch->began_ns && !ch->end_ns;
}

/* What the thread was blocked for in its call, until now. */
static __always_inline void settle_call(struct serving *s, const struct thread *t)
{
	u64 blocked_ns = newly_blocked(s, t);

	switch (s->waits) {
	case FOR_DISK:
		s->disk_ns += blocked_ns;
		break;
	case FOR_LOCK:
		s->lock_ns += blocked_ns;
		break;
	case FOR_EVENTS:
		if (waits_for_answer(s))
			s->peer_ns += blocked_ns;
		break;
	case FOR_PEER:
	case CONNECTS:
		s->peer_ns += blocked_ns;
		break;
	}
}

static __always_inline void end_call(struct serving *s, const struct thread *t)
{
	settle_call(s, t);
	s->in_call = 0;
}

/* The thread that an exchange is of from now on; without `s` and `t`, one of io_uring's, of which
 * no times are known. */
static __always_inline void begin_serving(struct channel *ch, const struct serving *s,
					  const struct thread *t, u64 now)
{
	ch->read_ns = now;
	ch->tid = (u32)bpf_get_current_pid_tgid();
	if (!s || !t)
		return;
	ch->key.image = t->image;
	ch->off_ns = t->off_ns;
	ch->blocked_ns = t->blocked_ns;
	ch->disk_ns = s->disk_ns;
	ch->peer_ns = s->peer_ns;
	ch->lock_ns = s->lock_ns;
}

/* What the thread spent of it until now; of another thread's time nothing is known. */
static __always_inline void spend(struct channel *ch, const struct serving *s,
				  const struct thread *t, u64 now)
{
	u64 off_ns, blocked_ns, wall_ns = now - ch->read_ns;
	struct spent *spent = &ch->spent;

	if (ch->tid != (u32)bpf_get_current_pid_tgid()) {
		ch->moved = 1;
		return;
	}
	if (!s || !t)
		return;
	off_ns = t->off_ns - ch->off_ns;
	blocked_ns = t->blocked_ns - ch->blocked_ns;
	spent->on_cpu_ns = wall_ns > off_ns ? wall_ns - off_ns : 0;
	spent->runnable_ns = off_ns - blocked_ns;
	spent->disk_ns = s->disk_ns - ch->disk_ns;
	spent->peer_ns = s->peer_ns - ch->peer_ns;
	spent->lock_ns = s->lock_ns - ch->lock_ns;
	spent->other_ns = blocked_ns - spent->disk_ns - spent->peer_ns - spent->lock_ns;
}

/* A call that is about to write, or an operation of io_uring. */
__noinline int begin_write(struct channel *ch, struct writing *w, struct serving *s,
			   const struct thread *t, u64 sk)
{
	u64 now = bpf_ktime_get_ns();
	bool asks;

	if (!ch || !w)
		return 0;
	asks = ch->key.role == ROLE_CONNECT;
	/* What is sent without a request is no answer, and what no answer can come to, no request.
	 */
	if (asks ? shutdown_of(sk) & RCV_SHUTDOWN : !ch->began_ns)
		return 0;
	if (has_unread(sk) && (!asks || ch->end_ns))
		ch->next_pipelined = 1;
	if (asks && ch->began_ns && ch->end_ns)
		finish(ch, now);
	if (asks && !ch->began_ns) {
		ch->began_ns = now;
		ch->pipelined = ch->next_pipelined;
		ch->next_pipelined = 0;
		begin_serving(ch, s, t, now);
		w->began = 1;
	}
	w->generation = ch->generation;
	w->wrote = 1;
	if (asks) {
		if (s) {
			s->asked.sk = sk;
			s->asked.inode = ch->inode;
		}
		return 0;
	}
	ch->write_ns = now;
	__sync_fetch_and_add(&ch->writing, 1);
	/* Another thread has ended it meanwhile. */
	if (w->generation != ch->generation) {
		w->wrote = 0;
		if (ch->writing)
			__sync_fetch_and_sub(&ch->writing, 1);
	}
	return 0;
}

__noinline int end_write(struct channel *ch, const struct writing *w, struct serving *s,
			 const struct thread *t, long ret)
{
	u64 now = bpf_ktime_get_ns();

	/* It may be over already: end_of. */
	if (!ch || !w || !w->wrote || w->generation != ch->generation)
		return 0;
	if (ch->key.role == ROLE_CONNECT) {
		/* Nothing was asked. */
		if (ret <= 0 && w->began && !ch->end_ns) {
			ch->began_ns = 0;
			if (s)
				s->asked.sk = 0;
		}
		return 0;
	}
	__sync_fetch_and_sub(&ch->writing, 1);
	if (ret <= 0)
		return 0;
	ch->end_ns = now;
	spend(ch, s, t, now);
	return 0;
}

/* A call that has read, or an operation of io_uring. */
__noinline int end_read(struct channel *ch, struct serving *s, const struct thread *t, u64 sk)
{
	u64 now = bpf_ktime_get_ns(), arrived_ns;

	if (!ch)
		return 0;
	if (ch->key.role == ROLE_CONNECT) {
		note_read(ch, sk);
		if (!ch->began_ns)
			return 0;
		ch->end_ns = now;
		spend(ch, s, t, now);
		return 0;
	}
	if (ch->began_ns && is_answered(ch))
		finish(ch, now);
	if (!ch->began_ns) {
		arrived_ns = ch->arrived_ns;
		ch->unseen = !arrived_ns;
		ch->began_ns = arrived_ns && arrived_ns < now ? arrived_ns : now;
		ch->pipelined = ch->next_pipelined;
		ch->next_pipelined = 0;
		begin_serving(ch, s, t, now);
	} else if (ch->tid != (u32)bpf_get_current_pid_tgid()) {
		ch->moved = 1;
	}
	note_read(ch, sk);
	return 0;
}

/* The connection of a socket; it is met by the first call that moves bytes through it. */
static __always_inline struct channel *channel_of(const struct target *at, u32 image)
{
	struct channel *ch;

	if (!at->sk)
		return NULL;
	ch = known_channel(at->sk, at->inode);
	if (!ch) {
		meet(at, image, ROLE_UNKNOWN);
		ch = known_channel(at->sk, at->inode);
	}
	return ch && ch->key.role ? ch : NULL;
}

/* Which of what a call may wait for it is. */
static __always_inline u32 waits_for(const struct target *at, const struct channel *ch)
{
	if (at->is_disk)
		return FOR_DISK;
	return ch && ch->key.role == ROLE_CONNECT ? FOR_PEER : FOR_OTHERS;
}

/* Not static; both ends of what it moves are in `s`. */
__noinline int begin_transfer(struct serving *s, const struct thread *t)
{
	struct channel *ch;

	if (!s || !t)
		return 0;
	ch = channel_of(&s->from, t->image);
	s->waits = waits_for(&s->from, ch);
	if (!ch)
		s->from.sk = 0;
	ch = channel_of(&s->to, t->image);
	if (s->waits == FOR_OTHERS)
		s->waits = waits_for(&s->to, ch);
	if (ch)
		begin_write(ch, &s->write, s, t, s->to.sk);
	else
		s->to.sk = 0;
	return 0;
}

__noinline int end_transfer(struct serving *s, const struct thread *t, long ret)
{
	struct channel *ch;

	if (!s || !t)
		return 0;
	if (s->from.sk && ret > 0) {
		ch = known_channel(s->from.sk, s->from.inode);
		if (ch)
			end_read(ch, s, t, s->from.sk);
	}
	if (s->to.sk) {
		ch = known_channel(s->to.sk, s->to.inode);
		if (ch)
			end_write(ch, &s->write, s, t, ret);
	}
	return 0;
}

/* A close that may be the last of a connection: of UNIX sockets nothing else tells. */
__noinline int close_file(u64 file)
{
	struct target at = {};
	struct channel *ch;
	u64 sk;

	if (!file || !is_last(file))
		return 0;
	look_at(file, &at);
	if (!at.sk)
		return 0;
	sk = at.sk;
	ch = known_channel(sk, at.inode);
	if (!ch)
		return 0;
	/* Also where it was not seen. */
	if (!ch->arrived_ns && has_unread(sk))
		ch->arrived_ns = bpf_ktime_get_ns();
	end_channel(ch, bpf_ktime_get_ns());
	bpf_map_delete_elem(&channels, &sk);
	return 0;
}

/* Bytes have come to a socket, or its end has. */
__noinline int arrive(u64 at)
{
	struct socket *socket;
	struct sock *sk = (void *)at;
	struct socket_alloc *whole;
	struct early early = {}, *before;
	struct channel *ch;
	u64 key = at;
	u32 family;

	ch = bpf_map_lookup_elem(&channels, &key);
	socket = BPF_CORE_READ(sk, sk_socket);
	if (socket) {
		whole = (void *)socket - bpf_core_field_offset(struct socket_alloc, socket);
		if (ch && BPF_CORE_READ(whole, vfs_inode.i_ino) == ch->inode && has_unread(at))
			note_arrival(ch, bpf_ktime_get_ns());
		return 0;
	}
	/* It waits to be accepted, or was closed. */
	family = family_of(at);
	if ((!is_inet(family) && family != AF_UNIX) || !can_send(state_of(at)) || !has_unread(at))
		return 0;
	early.ends = ends_of(at);
	before = bpf_map_lookup_elem(&early_arrivals, &key);
	/* The struct of a UNIX socket that was never accepted may have been given to another one.
	 */
	if (before && before->ends == early.ends && !(family == AF_UNIX && queued_of(at) == 1))
		return 0;
	early.arrived_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&early_arrivals, &key, &early, BPF_ANY);
	return 0;
}
