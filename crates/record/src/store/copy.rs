//! JSON to [`CopyRun`] and back.

use super::RecordError;
use super::parse::{Stored, check_schema, check_time, parse, wrong};
use crate::CopyRun;

impl Stored for CopyRun {
    const SCHEMA: &'static str = Self::SCHEMA;
    const WANTED: &'static str = "a copy; `iotomy copy --json` makes one";

    fn check(&self) -> Result<(), RecordError> {
        check_schema::<Self>(&self.schema)?;
        check_time("started", &self.started)?;
        let parts: u128 = self.copies.iter().map(|part| u128::from(part.bytes)).sum();
        if parts != u128::from(self.bytes) {
            return Err(wrong(
                "bytes",
                format!("{} bytes, and its copies have {parts}", self.bytes),
            ));
        }
        let open = self.copies.iter().flat_map(|part| part.plan.tried.iter().rev().skip(1));
        if let Some(tried) = open.into_iter().find(|tried| tried.refused.is_none()) {
            let what = format!("{} was not refused, and another was tried after it", tried.mover);
            return Err(wrong("copies", what));
        }
        Ok(())
    }
}

/// Reads a copy's record from the bytes of its JSON.
///
/// # Errors
/// When they are not a whole `iotomy.copy/1`; the error names the place.
pub fn parse_copy(bytes: &[u8]) -> Result<CopyRun, RecordError> {
    parse(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;
    use crate::store::parse::write;
    use crate::store::{Record, RecordRef, parse_record};
    use crate::{CopyPart, CopyPlan, Machine, MoverRefusal, TriedMover};

    fn copy() -> CopyRun {
        let tried = |mover: &str, refused| TriedMover {
            mover: mover.to_owned(),
            reason: "one copy".to_owned(),
            probed: None,
            refused,
        };
        let refused = MoverRefusal {
            call: "copy_file_range".to_owned(),
            errno: Some("EXDEV".to_owned()),
            said: "Invalid cross-device link".to_owned(),
        };
        CopyRun {
            schema: CopyRun::SCHEMA.to_owned(),
            started: "2026-01-02T03:04:05.006Z".to_owned(),
            machine: Machine::default(),
            sources: vec!["a".to_owned()],
            target: "b".to_owned(),
            mover: Some("sendfile".to_owned()),
            bytes: 7,
            referenced_bytes: 7,
            copied_bytes: 7,
            touched_bytes: 0,
            wall_ns: 12,
            fsync_ns: None,
            verified: Some(true),
            errors: 0,
            messages: Vec::new(),
            contract: "extents may be shared".to_owned(),
            copies: vec![CopyPart {
                source: "a".to_owned(),
                source_is: "regular file".to_owned(),
                target: "b".to_owned(),
                target_is: "new regular file".to_owned(),
                mover: Some("sendfile".to_owned()),
                bytes: 7,
                referenced_bytes: 7,
                copied_bytes: 7,
                touched_bytes: 0,
                wall_ns: 10,
                plan: CopyPlan {
                    tried: vec![tried("copy-file-range", Some(refused)), tried("sendfile", None)],
                    ..CopyPlan::default()
                },
                error: None,
                dirty_bytes: None,
            }],
            findings: Vec::new(),
        }
    }

    fn bytes(copy: &CopyRun) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(copy, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_saved_copy_loads_as_it_was() {
        assert_eq!(parse_copy(&bytes(&copy())).unwrap(), copy());
    }

    #[test]
    fn fields_that_came_later_may_be_lacking() {
        let mut text = String::from_utf8(bytes(&copy())).unwrap();
        for field in ["messages", "contract", "source_is", "target_is", "said"] {
            let at = text.find(&format!("\"{field}\":")).unwrap();
            let end = at + text[at..].find([',', '}']).unwrap();
            // The last of an object has its comma in front.
            if text[end..].starts_with('}') {
                let comma = text[..at].rfind(',').unwrap();
                text.replace_range(comma..end, "");
            } else {
                text.replace_range(at..=end, "");
            }
        }
        let mut old = copy();
        old.contract.clear();
        old.copies[0].source_is.clear();
        old.copies[0].target_is.clear();
        old.copies[0].plan.tried[0].refused.as_mut().unwrap().said.clear();
        assert_eq!(parse_copy(text.as_bytes()).unwrap(), old);
    }

    proptest! {
        #[test]
        fn any_copy_comes_back_as_it_was(copy in arbitrary::copy()) {
            let bytes = bytes(&copy);
            prop_assert_eq!(&parse_copy(&bytes).unwrap(), &copy);
            prop_assert_eq!(parse_record(&bytes).unwrap(), Record::Copy(Box::new(copy)));
        }
    }

    #[test]
    fn a_copy_that_contradicts_itself_is_refused() {
        let refused = |change: &dyn Fn(&mut CopyRun)| {
            let mut changed = copy();
            change(&mut changed);
            let read = parse_copy(&bytes(&changed)).unwrap_err();
            let folder = tempfile::tempdir().unwrap();
            let written =
                RecordRef::Copy(&changed).save_to("x".as_ref(), folder.path()).unwrap_err();
            assert!(written.to_string().contains(&read.to_string()), "{written}");
            assert!(!folder.path().join("x").exists());
            read.to_string()
        };
        assert!(refused(&|copy| copy.bytes = 8).contains("8 bytes, and its copies have 7"));
        assert!(refused(&|copy| copy.schema = "iotomy.copy/2".to_owned()).contains("copy/2"));
        assert!(refused(&|copy| copy.started = "today".to_owned()).contains("RFC 3339"));
        let error = refused(&|copy| copy.copies[0].plan.tried[0].refused = None);
        assert!(error.contains("copy-file-range was not refused"), "{error}");
    }

    #[test]
    fn what_is_no_whole_record_is_refused_with_its_place() {
        let text = bytes(&copy());
        for cut in [0, 1, text.len() / 2, text.len() - 2] {
            assert!(parse_copy(&text[..cut]).is_err());
        }
        let text =
            String::from_utf8(text).unwrap().replace("\"wall_ns\": 10", "\"wall_ns\": \"x\"");
        let error = parse_copy(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("copies[0].wall_ns"), "{error}");
    }
}
