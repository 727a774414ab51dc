//! The callers of a call in user space: the ends of its user stacks, most time first.

use std::collections::BTreeMap;

use iotomy_record::Anatomy;

use crate::page::Page;

/// Callers of a call that get a row.
const CALLERS: usize = 3;
/// The innermost functions that identify a caller.
const FUNCTIONS: usize = 3;
/// Columns of a function's name.
const NAME: usize = 24;

/// The callers of a call of all images, and their time, where there is more than one. The time
/// without a known caller is not shown.
pub(super) fn callers(page: &Page<'_>, record: &Anatomy, call: &str) -> Vec<(String, u128)> {
    let mut by_end: BTreeMap<&[String], u128> = BTreeMap::new();
    for stack in record.stacks.iter().filter(|stack| stack.syscall.as_deref() == Some(call)) {
        let end = stack.user.len().saturating_sub(FUNCTIONS);
        *by_end.entry(&stack.user[end..]).or_default() += u128::from(stack.ns);
    }
    by_end.remove(&[][..]);
    by_end.retain(|_, ns| *ns > 0);
    if by_end.len() < 2 {
        return Vec::new();
    }
    let mut ends: Vec<_> = by_end.into_iter().collect();
    ends.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    ends.truncate(CALLERS);
    let arrow = if page.unicode() { " › " } else { " > " };
    let says = |names: &[String]| {
        names.iter().map(|name| page.name(name, NAME)).collect::<Vec<_>>().join(arrow)
    };
    ends.into_iter().map(|(names, ns)| (says(names), ns)).collect()
}
