//! What Microsoft's pages say of completion ports, sentence by sentence: who is released, in which order, and how many
//! run at once.

use std::collections::HashSet;
use std::fmt;
use std::hint::spin_loop;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use iotomy_ports::{Completion, CompletionPort, Errno, Look, ProcWatch, RunWatch};

/// Only there so that a hang becomes a failure.
const PATIENCE: Duration = Duration::from_secs(45);

fn completion(user: usize) -> Completion {
    Completion { key: 7, bytes: 0, user }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::yield_now();
    }
}

/// A watch that a test tells which threads are blocked.
#[derive(Clone, Default)]
struct Told {
    blocked: Arc<Mutex<HashSet<i32>>>,
    members: Arc<Mutex<HashSet<i32>>>,
    wants: Arc<Mutex<Vec<bool>>>,
    look: Arc<Mutex<Option<Arc<Look>>>>,
}

impl fmt::Debug for Told {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Told").finish_non_exhaustive()
    }
}

impl RunWatch for Told {
    fn name(&self) -> &'static str {
        "the test"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn interval(&self) -> Option<Duration> {
        None
    }

    fn runs(&self, thread: i32) -> Option<bool> {
        Some(!self.blocked.lock().unwrap().contains(&thread))
    }

    fn joined(&self, thread: i32) {
        self.members.lock().unwrap().insert(thread);
    }

    fn left(&self, thread: i32) {
        self.members.lock().unwrap().remove(&thread);
    }

    fn start(&self, look: Look) {
        *self.look.lock().unwrap() = Some(Arc::new(look));
    }

    fn want(&self, is_wanted: bool) {
        self.wants.lock().unwrap().push(is_wanted);
    }
}

fn told(concurrency: usize) -> (CompletionPort, Told) {
    let watch = Told::default();
    (CompletionPort::with_watch(concurrency, Box::new(watch.clone())), watch)
}

/// A thread that retrieves once, tells what, and retrieves again when it is told to; it ends if it is told no more.
struct Worker {
    again: Sender<()>,
    got: Receiver<(i32, usize)>,
}

impl Worker {
    /// Starts one, and comes back when it waits.
    fn start<'s>(scope: &'s thread::Scope<'s, '_>, port: &CompletionPort) -> Self {
        let waiting = port.waiting();
        let worker = Self::start_running(scope, port);
        until("the thread waits", || port.waiting() > waiting);
        worker
    }

    fn start_running<'s>(scope: &'s thread::Scope<'s, '_>, port: &CompletionPort) -> Self {
        let (again, is_again) = channel();
        let (tell, got) = channel();
        let port = port.clone();
        scope.spawn(move || {
            let me = rustix::thread::gettid().as_raw_nonzero().get();
            loop {
                let Ok(Some(found)) = port.get(Some(PATIENCE)) else { return };
                // A test that fails hears no more.
                let _ = tell.send((me, found.user));
                if is_again.recv().is_err() {
                    return;
                }
            }
        });
        Self { again, got }
    }

    fn got(&self) -> (i32, usize) {
        self.got.recv_timeout(PATIENCE).unwrap()
    }

    fn has_got(&self) -> bool {
        self.got.try_recv().is_ok()
    }
}

#[test]
fn completions_are_retrieved_in_the_order_in_which_they_were_posted() {
    let port = CompletionPort::new(1);
    for user in 0..5 {
        port.post(Completion { key: user + 1, bytes: 3, user }).unwrap();
    }
    assert_eq!(port.queued(), 5);
    assert_eq!(port.get(None).unwrap(), Some(Completion { key: 1, bytes: 3, user: 0 }));
    let mut got = Vec::new();
    let put = |completion: Completion| got.push(completion.user);
    assert_eq!(port.get_each(3, None, put).unwrap(), 3);
    assert_eq!(got, [1, 2, 3]);
    assert_eq!(port.get_each(3, None, |found| assert_eq!(found.user, 4)).unwrap(), 1);
    assert_eq!(port.get(Some(Duration::ZERO)).unwrap(), None);
    assert_eq!(port.get_each(0, None, |_| {}), Err(Errno::INVAL));
    assert_eq!((port.counts().retrieved, port.counts().woken), (5, 0));
}

#[test]
fn threads_that_wait_are_released_last_in_first_out() {
    let (port, _) = told(3);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| Worker::start(scope, &port)).collect();
        for (user, worker) in workers.iter().rev().enumerate() {
            port.post(completion(user)).unwrap();
            assert_eq!(worker.got().1, user);
        }
        // It comes back, waits as the last one, and is the first again.
        workers[1].again.send(()).unwrap();
        until("it waits", || port.waiting() == 1);
        workers[0].again.send(()).unwrap();
        until("both wait", || port.waiting() == 2);
        port.post(completion(8)).unwrap();
        assert_eq!(workers[0].got().1, 8);
        assert_eq!(port.waiting(), 1);
        port.close();
    });
}

#[test]
fn no_more_threads_run_than_the_concurrency_value() {
    const COMPLETIONS: usize = 2_000;
    for concurrency in [1, 2, 3] {
        let (port, _) = told(concurrency);
        assert_eq!(port.concurrency(), concurrency);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let seen: Vec<_> = (0..COMPLETIONS).map(|_| AtomicUsize::new(0)).collect();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while let Ok(Some(found)) = port.get(None) {
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        seen[found.user].fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
            (0..COMPLETIONS).for_each(|user| port.post(completion(user)).unwrap());
            let all = || seen.iter().all(|times| times.load(Ordering::SeqCst) == 1);
            until("all are retrieved", all);
            port.close();
        });
        let counts = port.counts();
        assert!(most.into_inner() <= concurrency && counts.most_running <= concurrency);
        assert_eq!(counts.retrieved, COMPLETIONS as u64);
    }
}

#[test]
fn a_thread_that_comes_back_takes_the_next_completion_and_no_other_is_woken() {
    let (port, _) = told(1);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| Worker::start(scope, &port)).collect();
        (0..4).for_each(|user| port.post(completion(user)).unwrap());
        for user in 0..4 {
            assert_eq!(workers[1].got().1, user);
            assert!(!workers[0].has_got());
            workers[1].again.send(()).unwrap();
        }
        until("both wait", || port.waiting() == 2);
        assert_eq!((port.counts().woken, port.counts().retrieved), (1, 4));
        port.close();
    });
}

#[test]
fn a_thread_that_posts_and_retrieves_comes_before_those_that_wait() {
    let (port, _) = told(2);
    thread::scope(|scope| {
        let other = Worker::start(scope, &port);
        let mut got = Vec::new();
        let put = |found: Completion| got.push(found.user);
        let count = port.post_and_get([1, 2, 3].map(completion), 2, None, put).unwrap();
        assert_eq!((count, got), (2, vec![1, 2]));
        assert_eq!(other.got().1, 3);
        port.close();
    });
}

#[test]
fn a_thread_that_blocks_frees_its_place_and_there_are_more_for_a_while_when_it_runs_again() {
    let (port, watch) = told(1);
    thread::scope(|scope| {
        let third = Worker::start(scope, &port);
        let second = Worker::start(scope, &port);
        let first = Worker::start(scope, &port);
        port.post(completion(1)).unwrap();
        let (id, _) = first.got();
        port.post(completion(2)).unwrap();
        port.look();
        assert_eq!(
            (port.queued(), port.waiting(), port.running()),
            (1, 2, 1),
            "the first one runs"
        );
        watch.blocked.lock().unwrap().insert(id);
        port.look();
        assert_eq!(second.got().1, 2);
        assert_eq!((port.running(), port.counts().blocked), (1, 1));
        watch.blocked.lock().unwrap().clear();
        port.look();
        assert_eq!(port.running(), 2, "more than the value");
        port.post(completion(3)).unwrap();
        // The second one ends, and there is still one that runs.
        drop(second.again);
        until("it has ended", || port.running() == 1);
        port.look();
        assert!(!third.has_got() && port.queued() == 1);
        first.again.send(()).unwrap();
        assert_eq!(first.got().1, 3);
        drop(first.again);
        until("nobody runs", || port.running() == 0);
        port.close();
    });
    // A scope does not wait for what its threads do when they have returned.
    until("all have left", || watch.members.lock().unwrap().is_empty());
}

#[test]
fn a_watch_is_wanted_while_a_thread_that_blocks_would_free_a_place_for_another() {
    let (port, watch) = told(1);
    let wants = || watch.wants.lock().unwrap().clone();
    thread::scope(|scope| {
        let second = Worker::start(scope, &port);
        let first = Worker::start(scope, &port);
        port.post(completion(1)).unwrap();
        let (id, _) = first.got();
        assert_eq!(wants(), [false; 0], "nothing is queued");
        port.post(completion(2)).unwrap();
        assert_eq!((wants(), port.counts().looks), (vec![true], 1), "it may be blocked already");
        watch.blocked.lock().unwrap().insert(id);
        let look = watch.look.lock().unwrap().clone().unwrap();
        look();
        assert_eq!(second.got().1, 2);
        assert_eq!(wants(), [true, false]);
        // One that blocked before something was queued is found as well.
        let third = Worker::start(scope, &port);
        watch.blocked.lock().unwrap().clear();
        port.look();
        watch.blocked.lock().unwrap().extend(watch.members.lock().unwrap().iter());
        port.post(completion(3)).unwrap();
        assert_eq!(third.got().1, 3);
        port.close();
    });
    let look = watch.look.lock().unwrap().clone().unwrap();
    drop(port);
    // There is no port any more.
    look();
}

#[test]
fn what_was_seen_of_a_thread_that_has_come_back_since_is_void() {
    let (port, watch) = told(1);
    port.post(completion(1)).unwrap();
    port.get(None).unwrap();
    watch.blocked.lock().unwrap().insert(rustix::thread::gettid().as_raw_nonzero().get());
    port.look();
    assert_eq!((port.running(), port.counts().blocked), (0, 1));
    // It was blocked, and is no more when it returns with the next one.
    port.post(completion(2)).unwrap();
    assert_eq!(port.get(None).unwrap(), Some(completion(2)));
    assert_eq!(port.running(), 1);
}

#[test]
fn a_thread_that_ends_or_goes_to_another_port_frees_its_place() {
    let (port, _) = told(1);
    thread::scope(|scope| {
        let second = Worker::start(scope, &port);
        let first = Worker::start(scope, &port);
        port.post(completion(1)).unwrap();
        first.got();
        port.post(completion(2)).unwrap();
        drop(first.again);
        assert_eq!(second.got().1, 2);
        port.close();
    });
    let (one, other) = (told(1).0, told(1).0);
    one.post(completion(1)).unwrap();
    one.get(None).unwrap();
    assert_eq!((one.running(), other.running()), (1, 0));
    assert_eq!(other.get(Some(Duration::ZERO)).unwrap(), None);
    assert_eq!((one.running(), other.running()), (0, 1));
}

#[test]
fn user_space_finds_a_thread_that_blocks() {
    let port =
        CompletionPort::with_watch(1, Box::new(ProcWatch::every(Duration::from_micros(100))));
    assert_eq!((port.watch().name(), port.watch().is_exact()), ("/proc", false));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| Worker::start(scope, &port)).collect();
        (0..4).for_each(|user| port.post(completion(user)).unwrap());
        // Each blocks when it has told what it got.
        for (user, worker) in workers.iter().rev().enumerate() {
            assert_eq!(worker.got().1, user);
        }
        assert!(port.counts().looks >= 3 && port.counts().blocked >= 3, "{:?}", port.counts());
        port.close();
    });
}

#[test]
fn user_space_leaves_a_thread_that_runs_its_place() {
    let port =
        CompletionPort::with_watch(1, Box::new(ProcWatch::every(Duration::from_micros(100))));
    let is_over = AtomicBool::new(false);
    let is_running = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            port.get(None).unwrap();
            is_running.store(true, Ordering::SeqCst);
            while !is_over.load(Ordering::SeqCst) {
                spin_loop();
            }
        });
        port.post(completion(1)).unwrap();
        until("it runs", || is_running.load(Ordering::SeqCst));
        let other = Worker::start(scope, &port);
        port.post(completion(2)).unwrap();
        let looks = port.counts().looks;
        until("it was looked at", || port.counts().looks >= looks + 5);
        assert_eq!((port.queued(), port.waiting(), port.counts().blocked), (1, 1, 0));
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(other.got().1, 2);
        port.close();
    });
}

#[test]
fn timeouts_are_never_early_and_a_thread_whose_time_is_up_runs() {
    let port = CompletionPort::new(2);
    for micros in [0, 1, 300, 1_500, 20_000] {
        let timeout = Duration::from_micros(micros);
        let began = Instant::now();
        assert_eq!(port.get(Some(timeout)).unwrap(), None);
        assert!(began.elapsed() >= timeout);
        assert_eq!((port.running(), port.waiting()), (1, 0));
    }
    port.post(completion(3)).unwrap();
    assert_eq!(port.get(Some(Duration::MAX)).unwrap(), Some(completion(3)));
}

#[test]
fn a_close_ends_all_waits() {
    let port = CompletionPort::new(0);
    let cpus = thread::available_parallelism().unwrap().get();
    assert_eq!(port.concurrency(), cpus);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| port.get(None))).collect();
        until("they wait", || port.waiting() == 3);
        port.close();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Err(Errno::BADF));
        }
    });
    assert_eq!(port.post(completion(1)), Err(Errno::BADF));
    assert_eq!(port.get(None), Err(Errno::BADF));
}

#[test]
fn a_child_has_no_part_in_it() {
    let port = CompletionPort::new(1);
    port.post(completion(1)).unwrap();
    port.get(None).unwrap();
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let number = theirs.as_raw_fd();
    let mut children = iotomy_sys::children::Children::with_capacity(1);
    let work = || {
        let outcomes = [port.post(completion(2)), port.get(None).map(|_| ())];
        let answer = outcomes.map(|outcome| u8::from(outcome == Err(Errno::BADF)));
        let _ = (&theirs).write_all(&answer);
    };
    children.fork(&[number], work).unwrap();
    let mut answer = [0; 2];
    ours.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [1, 1]);
    children.wait();
    assert_eq!((port.queued(), port.running()), (0, 1));
}

#[test]
fn many_posters_and_threads_lose_nothing() {
    const EACH: usize = 3_000;
    for watch in [ProcWatch::every(Duration::from_micros(50)), ProcWatch::default()] {
        let port = CompletionPort::with_watch(2, Box::new(watch));
        let seen: Vec<_> = (0..4 * EACH).map(|_| AtomicUsize::new(0)).collect();
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let take = |found: Completion| {
                        seen[found.user].fetch_add(1, Ordering::Relaxed);
                        if found.user.is_multiple_of(100) {
                            thread::sleep(Duration::from_micros(200));
                        }
                    };
                    while port.get_each(3, Some(Duration::from_micros(300)), take).is_ok() {}
                });
            }
            for poster in 0..4 {
                let port = &port;
                scope.spawn(move || {
                    (0..EACH).for_each(|at| port.post(completion(poster * EACH + at)).unwrap());
                });
            }
            let all = || seen.iter().all(|times| times.load(Ordering::Relaxed) == 1);
            until("all are retrieved", all);
            port.close();
        });
        println!("{:?}", port.counts());
        assert_eq!(port.counts().retrieved, 4 * EACH as u64);
    }
}
