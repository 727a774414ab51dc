//! Values by descriptor, for a library whose callers know things by descriptors only. Look-ups take no
//! lock, so that handlers of signals may make them.
//!
//! The tricky invariant: a value is dropped by whoever is last of its remover and its users. What a
//! user has counted itself in is never freed: 16 bytes remain of each value there ever was.

use std::ops::Deref;
use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

const CHUNK: usize = 1024;
const CHUNKS: usize = 1024;

/// The count says that the value was removed.
const REMOVED: usize = 1;
/// One user in the count.
const USER: usize = 2;

type Chunk<T> = [AtomicPtr<Counted<T>>; CHUNK];

/// Values by descriptor, up to number 1,048,575.
#[derive(Debug)]
pub struct DescriptorTable<T> {
    chunks: [OnceLock<Box<Chunk<T>>>; CHUNKS],
}

#[derive(Debug)]
struct Counted<T> {
    users: AtomicUsize,
    value: AtomicPtr<T>,
}

/// A value that stays until this is dropped, also if it is removed meanwhile.
#[derive(Debug)]
pub struct Entry<'t, T> {
    counted: &'t Counted<T>,
    value: &'t T,
}

impl<T: Send + Sync> DescriptorTable<T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    fn slot(&self, fd: RawFd) -> Option<&AtomicPtr<Counted<T>>> {
        let fd = usize::try_from(fd).ok()?;
        Some(&self.chunks.get(fd / CHUNK)?.get()?[fd % CHUNK])
    }

    /// Puts a value in; false if the number is too large. A value that was there is removed.
    pub fn insert(&self, fd: RawFd, value: T) -> bool {
        let Ok(number) = usize::try_from(fd) else { return false };
        let Some(chunk) = self.chunks.get(number / CHUNK) else { return false };
        let chunk = chunk.get_or_init(|| Box::new([const { AtomicPtr::new(null_mut()) }; CHUNK]));
        self.remove(fd);
        let value = AtomicPtr::new(Box::into_raw(Box::new(value)));
        let counted = Box::new(Counted { users: AtomicUsize::new(0), value });
        chunk[number % CHUNK].store(Box::into_raw(counted), Ordering::SeqCst);
        true
    }

    /// The value of a descriptor.
    pub fn get(&self, fd: RawFd) -> Option<Entry<'_, T>> {
        let slot = self.slot(fd)?;
        let counted = slot.load(Ordering::SeqCst);
        // SAFETY: null, or made by `insert` from a box that is never freed.
        let counted = unsafe { counted.as_ref() }?;
        if counted.users.fetch_add(USER, Ordering::SeqCst) & REMOVED != 0 {
            counted.leave();
            return None;
        }
        // SAFETY: it was not removed when this user was counted, so it is dropped only after `leave`.
        let value = unsafe { counted.value.load(Ordering::SeqCst).as_ref() };
        value.map(|value| Entry { counted, value })
    }

    /// Takes a value out, which is dropped when nobody uses it any more; whether there was one.
    pub fn remove(&self, fd: RawFd) -> bool {
        let Some(slot) = self.slot(fd) else { return false };
        let counted = slot.swap(null_mut(), Ordering::SeqCst);
        // SAFETY: as in `get`.
        let Some(counted) = (unsafe { counted.as_ref() }) else { return false };
        if counted.users.fetch_or(REMOVED, Ordering::SeqCst) == 0 {
            counted.drop_value();
        }
        true
    }
}

impl<T: Send + Sync> Default for DescriptorTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Counted<T> {
    fn leave(&self) {
        if self.users.fetch_sub(USER, Ordering::SeqCst) == USER | REMOVED {
            self.drop_value();
        }
    }

    fn drop_value(&self) {
        let value = self.value.swap(null_mut(), Ordering::SeqCst);
        if !value.is_null() {
            // SAFETY: made from a box by `insert`; the swap gives it to one thread, when there are no
            // users, and no more can come.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> Deref for Entry<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for Entry<'_, T> {
    fn drop(&mut self) {
        self.counted.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_value_is_dropped_once_by_the_last_of_remover_and_users() {
        let table = DescriptorTable::new();
        let value = Arc::new(());
        assert!(table.insert(7, Arc::clone(&value)));
        assert!(
            table.get(8).is_none() && table.get(-1).is_none() && table.get(5_000_000).is_none()
        );
        assert!(!table.insert(5_000_000, Arc::clone(&value)));
        let entry = table.get(7).unwrap();
        assert!(table.remove(7) && !table.remove(7) && table.get(7).is_none());
        assert_eq!(Arc::strong_count(&value), 2);
        drop(entry);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn threads_that_look_up_while_others_remove_see_a_value_or_none() {
        let table = DescriptorTable::new();
        let value = Arc::new(());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        if let Some(entry) = table.get(3) {
                            assert!(Arc::ptr_eq(&entry, &value));
                        }
                    }
                });
            }
            for _ in 0..2_000 {
                table.insert(3, Arc::clone(&value));
                table.remove(3);
            }
        });
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
