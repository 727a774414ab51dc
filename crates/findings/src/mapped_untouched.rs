//! A file that was mapped and passed on, and of which no page was touched.

use iotomy_record::numbers::{bytes, thousands};
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{MIB, Run, is_library};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "mapped-untouched",
    verdict: Verdict::Suspect,
    summary: "a file was mapped and written to a target, but most of its pages were not touched",
    description: "A program mapped at least 1 MiB of a file that is not a shared library and \
        wrote as many bytes, within an eighth, and its page faults cannot have touched half of \
        the mapping, even if each mapped a huge page of 2 MiB. The program did not read these \
        bytes. The rule excludes hugetlbfs, whose pages may be larger.",
    facts: &[Fact::Files, Fact::Calls(&["mmap"]), Fact::Beginning, Fact::End],
    rules: &[Rule::Run(judge)],
};

/// A fault maps the surrounding pages that are in the cache: usually 64 KiB (`fault_around_bytes`
/// of the kernel), and at most the range of one entry of a middle page table, where the cache has a
/// folio as large.
const A_FAULT: u64 = 2 * MIB;

/// A mapping that was not touched.
struct UntouchedMapping<'a> {
    path: &'a str,
    exec: &'a str,
    mapped: u64,
    faults: u64,
    touched: u64,
}

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let UntouchedMapping { path, exec, mapped, faults, touched } = untouched(run)?;
    let text = format!(
        "{exec} mapped {} of {path} and wrote as much, but its {} page faults can have touched {} of it, at 2 MiB each: \
         most of the file was not read",
        bytes(mapped.into()),
        thousands(faults.into()),
        bytes(touched.into()),
    );
    let evidence = [
        ("file", json!(path)),
        ("mapped_bytes", json!(mapped)),
        ("page_faults", json!(faults)),
        ("touched_bytes_at_most", json!(touched)),
    ];
    Some(
        UnnamedFinding::new(text, evidence)
            .advise_command("make the bytes be read: pipe them to `wc -c`"),
    )
}

/// The same as the cause of something.
pub(crate) fn cause(run: &Run<'_>) -> Option<String> {
    let UntouchedMapping { path, mapped, touched, .. } = untouched(run)?;
    Some(format!(
        "the bytes of {path} were mapped and passed on unread: page faults can have touched {} of \
         {}",
        bytes(touched.into()),
        bytes(mapped.into())
    ))
}

fn untouched<'a>(run: &Run<'a>) -> Option<UntouchedMapping<'a>> {
    let mapped = run.trace.files.iter().filter(|file| {
        file.kind == FileKind::File
            && file.mapped_bytes >= MIB
            && file.read_bytes < file.mapped_bytes / 2
            && !is_library(&file.path)
            // A page there may be of 1 GiB.
            && file.file_system.as_deref() != Some("hugetlbfs")
    });
    let mut found = mapped.filter_map(|file| {
        let of_image = run.of_image(file.pid, &file.exec, file.image);
        let process = of_image.process?;
        let faults = process.minor_faults.saturating_add(process.major_faults);
        let touched = faults.saturating_mul(A_FAULT);
        let is_untouched = of_image.write_bytes.abs_diff(file.mapped_bytes)
            <= file.mapped_bytes / 8
            && touched < file.mapped_bytes / 2;
        is_untouched.then_some(UntouchedMapping {
            path: &file.path,
            exec: process.name(),
            mapped: file.mapped_bytes,
            faults,
            touched,
        })
    });
    found.next()
}
