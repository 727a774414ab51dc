//! Services: by what the processes of the machine are told apart in labels.
//!
//! The one invariant is the bound: however many names there are, and whoever chose them, so many have labels and no more.
//! A name that got none when it came first never gets one while the bound stays: its counts are in `other`.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use iotomy_observe::VARIABLES;
use iotomy_record::{printable, without_numbers};

/// The label of those that have none of their own. A service of this name is added up with them.
pub const OTHER: &str = "other";

/// The longest label, in bytes; of a longer name its beginning.
const LONGEST: usize = 128;

/// How many names without a label are told apart, to count them.
pub const MOST_OTHERS: usize = 4_096;

/// By which variable of `iotomy trace --by` processes are services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// The program's name.
    #[default]
    Image,
    /// The title that the process has set, without its numbers; where it has set none, the program's name.
    Title,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Image, Self::Title];

    /// The variable's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Title => "title",
        }
    }

    /// What it is, as the variable is declared.
    pub fn summary(self) -> &'static str {
        let declared = VARIABLES.iter().find(|one| one.name == self.name());
        declared.map_or("", |one| one.summary)
    }

    /// The variable of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(" or ");
            format!("invalid variable {:?}: expected {known}", printable(name, true))
        })
    }

    /// The service of a process, from its program's name and its title.
    pub(crate) fn service(self, program: &str, title: &str) -> String {
        match self {
            Self::Title if !title.is_empty() => label(&without_numbers(title)),
            _ => label(program),
        }
    }
}

/// A name as a label: without control characters and what reorders text, and of a bounded length. Bytes that are no UTF-8
/// are written `\xNN` in names already.
fn label(name: &str) -> String {
    let text = printable(name, true);
    if text.len() <= LONGEST {
        return text;
    }
    let end = (0..=LONGEST - '…'.len_utf8()).rev().find(|at| text.is_char_boundary(*at));
    format!("{}…", &text[..end.unwrap_or(0)])
}

/// The labels that were given.
#[derive(Debug, Default)]
pub(crate) struct Services {
    places: HashMap<String, usize>,
    names: Vec<String>,
    others: HashSet<u64>,
}

impl Services {
    /// The place of a service among [`Services::names`], where there are at most this many besides `other`.
    pub(crate) fn place(&mut self, name: &str, most: usize) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let is_full = name != OTHER && self.own() >= most;
        if !is_full {
            return self.add(name);
        }
        if self.others.len() < MOST_OTHERS {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            self.others.insert(hasher.finish());
        }
        match self.places.get(OTHER) {
            Some(place) => *place,
            None => self.add(OTHER),
        }
    }

    fn add(&mut self, name: &str) -> usize {
        let place = self.names.len();
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    /// The labels, by place.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// How many have a label of their own.
    pub(crate) fn own(&self) -> usize {
        self.names.len() - usize::from(self.places.contains_key(OTHER))
    }

    /// How many are in `other`, up to [`MOST_OTHERS`].
    pub(crate) fn others(&self) -> usize {
        self.others.len()
    }
}

#[cfg(test)]
mod tests {
    use iotomy_record::lossless;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_variable_is_one_that_trace_declares() {
        for by in By::ALL {
            assert!(!by.summary().is_empty(), "{by:?}");
            assert_eq!(By::parse(by.name()), Ok(by));
        }
        let error = By::parse("pid\x1b").unwrap_err();
        assert_eq!(error, r#"invalid variable "pid\\x1b": expected image or title"#);
    }

    #[test]
    fn a_title_is_a_service_without_its_numbers() {
        let title = "postgres: app shop 127.0.0.1(53124) idle";
        assert_eq!(By::Title.service("postgres", title), "postgres: app shop *(*) idle");
        assert_eq!(By::Title.service("dd", ""), "dd");
        assert_eq!(By::Image.service("postgres", title), "postgres");
    }

    #[test]
    fn a_hostile_name_is_a_plain_label() {
        let hostile = lossless(b"a\"b\\c\nd\re\x1b[31m\xff\xe2\x80\xae");
        assert_eq!(By::Image.service(&hostile, ""), r#"a"b\c\nd\re\x1b[31m\xff\u{202e}"#);
        let long = By::Image.service(&"ä".repeat(400), "");
        assert!(long.len() <= LONGEST && long.ends_with("ä…"), "{long}");
    }

    #[test]
    fn names_beyond_the_bound_are_added_up() {
        let mut services = Services::default();
        let of = |services: &mut Services, name: &str, most| {
            let place = services.place(name, most);
            services.names()[place].clone()
        };
        assert_eq!(of(&mut services, "a", 2), "a");
        assert_eq!(of(&mut services, "b", 2), "b");
        for name in ["c", "d", "c"] {
            assert_eq!(of(&mut services, name, 2), OTHER);
        }
        assert_eq!((services.own(), services.others()), (2, 2));
        assert_eq!(of(&mut services, "b", 2), "b");
        // One that is called so takes no label from another.
        assert_eq!(of(&mut services, OTHER, 2), OTHER);
        assert_eq!((services.own(), services.others()), (2, 2));
        // Where more may have one, those that come from then on do.
        assert_eq!(of(&mut services, "e", 3), "e");
        assert_eq!(services.names(), ["a", "b", OTHER, "e"]);
        for number in 0..2 * MOST_OTHERS {
            assert_eq!(of(&mut services, &format!("n{number}"), 3), OTHER);
        }
        assert_eq!((services.own(), services.others()), (3, MOST_OTHERS));
    }

    proptest! {
        #[test]
        fn any_name_is_a_label_of_bounded_length(name in prop::collection::vec(any::<u8>(), 0..300)) {
            let label = By::Image.service(&lossless(&name), "");
            prop_assert!(label.len() <= LONGEST);
            prop_assert!(!label.chars().any(char::is_control));
        }
    }
}
