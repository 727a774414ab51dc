//! What the instructions and the C functions that they call agree on (`d.h` of the observer, which
//! asserts these offsets).

/// The register that has the machine.
pub(super) const MACHINE: u8 = 6;

/// The register that has the row of the thread; 0: it has none.
pub(super) const THREAD: u8 = 7;

/// Slots of a clause; a string takes two.
pub const SLOTS: usize = 512;
/// Words of `this->` variables; a string takes two.
pub const LOCALS: usize = 64;
/// Integer variables in the row of a thread.
pub const THREAD_WORDS: usize = 16;
/// Integer variables that all threads share.
pub const GLOBALS: usize = 1024;
/// `strsize` at most.
pub const STRING_MOST: usize = 1024;
/// Bytes of the keys of the maps of small ones.
pub const SMALL_KEY: usize = 64;
/// Bytes of a key at most.
pub const LARGE_KEY: usize = 2048;
/// Bytes of an event at most.
pub const EVENT_MOST: usize = 8192;
/// Bytes of a program's strings.
pub const LITERALS_MOST: usize = 65536;
/// Aggregations.
pub const AGGREGATIONS: usize = 1024;
/// Bytes before the records of an event.
pub const EVENT_HEAD: usize = 24;
/// The bin of a distribution's key that has its room only.
pub const HEAD_BIN: u16 = 0xffff;

/// Frames of the kernel's stacks that are those of the probe itself, at most.
const OF_PROBE: usize = 20;

/// Frames of a stack that are kept, of which those of the probe are left out later.
pub(super) fn frames_kept(user: bool, frames: u16) -> usize {
    const MOST: usize = 126;
    (usize::from(frames) + if user { 0 } else { OF_PROBE }).min(MOST)
}

/// Offsets in the machine.
pub(super) const CLAUSE: i16 = 0;
pub(super) const STEP: i16 = 4;
pub(super) const FAULT: i16 = 8;
pub(super) const KEY_LENGTH: i16 = 24;
pub(super) const ARENA_LENGTH: i16 = 32;
pub(super) const EXITS: i16 = 36;
pub(super) const LITERALS: i16 = 56;
pub(super) const NAMES: i16 = 64;
pub(super) const PRESENT: i16 = 72;
pub(super) const FACTS: i16 = PRESENT + 64;
pub(super) const LOCAL: i16 = FACTS + 64 * 8;
pub(super) const SLOT: i16 = LOCAL + LOCALS as i16 * 8 + 24 * 8;
pub(super) const KEY: i16 = SLOT + SLOTS as i16 * 8;
pub(super) const EXECNAME: i16 = 29040;

/// Where the variables are in the row of a thread.
pub(super) const THREAD_WORD: i16 = 32;

/// How a clause ended.
pub(super) mod outcome {
    pub(in super::super) const DONE: i64 = 0;
    pub(in super::super) const FAULT: i64 = 1;
    pub(in super::super) const FULL: i64 = 2;

    /// Of conditions, which have 0 where they do not hold.
    pub(in super::super) const HOLDS: i64 = 1;
    pub(in super::super) const DIVIDED_BY_ZERO: i64 = 2;
}

/// Facts by number; the values of strings take two words.
pub mod fact {
    /// `arg0`
    pub const ARGUMENT: u16 = 0;
    /// `pid`
    pub const PID: u16 = 10;
    /// `tid`
    pub const TID: u16 = 11;
    /// Tells threads apart that had the same number.
    pub const THREAD_START: u16 = 12;
    /// `errno`
    pub const ERRNO: u16 = 13;
    /// Those from here on are found when they are asked for.
    pub const ON_DEMAND: u16 = 16;
    /// `vtimestamp`
    pub const VTIMESTAMP: u16 = 21;
    /// `execname`
    pub const EXECNAME: u16 = 32;
    /// The first that is a string.
    pub const FIRST_STRING: u16 = 32;
    /// Of the other process or thread that a firing is about, which members of `args[]` are.
    pub const OTHER_PID: &str = "args[]->pr_pid";
    /// Its thread.
    pub const OTHER_TID: &str = "args[]->pr_lwpid";
    /// Its name.
    pub const OTHER_NAME: &str = "args[]->pr_fname";
    /// The command line.
    pub const PSARGS: &str = "curpsinfo->pr_psargs";
    /// The fact that a member of a block request, or of its device, is the same as.
    pub(in super::super) fn of_request(member: &str) -> Option<&'static str> {
        let member = match member {
            "b_bufsize" => "b_bcount",
            "dev_instance" => "dev_minor",
            "dev_name" => "dev_statname",
            member => member,
        };
        let names = NAMES.iter().map(|(name, _)| *name);
        let mut of_arguments = names.filter(|name| name.starts_with("args[]->"));
        of_arguments.find(|name| name.strip_prefix("args[]->") == Some(member))
    }

    /// The facts by the names that programs have for them.
    pub const NAMES: [(&str, u16); 30] = [
        ("pid", PID),
        ("tid", TID),
        ("errno", ERRNO),
        ("ppid", 16),
        ("uid", 17),
        ("gid", 18),
        ("cpu", 19),
        ("timestamp", 20),
        ("vtimestamp", VTIMESTAMP),
        ("walltimestamp", 22),
        ("id", 23),
        (OTHER_PID, 24),
        (OTHER_TID, 25),
        ("execname", EXECNAME),
        ("probeprov", 34),
        ("probemod", 36),
        ("probefunc", 38),
        ("probename", 40),
        (OTHER_NAME, 42),
        (PSARGS, 44),
        ("args[]->b_flags", 3),
        ("args[]->b_bcount", 4),
        ("args[]->b_blkno", 5),
        ("args[]->b_resid", 6),
        ("args[]->b_error", 7),
        ("args[]->b_edev", 8),
        ("args[]->dev_major", 26),
        ("args[]->dev_minor", 27),
        ("args[]->dev_statname", 46),
        ("args[]->dev_pathname", 48),
    ];
}

/// How an aggregation takes a value.
pub(super) mod aggregating {
    pub(in super::super) const SUM: u32 = 0;
    pub(in super::super) const MINIMUM: u32 = 1;
    pub(in super::super) const MAXIMUM: u32 = 2;
    pub(in super::super) const MOMENTS: u32 = 3;
}

/// Numbers of errors, as `arg4` of the ERROR probe has them.
pub(super) const DIVIDED_BY_ZERO: i32 = 4;
