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
