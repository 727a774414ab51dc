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
                rows.row(self.ends(name)).merge(row);
            }
            let rows =
                rows.into_rows().map(|(ends, row)| Exchange { ends: named(ends, &pids), ..row });
            images.insert(*image, rows.collect());
        }
        images
    }
}
