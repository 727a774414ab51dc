//! The words of a member on the board.

/// Words per member on the board: two cache lines, so that members do not disturb each other.
pub(super) const SLOT: usize = 16;
pub(super) const WAKES: usize = 0;
pub(super) const ACCEPTS: usize = 1;
pub(super) const EMPTY: usize = 2;
pub(super) const READY: usize = 3;
/// The error that ended it, 0 for none.
pub(super) const ERRNO: usize = 4;
/// The call that failed, as an index into [`super::member::CALLS`].
pub(super) const CALL: usize = 5;
