//! Maps by numbers of the program's own, such as descriptors: it has no reason to make them collide, so
//! their hash need not resist that.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers of the program's own.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A hash of a few numbers.
#[derive(Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize((*byte).into()));
    }

    fn write_i16(&mut self, number: i16) {
        self.write_usize(number as usize);
    }

    fn write_i32(&mut self, number: i32) {
        self.write_usize(number as usize);
    }

    fn write_usize(&mut self, number: usize) {
        // An odd number without a pattern, as in Fibonacci hashing; maps take the highest bits and the lowest.
        self.0 = (self.0.rotate_left(5) ^ number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 32;
    }
}
