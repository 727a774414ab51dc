//! A herd of blocked processes, and a connection made to it.

use std::collections::HashMap;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use iotomy_host::Skip;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::harness::Sample;
use crate::harness::cpu_time::queued_ns;
use crate::harness::patience::Patience;
use crate::herd::gate::{Task, load, refused};
use crate::herd::processes::Herd;

/// Returns the connections accepted so far.
pub(super) fn accepts(herd: &Herd) -> u64 {
    herd.counts().iter().map(|one| one.accepts).sum()
}

/// A herd whose members are all blocked.
pub(super) struct Sleepers<'a> {
    herd: &'a Herd,
    /// How often each member has blocked.
    sleeps: HashMap<i32, u64>,
    patience: Patience,
}

impl<'a> Sleepers<'a> {
    pub(super) fn new(herd: &'a Herd, patience: Patience) -> Self {
        Self { herd, sleeps: HashMap::with_capacity(herd.pids().len()), patience }
    }

    /// Waits until all members are blocked; returns how many have blocked again since the last
    /// call.
    pub(super) fn settle(&mut self) -> Result<usize, Skip> {
        let (waiting, mut text) = (self.patience.begin(), String::new());
        let mut awake: Vec<i32> = self.herd.pids().to_vec();
        let mut changed = 0;
        while !awake.is_empty() {
            let mut is_gone = false;
            awake.retain(|pid| match Task::for_pid(*pid, &mut text) {
                Some(Task { is_asleep: true, sleeps }) => {
                    changed += usize::from(self.sleeps.insert(*pid, sleeps) != Some(sleeps));
                    false
                }
                Some(_) => true,
                None => {
                    is_gone = true;
                    false
                }
            });
            if is_gone || waiting.is_over() {
                self.herd.check().map_err(refused)?;
                return Err(match is_gone {
                    true => Skip("a process ended by itself".to_owned()),
                    false => waiting.in_vain("it was never idle"),
                });
            }
        }
        Ok(changed)
    }

    /// Makes a connection and waits until all members are blocked again.
    pub(super) fn connection(&mut self, address: SocketAddr) -> Result<Sample, Skip> {
        let SocketAddr::V4(address) = address else {
            return Err(Skip("no address of IPv4".to_owned()));
        };
        let (before, waited) = (accepts(self.herd), queued_ns(self.herd.pids()));
        let (began, took) = connect_and_wait(address, self.patience)?;
        let woken = self.settle()?;
        let quiet = began.elapsed();
        let accepted = accepts(self.herd).saturating_sub(before);
        let empty = (woken as u64).saturating_sub(accepted);
        let mut extra = vec![
            ("woken", woken as f64),
            ("empty", empty as f64),
            ("quiet_ns", quiet.as_nanos() as f64),
        ];
        extra.extend(load().map(|minute| ("load", minute)));
        if let Some((before, after)) = waited.zip(queued_ns(self.herd.pids())) {
            let waited = after.saturating_sub(before) as f64;
            extra.push(("queued", waited / quiet.as_nanos() as f64));
        }
        Ok(Sample { value: took.as_nanos() as f64, extra })
    }
}

/// Connects without blocking, and waits until the other side has ended the connection. Returns when
/// connect() began, and its duration.
fn connect_and_wait(
    address: SocketAddrV4,
    patience: Patience,
) -> Result<(Instant, Duration), Skip> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
        .map_err(|e| Skip::refused("socket", e))?;
    // Closing resets the connection, so that no port stays in use.
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))
        .map_err(|e| Skip::refused("setsockopt SO_LINGER", e))?;
    let began = Instant::now();
    let connected = connect(&socket, &address);
    let took = began.elapsed();
    match connected {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(Skip::refused("connect", error)),
    }
    let waiting = patience.begin();
    let patience = Timespec::try_from(waiting.left()).ok();
    let mut waits = [PollFd::new(&socket, PollFlags::IN)];
    let ready = retry_on_intr(|| poll(&mut waits, patience.as_ref()));
    match ready.map_err(|e| Skip::refused("poll", e))? {
        0 => Err(waiting.in_vain("nobody accepted the connection")),
        _ => match retry_on_intr(|| read(&socket, &mut [0u8])) {
            Ok(_) => Ok((began, took)),
            Err(error) => Err(Skip::refused("connect", error)),
        },
    }
}
