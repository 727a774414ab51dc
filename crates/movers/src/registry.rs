//! The list of all movers.

use crate::mover::Mover;
use crate::{
    copy_file_range, direct, fallocate, io_uring, mmap_write, null, parallel, pipelined,
    read_write, reflink, sendfile, splice, vmsplice,
};

/// Every mover, in the order they are listed.
pub static MOVERS: &[&dyn Mover] = &[
    &read_write::ReadWrite,
    &splice::Splice,
    &copy_file_range::CopyFileRange,
    &sendfile::Sendfile,
    &mmap_write::MmapWrite,
    &vmsplice::Vmsplice,
    &reflink::Reflink,
    &fallocate::Fallocate,
    &io_uring::IoUring,
    &direct::Direct,
    &pipelined::Pipelined,
    &parallel::Parallel,
    &null::Null,
];

/// The mover called `name`.
pub fn mover(name: &str) -> Option<&'static dyn Mover> {
    MOVERS.iter().copied().find(|mover| mover.declaration().name == name)
}
