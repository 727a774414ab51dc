//! A record of any kind.

use std::io;
use std::path::Path;

use super::parse::{self, Stored};
use super::{OutputFile, RecordError, StoreError};
use crate::{Anatomy, CopyRun, DRun, Limits, Machine, Race, Sweep, Trace};

/// A record of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// `iotomy.trace/1`.
    Trace(Box<Trace>),
    /// `iotomy.race/1`.
    Race(Box<Race>),
    /// `iotomy.copy/1`.
    Copy(Box<CopyRun>),
    /// `iotomy.limits/1`.
    Limits(Box<Limits>),
    /// `iotomy.sweep/1`.
    Sweep(Box<Sweep>),
    /// `iotomy.anatomy/1`.
    Anatomy(Box<Anatomy>),
    /// `iotomy.d/1`.
    D(Box<DRun>),
}

impl Record {
    /// The same, lent.
    pub fn as_ref(&self) -> RecordRef<'_> {
        match self {
            Self::Trace(trace) => RecordRef::Trace(trace),
            Self::Race(race) => RecordRef::Race(race),
            Self::Copy(copy) => RecordRef::Copy(copy),
            Self::Limits(limits) => RecordRef::Limits(limits),
            Self::Sweep(sweep) => RecordRef::Sweep(sweep),
            Self::Anatomy(anatomy) => RecordRef::Anatomy(anatomy),
            Self::D(run) => RecordRef::D(run),
        }
    }
}

/// A record of any kind that belongs to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RecordRef<'a> {
    /// `iotomy.trace/1`.
    Trace(&'a Trace),
    /// `iotomy.race/1`.
    Race(&'a Race),
    /// `iotomy.copy/1`.
    Copy(&'a CopyRun),
    /// `iotomy.limits/1`.
    Limits(&'a Limits),
    /// `iotomy.sweep/1`.
    Sweep(&'a Sweep),
    /// `iotomy.anatomy/1`.
    Anatomy(&'a Anatomy),
    /// `iotomy.d/1`.
    D(&'a DRun),
}

impl<'a> RecordRef<'a> {
    /// Its kind and version.
    pub fn schema(self) -> &'static str {
        match self {
            Self::Trace(_) => Trace::SCHEMA,
            Self::Race(_) => Race::SCHEMA,
            Self::Copy(_) => CopyRun::SCHEMA,
            Self::Limits(_) => Limits::SCHEMA,
            Self::Sweep(_) => Sweep::SCHEMA,
            Self::Anatomy(_) => Anatomy::SCHEMA,
            Self::D(_) => DRun::SCHEMA,
        }
    }

    /// Its JSON in one line, with the line's end.
    ///
    /// # Errors
    /// It holds what a record may not.
    pub fn line(self) -> Result<Vec<u8>, RecordError> {
        match self {
            Self::Trace(one) => parse::line(one),
            Self::Race(one) => parse::line(one),
            Self::Copy(one) => parse::line(one),
            Self::Limits(one) => parse::line(one),
            Self::Sweep(one) => parse::line(one),
            Self::Anatomy(one) => parse::line(one),
            Self::D(one) => parse::line(one),
        }
    }

    /// When the run began, RFC 3339.
    pub fn started(self) -> &'a str {
        match self {
            Self::Trace(trace) => &trace.started,
            Self::Race(race) => &race.started,
            Self::Copy(copy) => &copy.started,
            Self::Limits(limits) => &limits.started,
            Self::Sweep(sweep) => &sweep.started,
            Self::Anatomy(anatomy) => &anatomy.started,
            Self::D(run) => &run.started,
        }
    }

    /// Where it ran.
    pub fn machine(self) -> &'a Machine {
        match self {
            Self::Trace(trace) => &trace.machine,
            Self::Race(race) => &race.machine,
            Self::Copy(copy) => &copy.machine,
            Self::Limits(limits) => &limits.machine,
            Self::Sweep(sweep) => &sweep.machine,
            Self::Anatomy(anatomy) => &anatomy.trace.machine,
            Self::D(run) => &run.machine,
        }
    }

    /// The bytes of its JSON, as `--json` writes them: a line an item of its tables, so that line tools and `diff`
    /// have something to hold on to.
    ///
    /// # Errors
    /// When it has content that no record may have.
    pub fn json(self) -> Result<Vec<u8>, RecordError> {
        let mut bytes = Vec::new();
        self.write_json(&mut bytes)?;
        Ok(bytes)
    }

    /// As [`RecordRef::json`], into `to`, piece by piece.
    ///
    /// # Errors
    /// As [`RecordRef::json`]; or `to` cannot be written to.
    pub fn write_json(self, to: &mut dyn io::Write) -> Result<(), RecordError> {
        match self {
            Self::Trace(trace) => parse::write_checked(trace, to),
            Self::Race(race) => parse::write_checked(race, to),
            Self::Copy(copy) => parse::write_checked(copy, to),
            Self::Limits(limits) => parse::write_checked(limits, to),
            Self::Sweep(sweep) => parse::write_checked(sweep, to),
            Self::Anatomy(anatomy) => parse::write_checked(anatomy, to),
            Self::D(run) => parse::write_checked(run, to),
        }
    }

    /// Writes its JSON to `path`, as [`OutputFile::write`] writes.
    ///
    /// # Errors
    /// As [`RecordRef::save`].
    pub fn save_to(self, path: &Path, base_dir: &Path) -> Result<(), StoreError> {
        self.save(OutputFile::open(path, base_dir)?)
    }

    /// Writes its JSON to an output.
    ///
    /// # Errors
    /// When it has content that no record may have, or the output cannot be written whole.
    pub fn save(self, to: OutputFile) -> Result<(), StoreError> {
        match self {
            Self::Trace(trace) => save(trace, to),
            Self::Race(race) => save(race, to),
            Self::Copy(copy) => save(copy, to),
            Self::Limits(limits) => save(limits, to),
            Self::Sweep(sweep) => save(sweep, to),
            Self::Anatomy(anatomy) => save(anatomy, to),
            Self::D(run) => save(run, to),
        }
    }
}

fn save<R: Stored>(record: &R, to: OutputFile) -> Result<(), StoreError> {
    record.check().map_err(|source| StoreError::Record { path: to.name().to_owned(), source })?;
    to.put_with(|to| parse::write(record, to))
}

#[cfg(test)]
mod tests {
    use super::super::KINDS;
    use super::*;

    #[test]
    fn every_schema_is_of_a_kind_and_every_kind_has_one() {
        let schemas = [
            Trace::SCHEMA,
            Anatomy::SCHEMA,
            Race::SCHEMA,
            CopyRun::SCHEMA,
            Limits::SCHEMA,
            Sweep::SCHEMA,
            DRun::SCHEMA,
        ];
        assert_eq!(schemas.map(|schema| parse::kind(schema).unwrap()), KINDS);
    }
}
