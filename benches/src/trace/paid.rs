//! The overhead that iotomy prints, compared with the CPU time that watched programs really lost.

use std::fs::File;

use anyhow::{Context, Result, bail};
use iotomy_record::store;

use crate::child::{Signals, guarded};
use crate::order::Order;
use crate::scratch::Scratch;
use crate::stats::{estimate, median};
use crate::tables::{digits, interval, table};
use crate::targets::{Bound, Target};
use crate::trace::workload::{Workload, cpu_ns};

/// The overhead of a workload, pair by pair: a watched run minus a bare one.
#[derive(Debug)]
pub(crate) struct PaidOverhead {
    pub(crate) workload: Workload,
    /// The reason why it was not, or no longer, measured.
    pub(crate) skipped: Option<String>,
    /// CPU time of the bare runs, in ns.
    pub(crate) bare: Vec<f64>,
    /// ns per call: the real overhead, and the ends of the printed range.
    pub(crate) paid: Vec<f64>,
    pub(crate) low: Vec<f64>,
    pub(crate) high: Vec<f64>,
    pub(crate) calls: Vec<f64>,
    /// Context switches per call.
    pub(crate) switches: Vec<f64>,
}

/// Measures every workload in this many `pairs`, each in random order.
pub(crate) fn measure(
    signals: &Signals,
    iotomy: &str,
    folder: &Scratch,
    order: &mut Order,
    pairs: u32,
) -> Result<Vec<PaidOverhead>> {
    let mut all: Vec<PaidOverhead> =
        Workload::ALL.into_iter().map(|one| PaidOverhead::new(one, folder)).collect();
    for _ in 0..pairs {
        for paid in &mut all {
            if paid.skipped.is_none()
                && let Err(error) = paid.pair(signals, iotomy, folder, order)
            {
                if error.is::<crate::child::Interrupted>() {
                    return Err(error);
                }
                paid.skipped = Some(format!("failed: {error:#}"));
            }
        }
    }
    Ok(all)
}

impl PaidOverhead {
    fn new(workload: Workload, folder: &Scratch) -> Self {
        Self {
            workload,
            skipped: workload.prepare(folder.path()).err(),
            bare: Vec::new(),
            paid: Vec::new(),
            low: Vec::new(),
            high: Vec::new(),
            calls: Vec::new(),
            switches: Vec::new(),
        }
    }

    fn pair(
        &mut self,
        signals: &Signals,
        iotomy: &str,
        folder: &Scratch,
        order: &mut Order,
    ) -> Result<()> {
        let record = folder.path().join("paid.json");
        let bare = self.workload.argv(folder.path())?;
        let json = record.to_string_lossy().into_owned();
        let watch = [iotomy, "trace", "-q", "--observer=bpf", "--json", &json, "--"];
        let watched = [&watch.map(str::to_owned)[..], &bare].concat();
        let bare_first = order.coin();
        let mut cpu = [0.0; 2];
        for is_bare in [bare_first, !bare_first] {
            run(signals, if is_bare { &bare } else { &watched })?;
            cpu[usize::from(!is_bare)] = cpu_ns(folder.path())?;
        }
        let seen = store::load_trace(&record).context("cannot read the record")?;
        let calls: u64 = seen.calls.iter().map(|row| row.calls).sum();
        let switches: u64 =
            seen.processes.iter().map(|p| p.voluntary_switches + p.involuntary_switches).sum();
        if calls == 0 || seen.observer.lost_events > 0 {
            bail!("{calls} calls seen, {} events lost", seen.observer.lost_events);
        }
        let calls = calls as f64;
        let [low, high] = seen.observer.cost_range_ns();
        self.bare.push(cpu[0]);
        self.paid.push((cpu[1] - cpu[0]) / calls);
        self.low.push(low);
        self.high.push(high);
        self.calls.push(calls);
        self.switches.push(switches as f64 / calls);
        Ok(())
    }

    /// Returns the target: the real overhead is within the printed range.
    pub(crate) fn target(&self) -> Target {
        let name = self.workload.name();
        let text = format!("{name}: CPU time paid a call, in the range printed");
        let bound = Bound {
            least: median(&self.low).unwrap_or(0.0),
            most: median(&self.high).unwrap_or(0.0),
            unit: "ns",
        };
        let reason = || self.skipped.clone().unwrap_or_else(|| "too few runs".to_owned());
        Target::new(&format!("paid-{name}"), text, bound, estimate(&self.paid).ok_or_else(reason))
    }
}

fn run(signals: &Signals, argv: &[String]) -> Result<()> {
    let null = File::options().write(true).open("/dev/null").context("cannot open /dev/null")?;
    let mut child = guarded(argv, null)?.spawn().context("cannot start a run")?;
    let status = signals.wait(&mut child)?;
    if !status.success() {
        bail!("it ended with {status}");
    }
    Ok(())
}

/// Formats a table of all workloads; the skipped ones are listed below it.
pub(crate) fn text(all: &[PaidOverhead]) -> String {
    let titles = [
        "program",
        "bare ms",
        "calls",
        "switches a call",
        "paid ns a call [95 %]",
        "printed ns a call",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let mut skipped = String::new();
    for one in all {
        if let Some(reason) = &one.skipped {
            skipped += &format!("\nskipped: {}: {reason}\n", one.workload.name());
        }
        let Some(paid) = estimate(&one.paid) else { continue };
        let middle = |samples: &[f64]| median(samples).unwrap_or_default();
        rows.push(vec![
            one.workload.name().to_owned(),
            digits(middle(&one.bare) / 1e6, 1),
            digits(middle(&one.calls), 0),
            digits(middle(&one.switches), 3),
            interval(paid, 0),
            format!("{:.0} … {:.0}", middle(&one.low), middle(&one.high)),
        ]);
    }
    table(&rows, 1) + &skipped
}

#[cfg(test)]
mod tests {
    use crate::targets::Verdict;

    use super::*;

    fn paid(paid: &[f64]) -> PaidOverhead {
        PaidOverhead {
            workload: Workload::Dd,
            skipped: None,
            bare: vec![1e8; paid.len()],
            paid: paid.to_vec(),
            low: vec![200.0; paid.len()],
            high: vec![600.0; paid.len()],
            calls: vec![1e5; paid.len()],
            switches: vec![0.0; paid.len()],
        }
    }

    #[test]
    fn a_price_is_judged_by_the_range_that_was_printed() {
        let verdict = |samples: &[f64]| paid(samples).target().verdict;
        assert_eq!(verdict(&[290.0, 300.0, 310.0, 300.0, 305.0, 295.0, 300.0]), Verdict::Met);
        assert_eq!(verdict(&[100.0, 300.0, 310.0, 300.0, 305.0, 295.0, 300.0]), Verdict::Undecided);
        assert_eq!(verdict(&[900.0, 905.0, 910.0, 900.0, 905.0, 895.0, 900.0]), Verdict::Missed);
        assert_eq!(verdict(&[]), Verdict::NotJudged);
    }

    #[test]
    fn a_workload_is_named_as_its_part_is_told() {
        for workload in Workload::ALL {
            let value = clap::ValueEnum::to_possible_value(&workload).unwrap();
            assert_eq!(value.get_name(), workload.name());
        }
    }
}
