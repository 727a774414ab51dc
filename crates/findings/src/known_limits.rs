//! The limits that rules ask for.

use std::cell::RefCell;
use std::collections::BTreeSet;

use iotomy_record::Limits;

/// Limits, and which of them were missed.
#[derive(Debug)]
pub(crate) struct KnownLimits<'a> {
    pub(crate) limits: Option<&'a Limits>,
    pub(crate) missing: RefCell<BTreeSet<&'static str>>,
}

impl KnownLimits<'_> {
    /// The value of a limit of the machine, in its unit.
    pub(crate) fn limit(&self, name: &'static str) -> Option<f64> {
        let value = self.limits.and_then(|limits| limits.of_machine(name)).and_then(|l| l.value);
        if value.is_none() {
            self.missing.borrow_mut().insert(name);
        }
        value
    }

    /// The value of a limit of the machine, and the distance between its quartiles.
    pub(crate) fn spread(&self, name: &'static str) -> Option<(f64, f64)> {
        let value = self.limit(name)?;
        let spread = self.limits?.of_machine(name)?.spread.unwrap_or(0.0);
        Some((value, spread))
    }
}
