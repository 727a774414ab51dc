//! The threads of a watch, for every observer: what each did in its program image.
//!
//! The one invariant: memory is bounded, and no count is lost by it. Threads of one name that ended
//! in one image, beyond [`MANY`], are one entry with their sums; of names there is room for so many,
//! and the threads beyond are one entry of each image.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use iotomy_record::{Process, Thread};

/// Up to this many threads that ended under one name in one image have entries of their own.
const MANY: usize = 256;

/// What a thread did in one image.
#[derive(Debug, Clone)]
pub(crate) struct ThreadBook<Call> {
    pub(crate) tid: u32,
    /// The kernel's name of it, when it was last seen.
    pub(crate) name: String,
    /// How many threads it sums up; 0 for one.
    pub(crate) instances: u32,
    pub(crate) on_cpu_ns: u64,
    /// The observer may not know the others.
    pub(crate) thread_ns: Option<u64>,
    pub(crate) user_ns: Option<u64>,
    pub(crate) blocked_ns: Option<u64>,
    pub(crate) runnable_ns: Option<u64>,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) calls: CallsOfThread<Call>,
}

/// The calls of a thread that returned, and their time.
#[derive(Debug, Clone)]
pub(crate) struct CallsOfThread<Call>(HashMap<Call, CallCounts>);

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallCounts {
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    /// Of these that did not return, too.
    pub(crate) wall_ns: u64,
}

impl<Call> Default for CallsOfThread<Call> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<Call: Copy + Eq + Hash> CallsOfThread<Call> {
    pub(crate) fn add(&mut self, call: Call, more: CallCounts) {
        let sum = self.0.entry(call).or_default();
        sum.calls += more.calls;
        sum.errors += more.errors;
        sum.wall_ns = sum.wall_ns.saturating_add(more.wall_ns);
    }
}

impl<Call: Copy + Eq + Hash> ThreadBook<Call> {
    /// With nothing counted.
    pub(crate) fn new(tid: u32, name: String) -> Self {
        Self {
            tid,
            name,
            instances: 0,
            on_cpu_ns: 0,
            thread_ns: None,
            user_ns: None,
            blocked_ns: None,
            runnable_ns: None,
            voluntary_switches: 0,
            involuntary_switches: 0,
            calls: CallsOfThread::default(),
        }
    }

    fn join(&mut self, other: Self) {
        self.instances = self.instances.max(1).saturating_add(other.instances.max(1));
        self.tid = self.tid.min(other.tid);
        self.on_cpu_ns = self.on_cpu_ns.saturating_add(other.on_cpu_ns);
        for (sum, one) in [
            (&mut self.thread_ns, other.thread_ns),
            (&mut self.user_ns, other.user_ns),
            (&mut self.blocked_ns, other.blocked_ns),
            (&mut self.runnable_ns, other.runnable_ns),
        ] {
            *sum = sum.zip(one).map(|(sum, one)| sum.saturating_add(one));
        }
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        other.calls.0.into_iter().for_each(|(call, more)| self.calls.add(call, more));
    }

    /// As the record has it; `name_of` gives the names of the calls that are to be reported.
    pub(crate) fn into_row(
        self,
        process: &Process,
        name_of: &dyn Fn(Call) -> Option<String>,
    ) -> Thread {
        let mut named: BTreeMap<String, CallCounts> = BTreeMap::new();
        for (call, counts) in self.calls.0 {
            if let Some(name) = name_of(call) {
                let sum = named.entry(name).or_default();
                sum.calls += counts.calls;
                sum.errors += counts.errors;
                sum.wall_ns = sum.wall_ns.saturating_add(counts.wall_ns);
            }
        }
        // Of equals the first by name.
        let longest = named.iter().rev().max_by_key(|(_, counts)| counts.wall_ns);
        let longest = longest.filter(|(_, counts)| counts.wall_ns > 0);
        Thread {
            pid: process.pid,
            exec: process.exec.clone(),
            image: process.image,
            tid: self.tid,
            name: self.name,
            instances: self.instances,
            calls: named.values().map(|counts| counts.calls).sum(),
            errors: named.values().map(|counts| counts.errors).sum(),
            thread_ns: self.thread_ns,
            on_cpu_ns: self.on_cpu_ns,
            user_ns: self.user_ns,
            blocked_ns: self.blocked_ns,
            runnable_ns: self.runnable_ns,
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            longest_ns: longest.map_or(0, |(_, counts)| counts.wall_ns),
            longest_call: longest.map(|(name, _)| name.clone()).unwrap_or_default(),
        }
    }
}

/// All threads of a watch, by image.
#[derive(Debug)]
pub(crate) struct Threads<Image, Call> {
    /// Those that ended, by image and name; an entry of many is the only one of its name.
    ended: HashMap<Image, BTreeMap<String, Vec<ThreadBook<Call>>>>,
    others: Vec<(Image, ThreadBook<Call>)>,
    /// Entries there is room for.
    room: usize,
}

impl<Image: Copy + Eq + Hash, Call: Copy + Eq + Hash> Threads<Image, Call> {
    /// With room for about this many entries of threads that ended.
    pub(crate) fn with_room(rows: u32) -> Self {
        let room = rows.try_into().unwrap_or(usize::MAX);
        Self { ended: HashMap::new(), others: Vec::new(), room }
    }

    /// A thread that still runs, or the first of its process.
    pub(crate) fn add(&mut self, image: Image, thread: ThreadBook<Call>) {
        self.others.push((image, thread));
    }

    /// A thread that has ended.
    pub(crate) fn add_ended(&mut self, image: Image, mut thread: ThreadBook<Call>) {
        let of_image = self.ended.entry(image).or_default();
        if self.room == 0 && !of_image.contains_key(&thread.name) {
            thread.name.clear();
        }
        let alike = of_image.entry(thread.name.clone()).or_default();
        let is_full = alike.len() >= MANY || self.room == 0;
        match &mut alike[..] {
            [sum, others @ ..] if is_full || sum.instances > 0 => {
                self.room += others.len();
                let others = alike.split_off(1);
                let sum = &mut alike[0];
                others.into_iter().chain([thread]).for_each(|one| sum.join(one));
            }
            _ => {
                self.room = self.room.saturating_sub(1);
                alike.push(thread);
            }
        }
    }

    /// The threads of an image: those with the most on-CPU time first.
    pub(crate) fn into_images(self) -> HashMap<Image, Vec<ThreadBook<Call>>> {
        let mut images: HashMap<Image, Vec<ThreadBook<Call>>> = HashMap::new();
        for (image, alike) in self.ended {
            images.entry(image).or_default().extend(alike.into_values().flatten());
        }
        for (image, thread) in self.others {
            images.entry(image).or_default().push(thread);
        }
        for threads in images.values_mut() {
            threads.sort_by_key(|one| (std::cmp::Reverse(one.on_cpu_ns), one.tid));
        }
        images
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, name: &str) -> ThreadBook<u16> {
        let mut thread = ThreadBook::new(tid, name.to_owned());
        thread.on_cpu_ns = 2;
        thread.blocked_ns = Some(3);
        thread.calls.add(7, CallCounts { calls: 1, errors: 0, wall_ns: 5 });
        thread
    }

    fn ended(room: u32, threads: impl IntoIterator<Item = (u32, String)>) -> Vec<Thread> {
        let mut all = Threads::with_room(room);
        threads.into_iter().for_each(|(tid, name)| all.add_ended(1, thread(tid, &name)));
        let rows = all.into_images().remove(&1).unwrap_or_default().into_iter();
        let name = |call| Some(format!("call_{call}"));
        rows.map(|row| row.into_row(&Process::default(), &name)).collect()
    }

    #[test]
    fn many_threads_of_one_name_are_one_entry_with_their_sums() {
        let many = MANY as u32;
        let each = ended(1000, (0..many).map(|tid| (tid, "w".to_owned())));
        assert_eq!((each.len(), each[0].instances), (MANY, 0));
        let one = ended(1000, (0..many + 23).map(|tid| (tid, "w".to_owned())));
        assert_eq!((one.len(), one[0].instances, one[0].tid), (1, many + 23, 0));
        assert_eq!(
            (one[0].calls, one[0].on_cpu_ns),
            (u64::from(many + 23), 2 * u64::from(many + 23))
        );
        assert_eq!(
            (&*one[0].longest_call, one[0].longest_ns),
            ("call_7", 5 * u64::from(many + 23))
        );
        assert_eq!(one[0].blocked_ns, Some(3 * u64::from(many + 23)));
    }

    #[test]
    fn where_names_find_no_room_threads_are_counted_all_the_same() {
        let rows = ended(10, (0..1000).map(|tid| (tid, format!("name {tid}"))));
        assert!(rows.len() <= 12, "{}", rows.len());
        assert_eq!(rows.iter().map(|row| row.calls).sum::<u64>(), 1000);
        let threads: u32 = rows.iter().map(|row| row.instances.max(1)).sum();
        assert_eq!(threads, 1000);
    }

    #[test]
    fn the_longest_call_is_of_those_reported() {
        let mut book = thread(1, "w");
        book.calls.add(8, CallCounts { calls: 4, errors: 1, wall_ns: 50 });
        let reported = |call| (call == 7).then(|| "read".to_owned());
        let row = book.clone().into_row(&Process::default(), &reported);
        assert_eq!((row.calls, row.errors, &*row.longest_call, row.longest_ns), (1, 0, "read", 5));
        let row = book.into_row(&Process::default(), &|_| None);
        assert_eq!((row.calls, &*row.longest_call, row.longest_ns), (0, "", 0));
    }
}
