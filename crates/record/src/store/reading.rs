//! The bytes of a file that may be a record: as many as a record may have, and no more than it takes to tell that it
//! is none.
//!
//! The one invariant: a text is held whole only if it is a record as far as it has been read. It is looked at when its
//! first bytes are there, and whenever it has grown eightfold: a device that gives bytes without end is refused early,
//! and the looks take a seventh of the time of the last.

use std::io::{self, Cursor, Read};
use std::path::Path;

use super::source::{Source, open_source};
use super::{MAX_RECORD_BYTES, RecordError, StoreError, error, open_trusted, shown};

/// The first bytes that are looked at, and by how much a text has grown when it is looked at again.
const FIRST: u64 = 64 << 10;
const GROWTH: u64 = 8;

/// Reads a record from `path`, or from standard input where that is `-`, with the bytes of it.
pub(super) fn load<R>(
    path: &Path,
    parse: impl Fn(&[u8]) -> Result<R, RecordError>,
) -> Result<(R, Vec<u8>), StoreError> {
    let name = shown(path, "standard input");
    let read = || match path == Path::new("-") {
        true => read(io::stdin().lock(), 0, MAX_RECORD_BYTES, &parse),
        false => read_file(open_source(path)?, &parse),
    };
    finish(name, read(), parse)
}

/// The same from a file that only this user or root can have written.
pub(super) fn load_trusted<R>(
    path: &Path,
    parse: impl Fn(&[u8]) -> Result<R, RecordError>,
) -> Result<R, StoreError> {
    let read = || read_file(Source { head: Vec::new(), file: open_trusted(path)? }, &parse);
    finish(shown(path, ""), read(), parse).map(|(record, _)| record)
}

/// What a file gave.
#[derive(Debug)]
enum Text {
    Whole(Vec<u8>),
    /// There is more of it than of any record.
    TooLarge,
    /// It begins like no record.
    NoRecord(RecordError),
}

fn finish<R>(
    path: String,
    read: io::Result<Text>,
    parse: impl Fn(&[u8]) -> Result<R, RecordError>,
) -> Result<(R, Vec<u8>), StoreError> {
    match read {
        Ok(Text::Whole(bytes)) => match parse(&bytes) {
            Ok(record) => Ok((record, bytes)),
            Err(source) => Err(StoreError::Record { path, source }),
        },
        Ok(Text::NoRecord(source)) => Err(StoreError::Record { path, source }),
        Ok(Text::TooLarge) => Err(StoreError::TooLarge { path, limit_mib: MAX_RECORD_BYTES >> 20 }),
        Err(source) => Err(StoreError::Read { path, hint: error::read_hint(&source), source }),
    }
}

fn read_file<R>(
    Source { head, file }: Source,
    parse: &impl Fn(&[u8]) -> Result<R, RecordError>,
) -> io::Result<Text> {
    let facts = file.metadata()?;
    let size = if facts.is_file() { facts.len() } else { 0 };
    match size > MAX_RECORD_BYTES {
        true => Ok(Text::TooLarge),
        false => read(Cursor::new(head).chain(file), size, MAX_RECORD_BYTES, parse),
    }
}

/// The whole content, of which there is probably so much.
fn read<R>(
    mut from: impl Read,
    size: u64,
    limit: u64,
    parse: &impl Fn(&[u8]) -> Result<R, RecordError>,
) -> io::Result<Text> {
    let mut bytes = Vec::new();
    let mut step = FIRST;
    loop {
        let until = step.min(limit + 1);
        // A size that the file claims costs nothing before its first bytes are those of a record.
        let claimed = size.min(limit) + 1;
        let more = if step > FIRST { claimed.min(until) } else { until };
        bytes.reserve_exact((more as usize).saturating_sub(bytes.len()));
        from.by_ref().take(until - bytes.len() as u64).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Ok(Text::TooLarge);
        }
        if (bytes.len() as u64) < until {
            return Ok(Text::Whole(bytes));
        }
        match parse(&bytes) {
            // It goes on.
            Ok(_) | Err(RecordError::Cut { .. }) => {}
            Err(error) => return Ok(Text::NoRecord(error)),
        }
        step = step.saturating_mul(GROWTH);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::super::{parse_record, parse_trace};
    use super::*;

    /// Gives a text, and then one byte over and over, and counts.
    struct Endless<'a> {
        head: &'a [u8],
        rest: u8,
        given: u64,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let head = self.head.read(to)?;
            to[head..].fill(self.rest);
            self.given += to.len() as u64;
            Ok(to.len())
        }
    }

    fn refused(head: &str, rest: u8) -> (String, u64) {
        let mut from = Endless { head: head.as_bytes(), rest, given: 0 };
        let text = read(&mut from, 0, MAX_RECORD_BYTES, &parse_record).unwrap();
        let Text::NoRecord(error) = text else { panic!("{text:?}") };
        (error.to_string(), from.given)
    }

    #[test]
    fn a_text_without_end_that_is_no_record_is_refused_after_its_first_bytes() {
        let long = format!(r#"{{"schema": "iotomy.trace/1", "command": ["{}"#, "x".repeat(100_000));
        for (head, rest, said) in [
            ("", 0, "begins with `{`"),
            ("", b' ', "is empty"),
            ("", b'y', "begins with `{`"),
            (r#"{"schema": "iotomy.trace/1"}"#, 0, "missing field"),
            (r#"{"schema": "iotomy.trace/1", "#, b'x', "invalid JSON"),
            (r#"{"schema": "iotomy.trace/2", "#, b' ', "reads iotomy.trace/1"),
            (r#"{"schema": "other", "#, b' ', "not a record"),
            (&(long.clone() + "\"]"), b'"', "invalid JSON"),
        ] {
            let (error, given) = refused(head, rest);
            assert!(error.contains(said), "{head} {rest}: {error}");
            let most = if head.len() > FIRST as usize { FIRST * GROWTH } else { FIRST };
            assert!(given <= most, "{head} {rest}: {given}");
        }
    }

    #[test]
    fn a_text_above_the_limit_is_not_held_whole() {
        let record = include_bytes!("plain.json");
        let text = |limit: u64| read(&record[..], 0, limit, &parse_trace).unwrap();
        assert!(matches!(text(record.len() as u64), Text::Whole(bytes) if bytes == record));
        assert!(matches!(text(record.len() as u64 - 1), Text::TooLarge));
        // What may go on for ever.
        let mut from = Endless { head: br#"{"x": ""#, rest: b'x', given: 0 };
        let text = read(&mut from, 0, 3 << 20, &parse_record).unwrap();
        assert!(matches!(text, Text::TooLarge) && from.given == (3 << 20) + 1, "{}", from.given);
    }

    #[test]
    fn a_file_that_claims_more_than_any_record_has_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse.json");
        File::create(&path).unwrap().set_len(MAX_RECORD_BYTES + 1).unwrap();
        let error = load(&path, parse_record).map(drop).unwrap_err().to_string();
        assert!(error.ends_with("it is above 1024 MiB; check that it is a record"), "{error}");
    }

    #[test]
    fn a_record_of_several_looks_is_read_whole() {
        let mut record = parse_trace(include_bytes!("plain.json")).unwrap();
        record.command = (0..100_000).map(|n| format!("word {n}")).collect();
        let json = super::super::RecordRef::Trace(&record).json().unwrap();
        assert!(json.len() as u64 > FIRST * GROWTH);
        let text = read(&json[..], 0, MAX_RECORD_BYTES, &parse_trace).unwrap();
        assert!(matches!(text, Text::Whole(bytes) if bytes == json));
    }
}
