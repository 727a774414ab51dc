//! JSON to records and back.
//!
//! The schema is looked for before anything else, so that a record of another kind or version is called
//! that and not "field `wall_ns` is missing"; it stands first in what iotomy writes, and what is behind it is read
//! once. Messages quote the record, so they are made
//! printable and short.

use std::borrow::Cow;
use std::{fmt, io};

use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::ser::Formatter;

use super::bounded::{Bounded, Budget};
use super::{MAX_BUILT_BYTES, RecordError};
use crate::{CpuCapacity, Trace, printable};

/// The longest quotation from a record in a message, in characters.
const QUOTED: usize = 200;

/// A kind of record.
pub(super) trait Stored: Serialize + DeserializeOwned {
    /// Its kind and version.
    const SCHEMA: &'static str;
    /// Its name, and the command that makes one.
    const WANTED: &'static str;

    /// Rules that the types cannot express.
    fn check(&self) -> Result<(), RecordError>;
}

/// Reads a trace from the bytes of a JSON record.
///
/// # Errors
/// When they are not a whole `iotomy.trace/1`; the error names the place.
pub fn parse_trace(bytes: &[u8]) -> Result<Trace, RecordError> {
    parse(bytes)
}

/// Reads a record from the bytes of its JSON.
pub(super) fn parse<R: Stored>(bytes: &[u8]) -> Result<R, RecordError> {
    check_schema::<R>(&schema(bytes)?)?;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let budget = Budget::new(MAX_BUILT_BYTES.min(built_at_most(bytes.len())));
    let record: R =
        serde_path_to_error::deserialize(Bounded::new(&mut json, &budget)).map_err(|e| {
            let (path, error) = (e.path().to_string(), e.inner());
            match error.classify() {
                // serde says so, too, of a variant with too many fields, in what is JSON.
                Category::Syntax if is_json_so_far(bytes) => field(&path, error),
                _ => misread(&path, error),
            }
        })?;
    json.end().map_err(|e| misread(".", &e))?;
    record.check()?;
    Ok(record)
}

/// Whether a text is JSON, or the beginning of such.
fn is_json_so_far(bytes: &[u8]) -> bool {
    match serde_json::from_slice::<IgnoredAny>(bytes) {
        Ok(_) => true,
        Err(error) => error.classify() == Category::Eof,
    }
}

/// The most that a text of this length is built into, if a run has made it: the rows of its tables are
/// longer as text than in memory, and a number of a distribution has two characters at least.
fn built_at_most(length: usize) -> u64 {
    (16 << 20) + 4 * length as u64
}

/// Writes a record as JSON, a line an item of its tables.
pub(super) fn write<R: Stored>(record: &R, to: &mut dyn io::Write) -> io::Result<()> {
    let mut json = serde_json::Serializer::with_formatter(&mut *to, Lines::default());
    record.serialize(&mut json).map_err(io::Error::from)?;
    to.write_all(b"\n")
}

/// The same in one line.
pub(super) fn line<R: Stored>(record: &R) -> Result<Vec<u8>, RecordError> {
    record.check()?;
    let line = serde_json::to_vec(record);
    let mut line = line.map_err(|e| RecordError::Unwritable { what: e.to_string() })?;
    line.push(b'\n');
    Ok(line)
}

/// Writes a record that holds what a record may.
pub(super) fn write_checked<R: Stored>(
    record: &R,
    to: &mut dyn io::Write,
) -> Result<(), RecordError> {
    record.check()?;
    write(record, to).map_err(|e| RecordError::Unwritable { what: e.to_string() })
}

/// Whether two ends of an overhead are a range of times.
fn check_range(name: &str, [low, high]: [f64; 2]) -> Result<(), RecordError> {
    if 0.0 <= low && low <= high && high.is_finite() {
        return Ok(());
    }
    Err(wrong(format!("observer.{name}"), format!("{low} … {high} is not a range of times")))
}

impl Stored for Trace {
    const SCHEMA: &'static str = Self::SCHEMA;
    const WANTED: &'static str = "a trace; `iotomy trace --json` makes one";

    fn check(&self) -> Result<(), RecordError> {
        check_schema::<Self>(&self.schema)?;
        let cost = self.observer.cost_ns_per_call;
        if !cost.is_finite() || cost < 0.0 {
            let what = format!("invalid cost {cost}; expected a number of ns, 0 or more");
            return Err(wrong("observer.cost_ns_per_call", what));
        }
        let [low, high] = [self.observer.cost_ns_low, self.observer.cost_ns_high];
        let is_absent = low == 0.0 && high == 0.0;
        let is_range = 0.0 <= low && low <= cost && cost <= high && high.is_finite();
        if !(is_absent || is_range) {
            let what = format!("{low} … {high} is not a range around {cost}");
            return Err(wrong("observer.cost_ns_low", what));
        }
        let of = &self.observer;
        check_range("cost_left_out_ns_low", [of.cost_left_out_ns_low, of.cost_left_out_ns_high])?;
        check_range("unwatched_ns_low", [of.unwatched_ns_low, of.unwatched_ns_high])?;
        check_capacity(self.cpu_capacity.as_ref())?;
        check_time("started", &self.started)
    }
}

fn check_capacity(capacity: Option<&CpuCapacity>) -> Result<(), RecordError> {
    let Some(CpuCapacity { cpus, quota, .. }) = capacity else { return Ok(()) };
    for (field, value) in [("cpus", Some(*cpus)), ("quota", *quota)] {
        if let Some(value) = value.filter(|value| !value.is_finite() || *value <= 0.0) {
            let what = format!("invalid capacity {value}; expected a number above 0");
            return Err(wrong(format!("cpu_capacity.{field}"), what));
        }
    }
    Ok(())
}

/// A value that cannot be.
pub(super) fn wrong(path: impl Into<String>, what: String) -> RecordError {
    RecordError::Value { path: path.into(), what }
}

/// Whether a field holds a time.
pub(super) fn check_time(path: &str, text: &str) -> Result<(), RecordError> {
    if is_rfc3339(text) {
        return Ok(());
    }
    Err(wrong(path, format!("invalid time \"{}\"; expected RFC 3339", quoted(text))))
}

/// The schema of a text that is JSON up to there; the rest is not read.
pub(super) fn schema(bytes: &[u8]) -> Result<String, RecordError> {
    match bytes.iter().find(|b| !b.is_ascii_whitespace()) {
        None => return Err(RecordError::Empty),
        Some(b'{') => {}
        // serde would take an array for a struct; a record is an object.
        Some(_) => {
            let what = "a record begins with `{`".to_string();
            return Err(RecordError::Syntax { line: 1, column: 1, what });
        }
    }
    let mut found = None;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let whole = json.deserialize_map(SchemaIn(&mut found)).and_then(|()| json.end());
    // Where it was found, the rest is unread, which is an error of the map's end.
    match (found, whole) {
        (Some(schema), _) => Ok(schema),
        (None, Err(error)) => Err(misread("schema", &error)),
        (None, Ok(())) => Err(RecordError::NoSchema),
    }
}

/// Looks for the schema among the fields of a record, and stops there.
struct SchemaIn<'a>(&'a mut Option<String>);

impl<'de> Visitor<'de> for SchemaIn<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<Cow<'_, str>>()? {
            if name == "schema" {
                *self.0 = fields.next_value()?;
                if self.0.is_some() {
                    return Ok(());
                }
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The kind a schema names: `trace` of `iotomy.trace/1`.
pub(super) fn kind(schema: &str) -> Option<&str> {
    schema.strip_prefix("iotomy.").and_then(|rest| rest.split('/').next())
}

pub(super) fn check_schema<R: Stored>(found: &str) -> Result<(), RecordError> {
    if found == R::SCHEMA {
        return Ok(());
    }
    let article = match kind(found) {
        same if same == kind(R::SCHEMA) => {
            return Err(RecordError::OtherVersion { found: quoted(found), known: R::SCHEMA });
        }
        Some("anatomy") => "an anatomy".to_string(),
        Some("d") => "a D".to_string(),
        Some(kind) if super::KINDS.contains(&kind) => format!("a {kind}"),
        _ => "an unknown".to_string(),
    };
    Err(RecordError::OtherKind { article, found: quoted(found), wanted: R::WANTED })
}

/// An error of a field, or of syntax.
fn misread(path: &str, error: &serde_json::Error) -> RecordError {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Eof => RecordError::Cut { line, column },
        Category::Data => field(path, error),
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
pub(super) fn quoted(text: &str) -> String {
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

/// Brackets around the rows of a table and the objects in them; deeper are distributions and the like.
const DEEP: usize = 4;

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
            // Distributions are most of a record: no blanks between their counts.
            (false, false) if self.depth > DEEP => b",",
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
