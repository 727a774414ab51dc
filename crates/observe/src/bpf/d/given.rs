//! The facts of a firing that user space makes.

use iotomy_dtrace::kernel::layout::fact;
use iotomy_dtrace::machine::{Firing, Value};

const FACTS: usize = 64;
const TEXTS: usize = 10;
const TEXT_BYTES: usize = 64;

/// The facts that the kernel has of the probe itself.
const OF_PROBE: [&str; 5] = ["id", "probeprov", "probemod", "probefunc", "probename"];

/// As `struct given` of `d.h`.
///
/// # Errors
/// A string is longer than there is room for.
pub(super) fn wire(firing: &Firing) -> Result<Vec<u8>, String> {
    let mut present = [1_u8; FACTS];
    let mut words = [0_u64; FACTS];
    let mut texts = [0_u8; TEXTS * TEXT_BYTES];
    let integer = |name: &str| firing.facts.get(name).map(Value::integer);
    for number in 0..10_u16 {
        let value = integer(&format!("arg{number}"));
        let value = value.or_else(|| integer(&format!("args[{number}]")));
        words[usize::from(fact::ARGUMENT + number)] = value.unwrap_or(0);
    }
    for (name, number) in fact::NAMES {
        let number = usize::from(number);
        if OF_PROBE.contains(&name) {
            present[number] = 0;
            continue;
        }
        // Scripts say of which argument a member is.
        let by_number =
            |number: u8| firing.facts.get(&name.replace("args[]", &format!("args[{number}]")));
        let value = firing.facts.get(name).or_else(|| by_number(0)).or_else(|| by_number(1));
        if number < usize::from(fact::PID) && value.is_none() {
            // The argument in whose place it is.
            continue;
        }
        if number < usize::from(fact::FIRST_STRING) {
            words[number] = value.map_or(0, Value::integer);
            continue;
        }
        let text = value.map(Value::text).unwrap_or_default();
        let at = (number - usize::from(fact::FIRST_STRING)) / 2 * TEXT_BYTES;
        if text.len() >= TEXT_BYTES {
            return Err(format!("{name} is too long to be given"));
        }
        texts[at..at + text.len()].copy_from_slice(text);
        words[number + 1] = text.len() as u64;
    }
    if !firing.facts.contains_key("tid") {
        words[usize::from(fact::TID)] = words[usize::from(fact::PID)];
    }
    let mut wire = present.to_vec();
    wire.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    wire.extend(texts);
    Ok(wire)
}
