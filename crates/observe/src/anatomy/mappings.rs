//! The code mappings of the watched processes, program after program: maps addresses to files.
//!
//! Pure. A stack has no time but that of the program image it was sampled in, so the one tricky
//! invariant is which records belong to an image: an exec starts a process anew, and a fork
//! continues with the parent's mappings at that time. Where mappings overlap, the later one holds.

use std::collections::HashMap;

use iotomy_record::lossless;
use iotomy_sys::side_band::{Event, Record};

/// Mappings that are kept, in all: some 30 MiB.
const MOST: usize = 262_144;

/// The mappings of the processes that this one has started or attached to, and of their children.
pub(crate) struct Mappings {
    /// Children of this process are watched.
    own: u32,
    eras: Vec<Era>,
    by_pid: HashMap<u32, Vec<usize>>,
    paths: Vec<String>,
    by_path: HashMap<String, usize>,
    kept: usize,
    most: usize,
    /// Records without room.
    pub(crate) lost: u64,
}

/// A process from a fork or an exec on, until its next exec.
struct Era {
    began_ns: u64,
    begun: Inherited,
    maps: Vec<Mapping>,
}

/// The part of an era that is inherited from the one before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inherited {
    /// Nothing: another program.
    Anew,
    /// All that its parent had.
    From(usize),
    /// Forked by this process: its image begins with the exec that follows.
    Here,
    /// It is not a process of interest, but has the id of one that was.
    Elsewhere,
}

struct Mapping {
    at_ns: u64,
    start: u64,
    end: u64,
    offset: u64,
    inode: u64,
    path: usize,
}

/// A place in a mapping.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mapped<'a> {
    /// The file, or the kernel's name for memory without a file.
    pub(crate) path: &'a str,
    /// 0 of memory of no file.
    pub(crate) inode: u64,
    pub(crate) offset: u64,
}

impl Mappings {
    /// For a watcher of this process id.
    pub(crate) fn new(own: u32) -> Self {
        Self {
            own,
            eras: Vec::new(),
            by_pid: HashMap::new(),
            paths: Vec::new(),
            by_path: HashMap::new(),
            kept: 0,
            most: MOST,
            lost: 0,
        }
    }

    /// A process that runs already, with its `/proc/PID/maps`.
    pub(crate) fn attach(&mut self, pid: u32, maps: &str) {
        self.begin(pid, 0, Inherited::Anew);
        for line in maps.lines() {
            if let Some(mapping) = line_of_maps(line) {
                self.map(pid, 0, mapping);
            }
        }
    }

    /// Notes the next event. Events of other processes are ignored.
    pub(crate) fn note(&mut self, record: Record) {
        let Record { at_ns, event } = record;
        match event {
            Event::Fork { pid, parent } => {
                let from = self.last(parent).map(Inherited::From);
                match from.or((parent == self.own).then_some(Inherited::Here)) {
                    Some(begun) => self.begin(pid, at_ns, begun),
                    None if self.by_pid.contains_key(&pid) => {
                        self.begin(pid, at_ns, Inherited::Elsewhere);
                    }
                    None => {}
                }
            }
            Event::Exec { pid } if self.last(pid).is_some() => {
                self.begin(pid, at_ns, Inherited::Anew)
            }
            Event::Exec { .. } => {}
            Event::Map { pid, start, length, offset, inode, path } => {
                let (end, path) = (start.saturating_add(length), lossless(&path));
                self.map(pid, at_ns, MapsLine { start, end, offset, inode, path: &path });
            }
            Event::Lost(records) => self.lost += records,
        }
    }

    /// The file that an address lies in, in the image of a process that began then.
    pub(crate) fn at(&self, pid: u32, began_ns: u64, address: u64) -> Option<Mapped<'_>> {
        let mut era = &self.eras[self.era_of(pid, began_ns)?];
        let mut until = u64::MAX;
        loop {
            let known = era.maps.iter().rev().find(|mapping| {
                mapping.at_ns <= until && (mapping.start..mapping.end).contains(&address)
            });
            match (known, era.begun) {
                (Some(mapping), _) => {
                    return Some(Mapped {
                        path: &self.paths[mapping.path],
                        inode: mapping.inode,
                        offset: (address - mapping.start).wrapping_add(mapping.offset),
                    });
                }
                (None, Inherited::From(parent)) => {
                    until = until.min(era.began_ns);
                    era = &self.eras[parent];
                }
                (None, _) => return None,
            }
        }
    }

    /// The kernel reports an exec, and a fork, just before an image begins; but the first image of
    /// a command begins with its launch, before the exec that makes it.
    fn era_of(&self, pid: u32, began_ns: u64) -> Option<usize> {
        let eras = self.by_pid.get(&pid)?;
        let behind = eras.partition_point(|era| self.eras[*era].began_ns <= began_ns);
        let at = behind.saturating_sub(1);
        let launched = self.eras[eras[at]].begun == Inherited::Here;
        eras.get(at + usize::from(launched)).copied()
    }

    /// The era a process of interest is in.
    fn last(&self, pid: u32) -> Option<usize> {
        let last = *self.by_pid.get(&pid)?.last()?;
        (self.eras[last].begun != Inherited::Elsewhere).then_some(last)
    }

    fn begin(&mut self, pid: u32, began_ns: u64, begun: Inherited) {
        if !self.has_room() {
            // Its old mappings would be taken for the present ones.
            self.by_pid.remove(&pid);
            return;
        }
        self.by_pid.entry(pid).or_default().push(self.eras.len());
        self.eras.push(Era { began_ns, begun, maps: Vec::new() });
    }

    fn map(&mut self, pid: u32, at_ns: u64, found: MapsLine<'_>) {
        let Some(era) = self.last(pid) else { return };
        if !self.has_room() {
            return;
        }
        let path = match self.by_path.get(found.path) {
            Some(path) => *path,
            None => {
                self.paths.push(found.path.to_owned());
                self.by_path.insert(found.path.to_owned(), self.paths.len() - 1);
                self.paths.len() - 1
            }
        };
        let MapsLine { start, end, offset, inode, .. } = found;
        self.eras[era].maps.push(Mapping { at_ns, start, end, offset, inode, path });
    }

    fn has_room(&mut self) -> bool {
        let room = self.kept < self.most;
        self.kept += usize::from(room);
        self.lost += u64::from(!room);
        room
    }
}

struct MapsLine<'a> {
    start: u64,
    end: u64,
    offset: u64,
    inode: u64,
    path: &'a str,
}

/// `55d0c0de4000-55d0c0df8000 r-xp 00004000 fe:01 1234   /usr/bin/dd`, of code.
fn line_of_maps(line: &str) -> Option<MapsLine<'_>> {
    let mut rest = line;
    let mut word = || {
        let (word, left) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        rest = left;
        word
    };
    let (start, end) = word().split_once('-')?;
    let is_code = word().as_bytes().get(2) == Some(&b'x');
    let (offset, _, inode) = (word(), word(), word());
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    is_code.then_some(())?;
    Some(MapsLine {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(offset)?,
        inode: inode.parse().ok()?,
        path: rest.trim_start(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 1;

    fn fork(at_ns: u64, parent: u32, pid: u32) -> Record {
        Record { at_ns, event: Event::Fork { pid, parent } }
    }

    fn exec(at_ns: u64, pid: u32) -> Record {
        Record { at_ns, event: Event::Exec { pid } }
    }

    fn map(at_ns: u64, pid: u32, start: u64, path: &str) -> Record {
        let path = path.as_bytes().to_vec();
        let event = Event::Map { pid, start, length: 0x1000, offset: 0x400, inode: 5, path };
        Record { at_ns, event }
    }

    fn mappings(records: Vec<Record>) -> Mappings {
        let mut mappings = Mappings::new(OWN);
        records.into_iter().for_each(|record| mappings.note(record));
        mappings
    }

    fn path(mappings: &Mappings, pid: u32, began_ns: u64, address: u64) -> Option<&str> {
        mappings.at(pid, began_ns, address).map(|mapped| mapped.path)
    }

    #[test]
    fn an_address_is_so_far_into_the_file() {
        let known = mappings(vec![fork(10, OWN, 7), exec(20, 7), map(21, 7, 0x8000, "/bin/dd")]);
        let mapped = known.at(7, 15, 0x8012).unwrap();
        assert_eq!((mapped.path, mapped.inode, mapped.offset), ("/bin/dd", 5, 0x412));
        assert_eq!(path(&known, 7, 15, 0x9000), None);
        assert_eq!(path(&known, 8, 15, 0x8000), None);
    }

    #[test]
    fn each_program_of_a_process_has_its_own() {
        let known = mappings(vec![
            fork(10, OWN, 7),
            exec(20, 7),
            map(21, 7, 0x8000, "/bin/sh"),
            exec(40, 7),
            map(41, 7, 0x8000, "/bin/dd"),
        ]);
        // An image begins when its exec is done; a command's first with the launch.
        assert_eq!(path(&known, 7, 15, 0x8000), Some("/bin/sh"));
        assert_eq!(path(&known, 7, 25, 0x8000), Some("/bin/sh"));
        assert_eq!(path(&known, 7, 43, 0x8000), Some("/bin/dd"));
    }

    #[test]
    fn a_child_has_what_its_parent_had_when_it_was_made() {
        let known = mappings(vec![
            fork(10, OWN, 7),
            exec(20, 7),
            map(21, 7, 0x8000, "/bin/sh"),
            fork(30, 7, 8),
            map(35, 7, 0x8000, "/lib/later.so"),
            map(36, 8, 0xa000, "/lib/own.so"),
            fork(40, 8, 9),
        ]);
        assert_eq!(path(&known, 8, 31, 0x8000), Some("/bin/sh"));
        assert_eq!(path(&known, 7, 15, 0x8000), Some("/lib/later.so"));
        assert_eq!(path(&known, 9, 41, 0x8000), Some("/bin/sh"));
        assert_eq!(path(&known, 9, 41, 0xa000), Some("/lib/own.so"));
    }

    #[test]
    fn what_others_do_is_left_out() {
        let known = mappings(vec![
            fork(10, OWN, 7),
            exec(20, 7),
            map(21, 7, 0x8000, "/bin/sh"),
            fork(22, 50, 51),
            exec(23, 51),
            map(24, 51, 0x8000, "/bin/other"),
            // The id of a process that has ended, given to another.
            fork(30, 50, 7),
            exec(31, 7),
            map(32, 7, 0x8000, "/bin/other"),
            fork(33, 7, 52),
        ]);
        assert_eq!(path(&known, 7, 15, 0x8000), Some("/bin/sh"));
        assert_eq!(known.paths, ["/bin/sh"]);
        assert_eq!(path(&known, 52, 34, 0x8000), None);
    }

    #[test]
    fn a_process_that_ran_before_has_what_proc_tells() {
        let mut known = Mappings::new(OWN);
        known.attach(
            7,
            "55d000-55e000 r--p 00000000 fe:01 1234                 /usr/bin/dd\n\
             55e000-560000 r-xp 00001000 fe:01 1234                 /usr/bin/a name (deleted)\n\
             7f0000-7f1000 r-xp 00000000 00:00 0 \n\
             7ff000-800000 r-xp 00000000 00:00 0                    [vdso]\nnonsense\n",
        );
        let mapped = known.at(7, 99, 0x55_e010).unwrap();
        assert_eq!((mapped.path, mapped.offset), ("/usr/bin/a name (deleted)", 0x1010));
        assert_eq!(path(&known, 7, 99, 0x55_d000), None);
        assert_eq!(path(&known, 7, 99, 0x7f_0000), Some(""));
        known.note(fork(100, 7, 8));
        assert_eq!(path(&known, 8, 101, 0x7f_f000), Some("[vdso]"));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut known = Mappings::new(OWN);
        known.most = 3;
        for record in [fork(10, OWN, 7), exec(20, 7), map(21, 7, 0x8000, "/a")] {
            known.note(record);
        }
        assert_eq!(known.lost, 0);
        known.note(map(22, 7, 0xa000, "/b"));
        known.note(Record { at_ns: 23, event: Event::Lost(4) });
        assert_eq!((known.lost, path(&known, 7, 15, 0xa000)), (5, None));
    }
}
