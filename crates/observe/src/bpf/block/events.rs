//! The tracepoints of timelines: their names, the values that are shown, and their owner. The offsets
//! in the record come from the kernel.

/// A tracepoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tracepoint {
    pub(super) category: &'static str,
    pub(super) name: &'static str,
    /// The fields shown, as the kernel names them; one with `?` is left out where it is missing.
    pub(super) fields: &'static [&'static str],
    /// The thread it runs in: only the call's own thread, or also one that the call waits for,
    /// which is then identified by this field, the device.
    pub(super) device: Option<&'static str>,
}

const fn own(
    category: &'static str,
    name: &'static str,
    fields: &'static [&'static str],
) -> Tracepoint {
    Tracepoint { category, name, fields, device: None }
}

/// Also where a thread of the kernel does it for a call that waits for its device.
const fn by_device(
    category: &'static str,
    name: &'static str,
    fields: &'static [&'static str],
) -> Tracepoint {
    Tracepoint { category, name, fields, device: Some("dev") }
}

/// Every tracepoint, by layer from the top down. To detach one, the kernel waits until no CPU can
/// be inside it any more, some ten ms each and one after the other: so they are few, and those of a
/// file system are attached only where one is mounted. None is of an end that an interrupt tells, as
/// `iomap_dio_complete`: that may be of another thread's request.
pub(super) static TRACEPOINTS: &[Tracepoint] = &[
    own("filemap", "mm_filemap_get_pages", &["index", "last_index"]),
    own("filemap", "mm_filemap_add_to_page_cache", &["index", "order?"]),
    own("readahead", "page_cache_sync_ra", &["index", "req_count", "ra_pages"]),
    own("readahead", "page_cache_async_ra", &["index", "req_count", "ra_pages"]),
    own("vmscan", "mm_vmscan_direct_reclaim_begin", &["order"]),
    own("vmscan", "mm_vmscan_direct_reclaim_end", &["nr_reclaimed"]),
    own("writeback", "writeback_dirty_folio", &["ino", "index"]),
    own("writeback", "balance_dirty_pages", &["dirty", "paused", "pause"]),
    own("writeback", "folio_wait_writeback", &["ino", "index"]),
    own("lock", "contention_begin", &["flags"]),
    own("lock", "contention_end", &["ret"]),
    own("iomap", "iomap_dio_rw_begin", &["pos", "count"]),
    own("iomap", "iomap_readahead", &["nr_pages"]),
    own("ext4", "ext4_da_write_begin", &["pos", "len"]),
    own("ext4", "ext4_da_write_end", &["pos", "len", "copied"]),
    own("ext4", "ext4_read_folio", &["index"]),
    own("ext4", "ext4_ext_map_blocks_exit", &["lblk", "pblk", "len", "ret"]),
    own("ext4", "ext4_allocate_blocks", &["block", "len"]),
    own("ext4", "ext4_sync_file_enter", &["ino", "datasync"]),
    own("ext4", "ext4_writepages", &["nr_to_write", "range_start", "range_end"]),
    own("ext4", "ext4_da_write_pages_extent", &["lblk", "len"]),
    own("ext4", "ext4_writepages_result", &["pages_written", "ret"]),
    own("ext4", "ext4_fc_commit_stop", &["nblks"]),
    own("ext4", "ext4_sync_file_exit", &["ret"]),
    by_device("jbd2", "jbd2_start_commit", &["transaction"]),
    by_device("jbd2", "jbd2_commit_locking", &["transaction"]),
    by_device("jbd2", "jbd2_commit_flushing", &["transaction"]),
    by_device("jbd2", "jbd2_commit_logging", &["transaction"]),
    by_device("jbd2", "jbd2_end_commit", &["transaction"]),
    by_device("jbd2", "jbd2_checkpoint", &["result"]),
    own("xfs", "xfs_file_buffered_read", &["offset", "count"]),
    own("xfs", "xfs_file_buffered_write", &["offset", "count"]),
    own("xfs", "xfs_file_direct_read", &["offset", "count"]),
    own("xfs", "xfs_file_direct_write", &["offset", "count"]),
    own("xfs", "xfs_file_fsync", &["ino"]),
    own("xfs", "xfs_log_force", &["lsn"]),
    by_device("xfs", "xlog_iclog_wait_on", &["lsn?"]),
    by_device("xfs", "xlog_iclog_syncing", &["lsn?"]),
    by_device("xfs", "xlog_iclog_sync_done", &["lsn?"]),
    own("btrfs", "btrfs_sync_file", &["ino", "datasync"]),
    own("btrfs", "btrfs_ordered_extent_add", &["ino", "start?", "file_offset?"]),
    own("btrfs", "btrfs_ordered_extent_start", &["ino"]),
    own("btrfs", "btrfs_reserve_extent", &["start", "len"]),
    own("btrfs", "btrfs_transaction_commit", &["generation"]),
];

/// Whether the tracepoint can fire: one of a file system that is not mounted cannot.
pub(super) fn may_happen(tracepoint: &Tracepoint, mounts: &str) -> bool {
    let mounted = |kind: &str| mounts.lines().any(|line| line.split(' ').nth(2) == Some(kind));
    match tracepoint.category {
        "jbd2" => mounted("ext4") || mounted("ocfs2"),
        kind @ ("ext4" | "xfs" | "btrfs") => mounted(kind),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::layout::{ARGS, PLANS};
    use super::*;

    #[test]
    fn the_table_fits_the_kernel_side() {
        assert!(TRACEPOINTS.len() <= PLANS);
        assert!(TRACEPOINTS.iter().all(|one| one.fields.len() <= ARGS));
        let names: HashSet<_> = TRACEPOINTS.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), TRACEPOINTS.len());
    }

    #[test]
    fn a_file_system_is_listened_to_where_it_is_mounted() {
        let mounts = "proc /proc proc rw 0 0\n/dev/vda / ext4 rw 0 0\nxfs /xfs tmpfs rw 0 0\n";
        let told = |category| {
            let of = |one: &&Tracepoint| one.category == category;
            TRACEPOINTS.iter().filter(of).any(|one| may_happen(one, mounts))
        };
        assert!(told("ext4") && told("jbd2") && told("filemap"));
        assert!(!told("xfs") && !told("btrfs"));
    }
}
