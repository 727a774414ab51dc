//! Names of functions in mapped files, by the files' own tables of symbols.
//!
//! The files are read after the watch. Any may be gone, be another by now or hold anything: then its
//! functions have no names.

use std::collections::HashMap;
use std::os::unix::fs::FileExt;

use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};

use crate::mapped_file::open;

/// The functions of the files looked up so far.
#[derive(Default)]
pub(crate) struct UserSymbols {
    files: HashMap<(String, u64), Option<Functions>>,
}

/// Where a file's code goes, and its functions.
struct Functions {
    /// (offset in the file, bytes, address).
    segments: Vec<(u64, u64, u64)>,
    /// (address, bytes, name), by address.
    symbols: Vec<(u64, u64, String)>,
    /// By the offset that was looked up.
    framed: HashMap<u64, FrameKept>,
}

impl UserSymbols {
    /// The function at `offset` of the file `path`, if that is still the file of this inode.
    pub(crate) fn name(&mut self, path: &str, inode: u64, offset: u64) -> Option<String> {
        let (_, name) = self.functions(path, inode)?.around(offset)?;
        Some(name.to_owned())
    }

    /// The same, and how far into the function the offset is.
    pub(crate) fn place(&mut self, path: &str, inode: u64, offset: u64) -> Option<(String, u64)> {
        let (start, name) = self.functions(path, inode)?.around(offset)?;
        Some((name.to_owned(), offset - start))
    }

    /// The frame that the function at `offset` has set up by then; `None` where that is unknown.
    pub(crate) fn frame(&mut self, path: &str, inode: u64, offset: u64) -> Option<FrameKept> {
        let functions = self.functions(path, inode)?;
        if let Some(known) = functions.framed.get(&offset) {
            return Some(*known);
        }
        let (start, _) = functions.around(offset)?;
        let mut code = vec![0; usize::try_from(offset - start).ok()?.min(LONGEST_BEGINNING)];
        open(path, inode)?.read_exact_at(&mut code, start).ok()?;
        let frame = frame_of(&code);
        functions.framed.insert(offset, frame);
        Some(frame)
    }

    fn functions(&mut self, path: &str, inode: u64) -> Option<&mut Functions> {
        let key = (path.to_owned(), inode);
        self.files.entry(key).or_insert_with(|| read(path, inode)).as_mut()
    }
}

/// The bytes of a function that are searched for its frame.
const LONGEST_BEGINNING: usize = 4096;

/// The effect of a function on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKept {
    /// It has a frame pointer of its own: a walk along these meets its caller.
    Linked,
    /// None, but it may have put something on the stack.
    Unlinked,
    /// None, and the stack is as its caller left it: where it returns to is on top.
    Bare,
}

/// By its instructions so far. They are not decoded: that `mov %rsp, %rbp`, in either of its encodings,
/// is part of others is improbable enough; a byte that may be a push, or three that may move the stack
/// pointer, are taken for that.
fn frame_of(code: &[u8]) -> FrameKept {
    let is_set = |bytes: &[u8]| matches!(bytes, [0x48, 0x89, 0xe5] | [0x48, 0x8b, 0xec]);
    let is_moved = |bytes: &[u8]| matches!(bytes, [0x48, 0x83 | 0x81, 0xec | 0xc4]);
    if code.windows(3).any(is_set) {
        FrameKept::Linked
    } else if code.iter().any(|byte| (0x50..=0x57).contains(byte)) || code.windows(3).any(is_moved)
    {
        FrameKept::Unlinked
    } else {
        FrameKept::Bare
    }
}

impl Functions {
    /// The function at an offset: where it begins in the file, and its name.
    fn around(&self, offset: u64) -> Option<(u64, &str)> {
        let inside = |(start, bytes, _): &&(u64, u64, u64)| {
            offset.checked_sub(*start).is_some_and(|at| at < *bytes)
        };
        let (start, _, address) = self.segments.iter().find(inside)?;
        let address = address.wrapping_add(offset - start);
        let behind = self.symbols.partition_point(|(start, ..)| *start <= address);
        let (start, bytes, name) = self.symbols.get(behind.checked_sub(1)?)?;
        let from_start = address - start;
        (from_start < *bytes && from_start <= offset).then(|| (offset - from_start, name.as_str()))
    }
}

fn read(path: &str, inode: u64) -> Option<Functions> {
    let cache = ReadCache::new(open(path, inode)?);
    let image = object::File::parse(&cache).ok()?;
    let segments = image.segments().map(|segment| {
        let (start, bytes) = segment.file_range();
        (start, bytes, segment.address())
    });
    let segments = segments.collect();
    let mut symbols: Vec<(u64, u64, String)> = Vec::new();
    for symbol in image.symbols().chain(image.dynamic_symbols()) {
        if symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.size() > 0 {
            let name = String::from_utf8_lossy(symbol.name_bytes().unwrap_or_default());
            let name = format!("{:#}", rustc_demangle::demangle(&name));
            symbols.push((symbol.address(), symbol.size(), name));
        }
    }
    symbols.sort();
    Some(Functions { segments, symbols, framed: HashMap::new() })
}

/// The role of a mapped file for a program: the program itself, the C library, the loader, another
/// library.
pub(crate) fn layer(path: &str) -> String {
    let name = crate::naming::basename(path);
    let is = |start: &str| name.starts_with(start);
    if is("libc.so") || is("libc-2.") || is("ld-musl-") || is("libc.musl-") {
        "libc".to_owned()
    } else if is("ld-linux") || is("ld-2.") || is("ld.so") {
        "dynamic linker".to_owned()
    } else if name.ends_with(".so") || name.contains(".so.") {
        format!("library {name}")
    } else {
        "program".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn inode(path: &std::path::Path) -> u64 {
        std::fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn a_file_whose_name_is_no_utf8_has_its_functions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(OsStr::from_bytes(b"a\xff"));
        std::fs::copy("/proc/self/exe", &path).unwrap();
        let name = iotomy_record::lossless(path.as_os_str().as_bytes());
        assert!(name.ends_with("/a\\xff"), "{name}");
        assert!(read(&name, inode(&path)).is_some());
    }

    /// Creates a program file with some changed bytes, and looks up functions throughout it.
    fn ask(bytes: &[u8]) -> usize {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut symbols = UserSymbols::default();
        let path = file.path().to_str().unwrap();
        let at = inode(file.path());
        let offsets = (0..bytes.len() as u64 + 4096).step_by(64);
        offsets.clone().for_each(|o| _ = symbols.frame(path, at, o));
        offsets.filter_map(|o| symbols.name(path, at, o)).count()
    }

    #[test]
    fn a_damaged_program_has_fewer_names_and_does_no_harm() {
        let library =
            std::fs::read_dir("/usr/lib/x86_64-linux-gnu").into_iter().flatten().flatten();
        let library = library.map(|entry| entry.path()).find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libm.so.6"))
        });
        let Some(whole) = library.and_then(|path| std::fs::read(path).ok()) else {
            return iotomy_test_requirements::skip(
                iotomy_test_requirements::Need::Machine,
                "there is no libm.so.6",
            );
        };
        assert!(ask(&whole) > 0);
        for part in [0, 3, 64, 500, 5_000, whole.len() / 2] {
            ask(&whole[..part]);
        }
        for step in [7usize, 64, 1_001] {
            let mut damaged = whole.clone();
            damaged.iter_mut().skip(16).step_by(step).for_each(|byte| *byte = !*byte);
            ask(&damaged);
        }
    }

    #[test]
    fn what_is_another_file_by_now_or_none_has_no_names() {
        let mut symbols = UserSymbols::default();
        assert_eq!(symbols.name("/nope", 1, 0), None);
        assert_eq!(symbols.name("/dev/zero", inode("/dev/zero".as_ref()), 0), None);
        let own = std::env::current_exe().unwrap();
        assert_eq!(symbols.name(own.to_str().unwrap(), inode(&own) + 1, 4096), None);
    }

    #[test]
    fn what_a_function_has_done_to_the_stack_is_told_by_its_code() {
        // endbr64; push %rbp; xor %eax, %eax; mov %rsp, %rbp
        let linked = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5];
        assert_eq!(frame_of(&linked), FrameKept::Linked);
        assert_eq!(frame_of(&linked[..5]), FrameKept::Unlinked);
        // sub $0x78, %rsp
        assert_eq!(frame_of(&[0x48, 0x83, 0xec, 0x78]), FrameKept::Unlinked);
        // mov $110, %eax; syscall
        assert_eq!(frame_of(&[0xb8, 0x6e, 0, 0, 0, 0x0f, 0x05]), FrameKept::Bare);
        assert_eq!(frame_of(&[]), FrameKept::Bare);
    }

    #[test]
    fn files_are_told_apart_by_what_they_are_to_a_program() {
        assert_eq!(layer("/usr/lib/x86_64-linux-gnu/libc.so.6"), "libc");
        assert_eq!(layer("/lib/ld-musl-x86_64.so.1"), "libc");
        assert_eq!(layer("/lib64/ld-linux-x86-64.so.2"), "dynamic linker");
        assert_eq!(layer("/usr/lib/libz.so.1.3"), "library libz.so.1.3");
        assert_eq!(layer("/usr/bin/dd"), "program");
    }
}
