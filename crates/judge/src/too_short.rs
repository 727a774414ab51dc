//! Runs that are little more than the start of a program.

use iotomy_record::numbers::duration;
use iotomy_record::{Race, Run as RaceRun, Verdict};
use serde_json::json;

use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "too-short",
    verdict: Verdict::Suspect,
    summary: "a large part of a run is the start of its program",
    description: "In half of a contender's timed runs or more, a fifth of the run or more had passed when its program was executed; \
                  loading and starting it comes on top. Much of what is compared is how programs start.",
    rules: &[Rule::Race(judge)],
};

const SHARE: f64 = 0.2;

fn judge(race: &Race) -> Vec<Found> {
    let of_contender = race.contenders.iter().filter_map(|contender| {
        // Of each run by itself: the median start and the median run may be of different ones.
        let share_of = |run: &RaceRun| run.startup_ns as f64 / (run.wall_ns as f64).max(1.0);
        let mut shares: Vec<f64> = contender.runs.iter().map(share_of).collect();
        shares.sort_by(f64::total_cmp);
        let half = *shares.get(shares.len().checked_sub(1)? / 2)?;
        let wall = contender.wall.median_ns;
        (half >= SHARE).then(|| {
            let text = format!(
                "{}: a run takes {} (median), and in half of the runs {:.0} % of it or more had passed when the program was executed: \
                 much of what is timed is the start of a program",
                contender.label,
                duration(wall),
                half.min(1.0) * 100.0
            );
            let evidence = [
                ("contender", json!(contender.label)),
                ("startup_share", json!(half)),
                ("wall_ns", json!(wall as u64)),
            ];
            Found::new(text, evidence).advise("give it more to do in one run")
        })
    });
    of_contender.collect()
}
