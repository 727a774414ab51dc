//! The tests of findings of whole records, as one program.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod corpus;
mod filters;
