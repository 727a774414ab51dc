//! `ioctl(FS_IOC_FIEMAP)`, which no library wraps: where on the disk a file's bytes are.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Flags of an extent whose place is unknown, not yet chosen, or not its own:
/// `FIEMAP_EXTENT_UNKNOWN`, `_DELALLOC`, `_DATA_INLINE`.
const NO_PLACE: u32 = 0x2 | 0x4 | 0x200;

/// `FIEMAP_EXTENT_ENCODED`: compressed or encrypted, so that its place is that of its start.
const ENCODED: u32 = 0x8;

/// As `struct fiemap_extent` of `linux/fiemap.h`.
#[repr(C)]
#[derive(Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// As `struct fiemap`, with room for one extent.
#[repr(C)]
#[derive(Default)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extent: Extent,
}

/// The size in the request's number: `struct fiemap` without extents.
const HEADER: usize = size_of::<Request>() - size_of::<Extent>();

/// Where the first byte that a file has on the disk among `length` from offset `from` on is: how far
/// behind `from` it is, and its place on the disk, in bytes; of an encoded extent the place of its
/// beginning, and 0 where it has no place of its own or none yet. `None` when there is nothing but a
/// hole.
///
/// # Errors
/// As the file system: `EOPNOTSUPP` from those without this information.
pub fn first_place(fd: BorrowedFd<'_>, from: u64, length: u64) -> io::Result<Option<(u64, u64)>> {
    let mut request = Request { start: from, length, extent_count: 1, ..Request::default() };
    let number = libc::_IOWR::<[u8; HEADER]>(u32::from(b'f'), 11);
    // SAFETY: the kernel reads and writes one `struct fiemap` with room for the one extent asked for.
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), number, &raw mut request) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    let Extent { logical, physical, flags, .. } = request.extent;
    if request.mapped_extents == 0 {
        return Ok(None);
    }
    let behind = logical.saturating_sub(from);
    if flags & NO_PLACE != 0 {
        return Ok(Some((behind, 0)));
    }
    let into = if flags & ENCODED == 0 { from.saturating_sub(logical) } else { 0 };
    Ok(Some((behind, physical + into)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_request_has_the_number_and_the_size_of_the_kernels_header() {
        assert_eq!((HEADER, size_of::<Extent>()), (32, 56));
        assert_eq!(libc::_IOWR::<[u8; HEADER]>(u32::from(b'f'), 11), 0xc020_660b);
    }

    #[test]
    fn a_file_at_rest_has_a_place_and_nothing_behind_its_end() {
        let path = std::env::current_exe().expect("a path");
        let file = std::fs::File::open(path).expect("this program");
        file.sync_all().expect("a place for everything");
        let length = file.metadata().expect("a size").len();
        // Some file systems have no such information.
        if let Ok(place) = first_place(file.as_fd(), 0, length) {
            assert!(place.is_some_and(|(behind, at)| behind == 0 && at > 0), "{place:?}");
            // The last block is in the last extent, which has a place like others.
            let last = (length - 1) / 4096 * 4096;
            let place = first_place(file.as_fd(), last, 4096).expect("an answer");
            assert!(place.is_some_and(|(behind, at)| behind == 0 && at > 0), "{place:?}");
            let ends = first_place(file.as_fd(), last, 4096).expect("an answer");
            assert_eq!(place.map(|(_, at)| at == 0), ends.map(|(_, at)| at == 0));
            let end = length.next_multiple_of(1 << 20);
            assert_eq!(first_place(file.as_fd(), end, 4096).expect("an answer"), None);
        }
    }
}
