//! The structs of `trace.h` for the running counts, and the unfinished time of a thread.

use iotomy_record::{LedgerRow, TIME_BUCKETS};

use super::call_numbers::{CallNumbers, CallStats, WaitStats};
use super::layout::{CallKey, Fields, FileKey, Wire};

/// Some rows of a call, or a hot row, as they stand.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveCall {
    pub(super) image: u32,
    pub(super) call: u16,
    /// The error's number, in a row of errors.
    pub(super) error: u16,
    pub(super) calls: u64,
    pub(super) errors: u64,
    pub(super) numbers: CallNumbers,
    /// Counts of its wall times, by bucket.
    pub(super) times: Vec<(u16, u64)>,
}

/// Behind the last bucket. As in `trace.h`.
const NO_BUCKET: u32 = 0xffff;

impl LiveCall {
    /// A row of `calls` or `frequent`.
    pub(super) fn of_row<const WIDTH: usize>(key: CallKey, row: &CallStats<WIDTH>) -> Self {
        Self {
            image: row.image,
            call: key.call,
            calls: row.plain_calls(),
            numbers: row.numbers.clone(),
            times: row.plain.clone(),
            ..Self::default()
        }
    }

    /// A row of `waits`.
    pub(super) fn of_waits(key: CallKey, row: WaitStats) -> Self {
        Self {
            image: row.image,
            call: key.call,
            calls: row.calls(),
            numbers: row.numbers,
            times: row.wall,
            ..Self::default()
        }
    }

    /// A hot row, with the times that follow it.
    pub(super) fn read(from: &mut Fields<'_>) -> Self {
        let (image, call) = (from.u32(), from.u32());
        let mut row = Self {
            image,
            // Numbers and the mark of the 32-bit entry are 16 bits.
            call: call as u16,
            numbers: CallNumbers::read(from),
            times: {
                let mut next = || (from.u32(), from.u32());
                let mut times = Vec::new();
                // More than there are buckets would be damage.
                for _ in 0..=TIME_BUCKETS {
                    match next() {
                        (NO_BUCKET, _) => break,
                        (bucket, count) => times.push((bucket as u16, count.into())),
                    }
                }
                times
            },
            ..Self::default()
        };
        // Those whose times were read: the thread goes on meanwhile.
        row.calls = row.times.iter().map(|(_, count)| count).sum();
        row
    }
}

/// A thread that is watched, as it stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LiveThread {
    pub(super) now_ns: u64,
    pub(super) last_ns: u64,
    pub(super) user_ns: u64,
    pub(super) calls_on_cpu_ns: u64,
    pub(super) off_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) off_at_last_ns: u64,
    pub(super) blocked_at_last_ns: u64,
    pub(super) out_ns: u64,
    pub(super) woken_ns: u64,
    pub(super) start_ns: u64,
    pub(super) off_before_ns: u64,
    pub(super) blocked_before_ns: u64,
    pub(super) image: u32,
    pub(super) call: u16,
    pub(super) in_call: bool,
    pub(super) slept: bool,
    /// How many hot rows follow.
    pub(super) hot: u32,
}

const LIVE_IN_CALL: u32 = 1;
const LIVE_SLEPT: u32 = 2;

impl Wire for LiveThread {
    const SIZE: usize = 13 * 8 + 4 * 4;

    fn read(from: &mut Fields<'_>) -> Self {
        let mut thread = Self {
            now_ns: from.u64(),
            last_ns: from.u64(),
            user_ns: from.u64(),
            calls_on_cpu_ns: from.u64(),
            off_ns: from.u64(),
            blocked_ns: from.u64(),
            off_at_last_ns: from.u64(),
            blocked_at_last_ns: from.u64(),
            out_ns: from.u64(),
            woken_ns: from.u64(),
            start_ns: from.u64(),
            off_before_ns: from.u64(),
            blocked_before_ns: from.u64(),
            image: from.u32(),
            call: from.u32() as u16,
            ..Self::default()
        };
        let state = from.u32();
        thread.in_call = state & LIVE_IN_CALL != 0;
        thread.slept = state & LIVE_SLEPT != 0;
        thread.hot = from.u32();
        thread
    }
}

/// The part of a file's use that is in no row yet.
pub(super) struct LiveSide {
    pub(super) key: FileKey,
    pub(super) calls: u64,
    pub(super) bytes: u64,
}

impl Wire for LiveSide {
    const SIZE: usize = FileKey::SIZE + 16;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { key: FileKey::read(from), calls: from.u64(), bytes: from.u64() }
    }
}

/// Time since a call was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Open {
    pub(super) wall_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) runnable_ns: u64,
}

impl LiveThread {
    /// Its time in its image until now, by state. The thread may have continued during the read, so
    /// nothing is assumed to add up: negative results become 0.
    pub(super) fn ledger(&self) -> LedgerRow {
        let (off, blocked) = self.off();
        let span = self.span().saturating_sub(off.saturating_sub(self.off_at_last_ns));
        let (inside, outside) = if self.in_call { (span, 0) } else { (0, span) };
        let blocked = blocked.saturating_sub(self.blocked_before_ns);
        LedgerRow {
            thread_ns: self.now_ns.saturating_sub(self.start_ns),
            user_ns: self.user_ns.saturating_add(outside),
            calls_on_cpu_ns: self.calls_on_cpu_ns.saturating_add(inside),
            blocked_ns: blocked,
            runnable_ns: off.saturating_sub(self.off_before_ns).saturating_sub(blocked),
            ..LedgerRow::default()
        }
    }

    /// The call it is in.
    pub(super) fn open(&self) -> Option<Open> {
        let (off, blocked) = self.off();
        let blocked_ns = blocked.saturating_sub(self.blocked_at_last_ns);
        self.in_call.then(|| Open {
            wall_ns: self.span(),
            blocked_ns,
            runnable_ns: off.saturating_sub(self.off_at_last_ns).saturating_sub(blocked_ns),
        })
    }

    /// Since the last boundary between user and kernel.
    fn span(&self) -> u64 {
        self.now_ns.saturating_sub(self.last_ns)
    }

    /// Time off the CPU, and the blocked part of it, including the present sleep.
    fn off(&self) -> (u64, u64) {
        if self.out_ns == 0 {
            return (self.off_ns, self.blocked_ns);
        }
        let gone = self.now_ns.saturating_sub(self.out_ns);
        let asleep = match (self.slept, self.woken_ns) {
            (false, _) => 0,
            (true, woken) if (self.out_ns..=self.now_ns).contains(&woken) => woken - self.out_ns,
            (true, _) => gone,
        };
        (self.off_ns.saturating_add(gone), self.blocked_ns.saturating_add(asleep))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In its image from 100 to 1000: 200 user, 300 in calls, off for 50 of which 40 asleep, and the
    /// rest since the last boundary at 650.
    fn thread() -> LiveThread {
        LiveThread {
            now_ns: 1000,
            start_ns: 100,
            last_ns: 650,
            user_ns: 200,
            calls_on_cpu_ns: 300,
            off_ns: 50,
            blocked_ns: 40,
            off_at_last_ns: 50,
            blocked_at_last_ns: 40,
            ..LiveThread::default()
        }
    }

    fn adds_up(ledger: &LedgerRow) {
        let parts =
            ledger.user_ns + ledger.calls_on_cpu_ns + ledger.blocked_ns + ledger.runnable_ns;
        assert_eq!(parts, ledger.thread_ns, "{ledger:?}");
    }

    #[test]
    fn a_thread_on_its_cpu_spends_its_time_on_the_side_it_is_on() {
        let outside = thread().ledger();
        assert_eq!((outside.user_ns, outside.calls_on_cpu_ns), (550, 300));
        adds_up(&outside);
        let inside = LiveThread { in_call: true, ..thread() };
        assert_eq!((inside.ledger().user_ns, inside.ledger().calls_on_cpu_ns), (200, 650));
        assert_eq!(inside.open(), Some(Open { wall_ns: 350, ..Open::default() }));
        adds_up(&inside.ledger());
    }

    #[test]
    fn a_sleep_that_lasts_counts_until_now_and_until_the_wake_up() {
        let asleep = LiveThread { in_call: true, slept: true, out_ns: 700, ..thread() };
        assert_eq!((asleep.ledger().blocked_ns, asleep.ledger().runnable_ns), (340, 10));
        assert_eq!(asleep.open().unwrap().blocked_ns, 300);
        adds_up(&asleep.ledger());
        let woken = LiveThread { woken_ns: 900, ..asleep };
        assert_eq!((woken.ledger().blocked_ns, woken.ledger().runnable_ns), (240, 110));
        assert_eq!(woken.open().unwrap(), Open { wall_ns: 350, blocked_ns: 200, runnable_ns: 100 });
        adds_up(&woken.ledger());
        let preempted = LiveThread { slept: false, ..asleep };
        assert_eq!((preempted.ledger().blocked_ns, preempted.ledger().runnable_ns), (40, 310));
        adds_up(&preempted.ledger());
    }

    #[test]
    fn a_thread_that_went_on_while_it_was_read_has_no_negative_time() {
        let torn = LiveThread { now_ns: 10, in_call: true, out_ns: 900, slept: true, ..thread() };
        assert_eq!(torn.ledger().thread_ns, 0);
        assert_eq!(torn.open(), Some(Open::default()));
    }
}
