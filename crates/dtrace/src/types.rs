//! The types of D's values, as on a machine of 64 bits (LP64).

use std::fmt;

/// An integer's size and whether it has a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Integer {
    /// 1, 2, 4 or 8.
    pub bytes: u8,
    /// Whether it has a sign.
    pub signed: bool,
}

impl Integer {
    /// `int`
    pub const INT: Self = Self { bytes: 4, signed: true };
    /// `unsigned int`
    pub const UINT: Self = Self { bytes: 4, signed: false };
    /// `int64_t`
    pub const I64: Self = Self { bytes: 8, signed: true };
    /// `uint64_t`
    pub const U64: Self = Self { bytes: 8, signed: false };

    /// The value as this type holds it: cut to its size, then extended to 64 bits by its sign.
    pub fn held(self, value: u64) -> u64 {
        let unused = 64 - 8 * u32::from(self.bytes.clamp(1, 8));
        match self.signed {
            true => ((value << unused).cast_signed() >> unused).cast_unsigned(),
            false => value << unused >> unused,
        }
    }

    /// C's integer promotion: what is smaller than an `int` becomes one.
    pub(crate) fn promoted(self) -> Self {
        if self.bytes < 4 { Self::INT } else { self }
    }

    /// C's usual arithmetic conversions of two sides.
    pub(crate) fn common(self, other: Self) -> Self {
        let (left, right) = (self.promoted(), other.promoted());
        match left.bytes.cmp(&right.bytes) {
            std::cmp::Ordering::Less => right,
            std::cmp::Ordering::Greater => left,
            std::cmp::Ordering::Equal => {
                Self { bytes: left.bytes, signed: left.signed && right.signed }
            }
        }
    }

    /// The type of a constant with this value: the first of C's candidates that holds it.
    pub(crate) fn of_constant(value: u64, unsigned: bool, long: bool, decimal: bool) -> Self {
        let candidates = [
            (!unsigned && !long, Self::INT, i32::MAX as u64),
            (!long && (unsigned || !decimal), Self::UINT, u64::from(u32::MAX)),
            (!unsigned, Self::I64, i64::MAX as u64),
        ];
        let fits = candidates.into_iter().find(|(allowed, _, most)| *allowed && value <= *most);
        fits.map_or(Self::U64, |(_, integer, _)| integer)
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u32::from(self.bytes) * 8;
        match (self.bytes, self.signed) {
            (4, true) => f.write_str("int"),
            (_, true) => write!(f, "int{bits}_t"),
            (_, false) => write!(f, "uint{bits}_t"),
        }
    }
}

/// What a pointer leads to in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// `void`: nothing that can be read.
    Void,
    /// An integer.
    Integer(Integer),
}

/// A structure that D's providers have, whose members are facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// `psinfo_t`
    Psinfo,
    /// `lwpsinfo_t`
    Lwpsinfo,
    /// `cpuinfo_t`
    Cpuinfo,
    /// `fileinfo_t`
    Fileinfo,
    /// `bufinfo_t`
    Bufinfo,
    /// `devinfo_t`
    Devinfo,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// The type of a call without a value.
    Void,
    /// An integer.
    Integer(Integer),
    /// `string`, of at most `strsize` bytes with its end.
    String,
    /// A pointer, `depth` of them before the target.
    Pointer(Target, u8),
    /// A pointer to a provider's structure, or that structure.
    Object(Object),
    /// The kernel's or the user's stack with so many frames.
    Stack {
        /// Whether it is the user's.
        user: bool,
        /// The most frames.
        frames: u16,
    },
    /// The name of an address in an aggregation's keys: `sym`, `usym` and their like.
    Symbol,
}

impl Type {
    /// `int`
    pub const INT: Self = Self::Integer(Integer::INT);

    /// The integer that a value of this type is calculated as.
    pub(crate) fn as_integer(self) -> Option<Integer> {
        match self {
            Self::Integer(integer) => Some(integer),
            Self::Pointer(..) => Some(Integer::U64),
            _ => None,
        }
    }

    /// Bytes in a record, with strings of this size.
    pub fn bytes(self, strsize: u32) -> u32 {
        match self {
            Self::Void => 0,
            Self::Integer(integer) => u32::from(integer.bytes),
            Self::String => strsize,
            Self::Pointer(..) | Self::Object(_) | Self::Symbol => 8,
            Self::Stack { frames, .. } => 8 * u32::from(frames) + 8,
        }
    }

    /// With its article, as in "an int" and "a string".
    pub(crate) fn with_article(self) -> String {
        let name = self.to_string();
        let name = match self {
            Self::Object(_) => name.trim_end_matches(" *"),
            _ => name.trim_end(),
        };
        let article = if name.starts_with('i') { "an" } else { "a" };
        format!("{article} {name}")
    }

    /// The type behind a pointer.
    pub(crate) fn dereferenced(self) -> Option<Self> {
        match self {
            Self::Pointer(Target::Integer(integer), 1) => Some(Self::Integer(integer)),
            Self::Pointer(target, depth) if depth > 1 => Some(Self::Pointer(target, depth - 1)),
            _ => None,
        }
    }

    /// A type by its name; names of several words have one blank between them.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let integer = |bytes, signed| Some(Self::Integer(Integer { bytes, signed }));
        match name {
            "void" => Some(Self::Void),
            "string" => Some(Self::String),
            "char" | "signed char" | "int8_t" => integer(1, true),
            "unsigned char" | "uint8_t" | "uchar_t" | "u_char" => integer(1, false),
            "short" | "short int" | "signed short" | "signed short int" | "int16_t" => {
                integer(2, true)
            }
            "unsigned short" | "unsigned short int" | "uint16_t" | "ushort_t" | "u_short" => {
                integer(2, false)
            }
            "int" | "signed" | "signed int" | "int32_t" | "pid_t" | "id_t" | "lwpid_t"
            | "processorid_t" | "psetid_t" | "chipid_t" | "lgrp_id_t" | "taskid_t" | "projid_t"
            | "zoneid_t" | "boolean_t" | "key_t" => integer(4, true),
            "unsigned" | "unsigned int" | "uint32_t" | "uint_t" | "u_int" | "uid_t" | "gid_t"
            | "mode_t" | "wchar_t" => integer(4, false),
            "long"
            | "long int"
            | "signed long"
            | "signed long int"
            | "long long"
            | "long long int"
            | "signed long long"
            | "signed long long int"
            | "int64_t"
            | "longlong_t"
            | "ssize_t"
            | "off_t"
            | "offset_t"
            | "intptr_t"
            | "ptrdiff_t"
            | "time_t"
            | "hrtime_t"
            | "daddr_t"
            | "clock_t"
            | "off64_t" => integer(8, true),
            "unsigned long"
            | "unsigned long int"
            | "unsigned long long"
            | "unsigned long long int"
            | "uint64_t"
            | "ulong_t"
            | "u_long"
            | "u_longlong_t"
            | "size_t"
            | "uintptr_t"
            | "caddr_t"
            | "dev_t"
            | "ino_t"
            | "pc_t"
            | "rlim_t" => integer(8, false),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Void => f.write_str("void"),
            Self::Integer(integer) => integer.fmt(f),
            Self::String => f.write_str("string"),
            Self::Pointer(target, depth) => {
                match target {
                    Target::Void => f.write_str("void ")?,
                    Target::Integer(integer) => write!(f, "{integer} ")?,
                }
                f.write_str(&"*".repeat(usize::from(*depth)))
            }
            Self::Object(object) => f.write_str(match object {
                Object::Psinfo => "psinfo_t *",
                Object::Lwpsinfo => "lwpsinfo_t *",
                Object::Cpuinfo => "cpuinfo_t *",
                Object::Fileinfo => "fileinfo_t *",
                Object::Bufinfo => "bufinfo_t *",
                Object::Devinfo => "devinfo_t *",
            }),
            Self::Stack { user: false, .. } => f.write_str("stack"),
            Self::Stack { user: true, .. } => f.write_str("ustack"),
            Self::Symbol => f.write_str("symbol"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_holds_what_fits_and_extends_by_its_sign() {
        let held = |bytes, signed, value: i64| {
            Integer { bytes, signed }.held(value.cast_unsigned()).cast_signed()
        };
        assert_eq!(held(1, true, 255), -1);
        assert_eq!(held(1, false, -1), 255);
        assert_eq!(held(2, true, 0x1_8000), -32768);
        assert_eq!(held(4, false, -1), 0xffff_ffff);
        assert_eq!(held(4, true, 0x8000_0000), -0x8000_0000);
        assert_eq!(held(8, true, -1), -1);
    }

    #[test]
    fn conversions_are_those_of_c() {
        let char = Integer { bytes: 1, signed: true };
        assert_eq!(char.common(char), Integer::INT);
        assert_eq!(char.common(Integer::UINT), Integer::UINT);
        assert_eq!(Integer::UINT.common(Integer::I64), Integer::I64);
        assert_eq!(Integer::U64.common(Integer::I64), Integer::U64);
    }

    #[test]
    fn a_constant_has_the_first_type_that_holds_it() {
        let of = |value, unsigned, long, decimal| {
            Integer::of_constant(value, unsigned, long, decimal).to_string()
        };
        assert_eq!(of(5, false, false, true), "int");
        assert_eq!(of(0x8000_0000, false, false, true), "int64_t");
        assert_eq!(of(0x8000_0000, false, false, false), "uint32_t");
        assert_eq!(of(5, true, false, true), "uint32_t");
        assert_eq!(of(5, false, true, true), "int64_t");
        assert_eq!(of(5, true, true, true), "uint64_t");
        assert_eq!(of(u64::MAX, false, false, true), "uint64_t");
    }
}
