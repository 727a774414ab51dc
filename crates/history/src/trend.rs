//! A measure over time, and where its level changed.

use iotomy_record::label::label;
use iotomy_record::measures::{earlier_name, present_name};
use iotomy_record::{Point, Trend};
use iotomy_stats::changes;
use rusqlite::params;

use crate::{HistoryError, KeptMachine, Store};

/// The rate of false changes. A trend is viewed repeatedly, and days are less independent than
/// runs, so it is below the usual 5 in 100.
const ALPHA: f64 = 0.01;

/// Repeats the answer.
const SEED: u64 = 1;

/// The measurements that are used: the work grows with their square.
const MOST: usize = 400;

/// Kinds of runs, the least disturbed times first.
const KINDS: [&str; 7] = ["race", "limits", "sweep", "copy", "trace", "anatomy", "d"];

/// The subject of a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Series<'a> {
    pub(crate) kind: &'a str,
    pub(crate) subject: &'a str,
    pub(crate) measure: &'a str,
}

/// The trend that is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The subject, or a part of one.
    pub subject: &'a str,
    /// The kind of runs; without it, the one least disturbed by being watched.
    pub kind: Option<&'a str>,
    /// The measure; without it, the first one.
    pub measure: Option<&'a str>,
    /// At most so many runs of a machine, the last ones.
    pub most: Option<usize>,
    /// Only of this machine.
    pub machine: Option<&'a KeptMachine>,
}

impl Store {
    /// A measure over the last runs, of each machine by itself, in the order of their names.
    ///
    /// # Errors
    /// When nothing is kept of it, or the history cannot be read.
    pub fn trends(&self, wanted: &Asked<'_>) -> Result<Vec<Trend>, HistoryError> {
        let Asked { subject: asked, kind, measure, most, machine } = *wanted;
        let subject = self.subject(asked)?;
        let kinds = self.texts(
            "SELECT DISTINCT runs.kind FROM measures JOIN runs ON runs.id = measures.run \
             WHERE measures.subject = ?1 AND (?2 IS NULL OR runs.kind = ?2)",
            params![subject, kind],
        )?;
        let place = |kind: &String| KINDS.iter().position(|one| one == kind).unwrap_or(KINDS.len());
        let Some(kind) = kinds.into_iter().min_by_key(place) else {
            return Err(HistoryError::NoTrend {
                asked: asked.to_owned(),
                alike: "; try another kind: some runs have one".to_owned(),
            });
        };
        let names = self.texts(
            "SELECT measures.name FROM measures JOIN runs ON runs.id = measures.run \
             WHERE measures.subject = ?1 AND runs.kind = ?2 GROUP BY measures.name \
             ORDER BY min(measures.place)",
            params![subject, kind],
        )?;
        let names = with_present_names(names);
        let asked_measure = measure.map(|one| match names.iter().any(|name| name == one) {
            true => one.to_owned(),
            false => present_name(one).to_owned(),
        });
        let wanted = asked_measure.or_else(|| names.first().cloned());
        let Some(measure) = wanted.filter(|wanted| names.contains(wanted)) else {
            return Err(HistoryError::NoTrend {
                asked: format!("{} of {asked}", measure.unwrap_or_default()),
                alike: format!("; known: {}", names.join(", ")),
            });
        };
        let series = Series { kind: &kind, subject: &subject, measure: &measure };
        let others: Vec<String> = names.iter().filter(|name| **name != measure).cloned().collect();
        let machines = self.machines_of_series(series)?;
        let all = self.count(series)?;
        let mut trends = Vec::new();
        for one in machines.iter().filter(|one| machine.is_none_or(|wanted| wanted == *one)) {
            let (mut points, unit) = self.points(series, one)?;
            let elsewhere = match machine.is_some() || machines.len() == 1 {
                true => all.saturating_sub(points.len() as u64),
                // The others are told by themselves.
                false => 0,
            };
            points.drain(..points.len().saturating_sub(most.unwrap_or(MOST).min(MOST)));
            let values: Vec<f64> = points.iter().map(|point| point.value).collect();
            trends.push(Trend {
                changes: changes(&values, ALPHA, SEED),
                others: others.clone(),
                kind: kind.clone(),
                subject: subject.clone(),
                measure: measure.clone(),
                unit,
                points,
                machine: match machines.iter().filter(|other| other.name == one.name).count() {
                    1 => one.title(),
                    _ => one.long_title(),
                },
                elsewhere,
            });
        }
        match trends.is_empty() {
            true => Err(HistoryError::NoTrend {
                asked: asked.to_owned(),
                alike: machine.map_or_else(String::new, |one| format!(" on {}", one.title())),
            }),
            false => Ok(trends),
        }
    }

    /// The subject of this name, or the only one with it in its name.
    fn subject(&self, asked: &str) -> Result<String, HistoryError> {
        let asked = &label(asked);
        let found = self.texts(
            "SELECT DISTINCT subject FROM measures WHERE instr(subject, ?) > 0 ORDER BY subject",
            [asked],
        )?;
        if found.contains(asked) {
            return Ok(asked.clone());
        }
        if let [only] = found.as_slice() {
            return Ok(only.clone());
        }
        let all = match found.is_empty() {
            true => self.texts("SELECT DISTINCT subject FROM measures ORDER BY subject", [])?,
            false => found,
        };
        let few: Vec<String> = all.iter().take(5).map(|one| format!("{one:?}")).collect();
        let more = if all.len() > few.len() { ", …" } else { "" };
        let alike = match few.is_empty() {
            true => "; keep a run with --save".to_owned(),
            false => format!("; known: {}{more}", few.join(", ")),
        };
        Err(HistoryError::NoTrend { asked: asked.clone(), alike })
    }

    /// The machines that have runs of a series.
    fn machines_of_series(&self, series: Series<'_>) -> Result<Vec<KeptMachine>, HistoryError> {
        let condition = "runs.kind = ?4 AND runs.id IN (SELECT run FROM measures \
                         WHERE measures.subject = ?1 AND measures.name IN (?2, ?3))";
        let wanted =
            params![series.subject, series.measure, earlier_name(series.measure), series.kind];
        self.machines_of(condition, wanted)
    }

    fn count(&self, series: Series<'_>) -> Result<u64, HistoryError> {
        let text = "SELECT count(*) FROM measures JOIN runs ON runs.id = measures.run \
                    WHERE measures.subject = ?1 AND measures.name IN (?2, ?3) AND runs.kind = ?4";
        let wanted =
            params![series.subject, series.measure, earlier_name(series.measure), series.kind];
        let found = self.connection.query_row(text, wanted, |row| row.get::<_, i64>(0));
        found.map(i64::cast_unsigned).map_err(|error| self.failed("read", &error))
    }

    /// The points of a series on one machine, and its unit.
    fn points(
        &self,
        series: Series<'_>,
        machine: &KeptMachine,
    ) -> Result<(Vec<Point>, String), HistoryError> {
        let failed = |error: rusqlite::Error| self.failed("read", &error);
        let text = format!(
            "SELECT runs.id, runs.name, runs.started, measures.value, measures.runs, \
             runs.kernel, runs.version, measures.unit \
             FROM measures JOIN runs ON runs.id = measures.run \
             WHERE measures.subject = ?1 AND measures.name IN (?2, ?3) AND runs.kind = ?4 \
             AND {} ORDER BY runs.started, runs.id",
            machine.condition(self.machine_column())
        );
        let mut query = self.connection.prepare(&text).map_err(failed)?;
        let wanted =
            params![series.subject, series.measure, earlier_name(series.measure), series.kind];
        let rows = query.query_map(wanted, |row| {
            let number = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
            let point = Point {
                id: number(0)?,
                name: row.get(1)?,
                started: row.get(2)?,
                value: row.get(3)?,
                runs: number(4)?,
                kernel: row.get(5)?,
                version: row.get(6)?,
            };
            Ok((point, row.get::<_, String>(7)?))
        });
        let rows = rows.map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let unit = rows.last().map_or_else(String::new, |(_, unit)| unit.clone());
        // A measure with the same name and another unit is another measure.
        let same = rows.into_iter().filter(|(_, other)| *other == unit);
        Ok((same.map(|(point, _)| point).collect(), unit))
    }

    /// The texts that a query finds.
    pub(crate) fn texts(
        &self,
        text: &str,
        wanted: impl rusqlite::Params,
    ) -> Result<Vec<String>, HistoryError> {
        let failed = |error: rusqlite::Error| self.failed("read", &error);
        let mut query = self.connection.prepare(text).map_err(failed)?;
        let rows = query.query_map(wanted, |row| row.get(0)).map_err(failed)?;
        rows.collect::<Result<Vec<String>, _>>().map_err(failed)
    }
}

/// Each measure once, under its present name.
fn with_present_names(names: Vec<String>) -> Vec<String> {
    let mut present: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let name = present_name(&name);
        if present.iter().all(|known| known != name) {
            present.push(name.to_owned());
        }
    }
    present
}
