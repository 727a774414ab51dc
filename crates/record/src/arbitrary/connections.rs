//! Arbitrary sockets and connections.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{image, number, text};
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
    let numbers = vec(number(), 10);
    let tcp = option::of(figures());
    (image(), socket(), numbers, kinds, option::of(number()), tcp).prop_map(
        |((pid, exec), ends, n, errors, closed, tcp)| Connection {
            pid,
            exec,
            image: (n[9] % 3) as u32,
            ends,
            opened: n[0],
            before: n[1],
            closed,
            unfinished: n[2],
            errors,
            connect_ns: n[3],
            max_ns: n[4],
            timed: n[5],
            read_calls: n[6],
            read_bytes: n[7],
            write_calls: n[8],
            write_bytes: n[9],
            tcp,
        },
    )
}
