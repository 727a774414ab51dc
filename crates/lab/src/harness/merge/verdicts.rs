//! The claims of a merged record: for each machine from its cases alone, and over all machines.

use std::collections::BTreeMap;

use iotomy_record::{Case, Claim, ClaimVerdict, SweepMachine};

use super::super::figures::{case_of, judged, judged_lacking, missing};
use super::Params;
use super::plan::WholePlan;

/// Judges the claims from the cases of one machine. Those that other machines ran have a place and
/// no samples, so that a claim that needs one is inconclusive and not decided by fewer cases.
pub(super) fn of_machine(plan: &WholePlan<'_>, own: &BTreeMap<Params, &Case>) -> Vec<Claim> {
    let elsewhere = plan.cases.len() - own.len();
    let place = |params: &Params| match own.get(params) {
        Some(case) => (*case).clone(),
        None => Case {
            skipped: Some(Case::NO_TIME.to_owned()),
            ..case_of(
                params.0.clone(),
                (plan.declared.metric, plan.declared.unit),
                Vec::new(),
                BTreeMap::new(),
            )
        },
    };
    let cases: Vec<Case> = plan.cases.iter().map(place).collect();
    if elsewhere == 0 {
        return judged(plan.declared, &cases);
    }
    let of_own: Vec<Case> = own.values().map(|case| (*case).clone()).collect();
    let lacks = format!(
        "{} ({elsewhere} of {} cases ran on other machines, and cases of two machines are not \
         compared)",
        missing(&of_own),
        plan.cases.len()
    );
    judged_lacking(plan.declared, &cases, &lacks)
}

/// Puts the verdicts of the machines together. `counts` are their numbers of cases.
///
/// A machine counts if it ran the whole plan, or if it decides the claim: of the others nobody knows
/// whether a case was missing.
pub(super) fn over_all(
    plan: &WholePlan<'_>,
    machines: &[SweepMachine],
    counts: &[usize],
) -> Vec<Claim> {
    let all = plan.cases.len();
    let over_all = |at: usize, declared: &crate::Claim| {
        let mut groups = Groups::default();
        for (machine, count) in machines.iter().zip(counts) {
            let (name, verdict) = (machine.machine.name.as_str(), machine.claims[at].verdict);
            match verdict {
                ClaimVerdict::Holds => groups.holds.push(name.to_owned()),
                ClaimVerdict::Fails => groups.fails.push(name.to_owned()),
                ClaimVerdict::Inconclusive if *count == all => {
                    groups.inconclusive.push(name.to_owned());
                }
                ClaimVerdict::Inconclusive => {
                    groups.without.push(format!("{name} ({count} of {all} cases)"));
                }
            }
        }
        Claim {
            id: declared.id.to_owned(),
            source: declared.source.to_owned(),
            text: declared.text.to_owned(),
            verdict: groups.verdict(),
            evidence: groups.evidence(),
            because: groups.because(),
        }
    };
    plan.declared.claims.iter().enumerate().map(|(at, claim)| over_all(at, claim)).collect()
}

/// The machines by their verdict on a claim.
#[derive(Default)]
struct Groups {
    holds: Vec<String>,
    fails: Vec<String>,
    inconclusive: Vec<String>,
    /// Those that ran a part of the plan and do not decide.
    without: Vec<String>,
}

impl Groups {
    fn verdict(&self) -> ClaimVerdict {
        match (self.holds.len(), self.fails.len(), self.inconclusive.len()) {
            (1.., 0, 0) => ClaimVerdict::Holds,
            (0, 1.., 0) => ClaimVerdict::Fails,
            _ => ClaimVerdict::Inconclusive,
        }
    }

    fn each(&self) -> [(&'static str, &'static str, &[String]); 4] {
        [
            ("machines_hold", "holds on", &self.holds),
            ("machines_fail", "fails on", &self.fails),
            ("machines_inconclusive", "inconclusive on", &self.inconclusive),
            ("machines_without_cases", "not decided on", &self.without),
        ]
    }

    fn evidence(&self) -> BTreeMap<String, serde_json::Value> {
        let each = self.each().into_iter();
        each.map(|(name, _, machines)| (name.to_owned(), machines.len().into())).collect()
    }

    fn because(&self) -> String {
        let present = self.each().into_iter().filter(|(_, _, machines)| !machines.is_empty());
        let parts = present.map(|(_, words, machines)| format!("{words} {}", listed(machines)));
        parts.collect::<Vec<_>>().join("; ")
    }
}

/// Machines that are named, at most.
const NAMED: usize = 6;

fn listed(names: &[String]) -> String {
    let named = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
