//! Rounds in a process of their own, one for each line of standard input: through a waiter, or through
//! mio, as a program written with it would.

use std::io::{BufRead, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use iotomy_waiters::rounds::Ring;
use iotomy_waiters::{Events, Settings, Waiter, waiter};
use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::run::thread_ns;
use crate::wait::lock_file::locked;

/// The contender that is not a waiter of this project.
pub(crate) const MIO: &str = "mio";

/// As many events as libevent takes at once at most.
pub(crate) const BATCH: usize = 4096;

/// Looks in a row that may find nothing. Only to stop what would hang.
const EMPTY_LOOKS: u32 = 1_000_000;

/// The program `wait-peers-mio`: the rounds of mio for `iotomy lab run wait`, asked as `wait-peers` is.
///
/// # Errors
/// When a round cannot be made, or the words are not those.
pub fn wait_peers_mio(words: &[String]) -> Result<()> {
    match words {
        [word] if word == "list" => {
            let version = locked(MIO).unwrap_or_else(|| MIO.to_owned());
            writeln!(std::io::stdout(), "{version}").context("cannot answer")
        }
        [name, pairs] if name == MIO => {
            serve(name, pairs.parse().with_context(|| format!("{pairs:?} is no number of pairs"))?)
        }
        _ => bail!("it takes: list, or mio and a number of pairs"),
    }
}

/// A way to make rounds.
trait Loop {
    /// All readers anew, and a look that finds nothing.
    fn add_all(&mut self, ring: &Ring) -> Result<()>;

    /// Until every byte has been received: this is timed.
    fn run(&mut self, ring: &mut Ring) -> Result<()>;

    /// No reader any more.
    fn leave(&mut self, ring: &Ring) -> Result<()>;
}

/// Makes rounds until standard input ends.
pub(crate) fn serve(name: &str, pairs: usize) -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .context("cannot raise the limit of descriptors")?;
    if name == MIO {
        let (poll, events) = (Poll::new()?, mio::Events::with_capacity(BATCH));
        return answer(ByMio { poll, events }, pairs);
    }
    let declared = waiter(name).with_context(|| format!("there is no waiter {name}"))?;
    let waiter = (declared.open)(&Settings { descriptors: pairs, ..Settings::default() })?;
    answer(ByWaiter { waiter, events: Events::with_capacity(BATCH) }, pairs)
}

fn answer(mut by: impl Loop, pairs: usize) -> Result<()> {
    let mut ring = Ring::new(pairs)?;
    for line in std::io::stdin().lock().lines() {
        let line = line.context("cannot read what to do")?;
        let mut numbers = line.split_whitespace().map(str::parse::<usize>);
        let (Some(Ok(active)), Some(Ok(writes))) = (numbers.next(), numbers.next()) else {
            bail!("{line:?} is not ACTIVE WRITES");
        };
        by.add_all(&ring)?;
        ring.begin(active, writes)?;
        let (began, cpu) = (Instant::now(), thread_ns());
        by.run(&mut ring)?;
        let (cpu, wall) = (thread_ns() - cpu, began.elapsed().as_nanos());
        by.leave(&ring)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{cpu} {wall}").and_then(|()| out.flush()).context("cannot answer")?;
    }
    Ok(())
}

struct ByWaiter {
    waiter: Box<dyn Waiter>,
    events: Events,
}

impl Loop for ByWaiter {
    fn add_all(&mut self, ring: &Ring) -> Result<()> {
        ring.register(self.waiter.as_mut()).map_err(|(_, error)| error)?;
        self.waiter.wait(&mut self.events, Some(Duration::ZERO))?;
        Ok(())
    }

    fn run(&mut self, ring: &mut Ring) -> Result<()> {
        Ok(ring.run(self.waiter.as_mut(), &mut self.events)?)
    }

    fn leave(&mut self, ring: &Ring) -> Result<()> {
        Ok(ring.leave(self.waiter.as_mut(), ring.pairs())?)
    }
}

struct ByMio {
    poll: Poll,
    events: mio::Events,
}

impl Loop for ByMio {
    fn add_all(&mut self, ring: &Ring) -> Result<()> {
        for at in 0..ring.pairs() {
            let fd = ring.reader(at).as_raw_fd();
            self.poll.registry().register(&mut SourceFd(&fd), Token(at), Interest::READABLE)?;
        }
        self.poll.poll(&mut self.events, Some(Duration::ZERO))?;
        Ok(())
    }

    fn run(&mut self, ring: &mut Ring) -> Result<()> {
        let mut empty = 0;
        while !ring.is_over() {
            self.poll.poll(&mut self.events, Some(Duration::ZERO))?;
            empty = if self.events.is_empty() { empty + 1 } else { 0 };
            if empty > EMPTY_LOOKS {
                bail!("mio told of no more, and bytes are left");
            }
            for event in &self.events {
                // mio tells of what is new: its readers are to read until there is no more.
                while ring.read(event.token().0) {}
            }
        }
        Ok(())
    }

    fn leave(&mut self, ring: &Ring) -> Result<()> {
        for at in 0..ring.pairs() {
            let fd = ring.reader(at).as_raw_fd();
            self.poll.registry().deregister(&mut SourceFd(&fd))?;
        }
        Ok(())
    }
}
