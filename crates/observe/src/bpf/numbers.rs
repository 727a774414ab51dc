//! Numbers in the kernel's rows, and what statistics of the record they are.

/// Declares the struct of numbers that a row of the kernel begins with, in the order of `trace.h`, with their size and how rows
/// are put together; and further ones, which come from elsewhere. One with the name of a statistic of the record's row is
/// that statistic.
macro_rules! kernel_numbers {
    (
        $(#[$of_type:meta])*
        $numbers:ident of $row:ty {
            $($member:ident: $size:ident $joins:ident,)*
            $(; $($further:ident: $joins_further:ident,)*)?
        }
    ) => {
        $(#[$of_type])*
        #[derive(Debug, Clone, Default)]
        pub(super) struct $numbers {
            $(pub(super) $member: u64,)*
            $($(pub(super) $further: u64,)*)?
        }

        impl $numbers {
            /// Those that the kernel's rows begin with, and their bytes.
            #[cfg(test)]
            const MEMBERS: &[(&str, usize)] = &[$((stringify!($member), size_of::<$size>()),)*];

            const NAMES: &[&str] = &[$(stringify!($member),)* $($(stringify!($further),)*)?];

            /// Adds another row's.
            pub(super) fn add(&mut self, row: &Self) {
                $(self.$member = $joins(self.$member, row.$member);)*
                $($(self.$further = $joins_further(self.$further, row.$further);)*)?
            }

            /// Gives a row of the record those that are its statistics.
            fn put_statistics(&self, row: &mut $row) {
                use iotomy_record::statistic::{Statistic, Statistics};
                static STATISTICS: std::sync::LazyLock<Vec<Option<&'static Statistic<$row>>>> =
                    std::sync::LazyLock::new(|| {
                        $numbers::NAMES.iter().map(|name| <$row>::statistic(name)).collect()
                    });
                let numbers = [$(self.$member,)* $($(self.$further,)*)?];
                for (statistic, number) in STATISTICS.iter().zip(numbers) {
                    if let Some(statistic) = statistic {
                        (statistic.field.set)(row, number);
                    }
                }
            }
        }

        impl $crate::bpf::layout::Wire for $numbers {
            const SIZE: usize = 0 $(+ size_of::<$size>())*;

            #[allow(clippy::useless_conversion, reason = "some are as wide as sums")]
            fn read(from: &mut $crate::bpf::layout::Fields<'_>) -> Self {
                Self { $($member: from.$size().into(),)* $($($further: 0,)*)? }
            }
        }
    };
}
pub(super) use kernel_numbers;

/// It wraps: results of calls that return no count of bytes, such as addresses, are added up, too.
pub(super) fn sum(a: u64, b: u64) -> u64 {
    a.wrapping_add(b)
}

pub(super) fn most(a: u64, b: u64) -> u64 {
    a.max(b)
}

/// Gives `read` the types of the compiled programs.
#[cfg(test)]
pub(super) fn with_types<T>(read: impl FnOnce(&super::btf::Btf<'_>) -> T) -> T {
    use object::{Object, ObjectSection};

    use super::btf::Btf;
    use super::embedded::embedded;

    let object = miniz_oxide::inflate::decompress_to_vec(embedded!("trace").compressed).unwrap();
    let file = object::File::parse(&*object).unwrap();
    let section = file.section_by_name(".BTF").unwrap();
    read(&Btf::parse(section.data().unwrap()).unwrap())
}

/// Fails unless the programs' struct of this name begins with these members. Its size.
#[cfg(test)]
#[track_caller]
pub(super) fn begins_with(name: &str, members: &[(&str, usize)]) -> usize {
    use super::btf::{Type, kind, word};

    let (there, size) = with_types(|types| {
        let is_it =
            |one: &Type<'_>| one.kind() == kind::STRUCT && types.name(one.name) == name.as_bytes();
        let (_, found) = types.types().find(|(_, one)| is_it(one)).unwrap();
        let there = found.rest.chunks(12).take(members.len()).map(|member| {
            let name = types.name(word(member, 0).unwrap());
            (String::from_utf8(name.to_vec()).unwrap(), word(member, 8).unwrap() / 8)
        });
        (there.collect::<Vec<_>>(), found.size as usize)
    });
    let mut at = 0;
    let read = members.iter().map(|(name, size)| {
        at += *size as u32;
        ((*name).to_owned(), at - *size as u32)
    });
    assert_eq!(read.collect::<Vec<_>>(), there);
    size
}
