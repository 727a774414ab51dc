//! Requests while the watch goes on: of images that ended, whose rows are taken out of the kernel's tables, and of all others
//! as they stand.

use std::collections::{HashMap, HashSet};

use iotomy_record::{Exchange, statistic};

use super::super::connection_rows::ConnectionKey;
use super::super::layout::Count;
use super::super::object::{RowAction, Session};
use super::layout::{CHANNELS, COUNTERS, Channel, Counters, EXCHANGES, Row};
use crate::sockets::SocketName;

/// The requests of images, in a bounded table.
#[derive(Debug, Default, Clone)]
pub(in super::super) struct RequestBook {
    images: HashMap<u32, HashMap<SocketName, Exchange>>,
    /// Their sums over all images, those that were dropped included.
    sums: HashMap<SocketName, Exchange>,
    /// Most rows there is room for, and how many there are.
    most: usize,
    count: usize,
    /// Requests whose rows found no room.
    pub(in super::super) lost: u64,
}

impl RequestBook {
    /// With room for this many rows.
    pub(in super::super) fn with_room(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// The rows in the kernel's tables, as they stand: of connections that are open, whose they are, and which of them
    /// have a request without an answer.
    pub(in super::super) fn look(session: &Session) -> Self {
        let mut book = Self::with_room(usize::MAX);
        // First: one that ends in between has its row then.
        session.visit_beside(CHANNELS, |_: Count, channel: Channel| {
            let in_flight = u64::from(channel.is_in_flight());
            let of_image = book.images.entry(channel.key.image).or_default();
            if in_flight > 0 {
                of_image.entry(channel.key.name).or_default().in_flight += in_flight;
            }
            RowAction::Kept
        });
        session.visit_beside(EXCHANGES, |key: ConnectionKey, row: Row| {
            book.add(key, &row.exchange());
            RowAction::Kept
        });
        book
    }

    /// Takes the rows of images that ended out of the kernel's tables, and returns these images. What a connection may
    /// still be added to stays until the kernel's side has seen its end: a UNIX socket's, once another has its struct.
    pub(in super::super) fn take_ended(
        &mut self,
        session: &Session,
        has_ended: &dyn Fn(u32) -> bool,
    ) -> HashSet<u32> {
        let (mut open, mut taken) = (HashSet::new(), HashSet::new());
        // First: one that ends in between has added to its row by then.
        session.visit_beside(CHANNELS, |_: Count, channel: Channel| {
            open.insert(channel.key.image);
            RowAction::Kept
        });
        session.visit_beside(EXCHANGES, |key: ConnectionKey, row: Row| {
            if !has_ended(key.image) || open.contains(&key.image) {
                return RowAction::Kept;
            }
            taken.insert(key.image);
            let row = row.exchange();
            if self.add(key.clone(), &row) {
                self.add_to_sums(key.name, &row);
            }
            RowAction::Freed
        });
        taken
    }

    /// What found no room in the kernel's tables, and in this one.
    pub(in super::super) fn lost_so_far(&self, session: &Session) -> u64 {
        let counters = session.section_beside::<Counters>(COUNTERS).unwrap_or_default();
        counters.lost + self.lost
    }

    /// Whether there was room.
    fn add(&mut self, key: ConnectionKey, row: &Exchange) -> bool {
        let of_image = self.images.entry(key.image).or_default();
        if !of_image.contains_key(&key.name) {
            if self.count >= self.most {
                self.lost += row.requests.saturating_add(row.unanswered);
                return false;
            }
            self.count += 1;
        }
        statistic::add(of_image.entry(key.name).or_default(), row);
        true
    }

    fn add_to_sums(&mut self, name: SocketName, row: &Exchange) {
        if self.sums.len() < self.most || self.sums.contains_key(&name) {
            statistic::add(self.sums.entry(name).or_default(), row);
        }
    }

    /// The rows of all images that were taken out of the kernel's tables, added up.
    pub(in super::super) fn sums(&self) -> impl Iterator<Item = (&SocketName, &Exchange)> {
        self.sums.iter()
    }

    /// The images that have some.
    pub(in super::super) fn images(&self) -> impl Iterator<Item = u32> {
        self.images.keys().copied()
    }

    /// The rows of an image.
    pub(in super::super) fn of_image(
        &self,
        image: u32,
    ) -> impl Iterator<Item = (&SocketName, &Exchange)> {
        self.images.get(&image).into_iter().flatten()
    }

    /// All rows.
    pub(super) fn rows(&self) -> HashMap<ConnectionKey, Exchange> {
        let rows = self.images.iter().flat_map(|(image, rows)| {
            rows.iter().map(|(name, row)| {
                (ConnectionKey { image: *image, name: name.clone() }, row.clone())
            })
        });
        rows.collect()
    }

    /// Drops what is known of an image.
    pub(in super::super) fn forget(&mut self, image: u32) {
        self.count -= self.images.remove(&image).map_or(0, |rows| rows.len());
    }
}
