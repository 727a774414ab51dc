//! The rows of both sides, put together and judged.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Delta, DiffRow, DiffSideName, DiffVerdict};
use iotomy_stats::{deviate, median, permutation, shift_between};

use crate::facts::RunFacts;
use crate::left_out::Compared as Tables;
use crate::measures::Kind;
use crate::row::{Key, RowFacts};

/// The chance that one of all measures is called different and is not.
const LEVEL: f64 = 0.05;

/// Random assignments are the same in each comparison of the same records.
const SEED: u64 = 20_250_101;

/// What was compared.
pub(crate) struct Compared {
    pub(crate) judged: bool,
    pub(crate) totals: Vec<Delta>,
    pub(crate) programs: Table,
    pub(crate) calls: Table,
    pub(crate) ring_operations: Table,
    pub(crate) files: Table,
    pub(crate) peers: Table,
    pub(crate) requests: Table,
    pub(crate) paths: Table,
    pub(crate) groups: Table,
    pub(crate) threads: Table,
    pub(crate) layers: Table,
    pub(crate) functions: Table,
}

/// A table of both sides.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<DiffRow>,
    /// Of each measure of a row.
    kinds: Vec<Kind>,
}

impl Compared {
    fn tables(&mut self) -> [&mut Table; 11] {
        [
            &mut self.programs,
            &mut self.calls,
            &mut self.ring_operations,
            &mut self.files,
            &mut self.peers,
            &mut self.requests,
            &mut self.paths,
            &mut self.groups,
            &mut self.threads,
            &mut self.layers,
            &mut self.functions,
        ]
    }
}

/// Compares the runs of two sides, each of which has one at least; of the tables that are optional,
/// those in `has`.
pub(crate) fn compare(a: &[RunFacts], b: &[RunFacts], has: Tables) -> Compared {
    let judged = permutation::can_differ(a.len(), b.len(), LEVEL);
    let sampled = |of: TableOf| table(&side(a, of, true), &side(b, of, true));
    let counted = |is_there: bool, of: TableOf| match is_there {
        true => table(&side(a, of, false), &side(b, of, false)),
        false => Table::default(),
    };
    let whole = |runs: &[RunFacts]| -> Vec<Option<RowFacts>> {
        runs.iter().map(|run| Some(run.totals.clone())).collect()
    };
    let mut compared = Compared {
        judged,
        totals: row(&whole(a), &whole(b), [0.0; 2]).measures,
        programs: counted(true, |run| &run.programs),
        calls: counted(true, |run| &run.calls),
        ring_operations: counted(has.ring_operations, |run| &run.ring_operations),
        files: counted(has.files, |run| &run.files),
        peers: counted(has.peers, |run| &run.peers),
        requests: counted(has.requests, |run| &run.requests),
        paths: counted(has.paths, |run| &run.paths),
        groups: counted(has.groups, |run| &run.groups),
        threads: counted(has.threads, |run| &run.threads),
        layers: sampled(|run| &run.layers),
        functions: sampled(|run| &run.functions),
    };
    correct_sampling(&mut compared.layers.rows);
    correct_sampling(&mut compared.functions.rows);
    if judged {
        judge(&mut compared, a.len());
    }
    let is_single = a.len() == 1 && b.len() == 1;
    for Table { rows, kinds } in compared.tables() {
        for row in rows.iter_mut() {
            row.verdict = verdict(row, kinds, judged);
            if is_single {
                forget_runs(&mut row.measures);
            }
        }
        rows.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
    }
    for row in &mut compared.paths.rows {
        // A path is asked for so seldom that its time differs in any two runs.
        let is_called_alike = row.measure("calls").is_some_and(|calls| calls.delta() == 0.0);
        if row.verdict == DiffVerdict::Differs && is_single && is_called_alike {
            row.verdict = DiffVerdict::TimesDiffer;
        }
    }
    for row in &mut compared.peers.rows {
        // Its counts are equal; of times there are but those of single connections.
        if row.verdict == DiffVerdict::BelowOverhead {
            row.verdict = DiffVerdict::TimesDiffer;
        }
    }
    if is_single {
        forget_runs(&mut compared.totals);
    }
    compared
}

/// The single value of each side is its middle.
fn forget_runs(measures: &mut [Delta]) {
    for delta in measures {
        delta.runs_a.clear();
        delta.runs_b.clear();
    }
}

/// By how much a row matters: by time, or by bytes where there is no time.
fn weight(row: &DiffRow) -> f64 {
    let of = |name: &str| row.delta(name).abs();
    match () {
        () if row.measure("wall_ns").is_some() => of("wall_ns"),
        () if row.measure("voluntary_switches").is_some() => of("on_cpu_ns") + of("runnable_ns"),
        () if row.measure("thread_ns").is_some() => {
            of("user_ns") + of("calls_on_cpu_ns") + of("blocked_ns") + of("runnable_ns")
        }
        () if row.measure("read_bytes").is_some() => {
            let bytes = of("read_bytes") + of("write_bytes") + of("mapped_bytes");
            bytes
                + of("read_calls")
                + of("write_calls")
                + of("map_calls")
                + of("connections")
                + ["opened", "closed", "errors", "retransmits"].map(of).iter().sum::<f64>()
        }
        () => of("on_cpu_ns") + of("blocked_ns"),
    }
}

type TableOf = fn(&RunFacts) -> &BTreeMap<Key, RowFacts>;

/// A table of each run, and the error of a row that it has not.
type Side<'a> = [(&'a BTreeMap<Key, RowFacts>, f64)];

fn side(runs: &[RunFacts], of: TableOf, is_sampled: bool) -> Vec<(&BTreeMap<Key, RowFacts>, f64)> {
    runs.iter().map(|run| (of(run), if is_sampled { run.unseen } else { 0.0 })).collect()
}

fn table(a: &Side<'_>, b: &Side<'_>) -> Table {
    let keys: BTreeSet<&Key> = a.iter().chain(b).flat_map(|(rows, _)| rows.keys()).collect();
    let each = keys.into_iter().map(|key| {
        let of = |side: &Side<'_>| -> Vec<Option<RowFacts>> {
            side.iter().map(|(rows, _)| rows.get(key).cloned()).collect()
        };
        let unseen = |side: &Side<'_>| side.iter().map(|(_, unseen)| *unseen).fold(0.0, f64::max);
        let (in_a, in_b) = (of(a), of(b));
        let (program, name, part_of) = key.clone();
        let only_in = match (in_a.iter().any(Option::is_some), in_b.iter().any(Option::is_some)) {
            (true, false) => Some(DiffSideName::A),
            (false, true) => Some(DiffSideName::B),
            _ => None,
        };
        let row = row(&in_a, &in_b, [unseen(a), unseen(b)]);
        DiffRow { program, name, of: part_of, only_in, ..row }
    });
    let first = a.iter().chain(b).find_map(|(rows, _)| rows.values().next());
    let measures = first.into_iter().flat_map(|row| &row.measures);
    Table { rows: each.collect(), kinds: measures.map(|measure| measure.kind).collect() }
}

/// The measures of a row, which a run has at least; a run without it made none of its calls, in no time.
fn row(a: &[Option<RowFacts>], b: &[Option<RowFacts>], unseen: [f64; 2]) -> DiffRow {
    let measures = a.iter().chain(b).flatten().next().map_or(&[][..], |row| &row.measures);
    let most = |side: &[Option<RowFacts>], of: fn(&RowFacts) -> f64| {
        side.iter().flatten().map(of).fold(0.0, f64::max)
    };
    let overhead = most(a, |row| row.overhead).max(most(b, |row| row.overhead));
    let sampled = [a, b].map(|side| most(side, |row| row.sampling_error));
    let is_sampled = sampled.iter().any(|error| *error > 0.0);
    let error = match is_sampled {
        true => {
            let of = |at: usize| if sampled[at] > 0.0 { sampled[at] } else { unseen[at] };
            Some(of(0).hypot(of(1)))
        }
        false => None,
    };
    let values = |side: &[Option<RowFacts>], at: usize, kind: Kind| -> Vec<Option<f64>> {
        side.iter()
            .map(|row| match row {
                Some(row) => row.measures.get(at).and_then(|measure| measure.value),
                None => (kind != Kind::PerCall).then_some(0.0),
            })
            .collect()
    };
    let deltas = measures.iter().enumerate().map(|(at, measure)| {
        let (runs_a, runs_b) = (values(a, at, measure.kind), values(b, at, measure.kind));
        let middle =
            |runs: &[Option<f64>]| median(&runs.iter().copied().flatten().collect::<Vec<f64>>());
        let known = |runs: &[Option<f64>]| runs.iter().copied().collect::<Option<Vec<f64>>>();
        let interval = match (known(&runs_a), known(&runs_b)) {
            (Some(a), Some(b)) => shift_between(&a, &b, LEVEL),
            _ => None,
        };
        let is_time = measure.kind == Kind::Time;
        Delta {
            measure: measure.name,
            a: middle(&runs_a),
            b: middle(&runs_b),
            ci95: interval.map(|found| [found.low, found.high]),
            sampling_error: error.filter(|_| measure.name == "on_cpu_ns"),
            overhead: (is_time && overhead > 0.0 && !is_sampled).then_some(overhead),
            beyond_noise: None,
            runs_a,
            runs_b,
        }
    });
    let deltas = deltas.collect();
    let mut kinds: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for (at, side) in [a, b].into_iter().enumerate() {
        let names: BTreeSet<&String> =
            side.iter().flatten().flat_map(|row| row.error_kinds.keys()).collect();
        for name in names {
            let of = |row: &Option<RowFacts>| {
                row.as_ref().and_then(|row| row.error_kinds.get(name)).copied().unwrap_or(0.0)
            };
            let counts: Vec<f64> = side.iter().map(of).collect();
            kinds.entry(name.clone()).or_default()[at] = median(&counts).unwrap_or(0.0);
        }
    }
    let named = |side: &[Option<RowFacts>]| {
        let counts = side.iter().map(|row| row.as_ref().and_then(|row| row.names).unwrap_or(0));
        median(&counts.map(|count| count as f64).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let is_several = a.iter().chain(b).flatten().any(|row| row.names.is_some());
    let names = is_several.then(|| [named(a), named(b)]);
    DiffRow { measures: deltas, error_kinds: kinds, names, ..DiffRow::default() }
}

/// Widens the errors of sampling so that they hold 95 times in 100 for all rows of the table together.
fn correct_sampling(rows: &mut [DiffRow]) {
    let wider = deviate(LEVEL / (2.0 * rows.len().max(1) as f64)) / deviate(LEVEL / 2.0);
    for delta in rows.iter_mut().flat_map(|row| &mut row.measures) {
        delta.sampling_error = delta.sampling_error.map(|error| error * wider);
    }
}

/// Judges every measure that is known of all runs, all of them together.
fn judge(compared: &mut Compared, first: usize) {
    let mut totals = std::mem::take(&mut compared.totals);
    let rows = compared.tables().into_iter().flat_map(|table| &mut table.rows);
    let all: Vec<&mut Delta> = totals
        .iter_mut()
        .chain(rows.flat_map(|row| &mut row.measures))
        .filter(|delta| delta.runs_a.iter().chain(&delta.runs_b).all(Option::is_some))
        .collect();
    // Times and counts differ by factors rather than by amounts.
    let logs = |delta: &Delta| -> Vec<f64> {
        delta.runs_a.iter().chain(&delta.runs_b).flatten().map(|value| value.ln_1p()).collect()
    };
    let values: Vec<Vec<f64>> = all.iter().map(|delta| logs(delta)).collect();
    let adjusted = permutation::adjusted(&values, first, SEED);
    for (delta, p) in all.into_iter().zip(adjusted) {
        delta.beyond_noise = Some(p <= LEVEL);
    }
    compared.totals = totals;
}

fn verdict(row: &DiffRow, kinds: &[Kind], judged: bool) -> DiffVerdict {
    let is_equal = |delta: &Delta| {
        let mut all = delta.runs_a.iter().chain(&delta.runs_b);
        let first = all.next();
        all.all(|one| Some(one) == first)
    };
    let errors_are_equal = row.error_kinds.values().all(|[a, b]| a == b);
    if row.measures.iter().all(is_equal) && errors_are_equal {
        return DiffVerdict::Equal;
    }
    if judged {
        let beyond = row.measures.iter().any(|delta| delta.beyond_noise == Some(true));
        return if beyond { DiffVerdict::BeyondNoise } else { DiffVerdict::WithinNoise };
    }
    let of_kind = |kind: Kind| row.measures.iter().zip(kinds).filter(move |(_, one)| **one == kind);
    let counts_are_equal = errors_are_equal
        && of_kind(Kind::Count).chain(of_kind(Kind::Extent)).all(|(delta, _)| is_equal(delta));
    let is_below = |of: fn(&Delta) -> Option<f64>| {
        of_kind(Kind::Time).all(|(delta, _)| match of(delta) {
            Some(limit) => delta.delta().abs() <= limit,
            None => is_equal(delta),
        })
    };
    match counts_are_equal {
        true if is_below(|delta| delta.overhead) => DiffVerdict::BelowOverhead,
        true if is_below(|delta| delta.sampling_error) => DiffVerdict::WithinSampling,
        _ => DiffVerdict::Differs,
    }
}
