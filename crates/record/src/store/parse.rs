//! JSON to [`Trace`] and [`Race`] and back.
//!
//! The schema is read before anything else, so that a record of another kind or version is called
//! that and not "field `wall_ns` is missing". Messages quote the record, so they are made
//! printable and short.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::ser::Formatter;

use super::RecordError;
use crate::{Race, Spread, Trace, printable};

/// The longest quotation from a record in a message, in characters.
const QUOTED: usize = 200;

/// Reads a trace from the bytes of a JSON record.
///
/// # Errors
/// When they are not a whole `iotomy.trace/1`; the error names the place.
pub fn parse_trace(bytes: &[u8]) -> Result<Trace, RecordError> {
    check_schema(&schema(bytes)?, Trace::SCHEMA)?;
    let trace: Trace = fields(bytes)?;
    check(&trace)?;
    Ok(trace)
}

/// Reads a race from the bytes of a JSON record.
///
/// # Errors
/// When they are not a whole `iotomy.race/1`; the error names the place.
pub fn parse_race(bytes: &[u8]) -> Result<Race, RecordError> {
    check_schema(&schema(bytes)?, Race::SCHEMA)?;
    let race: Race = fields(bytes)?;
    check_race(&race)?;
    Ok(race)
}

/// A record of any kind this version knows.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// Of `iotomy trace`.
    Trace(Box<Trace>),
    /// Of `iotomy race`.
    Race(Box<Race>),
}

/// Reads a record of any known kind.
///
/// # Errors
/// When the bytes are no whole record of a known kind and version; the error names the place.
pub fn parse_record(bytes: &[u8]) -> Result<Record, RecordError> {
    if schema(bytes)?.starts_with("iotomy.race/") {
        return parse_race(bytes).map(|race| Record::Race(Box::new(race)));
    }
    parse_trace(bytes).map(|trace| Record::Trace(Box::new(trace)))
}

/// The fields of a record whose schema was read, and so its whole text gone through: from here on
/// it is JSON, to its end.
fn fields<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RecordError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut json).map_err(|e| field(&e.path().to_string(), e.inner()))
}

/// Writes a trace as a JSON record: a line a call, file, process and finding, so that line tools
/// and `diff` have something to hold on to.
///
/// # Errors
/// What `to` says.
pub fn write_trace(trace: &Trace, to: &mut dyn io::Write) -> io::Result<()> {
    let mut json = serde_json::Serializer::with_formatter(&mut *to, Lines::default());
    trace.serialize(&mut json).map_err(io::Error::from)?;
    to.write_all(b"\n")
}

/// Writes a race as a JSON record, as [`write_trace`] does.
///
/// # Errors
/// What `to` says.
pub fn write_race(race: &Race, to: &mut dyn io::Write) -> io::Result<()> {
    let mut json = serde_json::Serializer::with_formatter(&mut *to, Lines::default());
    race.serialize(&mut json).map_err(io::Error::from)?;
    to.write_all(b"\n")
}

/// What the types cannot say.
pub(super) fn check(trace: &Trace) -> Result<(), RecordError> {
    check_schema(&trace.schema, Trace::SCHEMA)?;
    let cost = trace.observer.cost_ns_per_call;
    if !cost.is_finite() || cost < 0.0 {
        let what = format!("{cost} is no cost; expected a number of ns, 0 or more");
        return Err(RecordError::Value { path: "observer.cost_ns_per_call", what });
    }
    check_started(&trace.started)
}

/// The same of a race.
pub(super) fn check_race(race: &Race) -> Result<(), RecordError> {
    check_schema(&race.schema, Race::SCHEMA)?;
    check_started(&race.started)?;
    for contender in &race.contenders {
        contender.trace.as_ref().map_or(Ok(()), check)?;
        for Spread { median_ns, ci95, min_ns, max_ns, mean_ns, stddev_ns, .. } in
            [contender.wall, contender.cpu]
        {
            let [low, high] = ci95.unwrap_or_default();
            finite("contenders", &[median_ns, low, high, min_ns, max_ns, mean_ns, stddev_ns])?;
        }
    }
    for comparison in &race.comparisons {
        let [mean_low, mean_high] = comparison.mean_ci95.unwrap_or_default();
        let mean = comparison.mean_ratio.unwrap_or_default();
        let [low, high] = comparison.ci95;
        finite("comparisons", &[comparison.ratio, low, high, mean, mean_low, mean_high])?;
    }
    finite("plan.min_effect", &[race.plan.min_effect])?;
    finite("harness.call_ns", &[race.harness.call_ns.unwrap_or_default()])?;
    finite("harness.fault_ns", &[race.harness.fault_ns.unwrap_or_default()])?;
    for label in &race.order {
        if race.contender(label).is_none() {
            let what = format!("\"{}\" is the label of no contender", quoted(label));
            return Err(RecordError::Value { path: "order", what });
        }
    }
    Ok(())
}

fn finite(path: &'static str, numbers: &[f64]) -> Result<(), RecordError> {
    match numbers.iter().find(|number| !number.is_finite() || **number < 0.0) {
        None => Ok(()),
        Some(number) => {
            let what = format!("{number} cannot be; expected a number of 0 or more");
            Err(RecordError::Value { path, what })
        }
    }
}

fn check_started(started: &str) -> Result<(), RecordError> {
    if is_rfc3339(started) {
        return Ok(());
    }
    let what = format!("\"{}\" is no time; expected RFC 3339", quoted(started));
    Err(RecordError::Value { path: "started", what })
}

/// The schema of a record, of which the whole text is gone through.
fn schema(bytes: &[u8]) -> Result<String, RecordError> {
    match bytes.iter().find(|b| !b.is_ascii_whitespace()) {
        None => return Err(RecordError::Empty),
        Some(b'{') => {}
        // serde would take an array for a struct; a record is an object.
        Some(_) => {
            let what = "a record begins with `{`".to_string();
            return Err(RecordError::Syntax { line: 1, column: 1, what });
        }
    }
    #[derive(Deserialize)]
    struct Header {
        schema: Option<String>,
    }
    let header: Header = serde_json::from_slice(bytes).map_err(|e| syntax(&e))?;
    header.schema.ok_or(RecordError::NoSchema)
}

fn check_schema(found: &str, known: &'static str) -> Result<(), RecordError> {
    if found == known {
        return Ok(());
    }
    let kind_of = |schema: &str| {
        Some(schema.strip_prefix("iotomy.")?.split('/').next().unwrap_or_default().to_owned())
    };
    let wanted = kind_of(known).unwrap_or_default();
    let kind = kind_of(found);
    if kind.as_ref() == Some(&wanted) {
        return Err(RecordError::OtherVersion { found: quoted(found), known });
    }
    let article = match kind.as_deref() {
        Some("anatomy") => "an anatomy".to_string(),
        Some(kind @ ("trace" | "race" | "sweep" | "limits")) => format!("a {kind}"),
        _ => "an unknown".to_string(),
    };
    Err(RecordError::OtherKind { article, found: quoted(found), wanted })
}

/// An error of the first pass, which may be one of syntax.
fn syntax(error: &serde_json::Error) -> RecordError {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Eof => RecordError::Cut { line, column },
        Category::Data => field("schema", error),
        Category::Syntax | Category::Io => {
            RecordError::Syntax { line, column, what: without_place(error) }
        }
    }
}

/// An error of a field, `.` being the whole record.
fn field(path: &str, error: &serde_json::Error) -> RecordError {
    RecordError::Field {
        path: if path == "." { "the top".into() } else { quoted(path) },
        line: error.line(),
        column: error.column(),
        what: without_place(error),
    }
}

fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    quoted(text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what))
}

/// A part of the record fit for a message.
fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTED).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    printable(&short, true)
}

/// Whether `text` has the form `2025-01-31T23:59:60.123+01:00`, each part within its range.
fn is_rfc3339(text: &str) -> bool {
    let b = text.as_bytes();
    let shape = |at: usize, pattern: &[u8]| {
        b.len() >= at + pattern.len()
            && pattern.iter().zip(&b[at..]).all(|(p, c)| match p {
                b'0' => c.is_ascii_digit(),
                b'T' => matches!(c, b'T' | b't' | b' '),
                p => p == c,
            })
    };
    let two = |at: usize| (b[at] - b'0') * 10 + (b[at + 1] - b'0');
    if b.len() > 64 || !shape(0, b"0000-00-00T00:00:00") {
        return false;
    }
    let zone = match b.get(19) {
        Some(b'.') => {
            let digits = b[20..].iter().take_while(|c| c.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            20 + digits
        }
        _ => 19,
    };
    let zone_is_whole = match b.get(zone) {
        Some(b'Z' | b'z') => b.len() == zone + 1,
        Some(b'+' | b'-') => {
            b.len() == zone + 6
                && shape(zone + 1, b"00:00")
                && two(zone + 1) <= 23
                && two(zone + 4) <= 59
        }
        _ => false,
    };
    zone_is_whole
        && (1..=12).contains(&two(5))
        && (1..=31).contains(&two(8))
        && two(11) <= 23
        && two(14) <= 59
        && two(17) <= 60
}

/// Compact JSON with line breaks around the first two levels only.
#[derive(Default)]
struct Lines {
    depth: usize,
    filled: bool,
}

impl Lines {
    /// Whether the items of the innermost bracket stand on lines of their own.
    fn breaks(&self) -> bool {
        self.depth <= 2
    }

    fn open<W: ?Sized + io::Write>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        to.write_all(bracket)
    }

    fn close<W: ?Sized + io::Write>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        if self.filled && self.breaks() {
            to.write_all(b"\n")?;
        }
        self.depth -= 1;
        self.filled = true;
        to.write_all(bracket)
    }

    fn item<W: ?Sized + io::Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.filled = true;
        to.write_all(match (first, self.breaks()) {
            (true, true) => b"\n",
            (false, true) => b",\n",
            (true, false) => b"",
            (false, false) => b", ",
        })
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.open(to, b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.close(to, b"]")
    }

    fn begin_array_value<W>(&mut self, to: &mut W, first: bool) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        self.item(to, first)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.open(to, b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.close(to, b"}")
    }

    fn begin_object_key<W>(&mut self, to: &mut W, first: bool) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        self.item(to, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
