/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR MIT */
/* A TCP connection that is tracked: connections.bpf.h. User space reads it as Track. */

enum track_state {
	TRACK_PENDING,
	TRACK_OPEN,
	TRACK_FAILED,
	TRACK_CLOSED,
};

/* TCP's figures of a connection that is open. */
struct live_connection {
	u64 rtt_us; /* 0: not known */
	u64 rttvar_us;
	u64 segments;
	u64 retransmits;
	u64 acked_bytes;
	u64 received_bytes;
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
	u32 state;
	u32 error;
	u32 counted; /* its call is */
	u32 pad;
	struct live_connection now; /* when user space last looked */
};
