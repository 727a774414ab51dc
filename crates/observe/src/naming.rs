//! Names for numbers, and the order of rows: the same for all observers.

use std::collections::HashMap;

use iotomy_record::{Call, bytes_of};
use iotomy_sys::errno;
use iotomy_sys::syscalls::{self, Abi};

/// The suffix in records for names of calls by the 32-bit entry.
const I386: &str = "(i386)";

/// A system call as the kernel knows it.
pub(crate) type CallNumber = (Abi, u32);

/// From this number on calls are not distinguished any more: no call of a kernel is near it.
pub(crate) const BEYOND: u32 = 0x3fff;

/// From this number on, calls that are chosen, by name or by a condition, are not distinguished: the kernel's side has
/// one place for all of them in its tables.
pub(crate) const UNNAMED: u32 = 511;

/// The call without a name, as it is chosen and, from [`BEYOND`] on, as the record has it.
const OTHER: &str = "syscall_other";

/// A call as the record names it.
pub(crate) fn call_name(abi: Abi, number: u32) -> String {
    let name = match number {
        BEYOND.. => OTHER.to_owned(),
        number => syscalls::name(abi, number),
    };
    if abi == Abi::I386 { name + I386 } else { name }
}

/// The name by which a call is chosen that the record names so.
pub(crate) fn choice_name(name: &str) -> &str {
    let number = |plain: &str| plain.strip_prefix("syscall_")?.parse::<u32>().ok();
    match number(plain_name(name)) {
        Some(UNNAMED..) if name.ends_with(I386) => "syscall_other(i386)",
        Some(UNNAMED..) => OTHER,
        _ => name,
    }
}

/// Whether calls can be chosen by this name.
pub fn is_call(name: &str) -> bool {
    let is_known = |abi| syscalls::number(abi, name).is_some_and(|number| number < UNNAMED);
    name == OTHER || [Abi::X86_64, Abi::I386].into_iter().any(is_known)
}

/// A call's name as its manual page has it, whichever the entry.
pub(crate) fn plain_name(name: &str) -> &str {
    name.strip_suffix(I386).unwrap_or(name)
}

/// An error as the record names it.
pub(crate) fn error_name(number: u32) -> String {
    errno::name(number).map_or_else(|| format!("errno_{number}"), str::to_owned)
}

/// A path that is relative behind the directory at which it begins, where that is known.
pub(crate) fn join(directory: Option<&str>, path: &str) -> String {
    let Some(directory) = directory.filter(|_| !path.starts_with('/')) else {
        return path.to_owned();
    };
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    match path {
        "" | "." => directory.to_owned(),
        _ => format!("{}/{path}", directory.trim_end_matches('/')),
    }
}

/// Which of its process's images of this name each is, counted from 1; 0 where there is but one. The
/// images come in the order they began.
pub(crate) fn numbers<'a>(images: &[(u32, &'a str)]) -> Vec<u32> {
    let mut all: HashMap<(u32, &'a str), u32> = HashMap::new();
    for image in images {
        *all.entry(*image).or_default() += 1;
    }
    let mut so_far: HashMap<(u32, &'a str), u32> = HashMap::new();
    let number = |image: &(u32, &'a str)| {
        let nth = so_far.entry(*image).or_default();
        *nth += 1;
        if all[image] > 1 { *nth } else { 0 }
    };
    images.iter().map(number).collect()
}

/// Bytes of the kernel's name of a process.
const COMM: usize = 15;

/// The name that users know a program by, empty where it equals `exec`: the kernel's name of the
/// process where that is known, as in `ps` and `top`, and its arguments.
///
/// The kernel's name is that of the executed file, a link or a script, unless the program chose
/// another; it is cut, and its full form is searched for among the first arguments. Where it is
/// unknown, or means nothing, the first argument counts: a program with several names is told by it
/// which one is meant.
pub(crate) fn called(exec: &str, comm: Option<&str>, argv: &[String]) -> String {
    let is_cut = |name: &str, comm| is_cut(&bytes_of(name), &bytes_of(comm));
    let name = match comm.filter(|comm| !comm.is_empty()) {
        Some(comm) if is_cut(exec, comm) => exec,
        Some(comm) => {
            let mut all = argv.iter().take(3).flat_map(|word| names(word));
            match all.find(|name| is_cut(name, comm)) {
                Some(whole) => whole,
                // The program chose a name: `node` calls its first thread one.
                None if argv.first().is_some_and(|word| names(word).contains(&exec)) => exec,
                None => comm,
            }
        }
        None => {
            let first = argv.first().filter(|word| last(word) != exec);
            first.map(|word| first_word(word)).filter(|word| !word.is_empty()).unwrap_or(exec)
        }
    };
    if name == exec { String::new() } else { name.to_owned() }
}

/// Whether `comm` is the kernel's shortened form of `name`.
pub(crate) fn is_cut(name: &[u8], comm: &[u8]) -> bool {
    name == comm || (comm.len() == COMM && name.starts_with(comm))
}

/// The names that an argument may have: one with spaces in it, or that of a title.
fn names(word: &str) -> [&str; 2] {
    [last(word), first_word(word)]
}

/// The last component of a path, without a login shell's dash.
fn last(word: &str) -> &str {
    let name = basename(word);
    name.strip_prefix('-').unwrap_or(name)
}

/// That of a process title, which has more behind it.
fn first_word(word: &str) -> &str {
    last(word.split_ascii_whitespace().next().unwrap_or_default())
}

/// Puts an image's calls in the record's order: most time first, then by name.
pub(crate) fn sort_calls(calls: &mut [Call]) {
    calls.sort_by(|a, b| b.wall_ns.cmp(&a.wall_ns).then_with(|| a.syscall.cmp(&b.syscall)));
}

/// The last component of a path.
pub(crate) fn basename(path: &str) -> &str {
    path.rsplit('/').find(|component| !component.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_stands_behind_its_directory() {
        assert_eq!(join(Some("/etc"), "/usr/x"), "/usr/x");
        assert_eq!(join(Some("/etc"), "x/../y"), "/etc/x/../y");
        assert_eq!(join(Some("/"), ".//x"), "/x");
        assert_eq!(join(Some("/etc"), ""), "/etc");
        assert_eq!(join(Some("/etc"), "./."), "/etc");
        assert_eq!(join(None, "./x"), "./x");
    }

    #[test]
    fn a_program_is_called_what_its_user_calls_it() {
        let called = |exec: &str, comm: &str, argv: &[&str]| {
            let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
            super::called(exec, Some(comm).filter(|comm| !comm.is_empty()), &argv)
        };
        // Attached to: the link, the script, the worker, the one that chose a name.
        let redis = ["/usr/bin/redis-server *:6379"];
        assert_eq!(called("redis-check-rdb", "redis-server", &redis), "redis-server");
        assert_eq!(called("python3.11", "python3", &["python3", "-m", "http.server"]), "python3");
        assert_eq!(
            called("python3.11", "serve.py", &["/usr/bin/python3", "./serve.py"]),
            "serve.py"
        );
        assert_eq!(called("busybox", "sh", &["sh", "-c", "read x"]), "sh");
        assert_eq!(called("node", "MainThread", &["node", "x.js"]), "");
        assert_eq!(called("postgres", "postgres", &["postgres: checkpointer"]), "");
        assert_eq!(called("bash", "bash", &["-bash"]), "");
        assert_eq!(
            called("python3.11", "a-script-with-a", &["p", "/x/a-script-with-a-name"]),
            "a-script-with-a-name"
        );
        // Cut inside a letter.
        assert_eq!(called("проверка", "проверк\\xd0", &["x"]), "");
        assert_eq!(called("chrome", "Renderer", &["/opt/chrome/chrome-bin"]), "Renderer");
        // Seen to execute a file of many programs, or through a descriptor.
        assert_eq!(called("busybox", "", &["ls", "-l"]), "ls");
        assert_eq!(called("bash", "", &["-bash"]), "");
        assert_eq!(called("true", "", &[]), "");
        assert_eq!(called("true", "", &[""]), "");
        assert_eq!(called("node", "MainThread", &["/usr/bin/node --require /x/y"]), "");
    }

    #[test]
    fn a_name_with_blanks_is_whole() {
        for name in ["a\nb c", "a\tb", "a b", " a", "a "] {
            let argv = [format!("./in here/{name}"), "-x".to_owned()];
            assert_eq!(super::called(name, None, &argv), "", "{name:?}");
            assert_eq!(super::called(name, Some(name), &argv), "", "{name:?}");
            // A link to it, and its cut name.
            assert_eq!(super::called("busybox", Some(name), &argv), name);
            let long = format!("{name} of more than fifteen bytes");
            let argv = [format!("./{long}")];
            assert_eq!(super::called("busybox", Some(&long[..15]), &argv), long);
        }
    }

    #[test]
    fn images_of_one_name_in_one_process_are_numbered() {
        let images = [(7, "sh"), (7, "python3"), (8, "python3"), (7, "python3"), (7, "ls")];
        assert_eq!(numbers(&images), [0, 1, 0, 2, 0]);
    }
}
