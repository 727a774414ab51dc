//! Waking a thread: from the call that wakes to the return of the blocked call, which is half of a
//! round trip between two threads that do nothing else.
//!
//! On one CPU this is a call, a switch to the other thread and its return. On two CPUs there is
//! also an interrupt of the other CPU, which may have to be woken itself, by the hypervisor in a
//! guest.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use iotomy_host::Skip;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;

use super::cpus;
use super::limit::{Context, Figure, LimitDeclaration, Scope, Unit};
use super::sampling::Budget;

/// The declaration of a wake limit; the parameters are the parts that differ.
macro_rules! wake {
    ($name:literal, $by:literal, $place:expr, $on:literal, $man:expr, $pair:expr) => {
        LimitDeclaration {
            name: $name,
            unit: Unit::Ns,
            scope: Scope::Machine,
            summary: concat!("a wake-up by ", $by, " on ", $on),
            method: concat!("half a round trip by ", $by, ", two threads kept on ", $on),
            man: $man,
            measure: |_: &Context<'_>| round_trip($place, $pair),
        }
    };
}

#[rustfmt::skip]
pub(super) static LIMITS: &[LimitDeclaration] = &[
    wake!("wake-pipe", "pipe", Place::SameCpu, "one CPU", &["pipe(7)"], Pipe::pair),
    wake!("wake-pipe-other-cpu", "pipe", Place::OtherCpu, "two CPUs", &["pipe(7)"], Pipe::pair),
    wake!("wake-eventfd", "eventfd", Place::SameCpu, "one CPU", &["eventfd(2)"], Event::pair),
    wake!("wake-eventfd-other-cpu", "eventfd", Place::OtherCpu, "two CPUs", &["eventfd(2)"], Event::pair),
    wake!("wake-futex", "futex", Place::SameCpu, "one CPU", &["futex(2)", "futex(7)"], Futex::pair),
    wake!("wake-futex-other-cpu", "futex", Place::OtherCpu, "two CPUs", &["futex(2)", "futex(7)"], Futex::pair),
];

/// The CPUs of the two threads.
#[derive(Debug, Clone, Copy)]
enum Place {
    SameCpu,
    OtherCpu,
}

impl Place {
    fn cpus(self) -> Result<(usize, usize), Skip> {
        match (self, cpus::two()?) {
            (Self::OtherCpu, Some(two)) => Ok(two),
            (Self::OtherCpu, None) => Err(Skip("there is only one CPU".to_owned())),
            (Self::SameCpu, _) => match cpus::allowed()?.first() {
                Some(cpu) => Ok((*cpu, *cpu)),
                None => Err(Skip("sched_getaffinity: no CPU".to_owned())),
            },
        }
    }
}

/// One side of a pair of threads that wake each other.
trait Bell: Send + Sized {
    /// Creates the two sides.
    fn pair() -> Result<(Self, Self), Skip>;

    /// Wakes the other side.
    fn ring(&self) -> io::Result<()>;

    /// Blocks until the other side rings, or returns if it has rung.
    fn wait(&self) -> io::Result<()>;
}

fn round_trip<B: Bell>(place: Place, pair: fn() -> Result<(B, B), Skip>) -> Result<Figure, Skip> {
    let (here, there) = place.cpus()?;
    let (mine, others) = pair()?;
    let enough = &AtomicBool::new(false);
    let (tell, told) = channel();
    thread::scope(|scope| {
        // Separate threads, so that this one can still run on any CPU. The caller is created first:
        // it ends when there is no other side.
        let caller = thread::Builder::new().spawn_scoped(scope, move || {
            told.recv().unwrap_or_else(|_| Err(Skip("clone: the other thread".to_owned())))?;
            let figure = cpus::stay_on(here).and_then(|()| call(&mine, enough));
            enough.store(true, Ordering::Release);
            // The other side may already have ended.
            let _ = mine.ring();
            figure
        });
        let caller = caller.map_err(|e| Skip::refused("clone", e))?;
        let echo = move || echo(&others, there, &tell, enough);
        thread::Builder::new().spawn_scoped(scope, echo).map_err(|e| Skip::refused("clone", e))?;
        caller.join().unwrap_or_else(|_| Err(Skip("a thread did not end".to_owned())))
    })
}

/// Rings and waits for the answer, repeatedly.
fn call(bell: &impl Bell, enough: &AtomicBool) -> Result<Figure, Skip> {
    let once = || -> io::Result<()> {
        bell.ring()?;
        bell.wait()?;
        if enough.load(Ordering::Acquire) { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    };
    let figure = Budget::LONG.ns_per_call(|count| {
        (0..count).try_for_each(|_| once()).map_err(|e| Skip::refused("a wake-up", e))
    })?;
    Ok(Figure { value: figure.value / 2.0, spread: figure.spread / 2.0 })
}

/// Answers each ring until `enough` is set, after reporting whether the thread could be placed on
/// `cpu`.
fn echo(bell: &impl Bell, cpu: usize, tell: &Sender<Result<(), Skip>>, enough: &AtomicBool) {
    let placed = cpus::stay_on(cpu);
    let is_placed = placed.is_ok();
    if tell.send(placed).is_err() || !is_placed {
        return;
    }
    while bell.wait().is_ok() {
        if enough.load(Ordering::Acquire) {
            return;
        }
        if bell.ring().is_err() {
            break;
        }
    }
    // Unblocks a caller that waits for an answer: there will be none.
    enough.store(true, Ordering::Release);
    let _ = bell.ring();
}

/// A pipe for each direction, one byte per ring.
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

impl Bell for Pipe {
    fn pair() -> Result<(Self, Self), Skip> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| Skip::refused("pipe2", e));
        let ((there, to_there), (here, to_here)) = (pipe()?, pipe()?);
        Ok((Self { out: here, into: to_there }, Self { out: there, into: to_here }))
    }

    fn ring(&self) -> io::Result<()> {
        retry_on_intr(|| write(&self.into, &[1]))?;
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        match retry_on_intr(|| read(&self.out, &mut [0]))? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// An eventfd for each direction, shared by both sides.
struct Event {
    mine: Arc<OwnedFd>,
    others: Arc<OwnedFd>,
}

impl Bell for Event {
    fn pair() -> Result<(Self, Self), Skip> {
        let event = || {
            let event = eventfd(0, EventfdFlags::CLOEXEC);
            event.map(Arc::new).map_err(|e| Skip::refused("eventfd2", e))
        };
        let (here, there) = (event()?, event()?);
        Ok((Self { mine: here.clone(), others: there.clone() }, Self { mine: there, others: here }))
    }

    fn ring(&self) -> io::Result<()> {
        retry_on_intr(|| write(&*self.others, &1u64.to_ne_bytes()))?;
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        retry_on_intr(|| read(&*self.mine, &mut [0; 8]))?;
        Ok(())
    }
}

/// A word for each direction, 1 when it has rung.
struct Futex {
    mine: Arc<AtomicU32>,
    others: Arc<AtomicU32>,
}

impl Bell for Futex {
    fn pair() -> Result<(Self, Self), Skip> {
        let (here, there) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        Ok((Self { mine: here.clone(), others: there.clone() }, Self { mine: there, others: here }))
    }

    fn ring(&self) -> io::Result<()> {
        self.others.store(1, Ordering::Release);
        futex::wake(&self.others, futex::Flags::PRIVATE, 1)?;
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        while self.mine.swap(0, Ordering::Acquire) == 0 {
            match futex::wait(&self.mine, futex::Flags::PRIVATE, 0, None) {
                // The other side rang in between, or the wake-up was spurious.
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
