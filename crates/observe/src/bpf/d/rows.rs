//! Rows of aggregations: one for each key and CPU, and of a distribution for each bin.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::AsFd;

use iotomy_dtrace::form::{Aggregating, Form};
use iotomy_dtrace::kernel::{KeyPart, layout};
use iotomy_dtrace::machine::{Aggregations, Data, Value};
use iotomy_dtrace::types::Type;
use iotomy_sys::map_batch;
use libbpf_rs::{MapCore, MapFlags, Object};

use super::super::object::map;
use super::events::{Bytes, value};

/// An aggregation's number and a key.
type Key = (u16, Vec<Value>);

/// The strings of probes, by the numbers that stand for them in keys.
#[derive(Debug, Default)]
pub(super) struct Texts {
    numbers: HashMap<Vec<u8>, u16>,
    texts: Vec<Vec<u8>>,
}

impl Texts {
    /// The number of a string: machines have fewer than there are numbers.
    pub(super) fn number(&mut self, text: &[u8]) -> u16 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u16;
        self.numbers.insert(text.to_vec(), number);
        self.texts.push(text.to_vec());
        number
    }
}

/// What rows are added to, and which count.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// How keys are laid.
    parts: Vec<Vec<KeyPart>>,
    texts: Texts,
    /// What cleared aggregations had, and what came late to the epoch before.
    before: BTreeMap<Key, Data>,
    /// Rows of earlier epochs are of values that were cleared.
    epochs: Vec<u16>,
    /// Aggregations whose epoch has ended, and which are not cleared yet.
    ending: BTreeSet<u16>,
    /// Rows of epochs that have ended, as they were read last: a firing that was under way then may add to them.
    ended: HashMap<Vec<u8>, Vec<u8>>,
    /// Tables and events that could not be read.
    pub(super) unread: u64,
}

impl Rows {
    pub(super) fn new(parts: Vec<Vec<KeyPart>>, texts: Texts) -> Self {
        Self { parts, texts, ..Self::default() }
    }

    /// Has all aggregations as they are now.
    pub(super) fn read(&mut self, object: &Object, form: &Form, to: &mut Aggregations) {
        let mut sums: BTreeMap<Key, Data> = BTreeMap::new();
        let mut late: BTreeMap<Key, Data> = BTreeMap::new();
        let Self { parts, texts, epochs, ending, ended, .. } = self;
        for table in ["rows", "large_rows"] {
            let visited = map_batch::visit_entries(map(object, table).as_fd(), |wire, row| {
                let Some((head, key)) = read_key(form, (parts, texts), wire) else { return true };
                let (aggregation, function) = (key.0, to.function(key.0));
                let epoch = epochs.get(usize::from(aggregation)).copied().unwrap_or(0);
                let (is_ending, is_now) = (ending.contains(&aggregation), head.epoch == epoch);
                let is_last = head.epoch == epoch.wrapping_sub(1);
                let nothing = || to.nothing(aggregation);
                match (is_ending, is_now, is_last) {
                    (false, true, _) => {
                        add(sums.entry(key).or_insert_with(nothing), function, &head, row)
                    }
                    // Counted behind what is about to be cleared.
                    (true, true, _) => {}
                    (true, _, true) => {
                        add(sums.entry(key).or_insert_with(nothing), function, &head, row);
                        ended.insert(wire.to_vec(), row.to_vec());
                    }
                    _ => {
                        let had = ended.remove(wire);
                        if had.as_deref() != Some(row) {
                            let more = since(row, had.as_deref(), function);
                            add(late.entry(key).or_insert_with(nothing), function, &head, &more);
                        }
                        return true;
                    }
                }
                false
            });
            self.unread += u64::from(visited.is_err());
        }
        for (key, data) in late {
            let (function, nothing) = (to.function(key.0), to.nothing(key.0));
            self.before.entry(key).or_insert(nothing).add(function, &data);
        }
        for (key, data) in &self.before {
            let (function, nothing) = (to.function(key.0), to.nothing(key.0));
            sums.entry(key.clone()).or_insert(nothing).add(function, data);
        }
        for ((aggregation, keys), data) in sums {
            to.set(aggregation, keys, data);
        }
    }

    /// Has the kernel add to rows of their own what comes from now on. Those of before are read, and the
    /// aggregation is cleared, until [`Rows::end_epoch`].
    pub(super) fn begin_epoch(&mut self, object: &Object, aggregation: u16) {
        self.epochs.resize(layout::AGGREGATIONS, 0);
        if let Some(epoch) = self.epochs.get_mut(usize::from(aggregation)) {
            *epoch = epoch.wrapping_add(1);
        }
        let wire: Vec<u8> = self.epochs.iter().flat_map(|one| one.to_ne_bytes()).collect();
        let told = map(object, ".bss.epochs").update(&0_u32.to_ne_bytes(), &wire, MapFlags::ANY);
        self.unread += u64::from(told.is_err());
        self.ending.insert(aggregation);
    }

    /// From now on rows are added to what there is.
    pub(super) fn end_epoch(&mut self, aggregation: u16, is: &Aggregations) {
        self.before.retain(|(one, _), _| *one != aggregation);
        for (keys, entry) in is.of(aggregation) {
            self.before.insert((aggregation, keys.to_vec()), entry.data.clone());
        }
        self.ending.remove(&aggregation);
    }
}

/// What a row has beyond what it had. An extreme that has changed is one of the values that came late.
fn since(row: &[u8], had: Option<&[u8]>, function: Aggregating) -> Vec<u8> {
    let Some(had) = had else { return row.to_vec() };
    if matches!(function, Aggregating::Minimum | Aggregating::Maximum) {
        return row.to_vec();
    }
    let words = |bytes: &[u8]| {
        let mut bytes = Bytes(bytes);
        std::array::from_fn::<u64, 4, _>(|_| bytes.word().unwrap_or(0))
    };
    let (now, had) = (words(row), words(had));
    let mut more: [u64; 4] = std::array::from_fn(|at| now[at].wrapping_sub(had[at]));
    // The square of a moment is one number of two words.
    more[3] = more[3].wrapping_sub(u64::from(now[2] < had[2]));
    more.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The first word of a key.
struct Head {
    epoch: u16,
    /// Of a distribution's bin, its number and one.
    bin: u16,
}

fn read_key(
    form: &Form,
    (parts, texts): (&[Vec<KeyPart>], &Texts),
    bytes: &[u8],
) -> Option<(Head, Key)> {
    let mut bytes = Bytes(bytes);
    let head = bytes.word()?;
    let [aggregation, epoch, bin, _place] = [0, 16, 32, 48].map(|shift| (head >> shift) as u16);
    let types = &form.aggregations.get(usize::from(aggregation))?.keys;
    let mut keys = vec![Value::Integer(0); types.len()];
    // Integers come first.
    for is_text in [false, true] {
        let parts = parts.get(usize::from(aggregation))?;
        for ((key, of), part) in keys.iter_mut().zip(types).zip(parts) {
            match part {
                KeyPart::Whole if matches!(of, Type::String | Type::Stack { .. }) == is_text => {
                    *key = value(&mut bytes, *of)?;
                }
                KeyPart::OfProbe(_) if !is_text => {
                    let text = texts.texts.get(bytes.word()? as usize)?;
                    *key = Value::Text(text.clone());
                }
                KeyPart::Name if !is_text => {
                    let mut text = [bytes.word()?, bytes.word()?].map(u64::to_ne_bytes).concat();
                    text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
                    *key = Value::Text(text);
                }
                _ => {}
            }
        }
    }
    Some((Head { epoch, bin }, (aggregation, keys)))
}

/// Adds a row, `struct row` of `d.h`.
fn add(sum: &mut Data, function: Aggregating, head: &Head, row: &[u8]) {
    let mut bytes = Bytes(row);
    let words: [u64; 4] = std::array::from_fn(|_| bytes.word().unwrap_or(0));
    if let Data::Bins(bins) = sum {
        let bin = usize::from(head.bin).checked_sub(1).filter(|_| head.bin != layout::HEAD_BIN);
        if let Some(bin) = bin.and_then(|bin| bins.get_mut(bin)) {
            *bin = bin.wrapping_add(words[0].cast_signed());
        }
        return;
    }
    let [first, second, third, fourth] = words;
    let row = match sum {
        Data::Sum(_) => Data::Sum(first.cast_signed()),
        Data::Extreme(_) => Data::Extreme((second != 0).then_some(first.cast_signed())),
        _ => Data::Moments {
            count: first.cast_signed(),
            sum: second.cast_signed(),
            squares: u128::from(third) | u128::from(fourth) << 64,
        },
    };
    sum.add(function, &row);
}
