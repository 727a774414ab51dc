//! Knows in the kernel which threads of a completion port are blocked: exactly, and at once.
//!
//! A thread marks itself when it joins the port. While the port wants to know, each block and wake-up
//! of a marked thread wakes a listener, which has the port look at the marks' states.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use iotomy_ports::{Look, RunWatch};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ProgramInput, RingBuffer, RingBufferBuilder};

use super::embedded::{Embedded, embedded};
use super::loading::{Purpose, load};
use super::object::map;
use super::refusal::refusal;
use super::without::Without;

const PURPOSE: Purpose =
    Purpose { attempt: "load the BPF programs that watch switches", needs: &[] };

static OBJECT: Embedded = embedded!("running");

/// As in `running.bpf.c`. A slot is given once; threads beyond that are not known.
const MOST_THREADS: u32 = 4096;

/// The programs that the listener has attached.
const TRACEPOINTS: [&str; 2] = ["sched_switch", "sched_wakeup"];

/// A watch of one completion port.
pub struct SwitchWatch {
    shared: Arc<Shared>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    object: Object,
    slots: Mutex<Slots>,
    look: Mutex<Option<Look>>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct Slots {
    by_thread: HashMap<i32, u32>,
    next: u32,
}

impl fmt::Debug for SwitchWatch {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("SwitchWatch").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SwitchWatch {
    /// Watches from now on, no thread yet.
    ///
    /// # Errors
    /// The refused call and the kernel's error, in a line.
    pub fn new() -> Result<Self, String> {
        let unpacked = OBJECT.unpack()?;
        let object = load(unpacked.open()?, &PURPOSE, &Without::default())?;
        let (slots, look) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { object, slots, look, is_over: AtomicBool::new(false) });
        let (tell, is_ready) = channel();
        let listens = shared.clone();
        let listener = thread::Builder::new().name("run-watch".into()).spawn(move || {
            let ready = listens.attach().and_then(|links| Ok((links, listens.ring()?)));
            let failed = ready.as_ref().err().cloned();
            // The one that waits for this is there.
            let _ = tell.send(failed.map_or(Ok(()), Err));
            if let Ok((_links, ring)) = ready {
                listens.listen(&ring);
            }
        });
        let listener = listener.map_err(|error| format!("cannot start a thread: {error}"))?;
        let watch = Self { shared, listener: Mutex::new(Some(listener)) };
        is_ready.recv().unwrap_or_else(|_| Err("the listener ended".to_owned()))?;
        Ok(watch)
    }
}

impl Shared {
    fn attach(&self) -> Result<Vec<Link>, String> {
        let programs = self.object.progs_mut();
        let ours = programs.filter(|one| TRACEPOINTS.iter().any(|name| one.name() == *name));
        ours.map(|program| {
            let link = program.attach();
            link.map_err(|error| refusal(&format!("attach {:?}", program.name()), &error))
        })
        .collect()
    }

    fn ring(&self) -> Result<RingBuffer<'static>, String> {
        let mut builder = RingBufferBuilder::new();
        let bell = map(&self.object, "bell");
        let built = builder.add(&bell, |_| 0).map(|_| ()).and_then(|()| builder.build());
        built.map_err(|error| refusal("map the BPF ring buffer", &error))
    }

    fn listen(&self, ring: &RingBuffer<'_>) {
        while !self.is_over.load(Ordering::SeqCst) {
            // A signal ends the wait, and so does an event.
            let _ = ring.poll(Duration::MAX);
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            if let Some(look) = &*lock(&self.look) {
                look();
            }
        }
    }

    /// Runs a program in the calling thread.
    fn run(&self, name: &str, context: Option<&mut [u8]>) -> Option<u32> {
        let program = self.object.progs_mut().find(|one| one.name() == name)?;
        let input = ProgramInput { context_in: context, ..ProgramInput::default() };
        program.test_run(input).ok().map(|output| output.return_value)
    }
}

impl Drop for SwitchWatch {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.run("ring", None);
        let listener = lock(&self.listener).take();
        // The port may end in the listener's own look.
        if let Some(listener) = listener.filter(|one| one.thread().id() != thread::current().id()) {
            let _ = listener.join();
        }
    }
}

impl RunWatch for SwitchWatch {
    fn name(&self) -> &'static str {
        "sched_switch"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn interval(&self) -> Option<Duration> {
        None
    }

    fn runs(&self, thread: i32) -> Option<bool> {
        let slot = *lock(&self.shared.slots).by_thread.get(&thread)?;
        let blocked = map(&self.shared.object, "blocked");
        let state = blocked.lookup(&slot.to_ne_bytes(), MapFlags::ANY).ok().flatten()?;
        Some(state.iter().all(|byte| *byte == 0))
    }

    fn joined(&self, thread: i32) {
        let slot = {
            let mut slots = lock(&self.shared.slots);
            slots.next += 1;
            slots.next - 1
        };
        let is_marked = slot < MOST_THREADS
            && self.shared.run("join", Some(&mut slot.to_ne_bytes())) == Some(0);
        if is_marked {
            lock(&self.shared.slots).by_thread.insert(thread, slot);
        }
    }

    fn left(&self, thread: i32) {
        lock(&self.shared.slots).by_thread.remove(&thread);
    }

    fn start(&self, look: Look) {
        *lock(&self.shared.look) = Some(look);
    }

    fn want(&self, is_wanted: bool) {
        let value = u32::from(is_wanted).to_ne_bytes();
        let wanted = map(&self.shared.object, "wanted");
        // Without it nothing is told, and a thread that blocks keeps its place until it comes back.
        let _ = wanted.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY);
    }
}

#[cfg(test)]
mod tests {
    use std::hint::spin_loop;

    use iotomy_ports::{Completion, CompletionPort};
    use iotomy_test_requirements::wait::until;
    use iotomy_test_requirements::{Need, skip};

    use super::*;

    fn port() -> Option<CompletionPort> {
        match SwitchWatch::new() {
            Ok(watch) => Some(CompletionPort::with_watch(1, Box::new(watch))),
            Err(reason) => {
                skip(Need::Bpf, &reason);
                None
            }
        }
    }

    fn completion(user: usize) -> Completion {
        Completion { user, ..Completion::default() }
    }

    #[test]
    fn a_thread_that_blocks_frees_its_place_and_one_that_runs_does_not() {
        let Some(port) = port() else { return };
        assert_eq!((port.watch().name(), port.watch().is_exact()), ("sched_switch", true));
        let (is_running, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (tell, told) = channel();
        let (hold, held) = channel::<()>();
        let held = Mutex::new(held);
        thread::scope(|scope| {
            for _ in 0..4 {
                let tell = tell.clone();
                let (port, held, is_running, is_over) = (&port, &held, &is_running, &is_over);
                scope.spawn(move || {
                    while let Ok(Some(found)) = port.get(None) {
                        let _ = tell.send(found.user);
                        if found.user == 3 {
                            is_running.store(true, Ordering::SeqCst);
                            while !is_over.load(Ordering::SeqCst) {
                                spin_loop();
                            }
                        } else {
                            // Ends with an error when the test lets go.
                            let _ = lock(held).recv();
                        }
                    }
                });
            }
            until("all wait", || port.waiting() == 4);
            (0..5).for_each(|user| port.post(completion(user)).unwrap());
            let next = || told.recv_timeout(Duration::from_secs(45)).unwrap();
            let mut got: Vec<usize> = (0..4).map(|_| next()).collect();
            got.sort_unstable();
            assert_eq!(got, [0, 1, 2, 3]);
            until("the last one runs", || is_running.load(Ordering::SeqCst));
            // Three are blocked, one runs, and none waits: one more comes.
            let late = scope.spawn(|| port.get(None));
            until("one more waits", || port.waiting() == 1);
            assert_eq!((port.queued(), port.running()), (1, 1), "{:?}", port.counts());
            is_over.store(true, Ordering::SeqCst);
            port.post(completion(9)).unwrap();
            // The one that ran takes one and blocks, which leaves the other to the late one, or the reverse.
            let others = [next(), late.join().unwrap().unwrap().unwrap().user];
            assert!(others == [4, 9] || others == [9, 4], "{others:?}");
            assert!(port.counts().blocked >= 3, "{:?}", port.counts());
            drop(hold);
            port.close();
        });
    }
}
