//! The structs of `trace.h` for connections.

use iotomy_record::{Role, TcpFigures};

use super::layout::{Fields, Wire};
use super::sockets::{UNIX_PATH, role};
use crate::sockets::SocketName;

/// `struct connection_key` of `trace.h`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ConnectionKey {
    pub(super) image: u32,
    pub(super) name: SocketName,
}

impl Wire for ConnectionKey {
    const SIZE: usize = 8 * 4 + 2 * 16 + 2 * 4 + UNIX_PATH;

    fn read(from: &mut Fields<'_>) -> Self {
        let (image, made, family, kind) = (from.u32(), from.u32(), from.u32(), from.u32());
        let (protocol, local_port, remote_port) = (from.u32(), from.u32(), from.u32());
        let peer_pid = from.u32();
        let mut address = || from.bytes(16).try_into().unwrap_or_default();
        let (local, remote) = (address(), address());
        let (length, _pad) = (from.u32(), from.u32());
        let text = from.bytes(UNIX_PATH);
        let text = text.get(..length as usize).unwrap_or(text).to_vec();
        let role = role(made);
        let (path, peer_path) = match role {
            Some(Role::Connect) => (Vec::new(), text),
            _ => (text, Vec::new()),
        };
        let name = SocketName {
            family,
            kind,
            protocol,
            local_port,
            remote_port,
            local,
            remote,
            peer_pid,
            path,
            peer_path,
            role,
        };
        Self { image, name }
    }
}

/// `struct connection_row` of `trace.h`.
#[derive(Debug)]
pub(super) struct ConnectionRow {
    pub(super) opened: u64,
    pub(super) before: u64,
    pub(super) closed: u64,
    pub(super) unfinished: u64,
    pub(super) timed: u64,
    pub(super) time_ns: u64,
    pub(super) max_ns: u64,
    pub(super) tcp: TcpFigures,
    pub(super) max_queued: u64,
    pub(super) queue_limit: u64,
    pub(super) dropped: u64,
}

impl Wire for ConnectionRow {
    const SIZE: usize = 28 * 8;

    fn read(from: &mut Fields<'_>) -> Self {
        let (opened, before, closed) = (from.u64(), from.u64(), from.u64());
        let (unfinished, timed, time_ns) = (from.u64(), from.u64(), from.u64());
        let (max_ns, measured) = (from.u64(), from.u64());
        let (rtt_us, rttvar_us, rtts) = (from.u64(), from.u64(), from.u64());
        let (min_rtt_us, max_rtt_us) = (from.u64(), from.u64());
        let (segments, retransmits) = (from.u64(), from.u64());
        let (acked_bytes, received_bytes) = (from.u64(), from.u64());
        let cwnd_segments = Some(from.u64());
        let (min_cwnd_segments, max_cwnd_segments) = (from.u64(), from.u64());
        let (snd_wnd_bytes, rcv_wnd_bytes) = (Some(from.u64()), Some(from.u64()));
        let busy_ns = Some(from.u64());
        let (rwnd_limited_ns, sndbuf_limited_ns) = (Some(from.u64()), Some(from.u64()));
        let tcp = TcpFigures {
            measured,
            rtts,
            rtt_us,
            rttvar_us,
            min_rtt_us,
            max_rtt_us,
            segments,
            retransmits,
            acked_bytes,
            received_bytes,
            cwnd_segments,
            min_cwnd_segments,
            max_cwnd_segments,
            snd_wnd_bytes,
            rcv_wnd_bytes,
            busy_ns,
            rwnd_limited_ns,
            sndbuf_limited_ns,
        };
        Self {
            opened,
            before,
            closed,
            unfinished,
            timed,
            time_ns,
            max_ns,
            tcp,
            max_queued: from.u64(),
            queue_limit: from.u64(),
            dropped: from.u64(),
        }
    }
}

/// `struct connection_error_key` of `trace.h`.
pub(super) struct ConnectionErrorKey {
    pub(super) key: ConnectionKey,
    pub(super) error: u32,
}

impl Wire for ConnectionErrorKey {
    const SIZE: usize = ConnectionKey::SIZE + 8;

    fn read(from: &mut Fields<'_>) -> Self {
        let key = ConnectionKey::read(from);
        Self { key, error: from.u32() }
    }
}

/// `struct track` of `track.bpf.h`: a TCP connection that is tracked.
pub(super) struct Track {
    pub(super) key: ConnectionKey,
    /// TCP's figures when they were last noted, of one that is open and counted.
    pub(super) open: Option<TcpFigures>,
}

/// As in `track.bpf.h`.
const TRACK_OPEN: u32 = 1;

impl Wire for Track {
    const SIZE: usize = ConnectionKey::SIZE + 6 * 8 + 4 * 4 + 8 + 4 * 4 + 9 * 8 + 4 * 4;

    fn read(from: &mut Fields<'_>) -> Self {
        let key = ConnectionKey::read(from);
        let _first_met: [u64; 6] = std::array::from_fn(|_| from.u64());
        let (_busy_then, _dropped) = (from.bytes(16), from.u64());
        let (state, _error, counted, _pad) = (from.u32(), from.u32(), from.u32(), from.u32());
        let (rtt_us, rttvar_us) = (from.u64(), from.u64());
        let is_known = rtt_us > 0;
        let (segments, retransmits) = (from.u64(), from.u64());
        let (acked_bytes, received_bytes) = (from.u64(), from.u64());
        let busy_ns = Some(from.u64());
        let (rwnd_limited_ns, sndbuf_limited_ns) = (Some(from.u64()), Some(from.u64()));
        let cwnd_segments = u64::from(from.u32());
        let (snd_wnd, rcv_wnd, _pad) = (from.u32(), from.u32(), from.u32());
        let figures = TcpFigures {
            measured: 1,
            rtts: u64::from(is_known),
            rtt_us,
            rttvar_us: if is_known { rttvar_us } else { 0 },
            min_rtt_us: rtt_us,
            max_rtt_us: rtt_us,
            segments,
            retransmits,
            acked_bytes,
            received_bytes,
            cwnd_segments: Some(cwnd_segments),
            min_cwnd_segments: cwnd_segments,
            max_cwnd_segments: cwnd_segments,
            snd_wnd_bytes: Some(snd_wnd.into()),
            rcv_wnd_bytes: Some(rcv_wnd.into()),
            busy_ns,
            rwnd_limited_ns,
            sndbuf_limited_ns,
        };
        Self { key, open: (state == TRACK_OPEN && counted != 0).then_some(figures) }
    }
}
