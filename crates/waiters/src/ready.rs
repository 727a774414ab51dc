//! The events a descriptor is watched for, and those that occurred.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// The events of a descriptor: the bits of poll(2), which are also those of epoll(7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ready(u32);

impl Ready {
    /// Something can be read (`POLLIN`), or a connection be accepted.
    pub const READABLE: Self = Self(0x1);
    /// There is room to write (`POLLOUT`).
    pub const WRITABLE: Self = Self(0x4);
    /// An error is pending (`POLLERR`).
    pub const ERROR: Self = Self(0x8);
    /// The other end is gone (`POLLHUP`).
    pub const HANG_UP: Self = Self(0x10);
    /// There is no such descriptor (`POLLNVAL`).
    pub const INVALID: Self = Self(0x20);
    /// The other end writes no more (`POLLRDHUP`).
    pub const PEER_CLOSED: Self = Self(0x2000);

    /// All that has a name here.
    const ALL: u32 = 0x203d;

    /// Of the kernel's bits; those without a name here are left out.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL)
    }

    /// The kernel's bits.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `other` happened.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` happened.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a read would not block: it finds bytes, the end, or the error.
    #[inline]
    pub const fn wants_read(self) -> bool {
        self.0 & (0x1 | 0x8 | 0x10 | 0x2000) != 0
    }

    /// Whether a write would not block: there is room, or it finds the error.
    #[inline]
    pub const fn wants_write(self) -> bool {
        self.0 & (0x4 | 0x8 | 0x10) != 0
    }

    /// Whether nothing happened.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Ready {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::READABLE, "readable"),
            (Self::WRITABLE, "writable"),
            (Self::ERROR, "error"),
            (Self::HANG_UP, "hang-up"),
            (Self::INVALID, "invalid"),
            (Self::PEER_CLOSED, "peer closed"),
        ];
        let said = names.iter().filter(|(bit, _)| self.contains(*bit)).map(|(_, name)| *name);
        f.debug_set().entries(said).finish()
    }
}

/// The events a descriptor is watched for. Errors and hang-ups are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest(u32);

impl Interest {
    /// Something to read.
    pub const READ: Self = Self(0x1 | 0x2000);
    /// Room to write.
    pub const WRITE: Self = Self(0x4);
    /// Either.
    pub const BOTH: Self = Self(0x1 | 0x2000 | 0x4);

    /// Whether reading is of interest.
    #[inline]
    pub const fn reads(self) -> bool {
        self.0 & 0x1 != 0
    }

    /// Whether writing is of interest.
    #[inline]
    pub const fn writes(self) -> bool {
        self.0 & 0x4 != 0
    }

    /// The kernel's bits.
    #[inline]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_without_a_name_are_left_out_and_the_others_are_named() {
        let ready = Ready::from_bits(0x1 | 0x10 | 0x40);
        assert_eq!(ready, Ready::READABLE | Ready::HANG_UP);
        assert_eq!(format!("{ready:?}"), "{\"readable\", \"hang-up\"}");
        assert!(ready.wants_read() && !Ready::INVALID.wants_read());
        assert!(Interest::BOTH.reads() && Interest::BOTH.writes() && !Interest::WRITE.reads());
    }
}
