//! The numbers of a call in the kernel's rows, and what statistics of the record they are. A number that is added
//! to `struct call_numbers` of `trace.h` is added here, in the same place.

use std::sync::LazyLock;

use iotomy_record::Call;
use iotomy_record::statistic::{Statistic, Statistics};

use super::layout::{Fields, PLAIN_TIMES, SLOTS, Sparse, TIMES, Wire, sparse};

/// Declares [`CallNumbers`]: the members of `struct call_numbers` of `trace.h`, in its order, with their size and how
/// rows are put together; and numbers of `struct wait_stats`.
macro_rules! call_numbers {
    (
        numbers { $($member:ident: $size:ident $joins:ident,)* }
        waits { $($of_waits:ident: $joins_waits:ident,)* }
    ) => {
        /// Numbers of a call. One with the name of a statistic of [`Call`] is that statistic.
        #[derive(Debug, Clone, Default)]
        pub(super) struct CallNumbers {
            $(pub(super) $member: u64,)*
            $(pub(super) $of_waits: u64,)*
        }

        impl CallNumbers {
            /// Those that the kernel's rows begin with, and their bytes.
            #[cfg(test)]
            pub(super) const MEMBERS: &[(&str, usize)] =
                &[$((stringify!($member), size_of::<$size>()),)*];

            const NAMES: &[&str] = &[$(stringify!($member),)* $(stringify!($of_waits),)*];

            /// Adds another row's.
            pub(super) fn add(&mut self, row: &Self) {
                $(self.$member = $joins(self.$member, row.$member);)*
                $(self.$of_waits = $joins_waits(self.$of_waits, row.$of_waits);)*
            }

            /// In the order of the names.
            fn all(&self) -> impl Iterator<Item = u64> {
                [$(self.$member,)* $(self.$of_waits,)*].into_iter()
            }
        }

        impl Wire for CallNumbers {
            const SIZE: usize = 0 $(+ size_of::<$size>())*;

            fn read(from: &mut Fields<'_>) -> Self {
                Self { $($member: from.$size().into(),)* ..Self::default() }
            }
        }
    };
}

call_numbers! {
    numbers {
        wall_ns: u64 sum,
        max_ns: u64 most,
        bytes: u64 sum,
        open_max_ns: u64 most,
        open_ns: u64 sum,
        in_flight: u32 sum,
        entered_before: u32 sum,
    }
    waits {
        blocked_ns: sum,
        runnable_ns: sum,
    }
}

/// It wraps: results of calls that return no count of bytes, such as addresses, are added up, too.
fn sum(a: u64, b: u64) -> u64 {
    a.wrapping_add(b)
}

fn most(a: u64, b: u64) -> u64 {
    a.max(b)
}

/// The statistic of each of the names.
static STATISTICS: LazyLock<Vec<Option<&'static Statistic<Call>>>> =
    LazyLock::new(|| CallNumbers::NAMES.iter().map(|name| Call::statistic(name)).collect());

impl CallNumbers {
    /// Gives a row of the record those that are its statistics, and what follows from them.
    pub(super) fn put(&self, row: &mut Call) {
        for (statistic, number) in STATISTICS.iter().zip(self.all()) {
            if let Some(statistic) = statistic {
                (statistic.field.set)(row, number);
            }
        }
        row.max_ns = self.max_ns.max(self.open_max_ns);
        row.on_cpu_ns = Some(self.on_cpu_ns());
    }

    fn on_cpu_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.blocked_ns.saturating_add(self.runnable_ns))
    }
}

/// The rows of `calls` and, with counters of two bytes, of `frequent`.
pub(super) struct CallStats<const WIDTH: usize> {
    pub(super) numbers: CallNumbers,
    pub(super) image: u32,
    pub(super) returns: [u32; SLOTS],
    pub(super) plain: Sparse,
}

/// A row of `calls`.
pub(super) type RareStats = CallStats<1>;

/// A row of `frequent`.
pub(super) type FrequentStats = CallStats<2>;

impl<const WIDTH: usize> Wire for CallStats<WIDTH> {
    const SIZE: usize = CallNumbers::SIZE + 4 * (1 + SLOTS) + WIDTH * PLAIN_TIMES;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            numbers: CallNumbers::read(from),
            image: from.u32(),
            returns: std::array::from_fn(|_| from.u32()),
            plain: sparse(from, PLAIN_TIMES, WIDTH),
        }
    }
}

pub(super) struct WaitStats {
    /// Time, and its maximum of those that returned.
    pub(super) numbers: CallNumbers,
    pub(super) max_on_cpu_ns: u64,
    pub(super) max_blocked_ns: u64,
    pub(super) image: u32,
    pub(super) wall: Sparse,
    pub(super) on_cpu: Sparse,
    pub(super) blocked: Sparse,
}

impl Wire for WaitStats {
    const SIZE: usize = 48 + 8 + 3 * TIMES;

    fn read(from: &mut Fields<'_>) -> Self {
        let mut sums = || from.u64();
        let (wall_ns, blocked_ns, runnable_ns) = (sums(), sums(), sums());
        let (max_ns, max_on_cpu_ns, max_blocked_ns) = (sums(), sums(), sums());
        let (image, _pad) = (from.u32(), from.u32());
        Self {
            numbers: CallNumbers {
                wall_ns,
                blocked_ns,
                runnable_ns,
                max_ns,
                ..CallNumbers::default()
            },
            max_on_cpu_ns,
            max_blocked_ns,
            image,
            wall: sparse(from, TIMES, 1),
            on_cpu: sparse(from, TIMES, 1),
            blocked: sparse(from, TIMES, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSection};

    use super::super::btf::{Btf, Type, kind, word};
    use super::super::embedded::embedded;
    use super::*;

    #[test]
    fn the_numbers_of_a_call_are_those_of_the_programs() {
        let object =
            miniz_oxide::inflate::decompress_to_vec(embedded!("trace").compressed).unwrap();
        let file = object::File::parse(&*object).unwrap();
        let section = file.section_by_name(".BTF").unwrap();
        let types = Btf::parse(section.data().unwrap()).unwrap();
        let is_it =
            |one: &Type<'_>| one.kind() == kind::STRUCT && types.name(one.name) == b"call_numbers";
        let (_, found) = types.types().find(|(_, one)| is_it(one)).unwrap();
        let members = found.rest.chunks(12).map(|member| {
            let name = types.name(word(member, 0).unwrap());
            (String::from_utf8(name.to_vec()).unwrap(), word(member, 8).unwrap() / 8)
        });
        let mut at = 0;
        let read = CallNumbers::MEMBERS.iter().map(|(name, size)| {
            at += *size as u32;
            ((*name).to_owned(), at - *size as u32)
        });
        assert_eq!(read.collect::<Vec<_>>(), members.collect::<Vec<_>>());
        assert_eq!(found.size as usize, CallNumbers::SIZE);
    }
}
