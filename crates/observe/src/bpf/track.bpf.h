/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* A TCP connection that is tracked: connections.bpf.h. User space reads it as Track. */

enum track_state {
	TRACK_PENDING,
	TRACK_OPEN,
	TRACK_FAILED,
	TRACK_CLOSED,
	TRACK_LISTENS, /* no connection, but what they are accepted from */
};

/* TCP's figures of a connection that is open. */
struct live_connection {
	u64 rtt_us; /* 0: not known */
	u64 rttvar_us;
	u64 segments;
	u64 retransmits;
	u64 acked_bytes;
	u64 received_bytes;
	u64 busy_ns;
	u64 rwnd_limited_ns;
	u64 sndbuf_limited_ns;
	u32 cwnd_segments;
	u32 snd_wnd_bytes;
	u32 rcv_wnd_bytes;
	u32 pad;
};

/* How long TCP was busy sending, and of that limited, in jiffies. */
struct busy_times {
	u32 busy;
	u32 rwnd_limited;
	u32 sndbuf_limited;
	u32 pad;
};

struct track {
	struct connection_key key;
	u64 began_ns;
	u64 took_ns;
	/* TCP's figures when it was first met. */
	u64 segments;
	u64 retransmits;
	u64 acked_bytes;
	u64 received_bytes;
	struct busy_times busy;
	u64 dropped; /* by a listener: what has been counted of it */
	u32 state;
	u32 error;
	u32 counted; /* its call is */
	u32 pad;
	struct live_connection now; /* when it, or user space, last looked */
};
