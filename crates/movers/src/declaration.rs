//! The declaration of a mover.

use crate::route::Route;

/// The declaration of a mover; help, docs and the contract tests are made from it.
#[derive(Debug, Clone, Copy)]
pub struct MoverDeclaration {
    /// Its name, as `--mover` and the record have it.
    pub name: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// The path of the bytes: copies, blocking calls, crossings.
    pub description: &'static str,
    /// Manual pages that describe the calls.
    pub man: &'static [&'static str],
    /// The calls it makes to move bytes, and no others; after `ring:`, the operations of io_uring
    /// that it submits for it.
    pub calls: &'static [&'static str],
    /// Whether later writes to the source can show through in the target, because the target was
    /// given references to the source's pages.
    pub by_reference: bool,
    /// Whether it moves from and to offsets of its own, and so leaves the descriptors' positions
    /// alone until the end.
    pub positioned: bool,
    /// Its own treatment of holes of a regular source; [`crate::chooser::run`] keeps the holes for
    /// a mover that does not.
    pub holes: Holes,
    /// The routes on which it is tried unasked, and its place there.
    pub chosen: &'static [Choice],
    /// Options of `iotomy copy`, without the dashes, that its speed depends on, with values worth comparing: a text a
    /// run.
    pub tunings: &'static [&'static str],
}

/// A place in the order of movers on some routes.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The routes.
    pub routes: &'static [Route],
    /// Movers of lower ranks are tried first. See [`crate::route`] for those given.
    pub rank: u8,
    /// Why it has this rank.
    pub reason: &'static str,
}

/// A mover's own treatment of holes of a regular source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// They are holes of the target.
    Kept,
    /// They are holes of the target or zeros, as the file system likes.
    AsItComes,
    /// They are read as zeros, and these are written.
    Filled,
    /// As [`Holes::Filled`]; but as the bytes pass through its buffer, zeros can be found among
    /// them and left out: the only method to get holes where the source has none.
    Found,
}

impl Holes {
    /// The text for lists and plans.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::AsItComes => "kept or written as zeros, as the file system chooses",
            Self::Filled => "written as zeros",
            Self::Found => "written as zeros, or found among the bytes",
        }
    }
}
