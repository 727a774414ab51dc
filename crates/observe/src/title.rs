//! The title that a process has set, by what is known of its program: the same for all observers.

use iotomy_host::title;
use iotomy_record::{bytes_of, lossless};

/// What is known of an image's program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'k> {
    /// Its names: as it was executed, of the file that runs, and others.
    pub(crate) names: [&'k str; 3],
    /// Its arguments when it was executed, or when the watch began.
    pub(crate) argv: &'k [String],
    /// The title that it had then.
    pub(crate) title: &'k str,
}

impl Known<'_> {
    /// The title of a process of this program whose first argument is `first` by now; empty where it has set none.
    /// One without a first argument has ended: what was known of it stays.
    pub(crate) fn title_by(&self, first: &[u8]) -> String {
        let before = self.argv.first().map(|word| bytes_of(word));
        let is_unchanged = before.is_some_and(|before| cut(&before) == cut(first));
        if first.is_empty() || is_unchanged {
            return self.title.to_owned();
        }
        let names = self.names.map(bytes_of);
        title_of(first, &names)
    }
}

/// The title that a first argument is to a program of these names; empty where it is none.
pub(crate) fn title_of(first: &[u8], names: &[Vec<u8>]) -> String {
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    title::title(first, &names).map(lossless).unwrap_or_default()
}

fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(title::LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(known: &Known<'_>, first: &str) -> String {
        known.title_by(first.as_bytes())
    }

    #[test]
    fn a_first_argument_that_has_not_changed_is_no_title() {
        let argv = ["chosen".to_owned()];
        let executed = Known { names: ["sleep", "", ""], argv: &argv, title: "" };
        assert_eq!(by(&executed, "chosen"), "");
        assert_eq!(by(&executed, "sleep: worker 1"), "sleep: worker 1");
        assert_eq!(by(&executed, "/usr/bin/sleep"), "");
        let long = [format!("{}/x", "a".repeat(300))];
        let executed = Known { argv: &long, ..executed };
        assert_eq!(by(&executed, &"a".repeat(255)), "");
    }

    #[test]
    fn a_title_from_before_the_watch_stays_until_there_is_another() {
        let argv = ["postgres: idle".to_owned()];
        let attached = Known { names: ["postgres", "", ""], argv: &argv, title: "postgres: idle" };
        assert_eq!(by(&attached, "postgres: idle"), "postgres: idle");
        assert_eq!(by(&attached, ""), "postgres: idle");
        assert_eq!(by(&attached, "postgres: SELECT"), "postgres: SELECT");
        assert_eq!(by(&attached, "postgres"), "");
    }

    #[test]
    fn a_title_that_is_no_utf8_stays_what_it_is() {
        let executed = Known { names: ["x", "", ""], argv: &[], title: "" };
        assert_eq!(executed.title_by(b"x: \xff"), r"x: \xff");
        let argv = [r"x: \xff".to_owned()];
        assert_eq!(Known { argv: &argv, ..executed }.title_by(b"x: \xff"), "");
    }
}
