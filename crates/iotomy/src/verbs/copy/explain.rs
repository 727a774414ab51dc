//! What `--explain` says: the two ends, the contract, every mover with the reason why it was tried,
//! kept for later or not considered, and what really happened.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use iotomy_movers::chooser::{Plan, Refused, Report};
use iotomy_movers::{End, Kind, Mover, Probe};
use iotomy_record::printable;
use iotomy_report::{bytes, duration};

use super::fault::{number, said};
use super::options::{CopyArgs, When};
use super::source::Source;
use super::target::Target;

/// What is said before anything moves.
pub(super) fn plan(args: &CopyArgs, source: &Source, target: &Target<'_>, plan: &Plan) {
    let mut text = String::new();
    let (from, to) = (described(&source.end()), described(&target.end_as_found()));
    let new = if target.changes_its_folder() { "new " } else { "" };
    let _ = writeln!(text, "source    {}: {from}", printable(&source.name, true));
    let _ = writeln!(text, "target    {}: {new}{to}", printable(&target.name, true));
    let _ = writeln!(text, "contract  {}", contract(args));
    for (at, step) in plan.steps.iter().enumerate() {
        let role = if at == 0 { "plan" } else { "then" };
        let name = step.mover.declaration().name;
        let _ = writeln!(text, "{role:<9} {name:<16} {}{}", step.reason, probed(step.mover));
    }
    for unsuited in &plan.unsuited {
        let _ = writeln!(text, "unsuited  {:<16} {}", unsuited.mover, unsuited.reason);
    }
    say(&text);
}

/// What came of it.
pub(super) fn report(report: &Report, took: Duration) {
    let mut text = String::new();
    for Refused { mover, call, errno } in &report.refused {
        let _ = writeln!(text, "refused   {mover:<16} {call}: {}", answer(*errno));
    }
    if let Some(mover) = report.mover {
        let moved = report.moved.bytes;
        let rate = moved as f64 / took.as_secs_f64().max(1e-9);
        let _ = writeln!(
            text,
            "chosen    {mover:<16} {} bytes in {}, {}/s",
            number(moved),
            duration(took.as_nanos() as f64),
            bytes(rate as u128)
        );
        let traffic = report.moved.traffic;
        for (figure, what) in [
            (traffic.referenced, "bytes referenced"),
            (traffic.copied, "bytes copied, each time counted"),
            (traffic.touched, "bytes touched in user space"),
        ] {
            let _ = writeln!(text, "          {:<16} {what}", number(figure));
        }
    }
    say(&text);
}

/// What the kernel said to a mover that was refused.
pub(super) fn answer(errno: Option<rustix::io::Errno>) -> String {
    match errno {
        Some(errno) => said(&errno.into()),
        None => "moved nothing, without an error".to_owned(),
    }
}

/// With standard error gone there is nobody left to tell.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn probed(mover: &dyn Mover) -> String {
    match mover.probe() {
        Probe::Ready => String::new(),
        Probe::Unsupported(reason) => format!("; probed, and does not work here: {reason}"),
    }
}

fn contract(args: &CopyArgs) -> String {
    let shows = if args.by_value { "must not" } else { "may" };
    let holes = match args.sparse {
        When::Auto => "holes of the source stay holes",
        When::Never => "no holes",
        When::Always => "blocks of zeros become holes",
    };
    let extents = match args.reflink {
        When::Auto => "extents may be shared",
        When::Never => "extents must not be shared",
        When::Always => "extents must be shared",
    };
    format!("later writes {shows} show through; {holes}; {extents}")
}

fn described(end: &End<'_>) -> String {
    let mut text = end.kind().name().to_owned();
    if end.kind() == Kind::Regular {
        if end.has_true_size() {
            let _ = write!(text, ", {} bytes", number(end.size()));
        } else {
            text += ", made up when it is read";
        }
        let _ = write!(text, ", on {}", file_system(end.magic()));
    }
    for (holds, what) in [
        (end.is_null_device(), ", the null device"),
        (end.may_have_holes(), ", with holes"),
        (end.is_append(), ", appending"),
        (end.is_direct(), ", O_DIRECT"),
        (end.is_non_blocking(), ", O_NONBLOCK"),
    ] {
        if holds {
            text += what;
        }
    }
    text
}

/// The file system of a magic number, as statfs(2) lists them.
fn file_system(magic: u64) -> String {
    let name = match magic {
        0xef53 => "ext4",
        0x0102_1994 => "tmpfs",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0xf2f5_2010 => "f2fs",
        0xca45_1a4e => "bcachefs",
        0x2fc1_2fc1 => "zfs",
        0x794c_7630 => "overlayfs",
        0x6573_5546 => "fuse",
        0x6969 => "nfs",
        0xff53_4d42 | 0xfe53_4d42 => "cifs",
        0x0102_1997 => "9p",
        0x4d44 => "vfat",
        0x2011_bab0 => "exfat",
        0x5346_544e | 0x7366_746e => "ntfs",
        0x9660 => "iso9660",
        0x7371_7368 => "squashfs",
        0x8584_58f6 => "ramfs",
        0x9fa0 => "proc",
        0x6265_6572 => "sysfs",
        _ => return format!("a file system of magic 0x{magic:x}"),
    };
    name.to_owned()
}
