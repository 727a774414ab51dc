//! The features that this kernel has refused, and how programs are loaded without them.

use iotomy_record::MissingFeature;

use super::features::{FEATURES, Feature};

/// Features that were refused, each with the kernel's answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Without(Vec<(&'static Feature, String)>);

/// Why an object is not loaded, in a line; and what of it may be left out.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) text: String,
    /// The feature, and the kernel's answer.
    pub(super) feature: Option<(&'static Feature, String)>,
}

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self { text, feature: None }
    }
}

impl From<Refused> for String {
    fn from(refused: Refused) -> Self {
        refused.text
    }
}

impl Without {
    pub(super) fn lacks(&self, feature: &Feature) -> bool {
        self.0.iter().any(|(one, _)| std::ptr::eq(*one, feature))
    }

    /// Leaves a feature out from now on.
    pub(super) fn add(&mut self, feature: &'static Feature, answer: String) {
        if !self.lacks(feature) {
            self.0.push((feature, answer));
        }
    }

    pub(super) fn refused(&self) -> Vec<(&'static Feature, String)> {
        self.0.clone()
    }

    /// A bit a feature (`without.bpf.h`).
    pub(super) fn bits(&self) -> u32 {
        self.0.iter().map(|(feature, _)| feature.bit()).sum()
    }

    /// Those without which a record has less, in the order of the table.
    pub(super) fn missing(&self) -> Vec<MissingFeature> {
        let answer = |feature: &Feature| self.0.iter().find(|(one, _)| std::ptr::eq(*one, feature));
        FEATURES
            .iter()
            .filter(|feature| !feature.lost.is_empty())
            .filter_map(|feature| Some((feature, answer(feature)?)))
            .map(|(feature, (_, answer))| MissingFeature {
                feature: feature.name.to_owned(),
                reason: answer.clone(),
                lost: feature.lost.to_owned(),
            })
            .collect()
    }
}

/// What may be left out because of a refused program: its helper first, then itself, then its type.
pub(super) fn of_program(
    without: &Without,
    section: &str,
    name: &str,
    helper: Option<u32>,
) -> Option<&'static Feature> {
    let left = || FEATURES.iter().filter(|one| !without.lacks(one));
    let by_helper = helper.and_then(|number| left().find(|one| one.has_helper(number)));
    let by_name = || left().find(|one| one.has_name(name));
    by_helper.or_else(by_name).or_else(|| left().find(|one| one.has_program(section, name)))
}

/// What may be left out because of a refused map.
pub(super) fn of_map(without: &Without, kind: u32) -> Option<&'static Feature> {
    FEATURES.iter().find(|one| one.has_map(kind) && !without.lacks(one))
}

/// Loads, again without each feature that the kernel refuses and that can be left out.
///
/// # Errors
/// What was refused and cannot be left out.
pub(super) fn load_without<T>(
    mut load: impl FnMut(&Without) -> Result<T, Refused>,
) -> Result<(T, Without), String> {
    let mut without = Without::default();
    loop {
        match load(&without) {
            Ok(loaded) => return Ok((loaded, without)),
            Err(Refused { feature: Some((feature, answer)), .. }) if !without.lacks(feature) => {
                without.add(feature, answer);
            }
            Err(refused) => return Err(refused.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::feature;
    use super::*;

    fn refused(feature: &'static Feature) -> Refused {
        Refused { text: feature.name.to_owned(), feature: Some((feature, "EPERM".to_owned())) }
    }

    #[test]
    fn what_is_refused_is_left_out_one_after_another_and_named_once() {
        let refuses = [&FEATURES[3], &FEATURES[2]];
        let mut tries = 0;
        let (bits, without) = load_without(|without| {
            tries += 1;
            match refuses.iter().find(|one| !without.lacks(one)) {
                Some(one) => Err(refused(one)),
                None => Ok(without.bits()),
            }
        })
        .unwrap();
        assert_eq!((tries, bits), (3, 0b1100));
        let names: Vec<String> = without.missing().into_iter().map(|one| one.feature).collect();
        assert_eq!(names, ["ring buffers", "tables of stacks"]);
    }

    #[test]
    fn what_is_refused_though_it_was_left_out_ends_the_tries() {
        let refuse = |_: &Without| -> Result<(), Refused> { Err(refused(&FEATURES[0])) };
        assert_eq!(load_without(refuse).unwrap_err(), "task iterators");
        let other = |_: &Without| -> Result<(), Refused> { Err("base".to_owned().into()) };
        assert_eq!(load_without(other).unwrap_err(), "base");
    }

    #[test]
    fn a_refused_helper_is_left_out_before_the_program_that_calls_it() {
        let mut without = Without::default();
        let refused = |without: &Without, helper| {
            of_program(without, "perf_event", "sample", helper).map(|one| one.name)
        };
        assert_eq!(refused(&without, Some(180)), Some("bpf_find_vma"));
        assert_eq!(refused(&without, Some(1)), Some("perf events"));
        without.add(feature("bpf_find_vma"), "EINVAL".to_owned());
        assert_eq!(refused(&without, Some(180)), Some("perf events"));
        without.add(feature("perf events"), "EPERM".to_owned());
        assert_eq!(refused(&without, None), None);
        assert_eq!(of_map(&without, 27).map(|one| one.name), Some("ring buffers"));
        assert_eq!(of_map(&without, 1).map(|one| one.name), None);
    }
}
