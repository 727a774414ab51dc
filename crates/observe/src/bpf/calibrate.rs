//! What watching adds to one call, measured on this machine.
//!
//! A thread of this process makes the cheapest call there is (or, when files are counted, an empty
//! read) in blocks, first unwatched, then watched. The fastest block of each side is the one least
//! disturbed, and their difference is the price. Half of the unwatched ones are made before the programs
//! are loaded, some tenths of a second earlier: where neighbours slow the machine for a moment, that is not
//! in both, and the price of watching is not lost in it. It holds the clock reads, the look-ups and the
//! kernel's slower entry path, all that the command pays too.

use std::fs::File;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use super::object::{Adoption, Session};

/// Of the watched; the unwatched are half as many, twice.
const BLOCKS: usize = 30;
const CALLS: u32 = 1_000;

/// The call made: which one, for the filter to let through.
pub(super) fn call(by_file: bool) -> &'static str {
    if by_file { "read" } else { "getppid" }
}

/// What a call takes unwatched, in ns: the first half of its blocks.
pub(super) fn bare(by_file: bool) -> Result<f64, String> {
    Ok(fastest_of(BLOCKS / 2, by_file, &null()?))
}

fn null() -> Result<File, String> {
    File::open("/dev/null").map_err(|e| format!("cannot open /dev/null: {e}"))
}

/// Attaches the loaded programs, then what is `beside` them, and returns the price of a call in ns with all
/// of it; `earlier` is what [`bare`] said before they were loaded.
///
/// # Errors
/// What kept them from being attached.
pub(super) fn price(
    session: &mut Session,
    by_file: bool,
    earlier: f64,
    beside: impl FnOnce(&Session) -> Result<(), String>,
) -> Result<f64, String> {
    let null = null()?;
    let (tell, hear) = sync_channel(0);
    let (go, wait) = sync_channel(0);
    std::thread::scope(|scope| {
        let caller = std::thread::Builder::new().spawn_scoped(scope, move || {
            let bare = fastest_of(BLOCKS / 2, by_file, &null).min(earlier);
            let watched = tell.send(rustix::thread::gettid()).ok().and_then(|()| {
                wait.recv().ok()?;
                Some(fastest_of(BLOCKS, by_file, &null))
            });
            watched.map(|watched| (watched - bare).max(0.0))
        });
        let caller = caller.map_err(|e| format!("cannot start a thread to calibrate with: {e}"))?;
        let tid = hear.recv().map_err(|_| String::from("cannot calibrate: the thread ended"))?;
        let ready = session.attach().and_then(|()| beside(session)).and_then(|()| {
            session.adopt(Adoption::Thread(tid.as_raw_nonzero().get().unsigned_abs()))
        });
        match ready {
            Ok(()) => {
                let _ = go.send(());
            }
            Err(_) => drop(go),
        }
        let price = caller.join().ok().flatten();
        ready?;
        price.ok_or_else(|| String::from("cannot calibrate: the thread ended"))
    })
}

fn fastest_of(blocks: usize, by_file: bool, null: &File) -> f64 {
    let mut nothing = [0u8; 0];
    let block = |_| {
        let start = Instant::now();
        if by_file {
            for _ in 0..CALLS {
                let _ = rustix::io::read(null, &mut nothing);
            }
        } else {
            for _ in 0..CALLS {
                std::hint::black_box(rustix::process::getppid());
            }
        }
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..blocks).map(block).fold(f64::INFINITY, f64::min)
}
