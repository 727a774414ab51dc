//! The layer of a stack, and the reason of a sleep: the rules of `layers.txt`.
//!
//! Pure: names in, a name out. The one tricky rule is that of the enclosing functions: a stack is
//! walked from the inside out, and the first function with a rule decides, unless an enclosing
//! function further out replaces it.

use std::collections::HashMap;

/// Functions that no rule names, in the kernel and in user space.
pub(crate) const UNKNOWN: &str = "unknown";
/// Time of calls that no sample fell into.
pub(crate) const NOT_SAMPLED: &str = "not sampled";

const SCHEDULER: &str = "scheduler and wake-up";
const ENTRY: &str = "entry and exit";
/// The reason "other work of the kernel", which counts only where no better one is known.
const KERNEL_WORK: &str = "kernel work";
/// The table's mark for the end of an enclosing function's work.
const NO_LONGER: &str = "-";

/// The rules, and their results for earlier functions.
pub(crate) struct Layers {
    rules: Rules,
    known: HashMap<String, Verdict>,
}

/// The result of the rules for one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Verdict {
    encloses: Option<&'static str>,
    layer: Option<&'static str>,
    wait: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Rules {
    /// Those with a caller.
    pairs: Vec<(&'static str, &'static str)>,
    enclosing: Vec<Rule>,
    layers: Vec<Rule>,
    waits: Vec<Rule>,
}

/// A line of the table.
#[derive(Debug)]
struct Rule {
    name: &'static str,
    patterns: Vec<&'static str>,
}

impl Layers {
    pub(crate) fn new() -> Self {
        Self { rules: Rules::read(include_str!("layers.txt")), known: HashMap::new() }
    }

    /// The layer of a thread that runs; `frames` begin with the innermost function.
    pub(crate) fn layer_of<'a>(
        &mut self,
        frames: impl IntoIterator<Item = &'a str>,
    ) -> &'static str {
        self.layer(frames, false)
    }

    /// The layer of a sleeping thread, without the functions of falling asleep.
    pub(crate) fn asleep<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>) -> &'static str {
        self.layer(frames, true)
    }

    fn layer<'a>(
        &mut self,
        frames: impl IntoIterator<Item = &'a str>,
        asleep: bool,
    ) -> &'static str {
        let mut innermost = None;
        let mut frames = frames.into_iter().peekable();
        while let Some(frame) = frames.next() {
            let verdict = self.verdict(frame, frames.peek().copied());
            match verdict.encloses {
                Some(NO_LONGER) => return innermost.unwrap_or(ENTRY),
                Some(enclosing) => return enclosing,
                None => {}
            }
            let layer = verdict.layer.filter(|layer| !asleep || *layer != SCHEDULER);
            innermost = innermost.or(layer);
        }
        innermost.unwrap_or(if asleep { SCHEDULER } else { UNKNOWN })
    }

    /// The reason for which a thread sleeps; `frames` begin with the innermost function.
    pub(crate) fn wait<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>) -> &'static str {
        let mut generic = None;
        for wait in frames.into_iter().filter_map(|frame| self.verdict(frame, None).wait) {
            if wait != KERNEL_WORK {
                return wait;
            }
            generic = Some(wait);
        }
        generic.unwrap_or("other")
    }

    fn verdict(&mut self, function: &str, caller: Option<&str>) -> Verdict {
        let with_caller = || caller.map(|caller| format!("{caller}>{function}"));
        if let Some(layer) = with_caller().and_then(|pair| self.rules.pair(&pair)) {
            return Verdict { layer: Some(layer), ..Verdict::default() };
        }
        if let Some(verdict) = self.known.get(function) {
            return *verdict;
        }
        let verdict = self.rules.verdict(function);
        self.known.insert(function.to_owned(), verdict);
        verdict
    }
}

impl Rules {
    fn read(table: &'static str) -> Self {
        let mut rules = Self::default();
        let mut section = "";
        for line in table.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(head) = line.strip_prefix('[') {
                section = head.trim_end_matches(']');
                continue;
            }
            let (name, patterns) = line.split_once(": ").expect("a line of layers.txt is a rule");
            let rule = Rule { name, patterns: patterns.split_whitespace().collect() };
            match section {
                "enclosing" => rules.enclosing.push(rule),
                "layers" => {
                    let pairs = rule.patterns.iter().filter(|pattern| pattern.contains('>'));
                    rules.pairs.extend(pairs.map(|pattern| (*pattern, rule.name)));
                    rules.layers.push(rule);
                }
                _ => rules.waits.push(rule),
            }
        }
        rules
    }

    fn pair(&self, pair: &str) -> Option<&'static str> {
        self.pairs.iter().find(|(pattern, _)| fits(pattern, pair)).map(|(_, name)| *name)
    }

    fn verdict(&self, function: &str) -> Verdict {
        let of = |rules: &[Rule]| {
            let fits = |rule: &&Rule| rule.patterns.iter().any(|pattern| fits(pattern, function));
            rules.iter().find(fits).map(|rule| rule.name)
        };
        Verdict { encloses: of(&self.enclosing), layer: of(&self.layers), wait: of(&self.waits) }
    }
}

/// Whether a pattern, in which `*` matches any characters, matches the whole name.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded stacks: the layer, for a sleep `~` and its reason, and the functions from the
    /// outside in.
    const FOUND: &str = include_str!("stacks.txt");

    #[test]
    fn stacks_that_were_found_are_of_the_layer_they_are_of() {
        let mut layers = Layers::new();
        let mut count = 0;
        for line in FOUND.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (is, functions) = line.split_once(": ").unwrap();
            let frames: Vec<&str> = functions.split(';').rev().collect();
            let found = match is.split_once(" ~ ") {
                None => layers.layer_of(frames.iter().copied()).to_owned(),
                Some(_) => {
                    let layer = layers.asleep(frames.iter().copied());
                    format!("{layer} ~ {}", layers.wait(frames.iter().copied()))
                }
            };
            assert_eq!(found, is, "{functions}");
            count += 1;
        }
        assert!(count >= 60, "{count} stacks");
    }

    #[test]
    fn every_layer_of_the_kernel_has_a_stack_that_was_found() {
        for layer in [
            "entry and exit",
            "VFS",
            "page cache and copying",
            "memory allocation",
            "file system (ext4)",
            "journal",
            "block layer",
            "driver",
            "network stack",
            "pipe",
            "scheduler and wake-up",
            "security hooks",
            "page faults",
            "interrupts",
            "observer",
        ] {
            assert!(FOUND.lines().any(|line| line.starts_with(layer)), "none of {layer}");
        }
    }

    #[test]
    fn no_rule_stands_twice() {
        let rules = Layers::new().rules;
        for section in [&rules.enclosing, &rules.layers, &rules.waits] {
            let all: Vec<&str> = section.iter().flat_map(|rule| rule.patterns.clone()).collect();
            for (at, pattern) in all.iter().enumerate() {
                assert!(!all[..at].contains(pattern), "{pattern}");
            }
        }
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        assert!(fits("ext4_*", "ext4_da_write_begin") && fits("ext4_*", "ext4_"));
        assert!(fits("*_skb_*", "tcp_skb_x_skb_y") && !fits("*_skb_*", "tcp_skb"));
        assert!(fits("*_skb", "alloc_skb") && !fits("*_skb", "alloc_skb_"));
        assert!(fits("a", "a") && !fits("a", "ab") && !fits("ab*b", "ab"));
    }

    #[test]
    fn work_of_the_kernel_is_waited_for_where_nobody_knows_better() {
        let mut layers = Layers::new();
        let frames = ["__schedule", "wait_for_completion", "xfs_buf_iowait", "xfs_create"];
        assert_eq!(layers.wait(frames), "device");
        assert_eq!(
            layers.wait(["__schedule", "wait_for_completion", "kernel_clone"]),
            "kernel work"
        );
        assert_eq!(layers.wait(["__schedule", "mutex_lock", "xfs_log_force"]), "lock");
    }

    #[test]
    fn the_innermost_function_with_a_rule_counts_and_an_enclosing_one_takes_all() {
        let mut layers = Layers::new();
        let frames = ["memcpy", "ext4_x", "vfs_write", "ksys_write"];
        assert_eq!(layers.layer_of(frames), "file system (ext4)");
        assert_eq!(
            layers.layer_of(["memcpy", "ext4_x", "asm_exc_page_fault", "vfs_x"]),
            "page faults"
        );
        assert_eq!(layers.layer_of(["memcpy", "no_such_function"]), UNKNOWN);
        assert_eq!(layers.layer_of([]), UNKNOWN);
        assert_eq!(
            layers.layer_of(["crc32c_x86_3way", "btrfs_csum_one_bio"]),
            "file system (btrfs)"
        );
        let pair = ["_raw_spin_unlock_irqrestore", "anon_pipe_write", "vfs_write"];
        assert_eq!(layers.layer_of(pair), "scheduler and wake-up");
    }
}
