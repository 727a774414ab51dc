//! Arbitrary sockets and connections.

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
    (statistics(), any::<[bool; 2]>()).prop_map(|(row, [has_windows, has_times])| {
        let row: TcpFigures = row;
        TcpFigures {
            cwnd_segments: row.cwnd_segments.filter(|_| has_windows),
            snd_wnd_bytes: row.snd_wnd_bytes.filter(|_| has_windows),
            rcv_wnd_bytes: row.rcv_wnd_bytes.filter(|_| has_windows),
            busy_ns: row.busy_ns.filter(|_| has_times),
            rwnd_limited_ns: row.rwnd_limited_ns.filter(|_| has_times),
            sndbuf_limited_ns: row.sndbuf_limited_ns.filter(|_| has_times),
            ..row
        }
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
