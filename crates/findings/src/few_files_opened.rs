//! Many opens, and few files that were used: the same in a record without paths.

use iotomy_record::numbers::{counted, duration, share, thousands};
use iotomy_record::{FileUse, Process, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::opened_again::{MANY, OPENS, WORTH};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "few-files-opened",
    verdict: Verdict::Advice,
    summary: "many opens, and few files that were read, written or mapped",
    description: "In a record without paths: a program opened files at least 1,000 times with \
        success, at least 100 times for each file that it read, wrote or mapped, and used one \
        of them about as often: between nine tenths and eight times of that. The opens took at least \
        1 % of the run's time. The rule excludes programs that read directories (a walk opens \
        each), and the record does not show which file the opens were for.",
    facts: &[Fact::Calls(&OPENS), Fact::Calls(&LISTS), Fact::Files, Fact::Paths],
    rules: &[Rule::Run(judge)],
};

const LISTS: [&str; 2] = ["getdents64", "getdents"];
const FOR_A_FILE: u64 = 100;

/// The opens of one image.
struct Opens<'r> {
    image: &'r Process,
    opens: u64,
    wall_ns: u64,
    files: u64,
    most_used: &'r FileUse,
}

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    if !run.trace.paths.is_empty() {
        return None;
    }
    let images = run.trace.processes.iter().filter_map(|image| of_image(run, image));
    let Opens { image, opens, wall_ns, files, most_used } = images.max_by_key(|one| one.opens)?;
    let text = format!(
        "{} made {} successful calls that open files, in {} ({} of the run's time), and used {}: {} {} times",
        image.name(),
        thousands(opens.into()),
        duration(wall_ns as f64),
        share(wall_ns.into(), run.trace.wall_ns.into()),
        counted(files.into(), "file", "files"),
        most_used.path,
        thousands(uses(most_used).into()),
    );
    let evidence = [
        ("exec", json!(image.exec)),
        ("opens", json!(opens)),
        ("wall_ns", json!(wall_ns)),
        ("files", json!(files)),
        ("path", json!(most_used.path)),
    ];
    let advice = "open it once and keep the descriptor; list the paths: iotomy trace --paths";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}

fn of_image<'r>(run: &'r Run<'_>, image: &'r Process) -> Option<Opens<'r>> {
    let rows = run.of_image(image.pid, &image.exec, image.image);
    let all = rows.total(&OPENS);
    let opens = all.calls.saturating_sub(all.errors);
    let files = rows.files.len() as u64;
    let most_used = rows.files.iter().copied().max_by_key(|file| uses(file))?;
    let is_worth = all.wall_ns >= run.trace.wall_ns / WORTH;
    let is_it = opens >= MANY.max(files.saturating_mul(FOR_A_FILE))
        && uses(most_used) >= opens - opens / 10
        && uses(most_used) / 8 <= opens
        && rows.total(&LISTS).calls <= opens / FOR_A_FILE
        && is_worth;
    is_it.then_some(Opens { image, opens, wall_ns: all.wall_ns, files, most_used })
}

fn uses(file: &FileUse) -> u64 {
    file.read_calls.saturating_add(file.write_calls).saturating_add(file.map_calls)
}
