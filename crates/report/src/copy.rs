//! [`CopyRun`] as text: for each source its ends, the plan and the result, then the whole.
//!
//! With --explain the pieces are printed as they become known; together they are the text of a
//! saved record.
//!
//! Computed by `run` in `crates/movers/src/chooser.rs`.

mod section;

use iotomy_record::{CopyPart, CopyRun, MoverRefusal};

use crate::numbers::{bytes, counted, duration, thousands};
use crate::page::{Ink, Page, columns};
use crate::{Style, findings};
pub(crate) use section::{results, section};

/// Columns a name may take, and a text of the record: far above any of ours.
const NAME: usize = 400;
const TEXT: usize = 2_000;

/// Columns a mover's name takes.
const MOVER: usize = 16;

/// The record as the text a terminal shows, ending in a line break. Any record renders, a hostile one
/// included.
pub fn copy(record: &CopyRun, style: &Style) -> String {
    let mut text = String::new();
    for part in &record.copies {
        text += &copy_plan(&record.contract, part, style);
        text += &copy_outcome(part, style);
    }
    text += &copy_end(record, style);
    let mut page = Page::new(style);
    for message in &record.messages {
        let message = page.name(message, TEXT);
        labelled(&mut page, (Ink::Red, "error"), &message);
    }
    text + &page.finish()
}

/// The plan of a copy: the text before anything moves.
pub fn copy_plan(contract: &str, part: &CopyPart, style: &Style) -> String {
    let mut page = Page::new(style);
    let ends =
        [("source", &part.source, &part.source_is), ("target", &part.target, &part.target_is)];
    for (role, name, is) in ends {
        let mut text = page.name(name, NAME);
        if !is.is_empty() {
            text += &format!(": {}", page.name(is, TEXT));
        }
        labelled(&mut page, (Ink::Dim, role), &text);
    }
    if !contract.is_empty() {
        let contract = page.name(contract, TEXT);
        labelled(&mut page, (Ink::Dim, "contract"), &contract);
    }
    let tried = part.plan.tried.iter().map(|step| (&step.mover, &step.reason, &step.probed));
    let spare = part.plan.spare.iter().map(|step| (&step.mover, &step.reason, &step.probed));
    for (at, (mover, reason, probed)) in tried.chain(spare).enumerate() {
        let mut text = page.name(reason, TEXT);
        if let Some(why) = probed {
            text += &format!("; probed, unsupported here: {}", page.name(why, TEXT));
        }
        of_mover(&mut page, (Ink::Dim, if at == 0 { "plan" } else { "then" }), mover, &text);
    }
    for unsuited in &part.plan.unsuited {
        let text = page.name(&unsuited.reason, TEXT);
        of_mover(&mut page, (Ink::Dim, "unsuited"), &unsuited.mover, &text);
    }
    page.finish()
}

/// The result: refused movers, the mover that served or failed, and the traffic.
pub fn copy_outcome(part: &CopyPart, style: &Style) -> String {
    let mut page = Page::new(style);
    for tried in &part.plan.tried {
        if let Some(refusal) = &tried.refused {
            let text = refused(&page, refusal);
            of_mover(&mut page, (Ink::Yellow, "refused"), &tried.mover, &text);
        }
    }
    let Some(mover) = &part.mover else { return page.finish() };
    let label = match part.error {
        Some(_) => (Ink::Red, "failed"),
        None => (Ink::Green, "chosen"),
    };
    let rate = part.bytes as f64 / (part.wall_ns as f64 / 1e9).max(1e-9);
    let text = format!("{}, {}/s", in_time(part.bytes, part.wall_ns), bytes(rate as u128));
    of_mover(&mut page, label, mover, &text);
    for (figure, what) in [
        (part.referenced_bytes, "bytes referenced"),
        (part.copied_bytes, "bytes copied, each copy counted"),
        (part.touched_bytes, "bytes touched in user space"),
    ] {
        of_mover(&mut page, (Ink::Plain, ""), &thousands(figure.into()), what);
    }
    page.finish()
}

/// The whole of a run.
pub fn copy_end(record: &CopyRun, style: &Style) -> String {
    let mut page = Page::new(style);
    let mut parts = vec![in_time(record.bytes, record.wall_ns)];
    if record.copies.len() > 1 {
        parts[0] += &format!(" from {}", counted(record.copies.len() as u128, "source", "sources"));
    }
    if let Some(ns) = record.fsync_ns {
        parts.push(format!("{} of it in syncs", duration(ns as f64)));
    }
    match record.verified {
        Some(true) => parts.push("read back: identical".to_owned()),
        Some(false) => parts.push("read back: different".to_owned()),
        None => {}
    }
    if record.errors > 0 {
        parts.push(counted(record.errors.into(), "error", "errors"));
    }
    let ink = if record.errors > 0 { Ink::Red } else { Ink::Bold };
    labelled(&mut page, (ink, "in all"), &parts.join("; "));
    findings::print(&mut page, &record.findings);
    page.finish()
}

fn in_time(n: u64, ns: u64) -> String {
    format!("{} in {}", counted(n.into(), "byte", "bytes"), duration(ns as f64))
}

fn refused(page: &Page<'_>, refusal: &MoverRefusal) -> String {
    let call = page.name(&refusal.call, NAME);
    match (&refusal.errno, refusal.said.as_str()) {
        (None, _) => format!("{call}: moved nothing, without an error"),
        (Some(errno), "") => format!("{call}: {}", page.name(errno, NAME)),
        (Some(_), said) => format!("{call}: {}", page.name(said, TEXT)),
    }
}

/// A text behind its label.
fn labelled(page: &mut Page<'_>, (ink, label): (Ink, &str), text: &str) {
    page.wrapped(&[(ink, &format!("{label:<10}"))], Ink::Plain, text);
}

/// A text behind its label and a mover's name, or a number.
fn of_mover(page: &mut Page<'_>, (ink, label): (Ink, &str), mover: &str, text: &str) {
    // A number of bytes is never cut.
    let name = page.name(mover, 2 * MOVER);
    let space = " ".repeat(1 + MOVER.saturating_sub(columns(&name)));
    let lead = [(ink, format!("{label:<10}")), (Ink::Plain, name + &space)];
    let lead: Vec<_> = lead.iter().map(|(ink, text)| (*ink, text.as_str())).collect();
    page.wrapped(&lead, Ink::Plain, text);
}

#[cfg(test)]
mod tests {
    use iotomy_record::store::Record;
    use iotomy_record::{CopyPlan, Machine, MoverReason, TriedMover, arbitrary};
    use proptest::prelude::*;

    use super::*;
    use crate::looks;

    fn reason(mover: &str, reason: &str) -> MoverReason {
        MoverReason { mover: mover.into(), reason: reason.into(), probed: None }
    }

    fn refusal() -> MoverRefusal {
        MoverRefusal {
            call: "copy_file_range".into(),
            errno: Some("EXDEV".into()),
            said: "Invalid cross-device link".into(),
        }
    }

    fn copy_part() -> CopyPart {
        let tried = |mover: &str, reason: &str, refused| TriedMover {
            mover: mover.into(),
            reason: reason.into(),
            probed: None,
            refused,
        };
        let one = "one copy inside the kernel in one crossing";
        CopyPart {
            source: "/dev/shm/a".into(),
            source_is: "regular file, 60,000 bytes, on tmpfs".into(),
            target: "b".into(),
            target_is: "new regular file, 0 bytes, on ext4".into(),
            mover: Some("sendfile".into()),
            bytes: 60_000,
            referenced_bytes: 60_000,
            copied_bytes: 60_000,
            touched_bytes: 0,
            wall_ns: 51_000,
            plan: CopyPlan {
                tried: vec![
                    tried("copy-file-range", &format!("{one}, or none"), Some(refusal())),
                    tried("sendfile", one, None),
                ],
                spare: vec![reason(
                    "read-write",
                    "serves every pair that the others do not: two \
                    copies",
                )],
                unsuited: vec![
                    reason("reflink", "source and target are on different file systems"),
                    reason("null", "it moves nothing"),
                ],
            },
            error: None,
            dirty_bytes: None,
        }
    }

    fn record() -> CopyRun {
        CopyRun {
            schema: CopyRun::SCHEMA.into(),
            started: "2025-03-01T10:20:30.5Z".into(),
            machine: Machine::default(),
            sources: vec!["/dev/shm/a".into()],
            target: "b".into(),
            mover: Some("sendfile".into()),
            bytes: 60_000,
            referenced_bytes: 60_000,
            copied_bytes: 60_000,
            touched_bytes: 0,
            wall_ns: 3_400_000,
            fsync_ns: Some(2_100_000),
            verified: Some(true),
            errors: 0,
            messages: Vec::new(),
            contract: "later writes may show through; holes of the source stay holes".into(),
            copies: vec![copy_part()],
            findings: Vec::new(),
        }
    }

    /// Two sources, the second of which failed in the middle.
    fn failed() -> CopyRun {
        let mut record = record();
        let mut second = copy_part();
        second.source = "/proc/\u{1b}[2Jhostile\nname".into();
        second.plan.tried.truncate(1);
        second.plan.tried[0].refused = None;
        second.plan.tried[0].probed = Some("copy_file_range: Function not implemented".into());
        second.mover = Some("copy-file-range".into());
        second.error = Some("copy_file_range: No space left on device".into());
        (second.bytes, second.referenced_bytes, second.copied_bytes) = (u64::MAX / 2, 0, u64::MAX);
        record.bytes += second.bytes;
        record.mover = None;
        record.copies.push(second);
        (record.verified, record.fsync_ns, record.errors) = (Some(false), None, 1);
        record.messages.push(
            "cannot write b: No space left on device after 9,223,372,036,854,775,807 bytes; b is \
             partial; free room, or use --atomic to keep the old file whole"
                .into(),
        );
        record
    }

    fn text(record: &CopyRun) -> String {
        copy(record, &Style::default())
    }

    #[test]
    fn a_copy() {
        insta::assert_snapshot!(text(&record()));
    }

    #[test]
    fn a_copy_that_failed() {
        insta::assert_snapshot!(text(&failed()));
    }

    #[test]
    fn narrow_and_ascii() {
        let style = Style { width: 60, unicode: false, ..Style::default() };
        insta::assert_snapshot!(copy(&failed(), &style));
    }

    #[test]
    fn a_record_of_before_there_were_descriptions_says_what_it_knows() {
        let mut old = record();
        old.contract.clear();
        (old.verified, old.fsync_ns) = (None, None);
        let part = &mut old.copies[0];
        part.source_is.clear();
        part.target_is.clear();
        part.plan.tried[0].refused = Some(MoverRefusal { said: String::new(), ..refusal() });
        insta::assert_snapshot!(text(&old));
    }

    #[test]
    fn the_pieces_are_the_whole() {
        let (record, style) = (record(), Style::default());
        let part = &record.copies[0];
        let pieces = copy_plan(&record.contract, part, &style) + &copy_outcome(part, &style);
        assert_eq!(pieces + &copy_end(&record, &style), text(&record));
    }

    #[test]
    fn a_page() {
        let record = Record::Copy(Box::new(record()));
        insta::assert_snapshot!(looks::page_alone(&record));
    }

    #[test]
    fn other_forms() {
        let record = Record::Copy(Box::new(record()));
        insta::assert_snapshot!(looks::other_forms(&record));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_record_renders_within_its_width(
            record in arbitrary::copy(), width in 0usize..200, unicode: bool,
        ) {
            looks::keeps_to(width, unicode, |style| copy(&record, style));
        }

        #[test]
        fn colour_changes_nothing_else(record in arbitrary::copy()) {
            looks::is_only_coloured(|style| copy(&record, style));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn any_record_is_inert_in_every_form(record in arbitrary::copy()) {
            looks::is_inert(&Record::Copy(Box::new(record)));
        }
    }
}
