//! Connections by peer, out of the kernel's rows.

use std::collections::HashSet;

use iotomy_record::Connection;

use super::connection_rows::{ConnectionErrorKey, ConnectionKey, ConnectionRow};
use super::layout::Count;
use super::object::{RowAction, Session};
use crate::connections::ConnectionBook;
use crate::naming::error_name;

/// Takes the rows of images for which `taken` holds out of the kernel. Those images.
pub(super) fn take(
    book: &mut ConnectionBook<u32>,
    session: &Session,
    taken: &dyn Fn(u32) -> bool,
) -> HashSet<u32> {
    let mut images = HashSet::new();
    visit(session, |key, more| {
        if !taken(key.image) {
            return RowAction::Kept;
        }
        images.insert(key.image);
        let errors: u64 = more.errors.values().sum();
        match book.row(key.image, key.name) {
            Some(row) => row.merge(&more),
            None => book.lost += more.opened + more.before + more.unfinished + errors,
        }
        RowAction::Freed
    });
    images
}

/// Shows what there is in the kernel's tables to `visit`, and frees what it has taken.
pub(super) fn visit(
    session: &Session,
    mut visit: impl FnMut(ConnectionKey, Connection) -> RowAction,
) {
    session.visit("connections", |key: ConnectionKey, row: ConnectionRow| {
        let has_listener = row.max_queued > 0 || row.queue_limit > 0 || row.dropped > 0;
        let counts = Connection {
            opened: row.opened,
            before: row.before,
            closed: key.name.is_tcp().then_some(row.closed),
            unfinished: row.unfinished,
            connect_ns: row.time_ns,
            max_ns: row.max_ns,
            timed: row.timed,
            tcp: (row.tcp.measured > 0).then_some(row.tcp),
            max_queued: row.max_queued,
            queue_limit: row.queue_limit,
            dropped: has_listener.then_some(row.dropped),
            ..Connection::default()
        };
        visit(key, counts)
    });
    session.visit("connection_errors", |at: ConnectionErrorKey, Count(count)| {
        let errors = [(error_name(at.error), count)].into();
        visit(at.key, Connection { errors, ..Connection::default() })
    });
}
