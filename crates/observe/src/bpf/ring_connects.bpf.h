/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* Connects and accepts of io_uring's, when they have ended: a part of rings.bpf.h. */

#ifdef DETAILS

#define ECANCELED 125

/* Not for one that the program has cancelled itself. */
__noinline int count_ring_connection(u64 req, u32 image, u32 op, s64 result, u64 wall_ns)
{
	struct making of = {};

	if (!HAS_REQUESTS || result == -ECANCELED)
		return 0;
	of.file = word_at(&((struct io_kiocb *)req)->file);
	of.wall_ns = wall_ns;
	of.now_ns = bpf_ktime_get_ns();
	of.ret = result;
	of.image = image;
	if (op == OP_CONNECT) {
		take_address(&of, req);
		return count_connect(&of);
	}
	/* One that becomes a registered file has no descriptor by which it could be found. */
	if (result >= 0 && bpf_core_field_exists(struct io_accept, file_slot) &&
	    FIELD(struct io_accept, req, file_slot)) {
		lose_connection();
		return 0;
	}
	return count_accept(&of);
}

static __always_inline void count_made(struct ring_request *r, u64 req, s64 result, u64 wall_ns)
{
	if (knobs.by_peer && (r->op == OP_CONNECT || r->op == OP_ACCEPT))
		count_ring_connection(req, r->image, r->op, result, wall_ns);
}

#else

static __always_inline void count_made(struct ring_request *r, u64 req, s64 result, u64 wall_ns)
{
}

#endif
