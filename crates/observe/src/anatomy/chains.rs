//! The callers in user space, by name: stacks from frame pointers.
//!
//! The one tricky invariant: where a function keeps no frame pointer, the kernel's walk may follow
//! anything. So a chain ends at an address that is in no mapped code, and the rest is discarded.
//! And where the innermost function keeps none, the walk skips its caller: that is known where the
//! function has left the stack alone; otherwise a gap is shown.

use std::collections::HashMap;

use iotomy_record::UserStacks;

use super::mappings::Mapped;
use super::samples::{Callers, Chain, Location, Place, SampleGroup};
use super::user::{FrameKept, UserSymbols};

/// The caller of a function that keeps no frame pointer.
const GAP: &str = "[caller unknown]";

/// Chains of calls by their stacks.
pub(super) struct Chains<'a> {
    callers: &'a Callers,
    /// All but the innermost function, the outermost first, by process, its image's beginning, and stack.
    known: HashMap<(u32, u64, i32), Vec<String>>,
    pub(super) told: UserStacks,
}

impl<'a> Chains<'a> {
    pub(super) fn new(callers: &'a Callers) -> Self {
        let told = UserStacks { lost_mappings: callers.mappings.lost, ..UserStacks::default() };
        Self { callers, known: HashMap::new(), told }
    }

    /// The functions a thread was in, the outermost first; `found` is the innermost where it was seen
    /// there itself.
    pub(super) fn functions(
        &mut self,
        seen: &SampleGroup,
        found: Option<String>,
        symbols: &mut UserSymbols,
    ) -> Vec<String> {
        let Chain::Stack { id, began_ns, returns_to } = seen.chain else {
            self.told.lost += if seen.chain == Chain::Collided { seen.times } else { 0 };
            return Vec::new();
        };
        let addresses = self.callers.stacks.get(&id).map(Vec::as_slice).unwrap_or_default();
        let at = |address| self.callers.mappings.at(seen.pid, began_ns, address);
        // The instruction behind a call is the next function's where the call was the last of its own.
        let inside = |address: &u64| address.saturating_sub(u64::from(seen.call.is_some()));
        let first = addresses.first().and_then(|first| at(inside(first)));
        let frame = match (&seen.found, &first) {
            (Location::User(Place::File { path: Some(path), inode, offset }), _) => {
                symbols.frame(path, *inode, *offset)
            }
            (Location::User(_), _) | (_, None) => None,
            (_, Some(place)) => symbols.frame(place.path, place.inode, place.offset),
        };
        let innermost = found.or_else(|| first.map(|place| name(&place, symbols).0));
        let outer = self.known.entry((seen.pid, began_ns, id)).or_insert_with(|| {
            let returns = addresses.iter().skip(1).map_while(|address| at(address - 1));
            let mut names: Vec<(String, bool)> =
                returns.map(|place| name(&place, symbols)).collect();
            // Functions without names are distinguished only by their file.
            names.dedup_by(|one, other| one == other && !one.1);
            names.into_iter().rev().map(|(name, _)| name).collect()
        });
        let caller = match frame {
            Some(FrameKept::Bare) => returns_to.checked_sub(1).and_then(at),
            _ => None,
        };
        let linked = match &caller {
            Some(caller) => symbols.frame(caller.path, caller.inode, caller.offset),
            None => frame,
        };
        let caller = caller.map(|place| name(&place, symbols).0);
        if !seen.blocked {
            self.told.samples += seen.times;
            self.told.cut_short += if outer.is_empty() { seen.times } else { 0 };
        }
        let Some(innermost) = innermost else { return Vec::new() };
        let has_gap = !outer.is_empty() && linked.is_some_and(|frame| frame != FrameKept::Linked);
        let gap = has_gap.then(|| GAP.to_owned());
        outer.iter().cloned().chain(gap).chain(caller).chain([innermost]).collect()
    }
}

/// The function's name, or else the file's; and whether it is the function's.
fn name(place: &Mapped<'_>, symbols: &mut UserSymbols) -> (String, bool) {
    let is_file = place.path.starts_with('/') && !place.path.starts_with("//");
    match place.path {
        "[vdso]" => ("[vdso]".to_owned(), false),
        _ if !is_file => ("[memory]".to_owned(), false),
        path => match symbols.name(path, place.inode, place.offset) {
            Some(function) => (function, true),
            None => (crate::naming::basename(path).to_owned(), false),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::mappings::Mappings;
    use super::super::samples::Operation;
    use super::*;

    fn callers(stack: &[u64]) -> Callers {
        let mut mappings = Mappings::new(1);
        mappings.attach(
            7,
            "1000-2000 r-xp 00000000 00:00 9 /nope/program\n\
             3000-4000 r-xp 00000000 00:00 8 /nope/libnope.so\n\
             5000-6000 r-xp 00000000 00:00 0 \n",
        );
        Callers { stacks: HashMap::from([(3, stack.to_vec())]), mappings }
    }

    fn seen(chain: Chain) -> SampleGroup {
        SampleGroup {
            pid: 7,
            exec: "program".into(),
            image: 0,
            call: Some("write".into()),
            operation: Operation::Nothing,
            blocked: false,
            found: Location::Nothing,
            chain,
            times: 2,
            ns: 0,
        }
    }

    fn names(stack: &[u64], found: Option<&str>) -> (Vec<String>, UserStacks) {
        let callers = callers(stack);
        let mut chains = Chains::new(&callers);
        let seen = seen(Chain::Stack { id: 3, began_ns: 5, returns_to: 0 });
        let names = chains.functions(&seen, found.map(str::to_owned), &mut UserSymbols::default());
        (names, chains.told)
    }

    #[test]
    fn a_chain_ends_where_nothing_is_mapped() {
        let (outer, told) = names(&[0x3010, 0x1010, 0x5010, 0x9010, 0x1010], None);
        assert_eq!(outer, ["[memory]", "program", "libnope.so"]);
        assert_eq!((told.samples, told.cut_short), (2, 0));
    }

    #[test]
    fn a_stack_of_one_function_is_cut_short() {
        let (outer, told) = names(&[0x3010, 0x9010], None);
        assert_eq!((outer, told.cut_short), (vec!["libnope.so".to_owned()], 2));
        assert_eq!(names(&[0x9010, 0x1010], None).0, Vec::<String>::new());
    }

    #[test]
    fn the_innermost_is_what_it_was_seen_to_be() {
        let (outer, _) = names(&[0x9010, 0x1010, 0x1020, 0x3010], Some("swapped"));
        // Two functions of a file without names are indistinguishable.
        assert_eq!(outer, ["libnope.so", "program", "swapped"]);
    }

    #[test]
    fn what_found_no_place_is_counted() {
        let callers = callers(&[]);
        let mut chains = Chains::new(&callers);
        let mut of = |chain| chains.functions(&seen(chain), None, &mut UserSymbols::default());
        assert_eq!(of(Chain::Collided), Vec::<String>::new());
        assert_eq!(of(Chain::Nothing), Vec::<String>::new());
        assert_eq!((chains.told.lost, chains.told.samples), (2, 0));
    }
}
