//! A file that was mapped and handed on, and of which nobody looked at a page.

use iotomy_record::numbers::{bytes, thousands};
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::run::{MIB, Run};
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "mapped-untouched",
    verdict: Verdict::Suspect,
    summary: "a file was mapped and written on, but its pages were never looked at",
    description: "A program mapped 1 MiB or more of a file that is no shared library and wrote as many bytes, to an \
                  eighth, and its page faults, of which each brings in 16 pages at most, cannot have touched half of \
                  the mapping. The bytes were never read.",
    rules: &[Rule::Run(judge)],
};

/// A fault maps the pages around it that are in the cache: 64 KiB, `fault_around_bytes` of the kernel.
const AROUND: u64 = 16;
const PAGE: u64 = 4096;

/// A mapping that was not looked at.
struct Untouched<'a> {
    path: &'a str,
    exec: &'a str,
    mapped: u64,
    touched: u64,
}

fn judge(run: &Run<'_>) -> Option<Found> {
    let Untouched { path, exec, mapped, touched } = untouched(run)?;
    let text = format!(
        "{exec} mapped {} of {path} and wrote as much, but looked at {} of {} pages at most: the file \
         was not read",
        bytes(mapped.into()),
        thousands(touched.into()),
        thousands((mapped / PAGE).into()),
    );
    let evidence = [
        ("file", json!(path)),
        ("mapped_bytes", json!(mapped)),
        ("touched_pages_at_most", json!(touched)),
    ];
    Some(Found::new(text, evidence).advise("let the bytes be read: `| wc -c`"))
}

/// The same as the cause of something.
pub(crate) fn cause(run: &Run<'_>) -> Option<String> {
    let Untouched { path, mapped, touched, .. } = untouched(run)?;
    Some(format!(
        "the bytes of {path} were mapped and handed on without being read: {} of {} pages were \
         looked at, at most",
        thousands(touched.into()),
        thousands((mapped / PAGE).into())
    ))
}

/// What a loader maps is touched as it is called.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".so") || name.contains(".so.")
}

fn untouched<'a>(run: &Run<'a>) -> Option<Untouched<'a>> {
    let mapped = run.trace.files.iter().filter(|file| {
        file.kind == FileKind::File
            && file.mapped_bytes >= MIB
            && file.read_bytes < file.mapped_bytes / 2
            && !is_library(&file.path)
    });
    let mut found = mapped.filter_map(|file| {
        let same = |pid: u32, exec: &str| pid == file.pid && exec == file.exec;
        let of_image = run.trace.files.iter().filter(|other| same(other.pid, &other.exec));
        let written: u64 = of_image.map(|other| other.write_bytes).sum();
        let image = run.trace.processes.iter().find(|image| same(image.pid, &image.exec))?;
        let faults = image.minor_faults.saturating_add(image.major_faults);
        let touched = faults.saturating_mul(AROUND);
        let is_untouched = written.abs_diff(file.mapped_bytes) <= file.mapped_bytes / 8
            && touched.saturating_mul(PAGE) < file.mapped_bytes / 2;
        is_untouched.then_some(Untouched {
            path: &file.path,
            exec: &file.exec,
            mapped: file.mapped_bytes,
            touched,
        })
    });
    found.next()
}
