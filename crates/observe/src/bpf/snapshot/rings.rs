//! The ring operations of a snapshot.

use std::collections::BTreeMap;

use iotomy_record::RingOperation;

use super::{FileKey, FileStats, SnapshotSums};
use crate::bpf::object::Session;
use crate::bpf::rings::RingBook;
use crate::request::Request;

impl SnapshotSums<'_> {
    /// Reads the tables of rings; their images may have changed.
    pub(super) fn add_rings(&mut self, session: &Session, by_file: bool) {
        let mut files = Vec::new();
        let mut note = |image: u32, key: FileKey, stats: &FileStats| {
            files.push((image, key, stats.numbers.clone()));
        };
        self.rings = RingBook::look(session, &mut note);
        for image in self.rings.images().filter(|image| self.images.contains_key(image)) {
            self.by_image.entry(image).or_default();
        }
        for (image, key, numbers) in files.into_iter().filter(|_| by_file) {
            self.file(image, key, |sum| sum.numbers.add(&numbers));
        }
    }

    /// The ring operations of an image, in the kernel's tables and collected.
    pub(super) fn rings_of(&self, image: u32, request: &Request) -> Vec<RingOperation> {
        let is_wanted = |name: &str| request.wants_ring_operation(name);
        let mut rows = self.rings.rows(image, (0, ""), is_wanted);
        for one in self.books.rings.rows(image, (0, ""), is_wanted) {
            match rows.iter_mut().find(|row| row.op == one.op) {
                Some(row) => row.merge(&one),
                None => rows.push(one),
            }
        }
        rows
    }

    /// The same over all images.
    pub(super) fn ring_operations(&self, request: &Request) -> Vec<RingOperation> {
        let mut sums: BTreeMap<String, RingOperation> = BTreeMap::new();
        for row in self.images.keys().flat_map(|image| self.rings_of(*image, request)) {
            sums.entry(row.op.clone()).or_default().merge(&row);
        }
        sums.into_iter().map(|(op, sum)| RingOperation { op, ..sum }).collect()
    }
}
