//! The neighbour: a program that occupies a whole CPU and starts after a given number of runs of a race.
//!
//! Each run of the load writes a byte to a FIFO, and a thread counts the bytes. The neighbour therefore starts at the
//! same point of a race for every racer, however long its runs take.

use std::fs::File;
use std::io::{PipeWriter, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};

use crate::child::{die_with_parent, part};

/// A race whose runs are counted.
pub(crate) struct Watch {
    stop: PipeWriter,
    thread: JoinHandle<Result<u64>>,
}

impl Watch {
    /// Starts to count the runs of a race, and starts the neighbour `after` this many runs.
    pub(crate) fn begin(fifo: &Path, after: Option<u64>) -> Result<Self> {
        // Opened for writing as well, so that the FIFO never reaches its end and opening it does
        // not block.
        let ticks = File::options().read(true).write(true).open(fifo);
        let ticks = ticks.with_context(|| format!("cannot open {}", fifo.display()))?;
        let (stopped, stop) = std::io::pipe().context("cannot make a pipe")?;
        let thread = std::thread::spawn(move || {
            let mut neighbour = None;
            let counted = count(&ticks, &stopped, after, &mut neighbour);
            if let Some(mut child) = neighbour {
                let _ = child.kill();
                let _ = child.wait();
            }
            counted
        });
        Ok(Self { stop, thread })
    }

    /// Ends the neighbour and returns the number of runs.
    pub(crate) fn end(self) -> Result<u64> {
        drop(self.stop);
        self.thread.join().ok().context("the thread that counts runs has failed")?
    }
}

fn count(
    mut ticks: &File,
    stopped: &std::io::PipeReader,
    after: Option<u64>,
    neighbour: &mut Option<Child>,
) -> Result<u64> {
    let mut runs = 0;
    loop {
        let mut ready = [PollFd::new(ticks, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for runs"),
        }
        if !ready[0].revents().is_empty() {
            let mut bytes = [0; 64];
            runs += ticks.read(&mut bytes).context("cannot read the FIFO")? as u64;
        } else if !ready[1].revents().is_empty() {
            return Ok(runs);
        }
        if neighbour.is_none() && after.is_some_and(|after| runs > after) {
            *neighbour = Some(arrive()?);
        }
    }
}

fn arrive() -> Result<Child> {
    let mut command = part("race", "burn")?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().context("cannot start the neighbour")
}

/// Runs the neighbour's work until it is killed, at the latest with its parent.
pub(crate) fn burn() -> Result<()> {
    die_with_parent()?;
    let mut count = 0u64;
    loop {
        count = std::hint::black_box(count.wrapping_add(1));
    }
}
