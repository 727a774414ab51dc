//! Lines written one by one to a log.

use iotomy_record::numbers::{bytes, duration, share, thousands};
use iotomy_record::{FileKind, FileUse, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{RING_WRITES, Run, is_made_up};
use crate::small_requests;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "small-appends",
    verdict: Verdict::Advice,
    summary: "a program wrote a file (a log) line by line",
    description: "A program wrote a file that it did not read in at least 1,000 calls of write or \
        writev of less than 512 bytes on average, with few seeks, and these calls took at least \
        1 % of its CPU time and 1 ms. Other than `small-requests`, this is about programs that write \
        a line for each message they receive, too. There is no finding if that one is made of \
        the file.",
    facts: &[
        Fact::Files,
        Fact::Calls(&small_requests::READS),
        Fact::Calls(&small_requests::WRITES),
        Fact::Calls(&small_requests::JUMPS),
        Fact::Rings(&[]),
        Fact::Ledger,
    ],
    rules: &[Rule::Run(judge)],
};

const MANY: u64 = 1_000;
const SMALL: u64 = 512;
const WORTH: u64 = 100;
const WORTH_NS: f64 = 1e6;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let appends = run.trace.files.iter().filter(|file| is_append(run, file));
    let logs = appends.filter_map(|file| Some((file, cost_ns(run, file)?)));
    let (file, [cost_ns, cpu_ns]) = logs.max_by_key(|(file, _)| file.write_calls)?;
    let said = small_requests::judge(run);
    if said.is_some_and(|said| said.evidence.get("file") == Some(&json!(file.path))) {
        return None;
    }
    let name = run.name_of(file.pid, &file.exec, file.image);
    let text = format!(
        "{} wrote {} times to {}, {} each: these calls took about {} of CPU time ({} of its CPU time)",
        name,
        thousands(file.write_calls.into()),
        file.path,
        bytes(u128::from(file.write_bytes / file.write_calls)),
        duration(cost_ns as f64),
        share(cost_ns.into(), cpu_ns.into()),
    );
    let evidence = [
        ("file", json!(file.path)),
        ("calls", json!(file.write_calls)),
        ("bytes", json!(file.write_bytes)),
        ("on_cpu_ns", json!(cost_ns)),
    ];
    let advice = match run.program_of(file.pid, &file.exec, file.image) {
        "nginx" => "access_log FILE FORMAT buffer=64k flush=1s",
        _ => "collect lines and write several at once (a buffered or asynchronous log)",
    };
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}

fn is_append(run: &Run<'_>, file: &FileUse) -> bool {
    let rows = run.of_image(file.pid, &file.exec, file.image);
    file.kind == FileKind::File
        && !is_made_up(file)
        && file.write_calls >= MANY
        && file.write_bytes / file.write_calls < SMALL
        && file.read_calls == 0
        && file.map_calls == 0
        && rows.total(&small_requests::JUMPS).calls <= file.write_calls / 10
        && rows.requested(&RING_WRITES).calls <= file.write_calls / 10
}

/// The CPU time of the calls, and of their program. Of two kinds of calls that may be these, the cheaper ones.
fn cost_ns(run: &Run<'_>, file: &FileUse) -> Option<[u64; 2]> {
    let rows = run.of_image(file.pid, &file.exec, file.image);
    let those = rows.calls.iter().filter(|call| {
        small_requests::WRITES.contains(&&*call.syscall) && call.calls >= file.write_calls
    });
    let each = those.filter_map(|call| Some(call.on_cpu_ns? as f64 / call.calls as f64));
    let cost_ns = each.min_by(f64::total_cmp)? * file.write_calls as f64;
    let cpu = rows.ledger.iter().map(|row| row.user_ns.saturating_add(row.calls_on_cpu_ns));
    let cpu_ns = cpu.fold(0, u64::saturating_add);
    (cost_ns >= WORTH_NS.max(cpu_ns as f64 / WORTH as f64)).then_some([cost_ns as u64, cpu_ns])
}
