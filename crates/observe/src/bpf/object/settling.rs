//! The end of a watch: what still lives is booked until that moment.
//!
//! The one tricky invariant is the order: the counting ends, that moment is recorded, and only then
//! are books closed, by the first of two: `settle`, or a thread's own last switch.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapFlags};

use super::{Fields, LAST_HEARD, Session, UNREAD_TABLES, is_loaded, iterate, map, refusal};
use crate::clock::kernel_now;

/// How long the last switches of threads that have ended are waited for: many turns of a CPU that
/// many want.
const LAST_SWITCHES: Duration = Duration::from_secs(1);

/// The iterator over the connections that are open at the end.
const MEASURE: &str = "measure_open";

impl Session {
    /// Ends the watch and books what threads that are still alive did until then.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn settle(&mut self) -> Result<(), String> {
        end(self, LAST_SWITCHES)
    }

    /// When the watch ended; 0 while it lasts.
    pub(in crate::bpf) fn ended_ns(&self) -> u64 {
        let bytes = map(&self.object, ".data.ended").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        Fields(&bytes.ok().flatten().unwrap_or_default()).u64()
    }

    fn set_ended(&self, at: u64) -> Result<(), String> {
        map(&self.object, ".data.ended")
            .update(&0u32.to_ne_bytes(), &at.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| refusal("end the watch", &error))
    }
}

/// The steps of an end, which [`end`] has in order.
trait Ending {
    /// A call has ended it, and named the moment.
    fn has_ended(&mut self) -> bool;
    fn count_no_more(&mut self) -> Result<(), String>;
    fn name_the_moment(&mut self) -> Result<(), String>;
    /// Those that are open, while the end of one is still observed.
    fn measure_connections(&mut self);
    /// All programs are detached except the one that observes a thread's last switch.
    fn keep_last_switches(&mut self);
    /// Those of all threads that are in a list of tasks.
    fn close_books(&mut self) -> Result<(), String>;
    /// Returns when every program that is under way has ended: one of another CPU may have seen the call that
    /// ended the watch first.
    fn await_programs(&mut self);
    /// Of how many threads the books are open.
    fn open_books(&mut self) -> u32;
    fn hear_no_more(&mut self);
}

/// Ends a watch; last switches are waited for this long.
fn end(watch: &mut impl Ending, patience: Duration) -> Result<(), String> {
    let by_a_call = watch.has_ended();
    if !by_a_call {
        // First the counting ends, then that moment is named: nothing may be counted beyond it.
        watch.count_no_more()?;
        watch.name_the_moment()?;
    }
    watch.measure_connections();
    // A thread that ends before it is settled is booked by its last switch.
    watch.keep_last_switches();
    let closed = watch.close_books();
    if closed.is_ok() {
        await_last_switches(watch, patience);
    }
    if by_a_call {
        watch.await_programs();
    }
    watch.hear_no_more();
    closed
}

/// A thread that is in no list of tasks any more has yet to leave its CPU for the last time.
/// That takes microseconds, unless others are let first.
fn await_last_switches(watch: &mut impl Ending, patience: Duration) {
    let until = Instant::now() + patience;
    while watch.open_books() > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_micros(200));
    }
}

impl Ending for Session {
    fn has_ended(&mut self) -> bool {
        self.was_ended()
    }

    fn count_no_more(&mut self) -> Result<(), String> {
        self.set_ended(1)
    }

    fn name_the_moment(&mut self) -> Result<(), String> {
        self.set_ended(kernel_now())
    }

    fn measure_connections(&mut self) {
        let is_loaded = is_loaded(&self.object, MEASURE);
        if is_loaded && iterate(&self.object, MEASURE).is_err() {
            UNREAD_TABLES.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn keep_last_switches(&mut self) {
        self.links.retain(|(name, _)| name == LAST_HEARD);
    }

    fn close_books(&mut self) -> Result<(), String> {
        iterate(&self.object, "settle")
    }

    fn await_programs(&mut self) {
        Session::await_programs(self);
    }

    fn open_books(&mut self) -> u32 {
        self.counters().open_books
    }

    fn hear_no_more(&mut self) {
        self.links.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Knobs, Without};
    use super::*;
    use iotomy_test_requirements::{Need, skip};

    /// A watch of threads of which some are in no list of tasks any more.
    #[derive(Default)]
    struct Scripted {
        steps: Vec<&'static str>,
        /// In a list of tasks.
        listed: u32,
        /// Neither there nor off their CPU; before each look but the first, one of them leaves it.
        leaving: u32,
        stuck: bool,
        was_ended: bool,
        refused: bool,
        looks: u32,
        /// Left when nothing is observed any more.
        unbooked: Option<u32>,
    }

    impl Ending for Scripted {
        fn has_ended(&mut self) -> bool {
            self.was_ended
        }

        fn count_no_more(&mut self) -> Result<(), String> {
            self.steps.push("count no more");
            Ok(())
        }

        fn name_the_moment(&mut self) -> Result<(), String> {
            self.steps.push("name the moment");
            Ok(())
        }

        fn measure_connections(&mut self) {
            self.steps.push("measure connections");
        }

        fn keep_last_switches(&mut self) {
            self.steps.push("keep last switches");
        }

        fn close_books(&mut self) -> Result<(), String> {
            self.steps.push("close books");
            if self.refused {
                return Err("no".to_owned());
            }
            self.listed = 0;
            Ok(())
        }

        fn await_programs(&mut self) {
            self.steps.push("await programs");
        }

        fn open_books(&mut self) -> u32 {
            if self.looks > 0 && !self.stuck {
                self.leaving = self.leaving.saturating_sub(1);
            }
            self.looks += 1;
            self.listed + self.leaving
        }

        fn hear_no_more(&mut self) {
            self.steps.push("hear no more");
            self.unbooked = Some(self.listed + self.leaving);
        }
    }

    /// Not reached.
    const LONG: Duration = Duration::from_secs(600);
    const STEPS: [&str; 6] = [
        "count no more",
        "name the moment",
        "measure connections",
        "keep last switches",
        "close books",
        "hear no more",
    ];

    #[test]
    fn last_switches_are_heard_before_nothing_is() {
        let mut watch = Scripted { listed: 4, leaving: 3, ..Scripted::default() };
        end(&mut watch, LONG).unwrap();
        assert_eq!((watch.unbooked, watch.looks), (Some(0), 4));
        assert_eq!(watch.steps, STEPS);
    }

    #[test]
    fn a_watch_that_a_call_has_ended_ended_at_that_moment() {
        let mut watch = Scripted { listed: 4, was_ended: true, ..Scripted::default() };
        end(&mut watch, LONG).unwrap();
        let mut steps = STEPS[2..].to_vec();
        steps.insert(3, "await programs");
        assert_eq!((watch.unbooked, watch.steps), (Some(0), steps));
    }

    #[test]
    fn without_a_thread_on_its_way_out_nothing_is_waited_for() {
        let mut watch = Scripted { listed: 4, ..Scripted::default() };
        end(&mut watch, LONG).unwrap();
        assert_eq!((watch.unbooked, watch.looks), (Some(0), 1));
    }

    #[test]
    fn a_thread_that_does_not_leave_its_cpu_is_waited_for_until_patience_ends() {
        let mut watch = Scripted { leaving: 1, stuck: true, ..Scripted::default() };
        let (began, patience) = (Instant::now(), Duration::from_millis(5));
        end(&mut watch, patience).unwrap();
        assert!(began.elapsed() >= patience);
        assert_eq!((watch.unbooked, watch.steps), (Some(1), STEPS.to_vec()));
    }

    #[test]
    fn where_books_cannot_be_closed_that_is_told_at_once_and_nothing_is_left_attached() {
        let mut watch = Scripted { listed: 4, refused: true, ..Scripted::default() };
        assert_eq!(end(&mut watch, LONG), Err("no".to_owned()));
        assert_eq!((watch.unbooked, watch.looks), (Some(4), 0));
    }

    /// Makes the kernel side of a session without threads claim that this many have books.
    fn pretend(session: &Session, open: u32) {
        // `open_books` of `struct counters`, behind six counters of eight bytes and one of four.
        const PLACE: usize = 52;
        let counters = map(&session.object, ".bss");
        let key = 0u32.to_ne_bytes();
        let mut bytes = counters.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        bytes[PLACE..][..4].copy_from_slice(&open.to_ne_bytes());
        counters.update(&key, &bytes, MapFlags::ANY).unwrap();
        assert_eq!(session.counters().open_books, open);
    }

    #[test]
    fn a_session_waits_for_books_that_the_kernel_side_has_open() {
        let knobs = Knobs {
            by_file: false,
            by_path: false,
            by_peer: false,
            by_thread: false,
            slowest: 0,
            whole_machine: false,
            wanted: None,
            passed: None,
            rings: Some(crate::ring_names::transfers(|_| true)),
            transfers: [[0; 512]; 2],
            paths: [[0; 512]; 2],
            descriptors: [[0; 512]; 2],
            filter: crate::Filter::default(),
            sampled: false,
            rows: 16,
            looked_at: false,
            has_companions: false,
            selection: crate::Selection::default(),
        };
        let attached = |mut session: Session| session.attach().map(|()| session);
        let mut session = match Session::load(&knobs, None, &Without::default())
            .map_err(String::from)
            .and_then(attached)
        {
            Ok(session) => session,
            Err(reason) => return skip(Need::Bpf, &reason),
        };
        // In a watch without threads, nobody closes them.
        pretend(&session, 1);
        let began = Instant::now();
        session.settle().unwrap();
        assert!(began.elapsed() >= LAST_SWITCHES);
        assert!(session.links.is_empty());
    }
}
