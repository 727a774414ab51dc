//! Stacks as folded lines, and as pictures of flames.
//!
//! A line is the program, the functions of user space where these were asked for, the call, the stack
//! from the outside in, and its time in µs: on a CPU by its share of the samples, asleep exactly, under a
//! frame that says what was waited for. So widths are time, and add up to the calls' time.

use std::collections::BTreeMap;
use std::io;

use inferno::differential;
use inferno::flamegraph::{self, Options};
use iotomy_record::{Anatomy, Stack, StackKind, printable};

use super::icicle::is_of_user_space;

/// Why there is no picture.
#[derive(Debug)]
pub enum FlameError {
    /// No time was found in any stack.
    Nothing,
    /// The picture could not be drawn.
    Draw(io::Error),
}

impl std::fmt::Display for FlameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("there is no stack that took a microsecond"),
            Self::Draw(source) => write!(f, "the picture cannot be drawn: {source}"),
        }
    }
}

impl std::error::Error for FlameError {}

/// The record's stacks, folded: a line a stack, sorted.
pub fn folded(record: &Anatomy) -> String {
    fold(record, true, true)
}

/// The record as a picture of flames, in SVG.
///
/// # Errors
/// Where there is nothing to draw.
pub fn flame(record: &Anatomy) -> Result<String, FlameError> {
    let mut options = options(&command(record));
    draw(&mut options, &folded(record))
}

/// What `after` does more (red) and less (blue) than `before`, in SVG: as wide as `after`.
///
/// # Errors
/// Where there is nothing to draw.
pub fn difference(before: &Anatomy, after: &Anatomy) -> Result<String, FlameError> {
    let mut lines = Vec::new();
    // Programs have other names on the two sides; their calls have the same.
    let callers = have_callers(before, after);
    let (old, new) = (fold(before, false, callers), fold(after, false, callers));
    let plain = differential::Options::default();
    differential::from_readers(plain, old.as_bytes(), new.as_bytes(), &mut lines)
        .map_err(FlameError::Draw)?;
    let title = format!("{}, against {}", command(after), command(before));
    let mut options = options(&title);
    options.subtitle = Some("red: more than before, blue: less".to_owned());
    draw(&mut options, &String::from_utf8_lossy(&lines))
}

fn options(title: &str) -> Options<'static> {
    let mut options = Options::default();
    options.title = title.to_owned();
    options.count_name = "µs".to_owned();
    options.deterministic = true;
    options
}

fn draw(options: &mut Options<'_>, lines: &str) -> Result<String, FlameError> {
    if lines.is_empty() {
        return Err(FlameError::Nothing);
    }
    let mut picture = Vec::new();
    flamegraph::from_lines(options, lines.lines(), &mut picture).map_err(FlameError::Draw)?;
    Ok(String::from_utf8_lossy(&picture).into_owned())
}

fn command(record: &Anatomy) -> String {
    const LONG: usize = 100;
    let words = record.trace.command.iter().map(|word| printable(word, true));
    let command = words.collect::<Vec<_>>().join(" ");
    if command.is_empty() {
        "running processes".to_owned()
    } else {
        command.chars().take(LONG).collect()
    }
}

/// Whether both tell who calls whom in user space: one alone would differ in everything.
pub(super) fn have_callers(before: &Anatomy, after: &Anatomy) -> bool {
    [before, after].iter().all(|record| record.sampling.user_stacks.is_some())
}

/// Whether what a stack tells of user space is all there is of it: it was found running there.
pub(super) fn is_of_callers_alone(stack: &Stack) -> bool {
    let outside = stack.kind == StackKind::OnCpu && stack.syscall.is_none();
    outside && !stack.user.is_empty() && is_of_user_space(&stack.layer)
}

fn fold(record: &Anatomy, with_program: bool, with_callers: bool) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for stack in &record.stacks {
        let ns = lines.entry(line(stack, with_program, with_callers)).or_default();
        *ns = ns.saturating_add(stack.ns);
    }
    let mut known: BTreeMap<(u32, &str, u32, Option<&str>), u128> = BTreeMap::new();
    for stack in &record.stacks {
        let key = (stack.pid, stack.exec.as_str(), stack.image, stack.syscall.as_deref());
        *known.entry(key).or_default() += u128::from(stack.ns);
    }
    for call in &record.calls {
        // What no stack speaks for, so that the whole is whole.
        let whole = u128::from(call.on_cpu_ns) + u128::from(call.blocked_ns);
        let key = (call.pid, call.exec.as_str(), call.image, call.syscall.as_deref());
        let known = known.remove(&key).unwrap_or(0);
        let rest = Stack {
            exec: call.exec.clone(),
            syscall: call.syscall.clone(),
            frames: vec!["[not sampled]".to_owned()],
            ..Stack::default()
        };
        let ns = lines.entry(line(&rest, with_program, with_callers)).or_default();
        *ns = ns.saturating_add(u64::try_from(whole.saturating_sub(known)).unwrap_or(u64::MAX));
    }
    let whole =
        |(line, ns): (String, u64)| (ns >= 1_000).then(|| format!("{line} {}\n", ns / 1_000));
    lines.into_iter().filter_map(whole).collect()
}

fn line(stack: &Stack, with_program: bool, with_callers: bool) -> String {
    let mut frames = Vec::new();
    frames.extend(with_program.then(|| frame(&stack.exec)));
    if with_callers {
        frames.extend(stack.user.iter().map(|name| frame(name)));
        if is_of_callers_alone(stack) {
            return frames.join(";");
        }
    }
    frames.push(stack.syscall.as_deref().map_or_else(|| "[outside calls]".to_owned(), frame));
    if stack.kind == StackKind::Blocked {
        frames.push(format!("[asleep: {}]", frame(stack.reason.as_deref().unwrap_or("unknown"))));
    }
    frames.extend(stack.frames.iter().map(|name| frame(name)));
    frames.join(";")
}

/// A name that is one frame, whatever is in it.
fn frame(name: &str) -> String {
    let name = printable(name, true).replace(';', ":");
    if name.is_empty() { "?".to_owned() } else { name }
}
