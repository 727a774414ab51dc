//! Names of functions in mapped files, by the files' own tables of symbols.
//!
//! The files are read after the watch. Any may be gone, be another by now or hold anything: then its
//! functions have no names. Nothing but regular files is opened.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};

/// Functions of the files asked after so far.
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
}

impl UserSymbols {
    /// The function at `offset` of the file `path`, if that is still the file of this inode.
    pub(crate) fn name(&mut self, path: &str, inode: u64, offset: u64) -> Option<String> {
        let key = (path.to_owned(), inode);
        let file = self.files.entry(key).or_insert_with(|| read(path, inode));
        file.as_ref()?.name(offset)
    }
}

impl Functions {
    fn name(&self, offset: u64) -> Option<String> {
        let inside = |(start, bytes, _): &&(u64, u64, u64)| {
            offset.checked_sub(*start).is_some_and(|at| at < *bytes)
        };
        let (start, _, address) = self.segments.iter().find(inside)?;
        let address = address.wrapping_add(offset - start);
        let behind = self.symbols.partition_point(|(start, ..)| *start <= address);
        let (start, bytes, name) = self.symbols.get(behind.checked_sub(1)?)?;
        (address - start < *bytes).then(|| name.clone())
    }
}

fn read(path: &str, inode: u64) -> Option<Functions> {
    // Not blocking: what was a file may be a pipe by now.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.ino() != inode {
        return None;
    }
    let cache = ReadCache::new(file);
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
    Some(Functions { segments, symbols })
}

/// What a mapped file is to a program: itself, the C library, the loader, another library.
pub(crate) fn layer(path: &str) -> String {
    let name = crate::basename(path);
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
    use super::*;

    fn inode(path: &std::path::Path) -> u64 {
        std::fs::metadata(path).unwrap().ino()
    }

    /// Makes a file of a program with some of its bytes changed, and asks for functions all over it.
    fn ask(bytes: &[u8]) -> usize {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut symbols = UserSymbols::default();
        let path = file.path().to_str().unwrap();
        let at = inode(file.path());
        (0..bytes.len() as u64 + 4096).step_by(64).filter_map(|o| symbols.name(path, at, o)).count()
    }

    #[test]
    fn a_damaged_program_has_fewer_names_and_does_no_harm() {
        let library =
            std::fs::read_dir("/usr/lib/x86_64-linux-gnu").into_iter().flatten().flatten();
        let library = library.map(|entry| entry.path()).find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libm.so.6"))
        });
        let Some(whole) = library.and_then(|path| std::fs::read(path).ok()) else { return };
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
    fn files_are_told_apart_by_what_they_are_to_a_program() {
        assert_eq!(layer("/usr/lib/x86_64-linux-gnu/libc.so.6"), "libc");
        assert_eq!(layer("/lib/ld-musl-x86_64.so.1"), "libc");
        assert_eq!(layer("/lib64/ld-linux-x86-64.so.2"), "dynamic linker");
        assert_eq!(layer("/usr/lib/libz.so.1.3"), "library libz.so.1.3");
        assert_eq!(layer("/usr/bin/dd"), "program");
    }
}
