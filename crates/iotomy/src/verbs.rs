//! A verb a file: its options, and the glue between the crates that do its work.

pub(crate) mod agent;
pub(crate) mod anatomy;
pub(crate) mod complete;
pub(crate) mod copy;
pub(crate) mod d;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod generate;
pub(crate) mod history;
mod judging;
pub(crate) mod lab;
pub(crate) mod limits;
mod outputs;
pub(crate) mod ports;
mod program;
pub(crate) mod race;
pub(crate) mod report;
mod saving;
pub(crate) mod show;
mod target;
mod this_machine;
pub(crate) mod trace;
mod view;
