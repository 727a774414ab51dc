//! Records as one HTML file that needs nothing else.
//!
//! The page is complete without its script, which sorts, filters, toggles and shows numbers. Its
//! policy (CSP) lets it load nothing, and run that script alone, by its hash: text from a record
//! could not run even if it were not escaped.

mod embed;
mod figure;
mod table;

use std::io::{self, Write};
use std::thread;

use iotomy_record::store::Record;

use crate::Source;
use crate::escape::markup;
use crate::section::{Answer, Block, Conclusion, Section, Tile};
use crate::sections::PlacedSection;

/// The colours, then the styles of marks and text.
const STYLE: &str = concat!(
    ":root{",
    include_str!("html/light.css"),
    "}\n@media (prefers-color-scheme:dark){:root:not([data-theme=light]){",
    include_str!("html/dark.css"),
    "}}\n:root[data-theme=dark]{",
    include_str!("html/dark.css"),
    "}\n@media print{:root:root:root{",
    include_str!("html/light.css"),
    "}}\n",
    include_str!("html/chart.css"),
    include_str!("html/page.css"),
);

const SCRIPT: &str = include_str!("html/script.js");

/// SHA-256 of [`SCRIPT`] in base64, which the policy names; a test compares them.
const SCRIPT_HASH: &str = "fzDceKeZ9hOl+FTSXc5lhnNImIbS7lsVpkbi/e8PzIA=";

/// Begins to pack a record on a thread of its own, if one can be created.
fn pack_beside<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    bytes: &'scope [u8],
) -> io::Result<thread::ScopedJoinHandle<'scope, String>> {
    thread::Builder::new().spawn_scoped(scope, || embed::packed(bytes))
}

/// The packed record: of its thread, or packed now.
fn packed(source: &Source<'_>, beside: io::Result<thread::ScopedJoinHandle<'_, String>>) -> String {
    match beside {
        Ok(thread) => thread.join().unwrap_or_default(),
        Err(_) => embed::packed(source.bytes),
    }
}

/// Writes a page of the records.
///
/// # Errors
/// The error of `to`.
pub fn html(sources: &[Source<'_>], to: &mut dyn Write) -> io::Result<()> {
    let records: Vec<&Record> = sources.iter().map(|source| source.record).collect();
    // Packing the records takes as long as all the rest.
    let (sections, packed) = thread::scope(|scope| {
        let packing: Vec<_> =
            sources.iter().map(|source| (source, pack_beside(scope, source.bytes))).collect();
        let sections = crate::sections::all(&records);
        let packed: Vec<String> =
            packing.into_iter().map(|(source, one)| packed(source, one)).collect();
        (sections, packed)
    });
    let title = match sections.as_slice() {
        [one] => one.section.title.clone(),
        [first, ..] if first.record.is_none() => first.section.title.clone(),
        many => format!("{} records", many.len()),
    };
    head(to, &title)?;
    top(to, &sections)?;
    writeln!(to, "<main id=\"main\">")?;
    for placed in &sections {
        one(to, placed, placed.record.map(|at| (&sources[at], packed[at].as_str())))?;
    }
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        to,
        "</main>\n<footer>Made by iotomy {version}. Every number on this page comes from the records in it.</footer>\n<script>{SCRIPT}</script>\n</body>\n</html>"
    )
}

fn head(to: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(
        to,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; script-src 'sha256-{SCRIPT_HASH}'; img-src data:; base-uri 'none'; form-action \
         'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"iotomy {}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{} · iotomy</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        env!("CARGO_PKG_VERSION"),
        markup(title),
    )
}

/// The links to each record, or to each part of the only one.
fn top(to: &mut dyn Write, sections: &[PlacedSection]) -> io::Result<()> {
    write!(
        to,
        "<a class=\"skip\" href=\"#main\">skip to the report</a>\n<header class=\"top\"><span class=\"brand\">iotomy</span><nav aria-label=\"on this page\"><ol>"
    )?;
    match sections {
        [PlacedSection { section: one, .. }] => {
            if !one.findings.is_empty() {
                write!(to, "<li><a href=\"#r1-findings\">{}</a></li>", heading(one))?;
            }
            for (id, title) in one.blocks.iter().filter_map(named).take(WAYS) {
                write!(to, "<li><a href=\"#r1-{id}\">{}</a></li>", markup(&short(title)))?;
            }
            write!(to, "<li><a href=\"#r1-facts\">Record</a></li>")?;
        }
        many => {
            for placed in many {
                // Of one command on many machines, the machine tells the records apart.
                let title = placed.machine.as_ref().unwrap_or(&placed.section.title);
                write!(
                    to,
                    "<li><a href=\"#{}\"><small>{}</small>{}</a></li>",
                    id(placed),
                    placed.section.kind,
                    markup(&short(title))
                )?;
            }
        }
    }
    writeln!(to, "</ol></nav></header>")
}

/// The largest number of links to the parts of the only record, and the columns of each.
const WAYS: usize = 9;
const WAY: usize = 48;

fn short(title: &str) -> String {
    crate::page::elide(title, WAY, "…")
}

/// The parts that deserve a link: pictures and tables that are meaningful on their own.
fn named(block: &Block) -> Option<(&str, &str)> {
    match block {
        Block::Chart(chart) => Some((&chart.id, &chart.title)),
        Block::Sheet(sheet) if !sheet.folded => Some((&sheet.id, &sheet.title)),
        _ => None,
    }
}

/// Its place on the page.
fn id(placed: &PlacedSection) -> String {
    match placed.record {
        Some(at) => format!("r{}", at + 1),
        None => placed.name.clone(),
    }
}

fn heading(section: &Section) -> &'static str {
    if section.kind == "sweep" { "Claims" } else { "Findings" }
}

fn one(
    to: &mut dyn Write,
    placed: &PlacedSection,
    record: Option<(&Source<'_>, &str)>,
) -> io::Result<()> {
    let (section, id) = (&placed.section, id(placed));
    let code = if matches!(section.kind, "trace" | "anatomy" | "copy" | "d") {
        " class=\"code\""
    } else {
        ""
    };
    writeln!(
        to,
        "<section class=\"record\" id=\"{id}\" data-kind=\"{}\" aria-labelledby=\"{id}-title\">\n\
         <p class=\"kind\">{}</p>\n<h1{code} id=\"{id}-title\">{}</h1>",
        section.kind,
        markup(&placed.kind()),
        markup(&section.title)
    )?;
    for Answer { tone, says, rest } in &section.answers {
        let (says, rest) = (markup(says), markup(rest));
        writeln!(to, "<p class=\"answer {tone}\"><strong>{says}</strong><span>{rest}</span></p>")?;
    }
    if !section.tiles.is_empty() && !placed.is_brief {
        write!(to, "<dl class=\"tiles\">")?;
        for Tile { label, value, note } in &section.tiles {
            let (value, note) = (markup(value), markup(note));
            write!(
                to,
                "<div><dt>{label}</dt><dd class=\"value\">{value}</dd><dd class=\"note\">{note}</dd></div>"
            )?;
        }
        writeln!(to, "</dl>")?;
    }
    if !section.findings.is_empty() {
        writeln!(
            to,
            "<h2 id=\"{id}-findings\">{}</h2>\n<ul class=\"findings\">",
            heading(section)
        )?;
        section.findings.iter().try_for_each(|found| finding(to, found))?;
        writeln!(to, "</ul>")?;
    }
    match (placed.is_brief, record) {
        (true, Some((source, _))) => {
            let name = markup(source.name);
            writeln!(
                to,
                "<p class=\"note\">Its pictures and tables are those of <code>iotomy report {name}</code>: of many \
                 machines, only outliers have them here.</p>"
            )?;
        }
        _ => section.blocks.iter().try_for_each(|block| write_block(to, &id, block))?,
    }
    facts(to, &id, section, record)?;
    writeln!(to, "</section>")
}

fn finding(to: &mut dyn Write, found: &Conclusion) -> io::Result<()> {
    write!(
        to,
        "<li class=\"{}\"><span class=\"badge\">{}</span><p><span class=\"id\">{}</span> {}</p>",
        found.tone,
        found.word,
        markup(&found.id),
        markup(&found.text)
    )?;
    if let Some((label, text)) = &found.more {
        write!(to, "<p class=\"more\"><b>{label}</b> {}</p>", markup(text))?;
    }
    if !found.evidence.is_empty() {
        write!(
            to,
            "<details><summary>evidence</summary><table><caption>Evidence</caption><tbody>"
        )?;
        for (key, value) in &found.evidence {
            write!(
                to,
                "<tr><th scope=\"row\">{}</th><td class=\"w\">{}</td></tr>",
                markup(key),
                markup(value)
            )?;
        }
        write!(to, "</tbody></table></details>")?;
    }
    writeln!(to, "</li>")
}

fn write_block(to: &mut dyn Write, id: &str, block: &Block) -> io::Result<()> {
    match block {
        Block::Head(text) => writeln!(to, "<h2>{}</h2>", markup(text)),
        Block::Chart(chart) => figure::write(to, id, chart),
        Block::Few(charts) => {
            writeln!(to, "<div class=\"few\">")?;
            charts.iter().try_for_each(|chart| figure::write(to, id, chart))?;
            writeln!(to, "</div>")
        }
        Block::Sheet(sheet) => table::write(to, id, sheet),
        Block::Notes(notes) => {
            notes.iter().try_for_each(|note| writeln!(to, "<p class=\"note\">{}</p>", markup(note)))
        }
    }
}

/// Where it all comes from, and the record itself.
fn facts(
    to: &mut dyn Write,
    id: &str,
    section: &Section,
    record: Option<(&Source<'_>, &str)>,
) -> io::Result<()> {
    let head = if record.is_some() { "Record" } else { "Records" };
    writeln!(to, "<h2 id=\"{id}-facts\">{head}</h2>\n<dl class=\"facts\">")?;
    let of_file = record.map(|(source, _)| {
        let size = crate::bytes(source.bytes.len() as u128);
        [
            ("record", format!("{}, {size}", source.name)),
            ("schema", source.record.as_ref().schema().to_owned()),
        ]
    });
    for (label, text) in section.facts.iter().chain(of_file.iter().flatten()) {
        writeln!(to, "<dt>{label}</dt><dd>{}</dd>", markup(text))?;
    }
    let Some((source, packed)) = record else { return writeln!(to, "</dl>") };
    let name = embed::file_name(source.name);
    writeln!(
        to,
        "</dl>\n<a class=\"get\" download=\"{name}.gz\" href=\"data:application/gzip;base64,{packed}\">Download the \
         record</a>"
    )
}

#[cfg(test)]
mod tests;
