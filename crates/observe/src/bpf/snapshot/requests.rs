//! The requests of connections in a snapshot.

use std::collections::HashMap;

use iotomy_record::Exchange;

use super::connections::pids;
use super::{NameCache, SnapshotSums};
use crate::bpf::exchanges::RequestBook;
use crate::bpf::object::Session;
use crate::connections::ByEnds;
use crate::sockets::named;

impl SnapshotSums<'_> {
    /// Reads the tables of requests; their images may have changed.
    pub(super) fn add_requests(&mut self, session: &Session) {
        self.requests = RequestBook::look(session);
        for image in self.requests.images().filter(|image| self.images.contains_key(image)) {
            self.by_image.entry(image).or_default();
        }
    }
}

impl NameCache {
    /// By peer, over all images.
    pub(super) fn requests(&mut self, sight: &SnapshotSums<'_>) -> Vec<Exchange> {
        let mut sums: ByEnds<Exchange> = ByEnds::default();
        for image in sight.requests.images().filter(|image| sight.images.contains_key(image)) {
            for (name, row) in sight.requests.of_image(image) {
                add(sums.row(self.ends(name)), row, sight.is_alive(image));
            }
        }
        for (name, row) in sight.books.requests.sums() {
            add(sums.row(self.ends(name)), row, false);
        }
        let pids = pids(sight);
        let rows = sums.into_rows();
        rows.map(|(ends, row)| Exchange { ends: named(ends, &pids), ..row }).collect()
    }

    /// Of images that may have changed, in the kernel's tables and collected.
    pub(super) fn requests_by_image(
        &mut self,
        sight: &SnapshotSums<'_>,
    ) -> HashMap<u32, Vec<Exchange>> {
        let pids = pids(sight);
        let mut images = HashMap::new();
        for image in sight.by_image.keys() {
            let mut rows: ByEnds<Exchange> = ByEnds::default();
            let of_books = sight.books.requests.of_image(*image);
            for (name, row) in sight.requests.of_image(*image).chain(of_books) {
                add(rows.row(self.ends(name)), row, sight.is_alive(*image));
            }
            let rows =
                rows.into_rows().map(|(ends, row)| Exchange { ends: named(ends, &pids), ..row });
            images.insert(*image, rows.collect());
        }
        images
    }
}

/// Adds a row. Of a process that has ended, no request is to be answered.
fn add(sum: &mut Exchange, row: &Exchange, is_alive: bool) {
    let before = sum.in_flight;
    sum.merge(row);
    if !is_alive {
        sum.in_flight = before;
    }
}
