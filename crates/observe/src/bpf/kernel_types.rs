//! The few types of the kernel that an object reads, for libbpf.
//!
//! It looks for each of them among all types of the kernel, 150,000 or so, one search after another: a third of
//! the time that it takes to start a watch. So all are found in one go, and libbpf gets a file of these and of
//! what they are made of. Their numbers are others there, which is why the numbers of types that instructions
//! have (`bpf_rdonly_cast`) are put into the object here.

#[cfg(test)]
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use iotomy_record::path_text;
use memchr::memmem;
use rustix::fs::{MemfdFlags, memfd_create};

use super::btf::{Btf, essential, kind, word};
use super::refusal::answer;

const FOLDER: &str = "/sys/kernel/btf";
const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Where in an object an instruction is whose constant is the kernel's number of a type, and the type's kind and
/// name.
pub(super) type TypeNumber = (usize, u8, &'static str);

/// The file of the kernel's types.
#[cfg(not(test))]
pub(super) fn source() -> PathBuf {
    VMLINUX.into()
}

#[cfg(test)]
thread_local! {
    /// A file of other types that a test has chosen.
    pub(super) static CHOSEN: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

#[cfg(test)]
pub(super) fn source() -> PathBuf {
    CHOSEN.with_borrow(|chosen| chosen.clone().unwrap_or_else(|| VMLINUX.into()))
}

/// Puts the kernel's numbers of types into an object's instructions: none, where it does not have a type.
fn put_numbers(object: &mut [u8], numbers: &[TypeNumber], found: &HashMap<&[u8], Vec<(u32, u8)>>) {
    for (at, kind, name) in numbers {
        let named = found.get(essential(name.as_bytes()));
        let of_kind = named.and_then(|ids| ids.iter().find(|(_, one)| one == kind));
        let id = of_kind.map_or(0, |(id, _)| *id);
        // The constant of an instruction is its second word.
        if let Some(place) = object.get_mut(at + 4..at + 8) {
            place.copy_from_slice(&id.to_ne_bytes());
        }
    }
}

/// Puts the numbers of types into an object, and returns a file of those that libbpf looks for. There is none
/// where a module of the kernel may have some of them: libbpf looks at these only without such a file. Nor is there
/// one where it cannot be written, as with a low limit on the size of files (`ulimit -f`): libbpf searches by itself
/// then, which only takes longer.
///
/// # Errors
/// The kernel does not tell of its types.
pub(super) fn find(
    kernel: &Path,
    object: &mut [u8],
    roots: &[&str],
    numbers: &[TypeNumber],
) -> Result<Option<File>, String> {
    let bytes = fs::read(kernel).map_err(|error| {
        format!("cannot read the kernel's types, {}: {}", path_text(kernel), answer(&error))
    })?;
    let unknown = || format!("cannot read the kernel's types, {}: their format", path_text(kernel));
    let types = Btf::parse(&bytes).ok_or_else(unknown)?;
    let roots = roots.iter().map(|name| essential(name.as_bytes()));
    let mut found: HashMap<&[u8], Vec<(u32, u8)>> = roots.map(|name| (name, Vec::new())).collect();
    for (id, one) in types.types() {
        if let kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64 | kind::TYPEDEF = one.kind()
            && let Some(ids) = found.get_mut(types.name(one.name))
        {
            ids.push((id, one.kind()));
        }
    }
    put_numbers(object, numbers, &found);
    let missing = found.iter().filter(|(_, ids)| ids.is_empty()).map(|(name, _)| *name);
    if are_in_modules(&missing.collect::<Vec<_>>()) {
        return Ok(None);
    }
    let mut roots: Vec<u32> = found.values().flatten().map(|(id, _)| *id).collect();
    roots.sort_unstable();
    let file = || -> std::io::Result<File> {
        let mut file = File::from(memfd_create("iotomy-types", MemfdFlags::CLOEXEC)?);
        file.write_all(&Subset::of(&types, &roots))?;
        Ok(file)
    };
    Ok(file().ok())
}

/// Whether a loaded module has a type of one of these names.
fn are_in_modules(names: &[&[u8]]) -> bool {
    let Ok(files) = fs::read_dir(FOLDER) else { return false };
    let names: Vec<Vec<u8>> = names.iter().map(|name| [b"\0", *name, b"\0"].concat()).collect();
    let modules = files.flatten().map(|file| file.path()).filter(|path| path != Path::new(VMLINUX));
    let mut has_one = modules
        .filter_map(|path| fs::read(path).ok())
        .map(|types| names.iter().any(|name| memmem::find(&types, name).is_some()));
    has_one.any(|has| has)
}

/// How much of a type is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// Its members, and all that these are made of. What a pointer points at is not part of it, but for the form
    /// of a function.
    Whole,
    /// What kind it is: of parameters, that is all that is compared.
    Form,
}

/// The types that some are made of, numbered anew.
struct Subset<'k> {
    kernel: &'k Btf<'k>,
    numbers: HashMap<(u32, Part), u32>,
    /// In the order of their numbers.
    all: Vec<(u32, Part)>,
    types: Vec<u8>,
    strings: Vec<u8>,
    names: HashMap<u32, u32>,
}

impl<'k> Subset<'k> {
    /// As a file has them.
    fn of(kernel: &'k Btf<'k>, roots: &[u32]) -> Vec<u8> {
        let mut subset = Self {
            kernel,
            numbers: HashMap::new(),
            all: Vec::new(),
            types: Vec::new(),
            strings: vec![0],
            names: HashMap::new(),
        };
        for root in roots {
            subset.number(*root, Part::Whole);
        }
        let mut next = 0;
        while let Some((id, part)) = subset.all.get(next).copied() {
            subset.write(id, part);
            next += 1;
        }
        subset.into_file()
    }

    /// The new number of a type, which is written in its turn.
    fn number(&mut self, id: u32, part: Part) -> u32 {
        if id == 0 {
            return 0;
        }
        match self.numbers.entry((id, part)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.all.push((id, part));
                *new.insert(self.all.len() as u32)
            }
        }
    }

    fn name(&mut self, offset: u32) -> u32 {
        if offset == 0 {
            return 0;
        }
        *self.names.entry(offset).or_insert_with(|| {
            let start = self.strings.len() as u32;
            self.strings.extend_from_slice(self.kernel.name(offset));
            self.strings.push(0);
            start
        })
    }

    fn write(&mut self, id: u32, part: Part) {
        // Numbers come from the types themselves. One that is none is as `void` is, whose form this has.
        let Some(one) = self.kernel.get(id) else {
            return self.words(&[0, u32::from(kind::CONST) << 24, 0]);
        };
        let kind = one.kind();
        let name = self.name(one.name);
        let rest: Vec<u32> =
            (0..one.rest.len() / 4).filter_map(|at| word(one.rest, 4 * at)).collect();
        match (kind, part) {
            (kind::STRUCT | kind::UNION, Part::Form) => {
                self.words(&[0, u32::from(kind) << 24, one.size]);
            }
            (kind::STRUCT | kind::UNION, Part::Whole) => {
                self.words(&[name, one.info, one.size]);
                for member in rest.chunks_exact(3) {
                    let member = [self.name(member[0]), self.number(member[1], part), member[2]];
                    self.words(&member);
                }
            }
            (kind::POINTER, Part::Whole) => {
                let target = self.kernel.get(one.size).map(|target| target.kind());
                let is_function = target == Some(kind::FUNC_PROTO);
                let target = if is_function { self.number(one.size, Part::Form) } else { 0 };
                self.words(&[name, one.info, target]);
            }
            (kind::ARRAY, _) => {
                let parts = [self.number(rest[0], part), self.number(rest[1], part), rest[2]];
                self.words(&[name, one.info, one.size]);
                self.words(&parts);
            }
            (kind::FUNC_PROTO, _) => {
                let returned = self.number(one.size, Part::Form);
                self.words(&[name, one.info, returned]);
                for parameter in rest.chunks_exact(2) {
                    let of_type = self.number(parameter[1], Part::Form);
                    self.words(&[0, of_type]);
                }
            }
            (
                kind::POINTER
                | kind::TYPEDEF
                | kind::VOLATILE
                | kind::CONST
                | kind::RESTRICT
                | kind::TYPE_TAG,
                _,
            ) => {
                let target = self.number(one.size, part);
                self.words(&[name, one.info, target]);
            }
            // Values have names.
            (kind::ENUM | kind::ENUM64, _) => {
                self.words(&[name, one.info, one.size]);
                for value in rest.chunks_exact(if kind == kind::ENUM { 2 } else { 3 }) {
                    let name = self.name(value[0]);
                    self.words(&[name]);
                    self.words(&value[1..]);
                }
            }
            // Numbers, and names of what is nowhere described.
            _ => {
                self.words(&[name, one.info, one.size]);
                self.words(&rest);
            }
        }
    }

    fn words(&mut self, words: &[u32]) {
        self.types.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    }

    fn into_file(self) -> Vec<u8> {
        const MAGIC: u32 = 0xeb9f;
        const VERSION: u32 = 1 << 16;
        const HEADER: u32 = 24;
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let header = [MAGIC | VERSION, HEADER, 0, types, types, strings];
        let header: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
        [header, self.types, self.strings].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types of this kernel, if it tells.
    fn this_kernel() -> Option<Vec<u8>> {
        let types = fs::read(VMLINUX);
        if let Err(error) = &types {
            iotomy_test_requirements::skip(
                iotomy_test_requirements::Need::Bpf,
                &format!("{VMLINUX}: {error}"),
            );
        }
        types.ok()
    }

    fn ids(types: &Btf<'_>, kind: u8, name: &str) -> Vec<u32> {
        let is_it = |one: &super::super::btf::Type<'_>| {
            one.kind() == kind && types.name(one.name) == name.as_bytes()
        };
        types.types().filter(|(_, one)| is_it(one)).map(|(id, _)| id).collect()
    }

    /// A type with all that it is made of, in words; pointers to data are all alike.
    fn spelt(types: &Btf<'_>, id: u32) -> String {
        let Some(one) = types.get(id) else { return String::from("void") };
        let (kind, name) = (one.kind(), String::from_utf8_lossy(types.name(one.name)));
        let rest: Vec<u32> =
            (0..one.rest.len() / 4).filter_map(|at| word(one.rest, 4 * at)).collect();
        let parts: Vec<String> = match kind {
            kind::STRUCT | kind::UNION => rest
                .chunks_exact(3)
                .map(|member| {
                    let name = String::from_utf8_lossy(types.name(member[0]));
                    format!("{name}@{}: {}", member[2], spelt(types, member[1]))
                })
                .collect(),
            kind::ENUM => rest
                .chunks_exact(2)
                .map(|v| format!("{}={}", String::from_utf8_lossy(types.name(v[0])), v[1]))
                .collect(),
            kind::ARRAY => vec![format!("{} × {}", rest[2], spelt(types, rest[0]))],
            kind::POINTER => Vec::new(),
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                vec![spelt(types, one.size)]
            }
            _ => rest.iter().map(u32::to_string).collect(),
        };
        let size = if parts.len() == 1 || kind == kind::POINTER { 0 } else { one.size };
        format!("{kind} {name} {size} {{{}}}", parts.join(", "))
    }

    #[test]
    fn libbpf_finds_the_kernels_types_as_they_are() {
        let Some(bytes) = this_kernel() else { return };
        let kernel = Btf::parse(&bytes).unwrap();
        let names = ["task_struct", "file", "inode", "sock", "mm_struct", "pt_regs", "list_head"];
        let roots: Vec<u32> =
            names.iter().flat_map(|name| ids(&kernel, kind::STRUCT, name)).collect();
        assert!(roots.len() >= names.len(), "{roots:?}");
        let file = Subset::of(&kernel, &roots);
        let subset = Btf::parse(&file).unwrap();
        assert!(file.len() < bytes.len() / 4, "{} of {}", file.len(), bytes.len());
        for name in names {
            let spelt_in = |types: &Btf<'_>| -> Vec<String> {
                ids(types, kind::STRUCT, name).into_iter().map(|id| spelt(types, id)).collect()
            };
            assert_eq!(spelt_in(&subset), spelt_in(&kernel), "{name}");
            assert!(spelt_in(&subset)[0].len() > 20);
        }
    }

    #[test]
    fn numbers_of_types_are_put_where_they_belong() {
        let Some(bytes) = this_kernel() else { return };
        let task = ids(&Btf::parse(&bytes).unwrap(), kind::STRUCT, "task_struct")[0];
        let mut object = [7; 64];
        let numbers = [
            (8, kind::STRUCT, "task_struct___of_another_form"),
            (24, kind::STRUCT, "no_such_type_of_any_kernel"),
            (40, kind::ENUM, "task_struct"),
        ];
        let names = numbers.map(|(.., name)| name);
        let types = find(Path::new(VMLINUX), &mut object, &names, &numbers).unwrap().unwrap();
        let word_at = |at: usize| word(&object, at).unwrap();
        assert_eq!([12, 28, 44].map(word_at), [task, 0, 0]);
        assert_eq!(object.iter().filter(|byte| **byte != 7).count(), 12);
        assert!(types.metadata().unwrap().len() > 1000);
    }

    #[test]
    fn a_kernel_that_tells_nothing_of_its_types_is_an_error() {
        let missing = find(Path::new("/nope/vmlinux"), &mut [], &[], &[]).unwrap_err();
        assert!(missing.contains("/nope/vmlinux: No such file"), "{missing}");
        let garbage = tempfile::NamedTempFile::new().unwrap();
        for content in [&b""[..], b"\x9f\xeb\x01\0", &[0xff; 4096]] {
            fs::write(garbage.path(), content).unwrap();
            let said = find(garbage.path(), &mut [], &["file"], &[]).unwrap_err();
            assert!(said.ends_with("their format"), "{said}");
        }
    }

    #[test]
    fn only_the_form_of_what_functions_take_is_kept() {
        let Some(bytes) = this_kernel() else { return };
        let kernel = Btf::parse(&bytes).unwrap();
        let event = ids(&kernel, kind::TYPEDEF, "btf_trace_sched_switch")[0];
        let file = Subset::of(&kernel, &[event]);
        let subset = Btf::parse(&file).unwrap();
        let named = ids(&subset, kind::STRUCT, "task_struct");
        assert_eq!(
            (named.len(), ids(&subset, kind::TYPEDEF, "btf_trace_sched_switch").len()),
            (0, 1)
        );
        let functions = subset.types().filter(|(_, one)| one.kind() == kind::FUNC_PROTO).count();
        assert_eq!((functions, file.len() < 2000), (1, true));
    }
}
