//! Whether open, create and close stayed in the file system, or went on to the driver.

use iotomy_record::{Anatomy, DissectedCall, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "open-not-read",
    verdict: Verdict::Note,
    summary: "whether open, create and close reached the block layer",
    description: "For an anatomy with at least 100 calls that open, create or close files. By an \
        old rule these stay in the file system, and only reads and writes reach the driver. They \
        did not stay if any of their time is in the block layer or a driver, or blocked on a \
        device or a journal; they stayed if none is, and 30 or more samples would have shown a \
        tenth.",
    facts: &[Fact::Calls(&CALLS), Fact::Samples],
    rules: &[Rule::Anatomy(judge)],
};

const CALLS: [&str; 5] = ["open", "openat", "openat2", "creat", "close"];
const MANY: u64 = 100;
/// This many samples miss a tenth of the time in one of 24 runs.
const ENOUGH: u64 = 30;

fn judge(record: &Anatomy) -> Option<UnnamedFinding> {
    let is_one = |name: &str| CALLS.contains(&name);
    let calls = record.trace.calls.iter().filter(|call| is_one(&call.syscall));
    let calls: u64 = calls.map(|call| call.calls).fold(0, u64::saturating_add);
    if calls < MANY {
        return None;
    }
    let rows = record.calls.iter().filter(|row| row.syscall.as_deref().is_some_and(is_one));
    let (mut below_ns, mut whole_ns, mut samples) = (0u64, 0u64, 0u64);
    for row in rows {
        below_ns = below_ns.saturating_add(below(row));
        whole_ns = whole_ns.saturating_add(row.on_cpu_ns).saturating_add(row.blocked_ns);
        samples = samples.saturating_add(row.samples);
    }
    let whole_ms = whole_ns as f64 / 1e6;
    let text = if below_ns > 0 {
        format!(
            "{calls} calls that open, create or close files did not stay in the file system: \
             {:.1} of their {whole_ms:.1} ms went to the block layer, the driver, the device or the \
             journal",
            below_ns as f64 / 1e6
        )
    } else if samples >= ENOUGH {
        format!(
            "{calls} calls that open, create or close files stayed in the file system: none of \
             their {whole_ms:.1} ms was in the block layer or a driver, or blocked on a device"
        )
    } else {
        return None;
    };
    let evidence = [
        ("calls", json!(calls)),
        ("samples", json!(samples)),
        ("below_ns", json!(below_ns)),
        ("whole_ns", json!(whole_ns)),
    ];
    Some(UnnamedFinding::new(text, evidence))
}

/// The time below the file system.
fn below(row: &DissectedCall) -> u64 {
    let layers = row.layers.iter().map(|layer| {
        let is_below = matches!(layer.layer.as_str(), "block layer" | "driver");
        let waits = ["device", "journal"].iter().filter_map(|what| layer.waits.get(*what));
        let waited: u64 = waits.fold(0, |sum, ns| sum.saturating_add(*ns));
        if is_below { layer.on_cpu_ns.saturating_add(waited) } else { waited }
    });
    layers.fold(0, u64::saturating_add)
}
