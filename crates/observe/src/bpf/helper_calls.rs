//! The calls of helpers in an object.

use libbpf_rs::libbpf_sys::bpf_insn;
use object::{Object, ObjectSection, SectionKind};

/// Added to the number of a refused helper.
pub(super) const BEYOND: u32 = 100_000;

/// Where an object calls helpers: the place of the number, and the number.
pub(super) fn helper_calls(bytes: &[u8]) -> Vec<(usize, u32)> {
    const CALL: u8 = 0x85;
    const BYTES: usize = size_of::<bpf_insn>();
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let ranges = file.sections().filter(|section| section.kind() == SectionKind::Text);
    let places = ranges
        .filter_map(|section| section.file_range())
        .flat_map(|(start, length)| (start as usize..(start + length) as usize).step_by(BYTES));
    let call = |at: usize| {
        let instruction = bytes.get(at..at + BYTES)?;
        let number = u32::from_ne_bytes(instruction[4..].try_into().ok()?);
        // The other registers are of functions of the object, or of the kernel.
        (instruction[0] == CALL && instruction[1] >> 4 == 0 && number != u32::MAX)
            .then_some((at + 4, number))
    };
    places.filter_map(call).collect()
}
