//! What a run did below its calls.

mod block;
mod story;

pub use block::{BlockIo, ReadAhead, Requests, Via};
pub use story::{Happening, Hidden, Stories, Story};
