//! Man pages, in the order of man-pages(7), from the declarations of the command line and of its manual.

use clap::{Arg, Command};
use roff::{Inline, Roff, bold, italic, roman};

use super::manual;
use super::surroundings::{ENVIRONMENT, FILES, facts};
use crate::manual::{Fact, Manual};

/// The page of a command that was built, and of the name that its manual is declared by, with the names of
/// the pages above it.
pub(crate) fn page(command: &Command, name: &str, above: &[String]) -> String {
    let mut roff = Roff::new();
    let title = command.get_display_name().unwrap_or_else(|| command.get_name());
    let source = concat!("iotomy ", env!("CARGO_PKG_VERSION"));
    // No date: the same sources make the same page.
    roff.control("TH", [title, "1", "\"\"", source, "User Commands"]);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    roff.control("SH", ["NAME"]).text([roman(format!("{title} - {about}"))]);
    roff.control("SH", ["SYNOPSIS"]);
    synopsis(&mut roff, command);
    roff.control("SH", ["DESCRIPTION"]);
    // Its first paragraph is the line of NAME.
    let long = command.get_long_about().map(ToString::to_string);
    let long = long.as_deref().and_then(|long| long.split_once("\n\n")).map(|(_, rest)| rest);
    text(&mut roff, long.unwrap_or(&(about + ".")), "PP");
    let lower: Vec<&Command> =
        command.get_subcommands().filter(|lower| !lower.is_hide_set()).collect();
    if !lower.is_empty() {
        roff.control("SH", ["COMMANDS"]);
        let says = |lower: &Command| lower.get_about().map(ToString::to_string).unwrap_or_default();
        lower.iter().for_each(|one| entry(&mut roff, [bold(one.get_name())], &says(one)));
    }
    roff.control("SH", ["OPTIONS"]);
    let shown = || command.get_arguments().filter(|one| !one.is_hide_set());
    shown().filter(|one| one.is_positional()).for_each(|one| argument(&mut roff, one));
    shown().filter(|one| !one.is_positional()).for_each(|one| argument(&mut roff, one));
    let see_also = {
        let title =
            |one: &&Command| one.get_display_name().unwrap_or_else(|| one.get_name()).to_owned();
        above.iter().cloned().chain(lower.iter().map(title)).map(|page| page + "(1)")
    };
    if let Some(manual) = manual(name) {
        declared(&mut roff, manual, name, command, see_also);
    }
    ascii(&roff.render())
}

/// The usage, a form a line.
fn synopsis(roff: &mut Roff, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let forms = usage.strip_prefix("Usage:").unwrap_or(&usage).lines().map(str::trim);
    for (at, form) in forms.filter(|form| !form.is_empty()).enumerate() {
        if at > 0 {
            roff.control("br", []);
        }
        match form.strip_prefix(name) {
            Some(rest) => roff.text([bold(name), roman(rest)]),
            None => roff.text([roman(form)]),
        };
    }
}

/// The declared parts of the manual, and those that follow from the options.
fn declared(
    roff: &mut Roff,
    manual: &Manual,
    name: &str,
    command: &Command,
    family: impl Iterator<Item = String>,
) {
    let sections: [(&str, Vec<Fact>); 3] = [
        ("EXIT STATUS", manual.status.to_vec()),
        ("ENVIRONMENT", facts(ENVIRONMENT, name, command)),
        ("FILES", facts(FILES, name, command)),
    ];
    for (heading, facts) in sections.into_iter().filter(|(_, facts)| !facts.is_empty()) {
        roff.control("SH", [heading]);
        facts.iter().for_each(|(name, says)| entry(roff, [bold(*name)], says));
    }
    roff.control("SH", ["EXAMPLES"]);
    for (lines, says) in manual.examples {
        roff.control("PP", []).text(inlines(says));
        roff.control("PP", []).control("RS", ["4"]).control("nf", []);
        lines.lines().for_each(|line| _ = roff.text([bold(line)]));
        roff.control("fi", []).control("RE", []);
    }
    let pages: Vec<String> =
        family.chain(manual.see_also.iter().map(|page| String::from(*page))).collect();
    roff.control("SH", ["SEE ALSO"]).control("ad", ["l"]).control("nh", []);
    let mut line = Vec::new();
    for (at, page) in pages.iter().enumerate() {
        let (name, section) = page.split_once('(').unwrap_or((page, "1)"));
        let end = if at + 1 < pages.len() { ",\n" } else { "" };
        line.extend([bold(name), roman(format!("({section}{end}"))]);
    }
    roff.text(line);
}

/// An option or a positional argument.
fn argument(roff: &mut Roff, argument: &Arg) {
    let mut header = Vec::new();
    if let Some(short) = argument.get_short() {
        header.push(bold(format!("-{short}")));
    }
    if let Some(long) = argument.get_long() {
        header.extend(argument.get_short().map(|_| roman(", ")));
        header.push(bold(format!("--{long}")));
    }
    if argument.get_action().takes_values() {
        let names = argument.get_value_names().unwrap_or_default();
        let value = italic(names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "));
        let least = argument.get_num_args().map_or(1, |range| range.min_values());
        match (header.is_empty(), argument.is_require_equals_set(), least) {
            (true, ..) => header.push(value),
            (_, true, 0) => header.extend([roman("[="), value, roman("]")]),
            (_, true, _) => header.extend([roman("="), value]),
            (_, false, 0) => header.extend([roman(" ["), value, roman("]")]),
            (_, false, _) => header.extend([roman(" "), value]),
        }
    }
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut help = help.map(ToString::to_string).unwrap_or_default();
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let is_hidden = argument.is_hide_default_value_set() || !argument.get_action().takes_values();
    if !defaults.is_empty() && !is_hidden {
        let default = format!(" [default: {}]", defaults.join(","));
        // Behind the first paragraph, as in the help.
        let end = help.find("\n\n").unwrap_or(help.len());
        help.insert_str(end, &default);
    }
    entry(roff, header, &help);
    let is_hidden = argument.is_hide_possible_values_set() || !argument.get_action().takes_values();
    let values = argument.get_possible_values();
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    if values.is_empty() || is_hidden {
        return;
    }
    if values.iter().all(|value| value.get_help().is_none()) {
        let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        roff.control("IP", []).text([roman(format!("Possible values: {}", names.join(", ")))]);
        return;
    }
    roff.control("RS", []);
    for value in values {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        entry(roff, [bold(value.get_name())], &help);
    }
    roff.control("RE", []);
}

/// A name, with its meaning indented.
fn entry(roff: &mut Roff, name: impl Into<Vec<Inline>>, says: &str) {
    roff.control("TP", []).text(name);
    text(roff, says, "IP");
}

/// Paragraphs, each but the first begun by the macro `next`; lines of the form `- NAME  text` are a
/// list.
fn text(roff: &mut Roff, text: &str, next: &str) {
    let (mut is_first, mut is_list, mut is_fresh) = (true, false, false);
    for line in text.lines() {
        let item = line.strip_prefix("- ").and_then(|item| item.split_once(' '));
        if item.is_some() != is_list {
            is_list = item.is_some();
            roff.control(if is_list { "RS" } else { "RE" }, []);
        }
        if let Some((name, says)) = item {
            roff.control("TP", []).text([bold(name)]).text(inlines(says.trim_start()));
            continue;
        }
        if line.is_empty() {
            is_fresh = true;
            continue;
        }
        if is_fresh && !is_first {
            roff.control(next, []);
        }
        roff.text(inlines(line));
        (is_first, is_fresh) = (false, false);
    }
    if is_list {
        roff.control("RE", []);
    }
}

/// A text with the words in backquotes in bold.
fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(at, part)| if at % 2 == 0 { roman(part) } else { bold(part) }).collect()
}

/// Characters outside ASCII as escapes, which every formatter and locale takes.
fn ascii(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for sign in page.chars() {
        match sign {
            '…' => text.push_str("..."),
            sign if sign.is_ascii() => text.push(sign),
            sign => text.push_str(&format!("\\[u{:04X}]", u32::from(sign))),
        }
    }
    text
}
