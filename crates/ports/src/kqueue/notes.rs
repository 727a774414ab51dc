//! What a queue watches: one note for each pair of filter and identifier, and the notes that are
//! active, in order.
//!
//! The one invariant: a note's number is used again with another generation, so that what the kernel's
//! sets and the list of active ones still say of a note that is gone is void.

use std::collections::VecDeque;

use iotomy_sys::measure::FileKind;
use iotomy_sys::private_fd::PrivateFd;
use iotomy_sys::signal_watch::Watched;

use super::kevent::{Kevent, filter};
use super::watched::{WatchedFile, WatchedProcess};
use crate::numbers::NumberMap;

/// For what a set told that need not be so any more. A set tells of no event without any.
pub(super) const UNKNOWN: u32 = 0;

/// What a note is found by.
pub(super) type Key = (i16, usize);

/// A note's number and generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    index: u32,
    generation: u32,
}

impl Tag {
    /// As the kernel's sets keep it.
    pub(super) fn word(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(super) fn from_word(word: u64) -> Self {
        Self { index: word as u32, generation: (word >> 32) as u32 }
    }
}

/// Where the events of a note come from.
#[derive(Debug)]
pub(super) enum Source {
    /// The kernel's set of the filter has the descriptor.
    Descriptor(FileKind),
    /// A file that the kernel's sets refuse: it is always ready, or has an end.
    Unpolled,
    /// A timer, and how often it has expired.
    Timer { fd: PrivateFd, expirations: i64 },
    /// The program.
    User { is_triggered: bool },
    /// The signals that come, and how many had come when it was asked last.
    Signal { watched: Watched, seen: u64 },
    /// A process.
    Process(WatchedProcess),
    /// A file, by `inotify(7)`.
    File(WatchedFile),
}

/// Something that is watched.
#[derive(Debug)]
pub(super) struct Note {
    /// The change that added it: identifier, filter, flags, and the values that its events have.
    pub(super) event: Kevent,
    /// What the filter is asked for.
    pub(super) wanted: u32,
    /// The filter's number: a limit or a time.
    pub(super) amount: i64,
    pub(super) is_disabled: bool,
    /// Whether one event comes whatever the filter says.
    pub(super) is_forced: bool,
    pub(super) source: Source,
    is_active: bool,
    /// What its set has told of its descriptor, and in which round.
    told: (u64, u32),
}

impl Note {
    pub(super) fn new(event: Kevent, source: Source) -> Self {
        let (wanted, amount) = (event.fflags, event.data);
        let event = Kevent { fflags: 0, data: 0, ..event };
        let (is_disabled, is_forced, is_active) = (false, false, false);
        Self { event, wanted, amount, is_disabled, is_forced, source, is_active, told: (0, 0) }
    }

    pub(super) fn key(&self) -> Key {
        (self.event.filter, self.event.ident)
    }

    pub(super) fn has(&self, flag: u16) -> bool {
        self.event.flags & flag != 0
    }

    /// Takes note of what its set has told of it in this round, or [`UNKNOWN`]; false if it has told before.
    pub(super) fn hear(&mut self, round: u64, events: u32) -> bool {
        let is_new = self.told.0 != round;
        self.told = (round, events);
        is_new
    }

    /// What its set has told of its descriptor in this round.
    pub(super) fn told(&self, round: u64) -> Option<u32> {
        (self.told.0 == round && self.told.1 != UNKNOWN).then_some(self.told.1)
    }
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    note: Option<Note>,
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_key: ByKey,
    active: VecDeque<Tag>,
}

/// The numbers of notes by what they are found by.
#[derive(Debug, Default)]
struct ByKey {
    /// Of each filter of descriptors: a number plus 1 for each descriptor, 0 for none.
    of_descriptors: [Vec<u32>; filter::OF_DESCRIPTORS.len()],
    others: NumberMap<Key, u32>,
}

impl ByKey {
    fn get(&self, key: Key) -> Option<u32> {
        match place(key.0) {
            Some(place) => self.of_descriptors[place].get(key.1)?.checked_sub(1),
            None => self.others.get(&key).copied(),
        }
    }

    fn insert(&mut self, key: Key, number: u32) {
        let Some(place) = place(key.0) else {
            self.others.insert(key, number);
            return;
        };
        let numbers = &mut self.of_descriptors[place];
        if numbers.len() <= key.1 {
            numbers.resize(key.1 + 1, 0);
        }
        numbers[key.1] = number + 1;
    }

    fn remove(&mut self, key: Key) {
        match place(key.0) {
            Some(place) => {
                if let Some(number) = self.of_descriptors[place].get_mut(key.1) {
                    *number = 0;
                }
            }
            None => {
                self.others.remove(&key);
            }
        }
    }
}

/// Which of the filters of descriptors it is.
fn place(of: i16) -> Option<usize> {
    filter::OF_DESCRIPTORS.iter().position(|filter| *filter == of)
}

impl Notes {
    /// The tag that the next note gets.
    pub(super) fn next_tag(&mut self) -> Tag {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            // The end of a note asks for no memory.
            self.free.reserve(self.slots.len() - self.free.len());
            self.slots.len() as u32 - 1
        });
        self.free.push(index);
        Tag { index, generation: self.slots[index as usize].generation }
    }

    /// Adds a note, whose tag is the next one.
    pub(super) fn insert(&mut self, note: Note) -> Tag {
        let tag = self.next_tag();
        self.free.pop();
        self.by_key.insert(note.key(), tag.index);
        self.slots[tag.index as usize].note = Some(note);
        tag
    }

    pub(super) fn find(&self, key: Key) -> Option<Tag> {
        let index = self.by_key.get(key)?;
        Some(Tag { index, generation: self.slots[index as usize].generation })
    }

    /// The note of a tag, unless it is gone.
    pub(super) fn get(&mut self, tag: Tag) -> Option<&mut Note> {
        let slot = self.slots.get_mut(tag.index as usize)?;
        slot.note.as_mut().filter(|_| slot.generation == tag.generation)
    }

    pub(super) fn remove(&mut self, tag: Tag) -> Option<Note> {
        let slot = self.slots.get_mut(tag.index as usize)?;
        if slot.generation != tag.generation {
            return None;
        }
        let note = slot.note.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.by_key.remove(note.key());
        self.free.push(tag.index);
        Some(note)
    }

    pub(super) fn is_of_process(&mut self, tag: Tag) -> bool {
        self.get(tag).is_some_and(|note| matches!(note.source, Source::Process(_)))
    }

    /// How many numbers of notes have been used.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The tag of the note with this number, if there is one.
    pub(super) fn tag_at(&self, index: usize) -> Option<Tag> {
        let slot = self.slots.get(index).filter(|slot| slot.note.is_some())?;
        Some(Tag { index: index as u32, generation: slot.generation })
    }

    /// Puts a note among the active ones, unless it is disabled.
    pub(super) fn activate(&mut self, tag: Tag) {
        let Some(note) = self.get(tag) else { return };
        if !note.is_disabled && !std::mem::replace(&mut note.is_active, true) {
            self.active.push_back(tag);
        }
    }

    /// Puts an active note, which was taken out, in again as the last one.
    pub(super) fn stay_active(&mut self, tag: Tag) {
        self.active.push_back(tag);
    }

    /// Takes the first active note out. One that stays active is put in again.
    pub(super) fn take_active(&mut self) -> Option<Tag> {
        loop {
            let tag = self.active.pop_front()?;
            let Some(note) = self.get(tag) else { continue };
            if !note.is_disabled {
                return Some(tag);
            }
            note.is_active = false;
        }
    }

    /// A note that was taken out is active no more.
    pub(super) fn rest(&mut self, tag: Tag) {
        if let Some(note) = self.get(tag) {
            note.is_active = false;
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many may be active at most.
    pub(super) fn active_count(&self) -> usize {
        self.active.len()
    }

    /// Whether a note is active.
    pub(super) fn has_active(&mut self) -> bool {
        let first = self.take_active();
        if let Some(tag) = first {
            self.active.push_front(tag);
        }
        first.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_another_note() {
        let mut notes = Notes::default();
        let event = Kevent { ident: 7, filter: -11, ..Kevent::default() };
        let new = || Note::new(event, Source::User { is_triggered: false });
        let tag = notes.next_tag();
        assert_eq!(notes.insert(new()), tag);
        assert_eq!(notes.find((-11, 7)), Some(tag));
        assert_eq!(Tag::from_word(tag.word()), tag);
        notes.activate(tag);
        notes.activate(tag);
        assert_eq!(notes.active_count(), 1);
        assert!(notes.remove(tag).is_some() && notes.remove(tag).is_none());
        assert_eq!(notes.find((-11, 7)), None);
        let second = notes.insert(new());
        assert!(second != tag && notes.get(tag).is_none() && notes.get(second).is_some());
        assert!(!notes.has_active());
    }
}
