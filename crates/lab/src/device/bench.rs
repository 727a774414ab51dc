//! The bench of `device`: sets up devices and files, makes the requests, and takes everything down.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use iotomy_host::folder::Folder;
use iotomy_host::{Skip, room};
use iotomy_record::path_text;
use iotomy_stats::order::Random;
use iotomy_sys::mapping::Window;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fsync, openat};
use rustix::io::{pwrite, retry_on_intr};
use rustix::time::{ClockId, clock_gettime};

use super::file::{CALLED, FILE};
use super::requests::{RequestPlan, order};
use crate::harness::volumes::{Backing, Recipe, Volume};
use crate::harness::{Params, PreparedExperiment, Sample};

/// Bytes of a device: more than the 300 MB that mkfs.xfs requires.
const DEVICE: u64 = 384 << 20;

/// Bytes that a device may actually take where it is stored: the file, and the data mkfs writes.
pub(super) const TAKES: u64 = FILE + (96 << 20);

/// Bytes per write when the file is filled.
const CHUNK: usize = 1 << 20;

type Place = (String, String);

/// A file on a device. The file is closed first: an open file keeps the device in use.
struct Ready {
    file: OwnedFd,
    volume: Volume,
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
            "ram" => Volume::image(&recipe, Backing::Zram)?,
            _ => Volume::image(&recipe, Backing::Folder(&self.folder))?,
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
        let asked = RequestPlan { case, order: &order, folder: place.volume.top()? };
        let (began, cpu) = (Instant::now(), cpu_ns());
        let (count, took) = asked.run(began)?;
        let cpu = (cpu_ns() - cpu) as f64;
        let block = case.number("block") as f64;
        let value = took.as_nanos() as f64 / count as f64;
        let mut extra = vec![("rate", 1e9 * block / value), ("cpu_ns", cpu / count as f64)];
        if case.name("device") == "ram" {
            extra.push(("zram", f64::from(u8::from(place.volume.is_zram()))));
        }
        if case.name("op") == "read" {
            let pages = resident(&place.file)? as f64;
            extra.push(("cached", pages / (count as f64 * block / 4096.0)));
        }
        Ok(Sample { value, extra })
    }
}

impl PreparedExperiment for Requests {
    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        while keep(self.sample(case)?).is_continue() {}
        Ok(())
    }
}

/// Creates a file of data that cannot be compressed or stored as holes, and writes it out.
fn filled(volume: &Volume) -> Result<OwnedFd, Skip> {
    room::check_file_size(FILE)?;
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
    let window = Window::map(file.as_fd(), 0, length, false);
    window.and_then(|window| window.resident_pages()).map_err(|e| Skip::refused("mincore", e))
}

/// Sets the read-ahead of the run's own device or file system; others are left unchanged.
fn set_window(volume: &Volume, case: &Params) -> Result<(), Skip> {
    let Some(path) = volume.window() else { return Ok(()) };
    fs::write(&path, case.number("window").to_string())
        .map_err(|e| Skip::refused(&format!("write of {}", path_text(path)), e))
}

/// Returns the CPU time used by this thread, in ns.
fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
