//! The servers, a file for each, and what several of them share.

pub(super) mod asker;
pub(super) mod go;
pub(super) mod memcached;
pub(super) mod nginx;
pub(super) mod node;
pub(super) mod postgres;
pub(super) mod redis;
mod web;
