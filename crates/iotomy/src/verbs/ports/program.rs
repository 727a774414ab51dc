//! Whether a program loads the libraries that it is told to.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iotomy_sys::launch::find_program;

use super::file_name;

/// How many scripts may be each other's interpreters: more than the kernel allows.
const SCRIPTS: usize = 6;

/// As much of a file as is looked at: its headers, or the first line of a script.
const START: u64 = 64 * 1024;

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const EXECUTABLE_BY_GROUP: u32 = 0o10;

/// Why a program would not load the library; `None`: nothing is known against it.
pub(super) fn loads_nothing(program: &Path) -> Option<String> {
    let mut program = program.to_owned();
    for _ in 0..SCRIPTS {
        let name = file_name(&program);
        if is_of_another(&program) {
            return Some(format!(
                "{name} runs as another user or group, and the dynamic linker trusts no other's libraries then"
            ));
        }
        let mut start = Vec::new();
        File::open(&program).ok()?.take(START).read_to_end(&mut start).ok()?;
        if let Some(interpreter) = interpreter(&start) {
            program = interpreter;
            continue;
        }
        return Elf::read(&start)?.reason(&name);
    }
    None
}

/// Whether it runs as another user or group than it is started by.
fn is_of_another(program: &Path) -> bool {
    let Ok(file) = program.metadata() else { return false };
    let changes_user =
        file.mode() & SET_USER_ID != 0 && file.uid() != rustix::process::geteuid().as_raw();
    // Without the right to execute, the bit once meant locks.
    let both = SET_GROUP_ID | EXECUTABLE_BY_GROUP;
    changes_user || file.mode() & both == both && file.gid() != rustix::process::getegid().as_raw()
}

/// The interpreter of a script; of `env`, the program that it looks for.
fn interpreter(start: &[u8]) -> Option<PathBuf> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty());
    let first = Path::new(std::ffi::OsStr::from_bytes(words.next()?));
    let is_env = first.file_name().is_some_and(|name| name == "env");
    let named = words.find(|word| !word.starts_with(b"-")).filter(|_| is_env);
    let found = named.and_then(|name| {
        find_program(std::ffi::OsStr::from_bytes(name), std::env::var_os("PATH").as_deref()).ok()
    });
    Some(found.unwrap_or_else(|| first.to_owned()))
}

/// What an ELF file says in its headers.
struct Elf {
    is_ours: bool,
    has_linker: bool,
}

impl Elf {
    const MAGIC: &[u8] = b"\x7fELF";
    const OF_64_BITS: u8 = 2;
    /// `PT_INTERP`: the dynamic linker's name.
    const LINKER: u32 = 3;

    /// `None`: it is not an ELF file, or its headers lie beyond what was read.
    fn read(start: &[u8]) -> Option<Self> {
        let half = |at: usize| Some(u16::from_le_bytes(start.get(at..at + 2)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_le_bytes(start.get(at..at + 4)?.try_into().ok()?));
        if !start.starts_with(Self::MAGIC) {
            return None;
        }
        let own = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        if *start.get(4)? != Self::OF_64_BITS || half(18)? != own {
            return Some(Self { is_ours: false, has_linker: true });
        }
        // Below 4 GiB, or it is not in what was read.
        let (headers, size, count) = (word(32)? as usize, half(54)?, half(56)?);
        let mut has_linker = false;
        for number in 0..usize::from(count) {
            has_linker |= word(headers + number * usize::from(size))? == Self::LINKER;
        }
        Some(Self { is_ours: true, has_linker })
    }

    fn reason(&self, name: &str) -> Option<String> {
        match self {
            Self { is_ours: false, .. } => {
                Some(format!("{name} is a program for another kind of processor than the library"))
            }
            Self { has_linker: false, .. } => Some(format!(
                "{name} is linked statically, so it loads no library; link it with libiotomy-ports.a"
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(class: u8, machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 * kinds.len()];
        bytes[..4].copy_from_slice(Elf::MAGIC);
        bytes[4] = class;
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = kinds.len() as u8;
        for (number, kind) in kinds.iter().enumerate() {
            bytes[64 + 56 * number..][..4].copy_from_slice(&kind.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn programs_are_told_apart_by_their_headers() {
        let own = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        let reason = |bytes: &[u8]| Elf::read(bytes).map(|elf| elf.reason("it"));
        assert_eq!(reason(&elf(2, own, &[6, 3, 1])), Some(None));
        assert!(reason(&elf(2, own, &[1, 1])).unwrap().unwrap().contains("statically"));
        assert!(reason(&elf(1, 3, &[3])).unwrap().unwrap().contains("another kind"));
        // Cut short, and no such file.
        assert_eq!(reason(&elf(2, own, &[1, 3])[..100]), None);
        assert_eq!(reason(b"MZ"), None);
        assert_eq!(reason(b"\x7fELF"), None);
    }

    #[test]
    fn a_script_is_what_interprets_it() {
        let of = |line: &str| interpreter(line.as_bytes());
        assert_eq!(of("#! /bin/sh -e\nexit"), Some("/bin/sh".into()));
        assert_eq!(of("#!/usr/bin/env -S no-such-program-here x\n"), Some("/usr/bin/env".into()));
        assert_eq!(of("echo"), None);
        assert!(of("#!/usr/bin/env sh\n").unwrap().ends_with("sh"));
    }
}
