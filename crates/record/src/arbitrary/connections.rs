//! Arbitrary sockets and connections.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{image, number, statistics, text};
use crate::{Connection, Role, Socket, TcpFigures};

pub(super) fn socket() -> impl Strategy<Value = Socket> {
    let role = option::of(prop_oneof![Just(Role::Connect), Just(Role::Accept)]);
    let parts = (text(), option::of(text()), option::of(text()), option::of(any::<u32>()), role);
    parts.prop_map(|(protocol, local, remote, peer_pid, role)| {
        let peer = local.clone().filter(|_| peer_pid.is_some());
        Socket { protocol, local, remote, peer_pid, peer, role }
    })
}

fn figures() -> impl Strategy<Value = TcpFigures> {
    // In vectors: arrays do not fit on the stack of a test.
    vec(number(), 10).prop_map(|n| TcpFigures {
        measured: n[0],
        rtts: n[1],
        rtt_us: n[2],
        rttvar_us: n[3],
        min_rtt_us: n[4],
        max_rtt_us: n[5],
        segments: n[6],
        retransmits: n[7],
        acked_bytes: n[8],
        received_bytes: n[9],
    })
}

pub(super) fn connection() -> impl Strategy<Value = Connection> {
    let kinds = prop::collection::btree_map(prop_oneof!["E[A-Z]{2,8}", text()], number(), 0..4);
    let tcp = option::of(figures());
    (image(), socket(), statistics(), kinds, any::<bool>(), tcp).prop_map(
        |((pid, exec), ends, row, errors, is_tcp, tcp): (_, _, Connection, _, _, _)| Connection {
            pid,
            exec,
            image: (row.write_bytes % 3) as u32,
            ends,
            closed: row.closed.filter(|_| is_tcp),
            errors,
            tcp,
            ..row
        },
    )
}
