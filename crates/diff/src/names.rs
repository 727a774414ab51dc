//! Names that every run draws anew: of temporary files, of processes and threads, of ephemeral ports.
//!
//! A name that two runs have is itself. A name that one run alone has is put together with others that
//! differ from it in numbers and random letters only, `…` in their place: `/tmp/cc….s`. The row says how
//! many names it stands for, so that nothing is called equal that is not. A name without such a
//! counterpart stays as it is, and is only in that run.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iotomy_record::{FileUse, Key, Socket, SocketNames, Trace};

/// What stands for the part of a name that differs.
const ANEW: &str = "…";

/// From so many digits on, a number may be one that the kernel draws: of a process, a port, an inode.
const DIGITS: usize = 5;

/// From so many on, hexadecimal digits may be drawn at random.
const HEX_DIGITS: usize = 8;

/// Random letters in the names of temporary files: `mkstemp` draws so many.
const LETTERS: usize = 6;

/// Where the names of temporary files need nothing in them that says so.
const TEMPORARY: [&str; 4] = ["/tmp/", "/var/tmp/", "/dev/shm/", "memfd:"];

/// How names are put together, over all runs of both sides.
#[derive(Debug, Default)]
pub(crate) struct Names {
    peers: SocketNames,
    /// Names that one run alone has, and what they share with others.
    shared: HashMap<String, String>,
    /// Whether ids of processes stay the same: the runs are watches of running processes.
    ids_stay: bool,
}

impl Names {
    pub(crate) fn between(traces: &[&Trace]) -> Self {
        let mut names = Self {
            ids_stay: traces.iter().all(|trace| trace.command.is_empty()),
            ..Self::default()
        };
        traces.iter().for_each(|trace| names.peers.add(trace.files.iter()));
        // The run that has it; none for several.
        let mut runs: HashMap<String, Option<usize>> = HashMap::new();
        for (run, trace) in traces.iter().enumerate() {
            for name in names.of(trace) {
                let first = runs.entry(name).or_insert(Some(run));
                *first = first.filter(|first| *first == run);
            }
        }
        let ids: Vec<BTreeSet<u32>> = traces.iter().map(|trace| ids(trace)).collect();
        let mut alike: HashMap<String, Vec<String>> = HashMap::new();
        for (name, run) in runs {
            let Some(run) = run else { continue };
            let shared = shared_part(&name, &ids[run]);
            if shared != name {
                alike.entry(shared).or_default().push(name);
            }
        }
        for (shared, alike) in alike.into_iter().filter(|(_, alike)| alike.len() > 1) {
            names.shared.extend(alike.into_iter().map(|name| (name, shared.clone())));
        }
        names
    }

    /// The name of the row for a name, and whether it stands for several.
    pub(crate) fn row(&self, name: &str) -> (String, bool) {
        match self.shared.get(name) {
            Some(shared) => (shared.clone(), true),
            None => (name.to_owned(), false),
        }
    }

    /// Every name in a trace that a row may have.
    fn of(&self, trace: &Trace) -> BTreeSet<String> {
        let files = trace.files.iter().map(|file| path(&file.path));
        let peers = trace.files.iter().filter_map(|file| self.peer(file));
        let connections = trace.connections.iter().map(|one| &one.ends);
        let requests = trace.requests.iter().map(|one| &one.ends);
        let ends = connections.chain(requests).map(|ends| self.peer_of(ends));
        let paths = trace.paths.iter().filter_map(|one| one.path.as_deref());
        let threads = trace.threads.iter().map(|thread| thread.name.clone());
        let mut names: BTreeSet<String> =
            files.chain(peers).chain(ends).chain(paths.map(path)).chain(threads).collect();
        for group in trace.by.iter().flat_map(|groups| &groups.rows) {
            names.extend(group.key.iter().filter_map(|key| match key {
                Key::Text(text) => Some(path(text)),
                Key::Number(_) => None,
            }));
        }
        names
    }

    /// What is at the other end of a socket. Of UNIX sockets, the path is enough: whether the other
    /// process still lives when a watch ends is chance.
    pub(crate) fn peer(&self, file: &FileUse) -> Option<String> {
        file.socket.as_ref().map(|socket| self.peer_of(socket))
    }

    /// The same of a socket, or of the ends of connections.
    pub(crate) fn peer_of(&self, socket: &Socket) -> String {
        let mut socket = Socket { peer_pid: None, ..socket.clone() };
        if socket.is_unix() && (socket.local.is_some() || socket.remote.is_some()) {
            socket.peer = None;
        }
        self.peers.name(&socket)
    }

    /// A value that calls were grouped by, and the name that it shares with others where it does.
    pub(crate) fn value(&self, by: &str, key: &Key) -> (String, bool) {
        match key {
            Key::Text(text) if text.is_empty() => ("-".to_owned(), false),
            Key::Text(text) => self.row(&path(text)),
            Key::Number(_) if matches!(by, "pid" | "tid" | "thread") && !self.ids_stay => {
                (ANEW.to_owned(), true)
            }
            Key::Number(low) if matches!(by, "bytes" | "duration") && *low > 1 => {
                (format!("{low}…{}", low.saturating_mul(2).saturating_sub(1)), false)
            }
            Key::Number(number) => (number.to_string(), false),
        }
    }
}

/// The ids of a run's processes and threads, as far as the record has them.
fn ids(trace: &Trace) -> BTreeSet<u32> {
    let processes = trace.processes.iter().flat_map(|process| [process.pid, process.ppid]);
    processes.chain(trace.threads.iter().map(|thread| thread.tid)).collect()
}

/// A path without the numbers that every run draws anew: those of pipes, sockets, processes and threads.
pub(crate) fn path(path: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    for kind in ["pipe", "socket"] {
        let inode = path.strip_prefix(kind).and_then(|rest| rest.strip_prefix(":["));
        if inode.and_then(|rest| rest.strip_suffix(']')).is_some_and(is_number) {
            return format!("{kind}:[{ANEW}]");
        }
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    if let ["", "proc", rest @ ..] = &mut parts[..] {
        if let Some(pid) = rest.first_mut().filter(|part| is_number(part)) {
            *pid = "PID";
        }
        if let [_, "task", tid, ..] = rest
            && is_number(tid)
        {
            *tid = "TID";
        }
    }
    parts.join("/")
}

/// The name with `…` for the parts that may be drawn anew; `ids` are those of its run.
fn shared_part(name: &str, ids: &BTreeSet<u32>) -> String {
    let is_temporary = TEMPORARY.iter().any(|start| name.starts_with(start));
    let components: Vec<&str> = name.split('/').collect();
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut shared: Vec<String> = Vec::new();
    for (at, component) in components.iter().enumerate() {
        let next = components.get(at + 1).map_or("", |next| next);
        // An object of git, and of other stores by content: the hash in two parts.
        if component.len() == 2 && is_hex(component) && next.len() >= 30 && is_hex(next) {
            shared.push(ANEW.to_owned());
            continue;
        }
        let lower = component.to_ascii_lowercase();
        let is_temporary = is_temporary || lower.contains("tmp") || lower.contains("temp");
        shared.push(match component.strip_prefix("tmp") {
            // As Python's tempfile draws them, among which are underscores.
            Some(rest)
                if rest.len() == 8
                    && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') =>
            {
                format!("tmp{ANEW}")
            }
            _ => words_shared(component, |word| is_anew(word, is_temporary, ids)),
        });
    }
    shared.join("/")
}

/// The text with `…` for the words of letters and digits that are drawn anew. Of several words in a row,
/// as in a UUID, one `…` stays.
fn words_shared(text: &str, is_anew: impl Fn(&str) -> bool) -> String {
    let mut shared = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_letter = |c: char| c.is_ascii_alphanumeric();
        let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        shared += if is_anew(word) { ANEW } else { word };
        let next = behind.find(is_letter).unwrap_or(behind.len());
        let (between, behind) = behind.split_at(next);
        shared += between;
        rest = behind;
    }
    // 12345678-1234-… of a UUID: its short words are drawn as its long ones are.
    uuid_shared(text).unwrap_or(shared)
}

/// The text with `…` for the first UUID in it.
fn uuid_shared(text: &str) -> Option<String> {
    const PARTS: [usize; 5] = [8, 4, 4, 4, 12];
    let whole = PARTS.iter().sum::<usize>() + PARTS.len() - 1;
    let is_uuid = |part: &str| {
        let parts: Vec<&str> = part.split('-').collect();
        parts.len() == PARTS.len()
            && parts.iter().zip(PARTS).all(|(part, length)| {
                part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
    };
    let starts = 0..text.len().checked_sub(whole)? + 1;
    let at = starts.into_iter().find(|at| text.get(*at..at + whole).is_some_and(is_uuid))?;
    Some(format!("{}{ANEW}{}", &text[..at], &text[at + whole..]))
}

fn is_anew(word: &str, is_temporary: bool, ids: &BTreeSet<u32>) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    let (digits, lower, upper) =
        (has(u8::is_ascii_digit), has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    if digits && !lower && !upper {
        let is_id = || word.len() > 1 && word.parse().is_ok_and(|number| ids.contains(&number));
        // A number that is filled up with zeros is one of a series.
        return (word.len() >= DIGITS && !word.starts_with('0')) || is_id();
    }
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_random_hex = is_hex && digits && word.len() >= HEX_DIGITS;
    is_random_hex
        || (is_temporary
            && word.len() >= LETTERS
            && ((digits && (lower || upper)) || (lower && upper)))
}

/// The sets of names that the rows of a table stand for, where they stand for several.
#[derive(Debug, Default)]
pub(crate) struct Several(BTreeMap<crate::row::Key, BTreeSet<String>>);

impl Several {
    pub(crate) fn add(&mut self, key: &crate::row::Key, name: &str) {
        self.0.entry(key.clone()).or_default().insert(name.to_owned());
    }

    pub(crate) fn count(&self, key: &crate::row::Key) -> Option<u64> {
        self.0.get(key).map(|names| names.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_that_runs_draw_anew_are_left_out_of_names() {
        let ids = [4321, 77].into();
        for (name, shared) in [
            ("/tmp/ccAbCd1f.s", "/tmp/….s"),
            ("/var/tmp/etilqs_9f2c41aa07d3b2e1", "/var/tmp/etilqs_…"),
            ("/home/u/tmpab_9xk2q/x", "/home/u/tmp…/x"),
            ("/srv/.git/objects/12/tmp_obj_aB3dEf", "/srv/.git/objects/12/tmp_obj_…"),
            (
                "/srv/.git/objects/ab/cdef0123456789abcdef0123456789abcdef01",
                "/srv/.git/objects/…/…",
            ),
            ("/run/app.4321.pid", "/run/app.….pid"),
            ("/run/app.77", "/run/app.…"),
            ("tcp 127.0.0.1:45678", "tcp 127.0.0.1:…"),
            ("tcp [2001:db8::1]:45678", "tcp [2001:db8::1]:…"),
            ("/x/6ba7b810-9dad-11d1-80b4-00c04fd430c8.log", "/x/….log"),
            // Not drawn: a series, a version, a word, a port of a service.
            ("/data/part-00001", "/data/part-00001"),
            ("/usr/lib/libx.so.1.2.13", "/usr/lib/libx.so.1.2.13"),
            ("/usr/share/ReadMe2.txt", "/usr/share/ReadMe2.txt"),
            ("/usr/lib/deadbeef", "/usr/lib/deadbeef"),
            ("tcp 127.0.0.1:6379", "tcp 127.0.0.1:6379"),
            ("worker-3", "worker-3"),
            ("/tmp/build/main.o", "/tmp/build/main.o"),
            ("ä-ß/ü", "ä-ß/ü"),
        ] {
            assert_eq!(shared_part(name, &ids), shared, "{name}");
        }
    }

    #[test]
    fn processes_pipes_and_sockets_have_no_numbers() {
        for (name, short) in [
            ("pipe:[123]", "pipe:[…]"),
            ("socket:[7]", "socket:[…]"),
            ("pipe:[x]", "pipe:[x]"),
            ("/proc/12/maps", "/proc/PID/maps"),
            ("/proc/12/task/13/comm", "/proc/PID/task/TID/comm"),
            ("/proc/self/fd/3", "/proc/self/fd/3"),
            ("/srv/proc/12", "/srv/proc/12"),
        ] {
            assert_eq!(path(name), short);
        }
    }
}
