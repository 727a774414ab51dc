//! The command line of `iotomy copy`, and the options of the copy made from it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use iotomy_copy::{Detail, Options, Placement};
use iotomy_movers::{Job, MOVERS, Reflink, Sparse};
use iotomy_record::path_text;

use super::sizes::{block_size, size};
use crate::manual::Manual;
use crate::verbs::saving::SaveArgs;

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        (
            "iotomy copy image.raw /dev/sdb --fsync --verify",
            "Write an image to a disk, fsync it and read it back:",
        ),
        ("iotomy copy --explain big /mnt/backup", "Show which mover is chosen, and why:"),
        (
            "iotomy copy --atomic --preserve new.conf /etc/app.conf",
            "Replace a file atomically, with its attributes:",
        ),
        ("iotomy copy part1 part2 - | sha256sum", "Write files to standard output:"),
        ("iotomy copy --concat part1 part2 whole", "Join files:"),
        (
            "iotomy copy --skip 1M --count 4K --seek 512 disk table",
            "Copy part of a file into the middle of another:",
        ),
    ],
    status: &[
        (
            "0",
            "Everything was copied. It is not an error if the reader of standard output closes \
            it early.",
        ),
        ("1", "--verify found a difference from the source."),
        ("2", "The command line is wrong, or something could not be copied, written or kept."),
    ],
    see_also: &["iotomy-lab-run(1)", "cp(1)", "dd(1)", "copy_file_range(2)", "splice(2)"],
};

/// Copy bytes with the fastest mover for this pair of descriptors
///
/// Copies each source into the target if that is a directory. With --concat, or if the target is
/// standard output, writes the sources one after another. `-` is standard input or output. Sizes
/// are in bytes; K, M, G and T are powers of 1024. iotomy chooses the mover from the properties of
/// both ends; if the kernel refuses it before anything has moved, the next mover takes its place.
#[derive(Debug, Default, clap::Args)]
#[command(override_usage = "iotomy copy [OPTIONS] SRC… DST\n       \
                      iotomy copy --list")]
pub(crate) struct CopyArgs {
    /// The sources, then the target; `-` is standard input or output
    #[arg(value_name = "PATH", required_unless_present = "list")]
    paths: Vec<PathBuf>,

    /// Use only this mover; --list describes them
    #[arg(long, value_name = "NAME", value_parser = movers(), hide_possible_values = true)]
    mover: Option<&'static str>,

    /// List the movers, and which of them work here
    #[arg(long, conflicts_with = "paths")]
    pub(super) list: bool,

    /// Explain on standard error which movers were probed, refused and chosen, and why
    #[arg(long)]
    pub(super) explain: bool,

    /// Bytes per request, for movers with a variable size [default: 256K; 512K from a file through
    /// the loopback]
    #[arg(long, value_name = "SIZE", value_parser = block_size)]
    block_size: Option<usize>,

    /// Requests in flight, for movers that support several
    #[arg(long, value_name = "N", default_value_t = DEPTH, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,

    /// Threads, for movers that support several
    #[arg(long, value_name = "N", default_value_t = THREADS, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,

    /// Map all pages of each window in advance, not one by one as they are accessed; for mmap-write
    #[arg(long)]
    populate: bool,

    /// Request huge pages for windows, where the file system supports them; for mmap-write
    #[arg(long)]
    huge_pages: bool,

    /// Copy by value: later writes to the source must not show through in the target
    #[arg(long)]
    by_value: bool,

    /// Holes in the target: those of the source (auto), none (never), or every block of zeros
    /// (always)
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Choice::Auto)]
    sparse: Choice,

    /// Whether both files may share extents on disk until one of them is written to
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Choice::Auto)]
    reflink: Choice,

    /// fsync the target, and its directory if its name is new, before exiting
    #[arg(long)]
    fsync: bool,

    /// Preserve mode, owner, times and extended attributes
    #[arg(long)]
    preserve: bool,

    /// Skip the first SIZE bytes (read and discarded if the source cannot seek)
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size, hide_default_value = true)]
    skip: u64,

    /// Write in place at this offset of the target; the rest of it stays unchanged
    #[arg(long, value_name = "SIZE", value_parser = size)]
    seek: Option<u64>,

    /// Copy at most SIZE bytes
    #[arg(long, value_name = "SIZE", value_parser = size)]
    count: Option<u64>,

    /// Write the sources one after another into the target
    #[arg(long)]
    concat: bool,

    /// Append to the target
    #[arg(long, conflicts_with = "seek")]
    append: bool,

    /// Replace the target only when the copy is complete; after a failure the old target is intact
    #[arg(long, conflicts_with_all = ["seek", "append"])]
    atomic: bool,

    /// Show progress; on a terminal, the default is to show it after one second
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value_t = Choice::Auto, default_missing_value = "always", hide_default_value = true)]
    pub(super) progress: Choice,

    /// Read the target back and compare it with the source
    #[arg(long)]
    verify: bool,

    /// Write a record of the copy to FILE; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    #[command(flatten)]
    pub(super) save: SaveArgs,
}

/// The default number of requests in flight.
const DEPTH: u32 = 8;
/// The default number of threads.
const THREADS: u32 = 2;

/// The mover that maps the source.
const MAPPING: &str = "mmap-write";

/// A setting that can be left to iotomy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Choice {
    /// As appropriate
    #[default]
    Auto,
    /// Never
    Never,
    /// Always
    Always,
}

fn movers() -> impl TypedValueParser<Value = &'static str> {
    let names = MOVERS.iter().map(|mover| {
        let declaration = mover.declaration();
        PossibleValue::new(declaration.name).help(declaration.summary)
    });
    PossibleValuesParser::new(names)
        .try_map(|name| iotomy_movers::mover(&name).map(|m| m.declaration().name).ok_or("no mover"))
}

impl CopyArgs {
    /// The command line that consists of names alone, which is most there are; `None` of any other.
    /// To make the parser takes longer than to copy a small file, and here it would have nothing to do.
    pub(crate) fn of_names(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let is_name = |word: &OsString| match word.as_encoded_bytes() {
            [] => false,
            [b'-', rest @ ..] => rest.is_empty(),
            _ => true,
        };
        let mut paths = Vec::with_capacity(words.size_hint().0);
        for word in words {
            if !is_name(&word) {
                return None;
            }
            paths.push(PathBuf::from(word));
        }
        if paths.is_empty() {
            return None;
        }
        Some(Self { paths, depth: DEPTH, threads: THREADS, ..Self::default() })
    }

    /// The sources and the target.
    ///
    /// # Errors
    /// There are not enough of them, or they are to be mapped by a mover that maps nothing.
    pub(super) fn ends(&self) -> Result<(&[PathBuf], &Path)> {
        let of_windows = [("--populate", self.populate), ("--huge-pages", self.huge_pages)];
        if let Some((option, _)) = of_windows.iter().find(|(_, is_given)| *is_given)
            && self.mover != Some(MAPPING)
        {
            let by = self.mover.unwrap_or("the chooser's movers");
            bail!("cannot use {option} with {by}: only {MAPPING} maps; add --mover {MAPPING}");
        }
        match self.paths.split_last() {
            Some((target, sources)) if !sources.is_empty() => Ok((sources, target)),
            Some((only, _)) => bail!(
                "cannot copy {}: no target given; name one after it, or - for standard output",
                path_text(only)
            ),
            None => bail!("nothing to copy; name a source and a target"),
        }
    }

    /// Whether the traffic has to be recorded. The setting that keeps all runs is not read here:
    /// reading it takes a small copy too long, so it applies only to runs that make a record anyway.
    pub(super) fn makes_record(&self) -> bool {
        self.json.is_some() || self.explain || self.save.is_given()
    }

    /// The options of the copy.
    pub(super) fn options(&self) -> Options {
        Options {
            mover: self.mover.and_then(iotomy_movers::mover),
            job: Job {
                count: self.count,
                block_size: self.block_size,
                depth: self.depth,
                threads: self.threads,
                populate: self.populate,
                huge_pages: self.huge_pages,
                by_value: self.by_value,
                reflink: match self.reflink {
                    Choice::Auto => Reflink::Auto,
                    Choice::Never => Reflink::Never,
                    Choice::Always => Reflink::Always,
                },
                sparse: match self.sparse {
                    Choice::Auto => Sparse::Auto,
                    Choice::Never => Sparse::Never,
                    Choice::Always => Sparse::Always,
                },
                ..Options::default().job
            },
            skip: self.skip,
            placement: match self.seek {
                Some(offset) => Placement::At(offset),
                None if self.append => Placement::Append,
                None if self.atomic => Placement::Atomic,
                None => Placement::Truncate,
            },
            concat: self.concat,
            fsync: self.fsync,
            preserve: self.preserve,
            verify: self.verify,
            detail: match self.makes_record() {
                _ if self.explain => Detail::Probes,
                _ if self.json.is_some() => Detail::Reasons,
                true => Detail::Parts,
                false => Detail::Sums,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: CopyArgs,
    }

    fn of_names(words: &[&str]) -> Option<CopyArgs> {
        CopyArgs::of_names(words.iter().map(OsString::from))
    }

    #[test]
    fn names_alone_are_what_the_parser_makes_of_them() {
        for words in [&["a", "b"][..], &["-", "a b", "é", "-"], &["one"]] {
            let parsed = Alone::try_parse_from(["copy"].iter().chain(words)).unwrap().args;
            assert_eq!(format!("{:?}", of_names(words).unwrap()), format!("{parsed:?}"));
        }
    }

    #[test]
    fn all_else_is_left_to_the_parser() {
        for words in [&[][..], &["a", "--list"], &["a", "-h"], &["a", "--", "b"], &["a", ""]] {
            assert!(of_names(words).is_none(), "{words:?}");
        }
    }
}
