//! What a run did below its calls, as text.

mod block;
#[cfg(test)]
mod inside_tests;
mod story;
