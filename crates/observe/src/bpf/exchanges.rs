//! The requests of the watched processes over their connections: a BPF object of its own, loaded beside the trace's,
//! with which it shares the map of threads.
//!
//! It goes on trace's books, so it is attached after trace's programs and before anything is watched. It only adds:
//! where it cannot be loaded, the trace is as it would be without it. `exchanges.bpf.c` and its parts (`channels`,
//! `serving`, `exchange_rows`, `exchange_rings`) say what an exchange is; what was under way when the watch ended is settled here.

mod book;
mod layout;

use std::collections::HashMap;

use iotomy_record::{Exchange, statistic};
use iotomy_sys::syscalls::{self, Abi};
use libbpf_rs::{Link, MapCore, MapFlags, Object, OpenObject};

pub(super) use self::book::RequestBook;
use self::layout::{CHANNELS, COUNTERS, Channel, Counters, EXCHANGES, Row};
use super::companion::{Companion, Images};
use super::connection_rows::ConnectionKey;
use super::embedded::{Embedded, embedded};
use super::features::feature;
use super::layout::{Count, Fields, Wire};
use super::loading::{Purpose, load};
use super::object::{RowAction, Session, Shared, map, visit_rows};
use super::refusal::{forget_messages, refusal};
use super::ring_programs;
use super::settings::transfer;
use super::without::Refused;
use crate::connections::ByEnds;
use crate::ring_names::transfers;
use crate::sockets::named;

static OBJECT: Embedded = embedded!("exchanges");

/// Times the requests of the watched processes.
pub(super) struct Exchanges {
    rows: u32,
    loaded: Option<Loaded>,
    found: ExchangeCounts,
    refused: Option<String>,
}

/// Its counts.
#[derive(Debug, Default)]
pub(super) struct ExchangeCounts {
    pub(super) requests: Vec<Exchange>,
    pub(super) lost: u64,
    pub(super) unclear: u64,
}

impl Exchanges {
    /// With tables of so many rows.
    pub(super) fn new(rows: u32) -> Self {
        Self { rows, loaded: None, found: ExchangeCounts::default(), refused: None }
    }

    /// A watch is useful without this, too.
    fn refuse(&mut self, reason: String) {
        self.loaded = None;
        self.refused = Some(reason);
    }

    /// The counts, once the watch has ended.
    pub(super) fn into_found(self) -> ExchangeCounts {
        self.found
    }
}

impl Companion for Exchanges {
    fn load(&mut self, shared: &Shared) -> Result<(), Refused> {
        match Loaded::load(shared, self.rows) {
            Ok(loaded) => self.loaded = Some(loaded),
            // It is tried again without that.
            Err(refused) if refused.feature.is_some() => return Err(refused),
            Err(refused) => self.refuse(refused.text),
        }
        Ok(())
    }

    fn begin(&mut self, session: &Session) -> Result<(), String> {
        if let Some(loaded) = &mut self.loaded
            && let Err(reason) = loaded.attach().and_then(|()| loaded.share(session))
        {
            self.refuse(reason);
        }
        if let Some(reason) = &self.refused {
            session.lack(feature("requests"), reason.clone());
        }
        Ok(())
    }

    /// The threads of the calibration have no connections.
    fn start(&mut self, _: &Session) -> Result<(), String> {
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(loaded) = &mut self.loaded {
            loaded.stop();
        }
    }

    fn finish(&mut self, _: &Session, images: &Images) {
        if let Some(loaded) = self.loaded.take() {
            self.found = loaded.counts(images);
        }
    }
}

/// The object, loaded and perhaps attached.
struct Loaded {
    object: Object,
    links: Vec<(String, Link)>,
}

impl Loaded {
    /// Loads the object.
    ///
    /// # Errors
    /// The refused call and the kernel's error, in a line.
    fn load(shared: &Shared, rows: u32) -> Result<Self, Refused> {
        const PURPOSE: Purpose =
            Purpose { attempt: "load the BPF programs of requests", needs: &[] };
        let unpacked = OBJECT.unpack()?;
        let mut open = unpacked.open()?;
        prepare(&mut open, rows)
            .and_then(|()| shared.reuse_maps(&mut open))
            .map_err(|error| refusal("set up the BPF maps of requests", &error))?;
        let loaded = Self { object: load(open, &PURPOSE, &shared.without)?, links: Vec::new() };
        loaded.assert_sizes();
        Ok(loaded)
    }

    fn assert_sizes(&self) {
        let check = |name, key, value| {
            let map = map(&self.object, name);
            let sizes = (map.key_size() as usize, map.value_size() as usize);
            assert_eq!(sizes, (key, value), "{name}");
        };
        check("exchanges", ConnectionKey::SIZE, Row::SIZE);
        check("channels", 8, Channel::SIZE);
        check(".bss", 4, Counters::SIZE);
    }

    fn attach(&mut self) -> Result<(), String> {
        for program in self.object.progs_mut().filter(|program| program.autoload()) {
            let name = program.name().to_string_lossy().into_owned();
            match program.attach() {
                Ok(link) => self.links.push((name, link)),
                // This kernel does not have the tracepoint, or has it with other arguments.
                Err(_) if name.starts_with(ring_programs::PREFIX) => forget_messages(),
                Err(error) => return Err(refusal(&format!("attach {name}"), &error)),
            }
        }
        if ring_programs::unseen_end(self.links.iter().map(|(name, _)| &**name)).is_some() {
            self.links.retain(|(name, _)| !name.starts_with(ring_programs::PREFIX));
        }
        Ok(())
    }

    /// Has the tables read while the watch goes on.
    fn share(&self, session: &Session) -> Result<(), String> {
        [EXCHANGES, CHANNELS, COUNTERS]
            .into_iter()
            .zip(["exchanges", "channels", ".bss"])
            .try_for_each(|(name, own)| session.add_beside(name, &map(&self.object, own)))
    }

    /// Stops counting at once, and detaches. If the kernel refuses, a few events after the watch are counted, too.
    fn stop(&mut self) {
        let over = map(&self.object, ".data.over");
        let _ = over.update(&0u32.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY);
        self.links.clear();
    }

    /// The counts, in the record's terms.
    fn counts(&self, images: &Images) -> ExchangeCounts {
        let bytes = map(&self.object, ".bss").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let Counters { lost, unclear } =
            Counters::read(&mut Fields(&bytes.ok().flatten().unwrap_or_default()));
        let mut rows: HashMap<ConnectionKey, Exchange> = images.requests.rows();
        visit_rows(&self.object, "exchanges", |key: ConnectionKey, row: Row| {
            statistic::add(rows.entry(key).or_default(), &row.exchange());
            RowAction::Kept
        });
        visit_rows(&self.object, "channels", |_: Count, channel: Channel| {
            if let Some(last) = channel.last(images.has_ended(channel.key.image)) {
                statistic::add(rows.entry(channel.key).or_default(), &last);
            }
            RowAction::Kept
        });
        ExchangeCounts {
            requests: by_ends(rows, images),
            lost: lost + images.requests.lost,
            unclear,
        }
    }
}

/// Most time first.
fn by_ends(rows: HashMap<ConnectionKey, Exchange>, images: &Images) -> Vec<Exchange> {
    let mut of_images: HashMap<u32, ByEnds<Exchange>> = HashMap::new();
    for (key, row) in rows {
        statistic::add(of_images.entry(key.image).or_default().row(&key.name.socket()), &row);
    }
    let pids = images.by_pid();
    let mut all: Vec<Exchange> = Vec::new();
    for (image, rows) in of_images {
        let Some((pid, exec)) = images.name(image) else { continue };
        all.extend(rows.into_rows().map(|(ends, row)| Exchange {
            pid,
            exec: exec.to_owned(),
            image: images.number(image),
            ends: named(ends, &pids),
            ..row
        }));
    }
    all.sort_by(|a, b| {
        let place = |row: &Exchange| (row.pid, row.image, row.ends.clone());
        b.wall_ns.cmp(&a.wall_ns).then_with(|| place(a).cmp(&place(b)))
    });
    all
}

fn prepare(open: &mut OpenObject, rows: u32) -> Result<(), libbpf_rs::Error> {
    for mut map in open.maps_mut() {
        match &*map.name().to_string_lossy() {
            "channels" | "exchanges" | "ring_writes" | "ring_multishots" => {
                map.set_max_entries(rows.max(1))?
            }
            ".rodata.knobs" => {
                let wire = knobs();
                let initial = map.initial_value_mut().expect("a data section has a value");
                assert_eq!(initial.len(), wire.len(), "struct exchange_knobs");
                initial.copy_from_slice(&wire);
            }
            _ => {}
        }
    }
    Ok(())
}

/// As `struct exchange_knobs` of `exchanges.h`.
fn knobs() -> Vec<u8> {
    let of_each = |one: fn(&str) -> u8| {
        let of_abi = |abi| (0..512).map(move |number| one(&syscalls::name(abi, number)));
        [Abi::X86_64, Abi::I386].map(of_abi).into_iter().flatten().collect::<Vec<u8>>()
    };
    let operations = transfers(|_| true).to_vec();
    [of_each(waits_for), of_each(transfer), of_each(flags), operations].concat()
}

const OTHERS: u8 = 0;
const EVENTS: u8 = 1;
const DISK: u8 = 2;
const LOCK: u8 = 3;
const CONNECTS: u8 = 5;
const ACCEPTS: u8 = 6;
const CLOSES: u8 = 7;

/// What a thread that blocks in a call waits for, as in `exchanges.h`: a call that moves bytes, for what is behind its
/// descriptors.
fn waits_for(name: &str) -> u8 {
    let is_in = |group: &str| {
        let group = iotomy_record::calls::group(group).expect("it is declared");
        group.calls.contains(&name)
    };
    match name {
        "connect" => CONNECTS,
        "accept" | "accept4" => ACCEPTS,
        "close" => CLOSES,
        "flock" | "fcntl" | "fcntl64" | "semop" | "semtimedop" => LOCK,
        name if name.starts_with("futex") => LOCK,
        "execve" | "execveat" => OTHERS,
        "sync" | "msync" | "fsync" | "fdatasync" | "syncfs" | "sync_file_range" | "ftruncate"
        | "ftruncate64" | "fallocate" | "readahead" | "getdents" | "getdents64" | "fstat"
        | "fstat64" | "fchmod" | "fchown" | "close_range" | "io_getevents" | "io_pgetevents"
        | "io_submit" => DISK,
        "io_uring_enter" => EVENTS,
        "epoll_ctl" | "epoll_create" | "epoll_create1" => OTHERS,
        _ if is_in("%file") => DISK,
        _ if is_in("%poll") => EVENTS,
        _ => OTHERS,
    }
}

/// The argument that has the flags of a receive, + 1.
fn flags(name: &str) -> u8 {
    match name {
        "recvmsg" => 3,
        "recv" | "recvfrom" | "recvmmsg" | "recvmmsg_time64" => 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::object::verified;
    use super::*;

    #[test]
    fn waits_have_the_numbers_of_the_programs() {
        let header = include_str!("exchanges.h");
        for (name, number) in [
            ("FOR_OTHERS", OTHERS),
            ("FOR_EVENTS", EVENTS),
            ("FOR_DISK", DISK),
            ("FOR_LOCK", LOCK),
            ("CONNECTS", CONNECTS),
            ("ACCEPTS", ACCEPTS),
            ("CLOSES", CLOSES),
        ] {
            let mut lines = header.lines().filter_map(|line| line.strip_prefix("#define "));
            let line = lines.find(|line| line.split_whitespace().next() == Some(name)).unwrap();
            let found = line.split_whitespace().nth(1).unwrap();
            assert_eq!(found.parse(), Ok(number), "{name}");
        }
    }

    #[test]
    fn calls_wait_for_what_they_are_about() {
        for (name, wait) in [
            ("read", OTHERS),
            ("fsync", DISK),
            ("openat", DISK),
            ("futex", LOCK),
            ("epoll_wait", EVENTS),
            ("epoll_ctl", OTHERS),
            ("nanosleep", OTHERS),
            ("accept4", ACCEPTS),
        ] {
            assert_eq!(waits_for(name), wait, "{name}");
        }
        assert_eq!((transfer("splice"), flags("recvfrom"), flags("read")), (0x31, 4, 0));
    }

    /// As of the other objects: what the verifier looks at is what a start waits for. Half of it are the functions that
    /// calls and operations of io_uring share, which it looks at for each program.
    #[test]
    fn the_verifier_has_little_to_look_at() {
        let shared = match verified::shared() {
            Ok(shared) => shared,
            Err(reason) => {
                return iotomy_test_requirements::skip(
                    iotomy_test_requirements::Need::Bpf,
                    &reason,
                );
            }
        };
        let loaded = Loaded::load(&shared, 16).map_err(String::from).unwrap();
        let steps = verified::steps(&loaded.object);
        assert!(steps < 15_000, "{steps}");
        let stack = verified::deepest_stack(&loaded.object);
        assert!(stack <= 512, "{stack}");
    }
}
