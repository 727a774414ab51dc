//! Many requests to io_uring for few files, none of them registered.

use iotomy_record::Verdict;
use iotomy_record::numbers::{counted, thousands};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{Rows, Run};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "ring-files",
    verdict: Verdict::Advice,
    summary: "many requests to io_uring went to few files, and none was a registered file",
    description: "A program made at least 200,000 requests a second of the run's time \
        (without the run queue delay of the program) to read, write, send or receive, at \
        least 100,000 in all, none of them for a registered file, and at least 1,000 for \
        each file that it used. For each, the kernel looks up the file and takes a reference \
        to it, which a registered file (io_uring_register_files) saves: about 50 ns a \
        request, which is 1 % of a CPU at this rate.",
    facts: &[Fact::Rings(&[]), Fact::Files, Fact::Ledger],
    rules: &[Rule::Run(judge)],
};

const OPERATIONS: [&str; 14] = [
    "read",
    "readv",
    "read_fixed",
    "readv_fixed",
    "write",
    "writev",
    "write_fixed",
    "writev_fixed",
    "send",
    "sendmsg",
    "send_zc",
    "sendmsg_zc",
    "recv",
    "recvmsg",
];
const MANY: u64 = 100_000;
/// fio on one thread, reading 512 bytes from the page cache in batches of 16: a median of 1,379 ns of CPU time a
/// request, and 1,306 with --registerfiles; 1,086 and 1,013 in the fifth of 24 runs.
const A_SECOND: f64 = 200_000.0;
const A_FILE: u64 = 1_000;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    if run.trace.observer.lost_files > 0 {
        return None;
    }
    let images = run.trace.processes.iter().filter_map(|image| {
        let rows = run.of_image(image.pid, &image.exec, image.image);
        let (requests, files) = unregistered(rows)?;
        let own_ns = run.wall_ns * (1.0 - rows.waiting_share());
        let is_fast = requests as f64 >= A_SECOND * own_ns / 1e9;
        let is_it = requests >= MANY && is_fast && requests / files >= A_FILE;
        is_it.then_some((image, requests, files))
    });
    let (image, requests, files) = images.max_by_key(|(_, requests, _)| *requests)?;
    let text = format!(
        "{} requests of {} to io_uring went to {} at most, and none of them was for a registered \
         file: the kernel took a reference to the file for each",
        thousands(requests.into()),
        image.name(),
        counted(files.into(), "file", "files"),
    );
    let evidence =
        [("exec", json!(image.exec)), ("requests", json!(requests)), ("files", json!(files))];
    let advice = "register the files with the ring (io_uring_register_files; fio: --registerfiles)";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}

/// Requests of an image that move bytes, and the files it used; none if one was for a registered file.
fn unregistered(rows: &Rows<'_>) -> Option<(u64, u64)> {
    if rows.requests(|row| row.registered_files) > 0 {
        return None;
    }
    let requests = rows.requests(|row| match OPERATIONS.contains(&row.op.as_str()) {
        true => row.submitted,
        false => 0,
    });
    let files = rows.files.iter().filter(|file| file.read_calls > 0 || file.write_calls > 0);
    let files = files.count() as u64;
    (files > 0).then_some((requests, files))
}
