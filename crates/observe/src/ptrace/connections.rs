//! Connections of the watched processes: what came of connects and accepts, and TCP's figures.
//!
//! A TCP socket is tracked by its inode from its connect, its accept or the first counted call that
//! moves bytes through it. When TCP ends a connection is not seen. So its figures are read before
//! each call that closes one of its descriptors, and the last ones count; and a connection is closed
//! when no watched process has a descriptor of it any more. That is looked at when the watch ends,
//! and in between whenever as many have been made as there are, so that the work for each remains
//! the same.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use iotomy_record::{Connection, FileUse, TcpFigures};
use iotomy_sys::socket::TcpInfo;

use super::procfs;
use super::sockets::{Descriptor, Sockets};
use crate::clock::nanoseconds;
use crate::connections::ConnectionBook;
use crate::naming::error_name;
use crate::sockets::{SocketName, named};
use crate::tally::{ImageId, Rows};

const TCP_ESTABLISHED: u8 = 1;
const TCP_FIN_WAIT1: u8 = 4;
const TCP_FIN_WAIT2: u8 = 5;
const TCP_TIME_WAIT: u8 = 6;
const TCP_CLOSE: u8 = 7;
const TCP_CLOSE_WAIT: u8 = 8;
const TCP_LAST_ACK: u8 = 9;
const TCP_CLOSING: u8 = 11;

/// How many connections are made at least before the closed ones are looked for.
const BATCH: usize = 1024;

/// The connections of all images.
#[derive(Debug)]
pub(super) struct Connections {
    book: ConnectionBook<ImageId>,
    /// TCP sockets by inode.
    tracked: HashMap<u64, Track>,
    /// How many of these have a connect that has no outcome yet.
    awaited: usize,
    /// The sockets that each process used last, and some that it used before.
    of_process: HashMap<u32, Vec<u64>>,
    /// Most sockets that are tracked.
    most: usize,
    /// How many were met since closed ones were looked for, and at which number that is due.
    met: usize,
    due: usize,
}

/// A TCP socket that is tracked.
#[derive(Debug)]
struct Track {
    image: ImageId,
    name: SocketName,
    progress: Progress,
    /// Whether its row counts it.
    counted: bool,
    /// TCP's figures when it was first met, and the last ones.
    first: TcpInfo,
    last: Option<TcpInfo>,
    /// A descriptor of it, when it was used last.
    descriptor: Descriptor,
}

/// How far a connection has come.
#[derive(Debug, Clone, Copy)]
enum Progress {
    /// Its connect, entered then, has no outcome yet.
    Awaited(Instant),
    /// Its connect has failed; the program has not been told by which error.
    Failed,
    Made,
}

/// A connect, an accept or a use of a socket: of which image, and whether its call is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) image: ImageId,
    pub(super) counted: bool,
    pub(super) descriptor: Descriptor,
    pub(super) now: Instant,
}

impl Connections {
    /// With room for this many rows, and as many TCP sockets at a time.
    pub(super) fn with_room(rows: u32) -> Self {
        let most = rows as usize;
        Self {
            book: ConnectionBook::with_room(most),
            tracked: HashMap::new(),
            awaited: 0,
            of_process: HashMap::new(),
            most,
            met: 0,
            due: BATCH.min(most),
        }
    }

    /// Whether no TCP socket is tracked.
    pub(super) fn is_empty(&self) -> bool {
        self.tracked.is_empty()
    }

    /// Whether there is a connect without an outcome.
    pub(super) fn awaits_any(&self) -> bool {
        self.awaited > 0
    }

    /// Whether a socket is tracked.
    pub(super) fn has(&self, inode: u64) -> bool {
        self.tracked.contains_key(&inode)
    }

    /// Whether the outcome of a socket's connect is to be found out.
    pub(super) fn awaits(&self, inode: u64) -> bool {
        self.tracked.get(&inode).is_some_and(|track| track.awaits())
    }

    /// Counts a connection that was made, and the time that took, if that is known.
    pub(super) fn add_opened(&mut self, of: Use, name: &SocketName, began: Option<Instant>) {
        if of.counted {
            self.count_opened(of.image, name, began.map(|began| nanoseconds(began, of.now)));
        }
    }

    /// Counts a connect or an accept that failed.
    pub(super) fn add_failed(&mut self, of: Use, name: &SocketName, error: u32) {
        if of.counted {
            self.count_failed(of.image, name, error);
        }
    }

    /// Notes how many connections a TCP listener had when an accept of it returned, and the limit.
    pub(super) fn note_queue(&mut self, of: Use, name: &SocketName, (queued, limit): (u64, u64)) {
        if of.counted
            && let Some(row) = self.book.row(of.image, name.in_role(name.role))
        {
            row.max_queued = row.max_queued.max(queued);
            row.queue_limit = row.queue_limit.max(limit);
        }
    }

    /// Tracks a TCP socket whose connect was entered then and has returned.
    pub(super) fn add_connecting(
        &mut self,
        of: Use,
        inode: u64,
        name: SocketName,
        entered: Instant,
        info: TcpInfo,
    ) {
        let first = TcpInfo::default();
        self.add(of, inode, name, Progress::Awaited(entered), first);
        self.update(inode, info, of.now);
    }

    /// Tracks a TCP socket that was accepted.
    pub(super) fn add_accepted(&mut self, of: Use, inode: u64, name: SocketName) {
        self.add(of, inode, name, Progress::Made, TcpInfo::default());
    }

    /// Tracks a TCP socket that a counted call is the first to move bytes through, if it is connected.
    pub(super) fn add_met(&mut self, of: Use, inode: u64, name: &SocketName, info: TcpInfo) {
        let open = [TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_CLOSE_WAIT];
        if !open.contains(&info.state) {
            return;
        }
        self.add(of, inode, name.clone(), Progress::Made, info);
        if let Some(row) = self.row(of.image, name) {
            row.before += 1;
        }
    }

    /// A counted call moves bytes through a socket. Returns its name if it is tracked.
    pub(super) fn add_use(&mut self, of: Use, inode: u64) -> Option<SocketName> {
        let track = self.tracked.get_mut(&inode)?;
        if track.descriptor.process != of.descriptor.process {
            self.of_process.entry(of.descriptor.process).or_default().push(inode);
        }
        track.descriptor = of.descriptor;
        let name = track.name.clone();
        let is_first = !track.counted && matches!(track.progress, Progress::Made);
        track.counted |= is_first;
        let image = track.image;
        // Its connect is not counted, but this call is.
        if is_first && let Some(row) = self.row(image, &name) {
            row.before += 1;
        }
        Some(name)
    }

    /// A connect of a tracked socket has returned.
    pub(super) fn connect_again(
        &mut self,
        of: Use,
        inode: u64,
        value: Result<u64, u32>,
        info: Option<TcpInfo>,
    ) {
        let Some(track) = self.tracked.get_mut(&inode) else { return };
        let is_new = of.counted && !track.counted;
        track.counted |= of.counted;
        let (image, name) = (track.image, track.name.clone());
        match (track.progress, value) {
            (Progress::Awaited(_) | Progress::Failed, Err(error)) if !says_nothing(error) => {
                self.end_connect(inode, error);
            }
            (Progress::Made, _) => {
                if is_new {
                    self.count_opened(image, &name, None);
                }
                // It was connected to nothing, to be connected anew.
                if value.is_ok() && info.is_some_and(|info| info.state == TCP_CLOSE) {
                    self.settle(inode, true);
                }
            }
            _ => {
                if let Some(info) = info {
                    self.update(inode, info, of.now);
                }
            }
        }
    }

    /// The program was told by which error a connect has failed.
    pub(super) fn end_connect(&mut self, inode: u64, error: u32) {
        let is_open = |track: &&mut Track| !matches!(track.progress, Progress::Made);
        if self.tracked.get_mut(&inode).filter(is_open).is_none() {
            return;
        }
        if let Some(track) = self.remove(inode)
            && track.counted
        {
            self.count_failed(track.image, &track.name, error);
        }
    }

    /// TCP's figures now, which tell the outcome of a connect.
    pub(super) fn update(&mut self, inode: u64, info: TcpInfo, now: Instant) {
        let Some(track) = self.tracked.get_mut(&inode) else { return };
        if let Progress::Awaited(began) = track.progress {
            track.progress = match info.state {
                // Of one that was made, the SYN is acknowledged.
                TCP_CLOSE if info.acked_bytes == 0 => Progress::Failed,
                TCP_ESTABLISHED | TCP_FIN_WAIT1 | TCP_FIN_WAIT2 | TCP_TIME_WAIT | TCP_CLOSE
                | TCP_CLOSE_WAIT | TCP_LAST_ACK | TCP_CLOSING => Progress::Made,
                _ => return,
            };
            if let Progress::Made = track.progress {
                self.awaited -= 1;
                track.last = Some(info);
                let (image, name) = (track.image, track.name.clone());
                if track.counted {
                    self.count_opened(image, &name, Some(nanoseconds(began, now)));
                }
            }
        } else if let Progress::Made = track.progress {
            track.last = Some(info);
        }
    }

    /// The tracked sockets that a process used last, with their descriptors.
    pub(super) fn of_process(&self, process: u32) -> Vec<(u64, i32)> {
        let inodes = self.of_process.get(&process).into_iter().flatten();
        let of_process = inodes.filter_map(|inode| {
            let Descriptor { process: holder, fd, .. } = self.tracked.get(inode)?.descriptor;
            (holder == process).then_some((*inode, fd))
        });
        of_process.collect()
    }

    /// A process has ended.
    pub(super) fn forget_process(&mut self, process: u32) {
        self.of_process.remove(&process);
    }

    /// Whether closed connections are to be looked for before another is tracked.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.met >= self.due
    }

    /// Counts the connections that are closed: of which none of the processes, of which a thread each
    /// is given, has a descriptor.
    pub(super) fn sweep(&mut self, threads: &[(u32, u32)]) {
        let held = self.held(threads);
        let closed: Vec<u64> =
            self.tracked.keys().filter(|inode| !held.contains_key(inode)).copied().collect();
        for inode in closed {
            self.settle(inode, true);
        }
        let tracked = &self.tracked;
        for (process, inodes) in &mut self.of_process {
            let mut seen = HashSet::new();
            inodes.retain(|inode| {
                let is_its = |track: &Track| track.descriptor.process == *process;
                tracked.get(inode).is_some_and(is_its) && seen.insert(*inode)
            });
        }
        self.met = 0;
        self.due = BATCH.min(self.most).max(self.tracked.len());
    }

    /// Counts all connections, at the end of a watch of these processes, of which a thread each is
    /// given. Returns the rows.
    pub(super) fn end(
        mut self,
        sockets: &Sockets,
        threads: &[(u32, u32)],
        now: Instant,
    ) -> ConnectionBook<ImageId> {
        self.sweep(threads);
        for (inode, of) in self.held(threads) {
            let info = sockets.copy(of, inode).and_then(|copy| copy.tcp_info());
            if let Some(info) = info {
                self.update(inode, info, now);
            }
            self.settle(inode, info.is_some_and(|info| info.state == TCP_CLOSE));
        }
        self.book
    }

    /// The tracked sockets that are open in processes, of which a thread each is given.
    fn held(&self, threads: &[(u32, u32)]) -> HashMap<u64, Descriptor> {
        let mut held = HashMap::new();
        if self.tracked.is_empty() {
            return held;
        }
        for (process, thread) in threads.iter().copied() {
            for (fd, inode) in procfs::sockets(thread) {
                if self.tracked.contains_key(&inode) {
                    held.insert(inode, Descriptor { process, thread, fd });
                }
            }
        }
        held
    }

    fn add(&mut self, of: Use, inode: u64, name: SocketName, progress: Progress, first: TcpInfo) {
        self.met += 1;
        // The number of one that was closed unnoticed is another's now.
        self.settle(inode, true);
        if self.tracked.len() >= self.most {
            self.book.lost += 1;
            return;
        }
        let Use { image, counted, descriptor, .. } = of;
        let track = Track { image, name, progress, counted, first, last: None, descriptor };
        self.awaited += usize::from(track.awaits());
        self.of_process.entry(descriptor.process).or_default().push(inode);
        self.tracked.insert(inode, track);
    }

    fn remove(&mut self, inode: u64) -> Option<Track> {
        let track = self.tracked.remove(&inode)?;
        self.awaited -= usize::from(!matches!(track.progress, Progress::Made));
        Some(track)
    }

    /// Adds a connection's last figures to its row.
    fn settle(&mut self, inode: u64, closed: bool) {
        let Some(track) = self.remove(inode).filter(|track| track.counted) else { return };
        let figures = track.figures();
        // Without room for the row, the connection has been counted as lost.
        let ends = track.name.in_role(track.name.role);
        let Some(row) = self.book.row(track.image, ends) else { return };
        if !matches!(track.progress, Progress::Made) {
            row.unfinished += 1;
            return;
        }
        row.closed = Some(row.closed.unwrap_or(0) + u64::from(closed));
        match (&mut row.tcp, figures) {
            (Some(sum), Some(figures)) => sum.merge(&figures),
            (sum @ None, figures) => *sum = figures,
            (Some(_), None) => {}
        }
    }

    fn count_opened(&mut self, image: ImageId, name: &SocketName, took_ns: Option<u64>) {
        let Some(row) = self.row(image, name) else { return };
        row.opened += 1;
        if let Some(took_ns) = took_ns {
            row.timed += 1;
            row.connect_ns = row.connect_ns.saturating_add(took_ns);
            row.max_ns = row.max_ns.max(took_ns);
        }
    }

    fn count_failed(&mut self, image: ImageId, name: &SocketName, error: u32) {
        let Some(row) = self.row(image, name) else { return };
        *row.errors.entry(error_name(error)).or_default() += 1;
    }

    /// The row of a connection; where it has no room, it is lost.
    fn row(&mut self, image: ImageId, name: &SocketName) -> Option<&mut Connection> {
        let ends = name.in_role(name.role);
        if self.book.row(image, ends.clone()).is_none() {
            self.book.lost += 1;
        }
        let row = self.book.row(image, ends)?;
        if name.is_tcp() {
            row.closed.get_or_insert(0);
        }
        Some(row)
    }
}

impl Track {
    fn awaits(&self) -> bool {
        !matches!(self.progress, Progress::Made)
    }

    /// What has come since it was first met.
    fn figures(&self) -> Option<TcpFigures> {
        let (first, last) = (self.first, self.last?);
        let rtt_us = u64::from(last.rtt_us);
        let is_known = rtt_us > 0;
        let since = |time_us: fn(&TcpInfo) -> Option<u64>| {
            let us = time_us(&last)?.saturating_sub(time_us(&first).unwrap_or(0));
            Some(us.saturating_mul(1000))
        };
        Some(TcpFigures {
            measured: 1,
            rtts: u64::from(is_known),
            rtt_us,
            rttvar_us: if is_known { last.rttvar_us.into() } else { 0 },
            min_rtt_us: rtt_us,
            max_rtt_us: rtt_us,
            segments: last.segments.wrapping_sub(first.segments).into(),
            retransmits: last.retransmits.wrapping_sub(first.retransmits).into(),
            acked_bytes: last.acked_bytes.wrapping_sub(first.acked_bytes),
            received_bytes: last.received_bytes.wrapping_sub(first.received_bytes),
            cwnd_segments: Some(last.cwnd.into()),
            min_cwnd_segments: last.cwnd.into(),
            max_cwnd_segments: last.cwnd.into(),
            snd_wnd_bytes: last.snd_wnd.map(u64::from),
            rcv_wnd_bytes: last.rcv_wnd.map(u64::from),
            busy_ns: since(|info| info.busy_us),
            rwnd_limited_ns: since(|info| info.rwnd_limited_us),
            sndbuf_limited_ns: since(|info| info.sndbuf_limited_us),
        })
    }
}

/// Whether a connect with this error is still under way, or its socket was connected before.
pub(super) fn says_nothing(error: u32) -> bool {
    const EINTR: u32 = 4;
    is_interruption(error) || matches!(error, EINTR | EINPROGRESS | EALREADY | EISCONN)
}

/// Whether the kernel will make the call again: programs do not get such an error.
pub(super) fn is_interruption(error: u32) -> bool {
    const ERESTARTSYS: u32 = 512;
    error >= ERESTARTSYS
}

pub(super) const EISCONN: u32 = 106;
pub(super) const EALREADY: u32 = 114;
const EINPROGRESS: u32 = 115;

/// Names the processes at the other ends of sockets, and makes rows of the connections.
pub(super) fn rows(book: Option<ConnectionBook<ImageId>>, rows: &mut Rows) -> Vec<Connection> {
    let processes = rows.processes.iter();
    let watched = processes.map(|one| (one.pid, one.exec.clone())).collect();
    for file in &mut rows.files {
        file.socket = file.socket.take().map(|socket| named(socket, &watched));
    }
    let Some(mut book) = book else { return Vec::new() };
    let mut files: HashMap<(u32, &str, u32), Vec<&FileUse>> = HashMap::new();
    for file in rows.files.iter().filter(|file| file.socket.is_some()) {
        files.entry((file.pid, &file.exec, file.image)).or_default().push(file);
    }
    let mut connections = Vec::new();
    for (place, process) in rows.processes.iter().enumerate() {
        let (pid, exec, image) = (process.pid, process.exec.as_str(), process.image);
        let files = files.remove(&(pid, exec, image)).unwrap_or_default();
        let of_image = book.rows(&ImageId::from_place(place), (pid, exec), files);
        connections.extend(of_image.into_iter().map(|row| Connection {
            image,
            ends: named(row.ends, &watched),
            ..row
        }));
    }
    connections
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
