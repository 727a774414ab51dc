//! The requests: devices and files made ready, asked, and taken down again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use iotomy_stats::order::Random;
use iotomy_sys::buffer::Aligned;
use iotomy_sys::copy_ring::CopyRing;
use iotomy_sys::mapping::Window;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fsync, openat};
use rustix::io::{pread, pwrite, retry_on_intr};
use rustix::time::{ClockId, clock_gettime};

use super::is_pool;
use crate::experiments::volumes::{Recipe, Under, Volume};
use crate::experiments::{Bench, Go, Params, Sample};
use crate::limits::Skip;
use crate::limits::storage::Folder;

/// Bytes of the file: many windows, and soon read once.
pub(super) const FILE: u64 = 32 << 20;

/// Bytes of a device: more than the 300 MB mkfs.xfs asks for.
const DEVICE: u64 = 384 << 20;

/// Bytes that a device may really take where it lies: the file, and what mkfs writes.
pub(super) const TAKES: u64 = FILE + (96 << 20);

/// How long a sample goes on at most.
const SAMPLE: Duration = Duration::from_millis(60);

/// Writes of a sample at most: each may wait for the device for ms.
const WRITES: usize = 64;

/// One block of so many is asked for by strides.
const STRIDE: usize = 16;

/// One block of so many is asked for at random: of a file that is soon read whole, what was read in
/// vain would be wanted after all.
const SPARSE: usize = 64;

/// But no fewer than so many.
const FEWEST: usize = 16;

/// How long nothing may complete before requests at once are given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes a write when the file is filled.
const CHUNK: usize = 1 << 20;

const CALLED: &str = "file";

type Place = (String, String);

/// A file on a device.
struct Ready {
    volume: Volume,
    file: OwnedFd,
}

pub(super) struct Requests {
    folder: Folder,
    places: BTreeMap<Place, Result<Ready, Skip>>,
    random: Random,
}

impl Requests {
    pub(super) fn new(folder: &Folder) -> Result<Self, Skip> {
        let folder =
            Folder::open(folder.volume().path.as_ref()).map_err(|error| Skip(error.to_string()))?;
        Ok(Self { folder, places: BTreeMap::new(), random: Random::new(FILE) })
    }

    fn make(&self, case: &Params) -> Result<Ready, Skip> {
        let (device, fs) = (case.name("device"), case.name("fs"));
        let kind = match fs {
            "xfs" => "xfs",
            "btrfs" => "btrfs",
            _ => "ext4",
        };
        let is_striped = device == "striped";
        let options: &[&'static str] = match device {
            "striped" => &["-d", "raid0", "-m", "raid0"],
            "single" => &["-d", "single", "-m", "single"],
            _ => &[],
        };
        let recipe = Recipe {
            kind,
            options,
            bytes: DEVICE,
            devices: if is_striped { 2 } else { 1 },
            takes: TAKES,
            past_the_cache: device != "ram",
        };
        let volume = match device {
            "here" => Volume::here(&self.folder)?,
            "ram" => Volume::image(&recipe, Under::Memory)?,
            _ => Volume::image(&recipe, Under::Folder(&self.folder))?,
        };
        let file = filled(&volume)?;
        Ok(Ready { volume, file })
    }

    fn sample(&mut self, case: &Params) -> Result<Sample, Skip> {
        let key = (case.name("device").to_owned(), case.name("fs").to_owned());
        if !self.places.contains_key(&key) {
            let made = self.make(case);
            self.places.insert(key.clone(), made);
        }
        let order = order(case, &mut self.random);
        let place = match self.places.get(&key) {
            Some(Ok(place)) => place,
            Some(Err(reason)) => return Err(reason.clone()),
            None => return Err(Skip("no device was made".to_owned())),
        };
        set_window(&place.volume, case)?;
        forget(&place.file)?;
        let asked = Asked { case, order: &order, volume: &place.volume };
        let (began, cpu) = (Instant::now(), cpu_ns());
        let (count, took) = asked.run(began)?;
        let cpu = (cpu_ns() - cpu) as f64;
        let block = case.number("block") as f64;
        let value = took.as_nanos() as f64 / count as f64;
        let mut extra = vec![("rate", 1e9 * block / value), ("cpu_ns", cpu / count as f64)];
        if case.name("op") == "read" {
            let pages = resident(&place.file)? as f64;
            extra.push(("cached", pages / (count as f64 * block / 4096.0)));
        }
        Ok(Sample { value, extra })
    }
}

impl Bench for Requests {
    fn visit(&mut self, case: &Params, keep: &mut dyn FnMut(Sample) -> Go) -> Result<(), Skip> {
        while keep(self.sample(case)?) == Go::On {}
        Ok(())
    }
}

/// Requests to be made.
struct Asked<'a> {
    case: &'a Params,
    /// Offsets, in blocks.
    order: &'a [u64],
    volume: &'a Volume,
}

impl Asked<'_> {
    /// Makes them until the time is up: how many, and how long they took.
    fn run(&self, began: Instant) -> Result<(usize, Duration), Skip> {
        match (self.case.name("op"), self.case.name("way")) {
            ("write", way) => self.write(way == "direct"),
            (_, "direct") => self.read(&self.opened(OFlags::RDONLY | OFlags::DIRECT)?),
            (_, "mmap") => self.fault(),
            (_, "io-uring") => self.at_once(),
            _ => self.read(&self.opened(OFlags::RDONLY)?),
        }
        .map(|(count, took)| (count.max(1), took.min(began.elapsed())))
    }

    fn block(&self) -> usize {
        usize::try_from(self.case.number("block")).unwrap_or(usize::MAX)
    }

    fn offset(&self, at: u64) -> u64 {
        at * self.case.number("block")
    }

    /// The file opened anew, so that its read-ahead begins anew.
    fn opened(&self, flags: OFlags) -> Result<OwnedFd, Skip> {
        openat(self.volume.top()?, CALLED, flags | OFlags::CLOEXEC, Mode::empty()).map_err(|e| {
            Skip::refused(if flags.contains(OFlags::DIRECT) { "open O_DIRECT" } else { "open" }, e)
        })
    }

    fn read(&self, file: &OwnedFd) -> Result<(usize, Duration), Skip> {
        let mut buffer = Aligned::new(self.block());
        let length = buffer.len();
        self.each(|at| {
            let got = retry_on_intr(|| pread(file, &mut buffer[..], self.offset(at)))?;
            if got == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })
        .map_err(|e| Skip::refused("pread", e))
    }

    fn write(&self, is_direct: bool) -> Result<(usize, Duration), Skip> {
        let direct = if is_direct { OFlags::DIRECT } else { OFlags::empty() };
        let file = self.opened(OFlags::WRONLY | OFlags::DSYNC | direct)?;
        let mut buffer = Aligned::new(self.block());
        buffer.fill(0x5a);
        let length = buffer.len();
        let few = &self.order[..self.order.len().min(WRITES)];
        Self { order: few, ..*self }
            .each(|at| {
                let put = retry_on_intr(|| pwrite(&file, &buffer, self.offset(at)))?;
                if put == length { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
            })
            .map_err(|e| Skip::refused("pwrite O_DSYNC", e))
    }

    fn fault(&self) -> Result<(usize, Duration), Skip> {
        let length = usize::try_from(FILE).unwrap_or(usize::MAX);
        let file = self.opened(OFlags::RDONLY)?;
        let window = Window::of(file.as_fd(), 0, length, false);
        let window = window.map_err(|e| Skip::refused("mmap", e))?;
        let block = self.block();
        self.each(|at| {
            let from = usize::try_from(self.offset(at)).unwrap_or(usize::MAX);
            window.fault_in(from..from + block)
        })
        .map_err(|e| Skip::refused("madvise MADV_POPULATE_READ", e))
    }

    /// One after the other.
    fn each(&self, mut one: impl FnMut(u64) -> io::Result<()>) -> io::Result<(usize, Duration)> {
        let began = Instant::now();
        let mut count = 0;
        for at in self.order {
            one(*at)?;
            count += 1;
            if began.elapsed() > SAMPLE {
                break;
            }
        }
        Ok((count, began.elapsed()))
    }

    /// As many at once as asked for, past the page cache.
    fn at_once(&self) -> Result<(usize, Duration), Skip> {
        let file = self.opened(OFlags::RDONLY | OFlags::DIRECT)?;
        let depth = u32::try_from(self.case.number("depth")).unwrap_or(1);
        let mut ring = CopyRing::new(file.as_fd(), file.as_fd(), depth, self.block(), PATIENCE)
            .map_err(|(call, error)| Skip::refused(call, error))?;
        let refused = |e| Skip::refused("io_uring_enter", e);
        let began = Instant::now();
        let mut next = self.order.iter();
        let mut count = 0;
        for slot in 0..ring.slots() {
            if let Some(at) = next.next() {
                ring.read(slot, self.block(), Some(self.offset(*at)));
            }
        }
        while ring.is_busy() {
            let done = ring.wait().map_err(refused)?;
            let got = done.result.map_err(refused)?;
            if got != self.block() {
                return Err(Skip(format!("io_uring read {got} bytes of {}", self.block())));
            }
            count += 1;
            if began.elapsed() <= SAMPLE
                && let Some(at) = next.next()
            {
                ring.read(done.slot, self.block(), Some(self.offset(*at)));
            }
        }
        Ok((count, began.elapsed()))
    }
}

/// The blocks to ask for, each once.
fn order(case: &Params, random: &mut Random) -> Vec<u64> {
    let mut blocks: Vec<u64> = (0..FILE / case.number("block")).collect();
    match case.name("pattern") {
        "random" => {
            random.shuffle(&mut blocks);
            blocks.truncate((blocks.len() / SPARSE).max(FEWEST));
        }
        "strided" => blocks = blocks.into_iter().step_by(STRIDE).collect(),
        _ => {}
    }
    blocks
}

/// A file of bytes that nothing could compress or take for a hole, written out.
fn filled(volume: &Volume) -> Result<OwnedFd, Skip> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(volume.top()?, CALLED, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|e| Skip::refused("open O_CREAT", e))?;
    let mut random = Random::new(FILE);
    let chunk: Vec<u8> = (0..CHUNK / 8).flat_map(|_| random.bits().to_ne_bytes()).collect();
    let mut at = 0;
    while at < FILE {
        let put = retry_on_intr(|| pwrite(&file, &chunk, at));
        at += put.map_err(|e| Skip::refused("pwrite", e))? as u64;
    }
    fsync(&file).map_err(|e| Skip::refused("fsync", e))?;
    Ok(file)
}

/// Drops the file from the page cache.
fn forget(file: &OwnedFd) -> Result<(), Skip> {
    fsync(file).map_err(|e| Skip::refused("fsync", e))?;
    fadvise(file, 0, None, Advice::DontNeed).map_err(|e| Skip::refused("fadvise64", e))
}

fn resident(file: &OwnedFd) -> Result<usize, Skip> {
    let length = usize::try_from(FILE).unwrap_or(usize::MAX);
    let window = Window::of(file.as_fd(), 0, length, false);
    window.and_then(|window| window.resident_pages()).map_err(|e| Skip::refused("mincore", e))
}

/// Has the run's own device read so much ahead; others' are left alone.
fn set_window(volume: &Volume, case: &Params) -> Result<(), Skip> {
    let (Some(device), false) = (volume.device(), is_pool(case.name("device"))) else {
        return Ok(());
    };
    let name = device.trim_start_matches("/dev/");
    let path = format!("/sys/block/{name}/queue/read_ahead_kb");
    fs::write(&path, case.number("window").to_string())
        .map_err(|e| Skip::refused(&format!("write of {path}"), e))
}

/// What this thread has used of CPUs.
fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
