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
}
