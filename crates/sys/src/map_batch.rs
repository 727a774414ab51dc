//! Batched look-ups and deletions in a BPF hash map: `bpf(2)` with `BPF_MAP_LOOKUP_BATCH` and
//! `BPF_MAP_DELETE_BATCH` (Linux 5.6).
//!
//! The kernel returns whole buckets: a batch may be shorter than requested in the middle of a map,
//! and only ENOENT means its end. A bucket that is longer than a whole batch is ENOSPC, and needs a
//! larger batch. Entries that others add or delete meanwhile may or may not be seen; every other
//! entry is seen exactly once.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_DELETE_ELEM: libc::c_int = 3;
const BPF_MAP_GET_NEXT_KEY: libc::c_int = 4;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const BPF_MAP_LOOKUP_BATCH: libc::c_int = 24;
const BPF_MAP_DELETE_BATCH: libc::c_int = 27;

const BPF_MAP_TYPE_HASH: u32 = 1;
const BPF_MAP_TYPE_LRU_HASH: u32 = 9;

/// The number of entries requested at once, at first.
const BATCH: usize = 256;

/// The part of `union bpf_attr` that the batch commands use.
#[repr(C)]
#[derive(Default)]
struct BatchAttributes {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

/// The beginning of `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    kind: u32,
    id: u32,
    key_bytes: u32,
    value_bytes: u32,
}

/// The part of `union bpf_attr` that `BPF_OBJ_GET_INFO_BY_FD` uses.
#[repr(C)]
struct InfoAttributes {
    map_fd: u32,
    info_bytes: u32,
    info: u64,
}

/// The part of `union bpf_attr` that the commands for one entry use.
#[repr(C)]
#[derive(Default)]
struct EntryAttributes {
    map_fd: u64,
    key: u64,
    value: u64,
    flags: u64,
}

/// Shows every entry of a hash map to `visit`, as its key and value, and deletes those for which it
/// returns true. Where the kernel refuses batches, entry by entry.
///
/// # Errors
/// The kernel's error, as when the descriptor is not a hash map that all CPUs share.
pub fn visit_entries(
    map: BorrowedFd<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> bool,
) -> io::Result<()> {
    let (key_bytes, value_bytes) = sizes(map)?;
    let mut capacity = BATCH;
    let mut keys = vec![0; capacity * key_bytes];
    let mut values = vec![0; capacity * value_bytes];
    let mut position: Option<u64> = None;
    let mut deleted = Vec::new();
    loop {
        let batch = lookup_batch(map, &mut position, capacity, &mut keys, &mut values);
        let (count, at_end) = match batch {
            Ok(batch) => batch,
            Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                capacity *= 2;
                keys.resize(capacity * key_bytes, 0);
                values.resize(capacity * value_bytes, 0);
                continue;
            }
            Err(_) if position.is_none() => return visit_singly(map, visit),
            Err(error) => return Err(error),
        };
        deleted.clear();
        let entries = keys.chunks_exact(key_bytes).zip(values.chunks_exact(value_bytes));
        for (key, value) in entries.take(count) {
            if visit(key, value) {
                deleted.extend_from_slice(key);
            }
        }
        delete_batch(map, key_bytes, &deleted)?;
        if at_end {
            return Ok(());
        }
    }
}

/// The same, a call of the kernel's an entry. Entries that others add meanwhile may not be seen.
///
/// # Errors
/// As [`visit_entries`].
pub fn visit_singly(
    map: BorrowedFd<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> bool,
) -> io::Result<()> {
    let (key_bytes, value_bytes) = sizes(map)?;
    let mut value = vec![0; value_bytes];
    for mut key in keys(map, key_bytes)? {
        let found = entry(BPF_MAP_LOOKUP_ELEM, map, Some(&mut key), &mut value)?;
        if found && visit(&key, &value) {
            entry(BPF_MAP_DELETE_ELEM, map, Some(&mut key), &mut [])?;
        }
    }
    Ok(())
}

/// All keys. The kernel begins again where one has been deleted meanwhile, so they may come again.
fn keys(map: BorrowedFd<'_>, key_bytes: usize) -> io::Result<Vec<Vec<u8>>> {
    /// Most times that all of them come again.
    const TIMES: usize = 8;
    let mut seen = HashSet::new();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut repeated = 0;
    let mut last: Option<Vec<u8>> = None;
    let mut next = vec![0; key_bytes];
    while repeated <= TIMES * (keys.len() + 1)
        && entry(BPF_MAP_GET_NEXT_KEY, map, last.as_deref_mut(), &mut next)?
    {
        match seen.insert(next.clone()) {
            true => keys.push(next.clone()),
            false => repeated += 1,
        }
        last = Some(next.clone());
    }
    Ok(keys)
}

/// A command for one entry; whether there is such. The second buffer is as long as the command writes.
fn entry(
    command: libc::c_int,
    map: BorrowedFd<'_>,
    key: Option<&mut [u8]>,
    value: &mut [u8],
) -> io::Result<bool> {
    let mut attributes = EntryAttributes {
        map_fd: map.as_raw_fd().cast_unsigned().into(),
        key: key.map_or(0, |key| key.as_mut_ptr().expose_provenance() as u64),
        // The kernel refuses what a command does not use.
        value: if value.is_empty() { 0 } else { value.as_mut_ptr().expose_provenance() as u64 },
        ..EntryAttributes::default()
    };
    // SAFETY: the key is none, or of the map's own size, which `sizes` asked for; the other buffer has as many
    // bytes as the command writes, a value or a key, and nobody else reads or writes them during the call.
    match unsafe { bpf(command, &mut attributes) } {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The bytes of a key and of a value of a hash map. Of other maps the batch commands need other buffers: one by CPU
/// has a value for each.
fn sizes(map: BorrowedFd<'_>) -> io::Result<(usize, usize)> {
    let mut info = MapInfo::default();
    let mut attributes = InfoAttributes {
        map_fd: map.as_raw_fd().cast_unsigned(),
        info_bytes: size_of::<MapInfo>() as u32,
        info: std::ptr::from_mut(&mut info).expose_provenance() as u64,
    };
    // SAFETY: the kernel writes as many bytes into `info` as are stated.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attributes) }?;
    match (info.kind, info.key_bytes, info.value_bytes) {
        (BPF_MAP_TYPE_HASH | BPF_MAP_TYPE_LRU_HASH, 1.., 1..) => {
            Ok((info.key_bytes as usize, info.value_bytes as usize))
        }
        _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}

/// Reads the next batch: how many entries it has, and whether the map ends with it. The caller's
/// buffers hold `capacity` keys and values.
fn lookup_batch(
    map: BorrowedFd<'_>,
    position: &mut Option<u64>,
    capacity: usize,
    keys: &mut [u8],
    values: &mut [u8],
) -> io::Result<(usize, bool)> {
    let before = position.unwrap_or_default();
    // The kernel writes a u32 for a hash map; a u64 has room for other map types.
    let mut after = 0u64;
    let mut attributes = BatchAttributes {
        in_batch: position.map_or(0, |_| std::ptr::from_ref(&before).expose_provenance() as u64),
        out_batch: std::ptr::from_mut(&mut after).expose_provenance() as u64,
        keys: keys.as_mut_ptr().expose_provenance() as u64,
        values: values.as_mut_ptr().expose_provenance() as u64,
        count: u32::try_from(capacity).unwrap_or(u32::MAX),
        map_fd: map.as_raw_fd().cast_unsigned(),
        ..BatchAttributes::default()
    };
    // SAFETY: in_batch and out_batch are null or hold 8 bytes, more than the u32 of a hash map. `keys`
    // and `values` hold `count` entries of the map's own sizes, which `sizes` asked for, and nobody else
    // reads or writes them during the call.
    let result = unsafe { bpf(BPF_MAP_LOOKUP_BATCH, &mut attributes) };
    let at_end = match result {
        Ok(()) => false,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
        Err(error) => return Err(error),
    };
    *position = Some(after);
    Ok((attributes.count as usize, at_end))
}

/// Deletes entries; those that are gone already are none the worse.
fn delete_batch(map: BorrowedFd<'_>, key_bytes: usize, mut keys: &[u8]) -> io::Result<()> {
    while !keys.is_empty() {
        let mut attributes = BatchAttributes {
            keys: keys.as_ptr().expose_provenance() as u64,
            count: u32::try_from(keys.len() / key_bytes).unwrap_or(u32::MAX),
            map_fd: map.as_raw_fd().cast_unsigned(),
            ..BatchAttributes::default()
        };
        // SAFETY: the kernel reads `count` keys of `key_bytes` from `keys`, which has as many, and
        // writes nothing but the attributes.
        match unsafe { bpf(BPF_MAP_DELETE_BATCH, &mut attributes) } {
            Ok(()) => return Ok(()),
            // The key behind those that were deleted is not there.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                let done = (attributes.count as usize + 1) * key_bytes;
                keys = keys.get(done..).unwrap_or_default();
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// # Safety
/// The memory that `attributes` points to must be as `command` requires.
unsafe fn bpf<A>(command: libc::c_int, attributes: &mut A) -> io::Result<()> {
    // SAFETY: `attributes` may be read and written for its size; the caller vouches for the rest.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<A>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

    use super::*;

    const BPF_MAP_CREATE: libc::c_int = 0;
    const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
    const BPF_MAP_TYPE_ARRAY: u32 = 2;
    const BPF_MAP_TYPE_PERCPU_HASH: u32 = 5;

    /// An empty map of u32 to u64; `None` where BPF is refused.
    fn map(kind: u32, entries: u32) -> Option<OwnedFd> {
        let attributes = [kind, 4, 8, entries.max(1), 0];
        // SAFETY: the kernel reads as many bytes of `attributes` as are stated.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                BPF_MAP_CREATE,
                attributes.as_ptr(),
                size_of_val(&attributes),
            )
        };
        let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: the kernel just made the descriptor and nobody else owns it.
        Some(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// A hash map with `entries` entries, each twice its key.
    fn map_of(entries: u32) -> Option<OwnedFd> {
        let map = map(BPF_MAP_TYPE_HASH, entries)?;
        let fd = map.as_raw_fd();
        for key in 0..entries {
            let value = u64::from(key) * 2;
            let attributes = [
                u64::from(fd.cast_unsigned()),
                std::ptr::from_ref(&key).expose_provenance() as u64,
                std::ptr::from_ref(&value).expose_provenance() as u64,
                0,
            ];
            // SAFETY: `attributes` leads to a key of 4 bytes and a value of 8, both alive here.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_bpf,
                    BPF_MAP_UPDATE_ELEM,
                    attributes.as_ptr(),
                    size_of_val(&attributes),
                )
            };
            assert_eq!(result, 0, "{}", io::Error::last_os_error());
        }
        Some(map)
    }

    fn keys_of(map: &OwnedFd, delete: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut seen = Vec::new();
        visit_entries(map.as_fd(), |key, value| {
            let key = u32::from_ne_bytes(key.try_into().unwrap());
            assert_eq!(u64::from_ne_bytes(value.try_into().unwrap()), u64::from(key) * 2);
            seen.push(key);
            delete(key)
        })
        .unwrap();
        seen
    }

    #[test]
    fn every_entry_is_visited_once_and_those_that_are_wanted_gone_are() {
        // None, fewer than a batch, a batch, and several that end in the middle of one.
        for entries in [0, 7, 256, 5_003] {
            let Some(map) = map_of(entries) else {
                let reason = "this process may not make a BPF map";
                return iotomy_test_requirements::skip(iotomy_test_requirements::Need::Bpf, reason);
            };
            let seen = keys_of(&map, |key| key % 3 == 0);
            assert_eq!(seen.len(), entries as usize);
            assert_eq!(BTreeSet::from_iter(seen), (0..entries).collect());
            let left = BTreeSet::from_iter(keys_of(&map, |_| true));
            assert_eq!(left, (0..entries).filter(|key| key % 3 != 0).collect());
            assert!(keys_of(&map, |_| true).is_empty());
        }
    }

    #[test]
    fn entry_by_entry_as_many_are_visited_and_deleted() {
        for entries in [0, 7, 5_003] {
            let Some(map) = map_of(entries) else {
                let reason = "this process may not make a BPF map";
                return iotomy_test_requirements::skip(iotomy_test_requirements::Need::Bpf, reason);
            };
            let mut seen = BTreeSet::new();
            visit_singly(map.as_fd(), |key, value| {
                let key = u32::from_ne_bytes(key.try_into().unwrap());
                assert_eq!(u64::from_ne_bytes(value.try_into().unwrap()), u64::from(key) * 2);
                assert!(seen.insert(key));
                key % 3 == 0
            })
            .unwrap();
            assert_eq!(seen, (0..entries).collect());
            let left = BTreeSet::from_iter(keys_of(&map, |_| false));
            assert_eq!(left, (0..entries).filter(|key| key % 3 != 0).collect());
        }
    }

    #[test]
    fn what_is_no_map_is_an_error() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(visit_entries(null.as_fd(), |_, _| false).is_err());
    }
    #[test]
    fn maps_whose_values_need_other_buffers_are_refused() {
        for kind in [BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_PERCPU_HASH] {
            let Some(map) = map(kind, 8) else {
                let reason = "this process may not make a BPF map";
                return iotomy_test_requirements::skip(iotomy_test_requirements::Need::Bpf, reason);
            };
            let refused = visit_entries(map.as_fd(), |_, _| false).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        }
    }
}
