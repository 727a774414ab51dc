//! The files that are mapped into processes, opened to be read: any may be gone, be another by now or hold anything.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

use iotomy_record::bytes_of;
use rustix::fs::MemfdFlags;

/// In place of a path: the code that the kernel maps into each process, which is the same in all of them.
pub(crate) const VDSO: &str = "[vdso]";

/// A larger file is not looked into: it may say that its tables are as large as it is.
const LARGEST: u64 = 2 << 30;

/// The file, if that is still the one of this inode; nothing but regular files is opened.
pub(crate) fn open(path: &str, inode: u64) -> Option<File> {
    if path == VDSO {
        return vdso();
    }
    // Non-blocking: the file may have become a pipe.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file = File::options();
    file.read(true).custom_flags(flags);
    let file = file.open(OsStr::from_bytes(&bytes_of(path))).ok()?;
    let metadata = file.metadata().ok()?;
    let is_it = metadata.is_file() && metadata.ino() == inode && metadata.len() <= LARGEST;
    is_it.then_some(file)
}

/// A copy of what is mapped into this process.
fn vdso() -> Option<File> {
    let maps = iotomy_host::kernel_text("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(VDSO))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    let mut file = File::from(rustix::fs::memfd_create("vdso", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(&bytes).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_the_kernel_in_each_process_is_a_file_with_symbols() {
        use object::{Object, ObjectSymbol};
        let Some(file) = open(VDSO, 0) else {
            return iotomy_test_requirements::skip(
                iotomy_test_requirements::Need::Machine,
                "this kernel maps no code into processes",
            );
        };
        let cache = object::ReadCache::new(file);
        let image = object::File::parse(&cache).unwrap();
        let names: Vec<_> = image.dynamic_symbols().map(|symbol| symbol.name().unwrap()).collect();
        assert!(names.contains(&"__vdso_clock_gettime"), "{names:?}");
        assert!(image.section_by_name(".eh_frame").is_some());
    }
}
