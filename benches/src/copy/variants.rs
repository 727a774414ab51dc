//! The movers of a sweep: each with the options that it declares as worth comparing.

use iotomy_movers::{MOVERS, MoverDeclaration};

use crate::copy::contender::Variant;

/// Returns every mover with every choice of its options. Variants that do not support a route are skipped there, with
/// the reason.
pub(crate) fn variants() -> Vec<Variant> {
    let mut variants = Vec::new();
    for mover in MOVERS {
        let MoverDeclaration { name, calls, tunings, .. } = *mover.declaration();
        // `null` moves nothing.
        if calls.is_empty() {
            continue;
        }
        for options in if tunings.is_empty() { &[""] } else { tunings } {
            let options = options.split_whitespace().map(|option| format!("--{option}"));
            variants.push(Variant { mover: name, options: options.collect() });
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mover_that_moves_is_tried() {
        for mover in MOVERS {
            let name = mover.declaration().name;
            let is_tried = variants().iter().any(|one| one.mover == name);
            assert_eq!(is_tried, !mover.declaration().calls.is_empty(), "{name}");
        }
    }
}
