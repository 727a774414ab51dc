//! The compiled kernel sides in the command. They are compressed: that is a tenth of its size.

use std::fs::File;
use std::os::fd::AsRawFd;

use libbpf_rs::{ObjectBuilder, OpenObject};
use miniz_oxide::inflate::decompress_to_vec;

use super::kernel_types::{self, TypeNumber};
use super::refusal::{keep_messages, refusal};
use super::refuse::Refusing;

/// An object as the build has written it (`build/main.rs`).
pub(super) struct Embedded {
    pub(super) name: &'static str,
    pub(super) compressed: &'static [u8],
    /// The types of the kernel that it reads, by their names in its source.
    pub(super) types: &'static [&'static str],
    /// Instructions whose constant is the kernel's number of a type: where they are in the object, and the type's
    /// kind and name.
    pub(super) numbers: &'static [TypeNumber],
}

/// The object that was compiled of `src/bpf/$name.bpf.c`.
macro_rules! embedded {
    ($name:literal) => {{
        use $crate::bpf::embedded::Embedded;
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"))
    }};
}

pub(super) use embedded;

/// An object for this kernel. What is opened of it is loaded while this is there.
pub(super) struct Unpacked {
    /// The ELF file. As large as it is, an allocator aligns it for the reader.
    pub(super) bytes: Vec<u8>,
    /// The types in which libbpf finds those of the kernel that it reads.
    types: Option<File>,
}

impl Embedded {
    /// The object, with the kernel's types.
    ///
    /// # Errors
    /// It is not what the build wrote, or the kernel does not tell of its types.
    pub(super) fn unpack(&self) -> Result<Unpacked, String> {
        let mut bytes = decompress_to_vec(self.compressed)
            .map_err(|error| format!("cannot unpack the BPF object {}: {error}", self.name))?;
        let types = match self.types {
            [] => None,
            types => kernel_types::find(&kernel_types::source(), &mut bytes, types, self.numbers)?,
        };
        Refusing::from_environment().change_helpers(&mut bytes);
        Ok(Unpacked { bytes, types })
    }
}

impl Unpacked {
    /// Opens it; nothing is loaded yet.
    ///
    /// # Errors
    /// The refused call and libbpf's error, in a line.
    pub(super) fn open(&self) -> Result<OpenObject, String> {
        keep_messages();
        let mut builder = ObjectBuilder::default();
        let mut opened = || -> Result<OpenObject, libbpf_rs::Error> {
            if let Some(types) = &self.types {
                builder.btf_custom_path(format!("/proc/self/fd/{}", types.as_raw_fd()))?;
            }
            builder.name("iotomy")?.open_memory(&self.bytes)
        };
        opened().map_err(|error| refusal("open the BPF object", &error))
    }
}
