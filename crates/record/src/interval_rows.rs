//! The rows of a table of an interval: what came since they were seen last.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

use crate::{Connection, Exchange, RingOperation, Times};

/// A program image by its process id and name.
pub(super) type Image = (u32, String);

/// A row of a record that is of an image.
pub(super) trait OfImage {
    fn image(&self) -> Image;
    fn set_image(&mut self, image: &Image);
}

macro_rules! of_image {
    ($($row:ty),+) => {
        $(impl OfImage for $row {
            fn image(&self) -> Image {
                (self.pid, self.exec.clone())
            }

            fn set_image(&mut self, (pid, exec): &Image) {
                (self.pid, self.exec) = (*pid, exec.clone());
            }
        })+
    };
}
of_image!(Connection, Exchange, RingOperation);

/// What is counted from the beginning of the watch, under a key of its own.
pub(super) trait Counted: Sized {
    type Key: Debug + Eq + Hash;
    /// The most that was seen of it.
    type Seen: Debug + Default;
    /// A row of a record.
    type Row: OfImage;

    /// What a row of a record counts.
    fn of_record(row: &Self::Row) -> Self;

    fn key(&self) -> Self::Key;

    /// Adds what another image of the same name has.
    fn merge(&mut self, other: &Self);

    fn merge_seen(seen: &mut Self::Seen, other: &Self::Seen);

    /// What came since it was seen, without an image; `None` if nothing did.
    fn since(&self, seen: &mut Self::Seen) -> Option<Self::Row>;
}

/// The most that was seen of the rows of an image.
#[derive(Debug)]
struct SeenRows<C: Counted> {
    by_key: HashMap<C::Key, C::Seen>,
}

impl<C: Counted> Default for SeenRows<C> {
    fn default() -> Self {
        Self { by_key: HashMap::new() }
    }
}

impl<C: Counted> SeenRows<C> {
    /// What these have beyond what was seen.
    fn advance<'c>(&mut self, now: impl IntoIterator<Item = &'c C>) -> Vec<C::Row>
    where
        C: 'c,
    {
        let rows = now.into_iter().map(|now| now.since(self.by_key.entry(now.key()).or_default()));
        rows.flatten().collect()
    }

    /// What a record has beyond what was seen. Images of one name may have rows of one key each.
    fn finish(mut self, record: impl IntoIterator<Item = C>) -> Vec<C::Row> {
        let mut sums: Vec<C> = Vec::new();
        let mut places: HashMap<C::Key, usize> = HashMap::new();
        for one in record {
            let place = *places.entry(one.key()).or_insert(sums.len());
            match sums.get_mut(place) {
                Some(sum) => sum.merge(&one),
                None => sums.push(one),
            }
        }
        self.advance(&sums)
    }

    /// Adds what was seen of another image.
    fn merge(&mut self, other: Self) {
        for (key, one) in other.by_key {
            C::merge_seen(self.by_key.entry(key).or_default(), &one);
        }
    }
}

/// The most that was seen of the rows of all images, by their numbers in the watch.
#[derive(Debug)]
pub(super) struct SeenTable<C: Counted> {
    by_image: HashMap<u32, (Image, SeenRows<C>)>,
}

impl<C: Counted> Default for SeenTable<C> {
    fn default() -> Self {
        Self { by_image: HashMap::new() }
    }
}

impl<C: Counted> SeenTable<C> {
    /// What the rows of an image have beyond what was seen.
    pub(super) fn advance(&mut self, id: u32, image: &Image, now: &[C]) -> Vec<C::Row> {
        if now.is_empty() {
            return Vec::new();
        }
        let (_, seen) = self.by_image.entry(id).or_insert_with(|| (image.clone(), <_>::default()));
        named(seen.advance(now), image)
    }

    /// An image that will not come again.
    pub(super) fn forget(&mut self, id: u32) {
        self.by_image.remove(&id);
    }

    /// What the rows of a record have beyond what was seen, by image. A record knows images by their names alone.
    pub(super) fn finish(self, record: &[C::Row]) -> HashMap<Image, Vec<C::Row>> {
        let mut by_name: HashMap<Image, SeenRows<C>> = HashMap::new();
        for (name, seen) in self.by_image.into_values() {
            by_name.entry(name).or_default().merge(seen);
        }
        let mut of_record: HashMap<Image, Vec<C>> = HashMap::new();
        for row in record {
            of_record.entry(row.image()).or_default().push(C::of_record(row));
        }
        let rows = of_record.into_iter().map(|(name, rows)| {
            let seen = by_name.remove(&name).unwrap_or_default();
            let rows = named(seen.finish(rows), &name);
            (name, rows)
        });
        rows.collect()
    }
}

fn named<R: OfImage>(mut rows: Vec<R>, image: &Image) -> Vec<R> {
    rows.iter_mut().for_each(|row| row.set_image(image));
    rows
}

/// The durations of an interval, the longest of them, and whether that is only known to its bucket.
pub(super) fn durations_since(
    (now, longest_ns): (&Times, u64),
    (seen, seen_longest_ns): (&mut Times, &mut u64),
) -> (Times, u64, bool) {
    let mut new = now.since(seen);
    // Above all before it, the longest is of this interval.
    let is_bound = longest_ns <= *seen_longest_ns;
    let max_ns = if is_bound { new.highest().min(longest_ns) } else { longest_ns };
    seen.merge(&new);
    *seen_longest_ns = longest_ns.max(*seen_longest_ns);
    new.max_ns = if new.is_empty() { 0 } else { max_ns };
    (new, max_ns, is_bound && max_ns > 0)
}
