//! JSON to [`Anatomy`] and back.

use std::path::Path;

use super::parse::{Stored, check_schema, check_time, parse, wrong};
use super::{RecordError, StoreError};
use crate::{Anatomy, Sampling};

/// Reads an anatomy from the bytes of a JSON record.
///
/// # Errors
/// When they are not a whole `iotomy.anatomy/1`; the error names the place.
pub fn parse_anatomy(bytes: &[u8]) -> Result<Anatomy, RecordError> {
    parse(bytes)
}

/// Reads an anatomy from `path`, or from standard input where `path` is `-`.
///
/// # Errors
/// When the file cannot be read, is above [`super::MAX_RECORD_BYTES`], or is not a whole
/// `iotomy.anatomy/1`.
pub fn load_anatomy(path: impl AsRef<Path>) -> Result<Anatomy, StoreError> {
    super::load_by(path.as_ref(), parse_anatomy)
}

impl Stored for Anatomy {
    const SCHEMA: &'static str = Self::SCHEMA;
    const WANTED: &'static str = "an anatomy; `iotomy anatomy --json` makes one";

    fn check(&self) -> Result<(), RecordError> {
        check_schema::<Self>(&self.schema)?;
        check_time("started", &self.started)?;
        self.trace.check()?;
        check_price("sampling.price_ns_per_sample", &self.sampling)
    }
}

/// Whether the price of a sample, which stands at `path`, is one.
pub(super) fn check_price(path: &str, sampling: &Sampling) -> Result<(), RecordError> {
    let price = sampling.price_ns_per_sample;
    if price.is_finite() && price >= 0.0 {
        return Ok(());
    }
    Err(wrong(path, format!("invalid overhead {price}; expected a number of ns, 0 or more")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;
    use crate::store::{Record, RecordRef, parse_record};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn an_anatomy_comes_back_as_it_was(anatomy in arbitrary::anatomy()) {
            let bytes = RecordRef::Anatomy(&anatomy).json().unwrap();
            prop_assert_eq!(&parse_anatomy(&bytes).unwrap(), &anatomy);
            prop_assert_eq!(parse_record(&bytes).unwrap(), Record::Anatomy(Box::new(anatomy)));
        }

        #[test]
        fn an_anatomy_that_is_cut_or_changed_is_one_or_an_error(
            anatomy in arbitrary::anatomy(), at in 0usize..4_000, byte: u8, cut: bool,
        ) {
            let mut bytes = RecordRef::Anatomy(&anatomy).json().unwrap();
            let at = at.min(bytes.len() - 1);
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            let _ = parse_anatomy(&bytes);
        }
    }
}
