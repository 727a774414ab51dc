//! What a run did below its calls.

mod block;
mod story;

pub use block::{BlockIo, Requests, ReadAhead, Via};
pub use story::{Happening, Hidden, Stories, Story};
