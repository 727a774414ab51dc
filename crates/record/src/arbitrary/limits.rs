//! Random limits.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{machine, text};
use crate::{Limit, Limits, Volume};

/// Limits that [`crate::store::parse_limits`] accepts.
pub fn limits() -> impl Strategy<Value = Limits> {
    (machine(), vec(limit(), 0..24)).prop_map(|(machine, mut limits)| {
        // No name stands twice.
        for (at, limit) in limits.iter_mut().enumerate() {
            limit.name = format!("{}{at}", limit.name);
        }
        let (schema, started) = (Limits::SCHEMA.to_string(), "2025-03-01T10:20:30.5Z".to_string());
        Limits { schema, started, machine, limits }
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    let value = prop_oneof![1e-3..1e12, Just(f64::MAX), Just(5e-324)];
    let figures = option::of((value, prop_oneof![0.0..1e12, Just(0.0), Just(f64::MAX)]));
    let volume = option::of(volume());
    let texts = (text(), select(vec!["ns", "bytes/s"]), text(), text());
    (texts, figures, volume, any::<bool>()).prop_map(|(texts, figures, volume, kept)| Limit {
        name: texts.0,
        unit: texts.1.to_owned(),
        value: figures.map(|(value, _)| value),
        spread: figures.map(|(_, spread)| spread),
        method: texts.2,
        skipped: figures.is_none().then_some(texts.3),
        measured: kept.then(|| "2025-02-01T10:20:30Z".to_owned()),
        volume,
    })
}

pub(super) fn volume() -> impl Strategy<Value = Volume> {
    (text(), text(), "[a-z]{1,2}").prop_map(|(path, file_system, id)| Volume {
        path,
        file_system,
        id,
    })
}
