//! Properties of every report of any record, for the property tests of each.

use iotomy_record::store::Record;

use crate::page::columns;
use crate::{Source, Style, csv, html, markdown, parts, svg};

/// A report keeps to its width and to the characters of a terminal, ASCII if requested.
pub(crate) fn keeps_to(width: usize, unicode: bool, render: impl Fn(&Style) -> String) {
    let text = render(&Style { unicode, width, ..Style::default() });
    assert!(unicode || text.is_ascii());
    for line in text.lines() {
        assert_eq!(iotomy_record::printable(line, true), line, "{line:?}");
        assert!(columns(line) <= width.max(20), "{line:?}");
        assert!(!line.ends_with(' '), "{line:?}");
    }
}

/// A report in colour is the plain one, coloured.
pub(crate) fn is_only_coloured(render: impl Fn(&Style) -> String) {
    let coloured = render(&Style { color: true, ..Style::default() });
    let plain = coloured
        .split('\x1b')
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split_once('m').expect("an ink").1 });
    assert_eq!(plain.collect::<String>(), render(&Style::default()));
}

/// A page of a record as a file has it.
pub(crate) fn page(record: &Record) -> String {
    let mut page = Vec::new();
    let source = Source { name: "a/run.json", record, bytes: b"{}" };
    html(&[source], &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// The same without the common parts of every page: the style, the script and the packed record.
pub(crate) fn page_alone(record: &Record) -> String {
    let page = page(record);
    let (start, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (body, _) = rest.split_once("<script>").unwrap();
    let (body, link) = body.split_once("base64,").unwrap();
    let (_, end) = link.split_once('"').unwrap();
    let (head, _) = start.split_once("<meta http-equiv").unwrap();
    format!("{head}{body}{end}")
}

/// A record in every other form: as Markdown, each table as CSV, the first picture as SVG.
pub(crate) fn other_forms(record: &Record) -> String {
    let sources = [Source { name: "run.json", record, bytes: b"{}" }];
    let mut text = markdown(&sources, None).unwrap();
    let parts = parts(&sources);
    for part in parts.iter().filter(|part| part.kind == crate::PartKind::Table) {
        text += &format!("\n--- {}.csv\n{}", part.name, csv(&sources, Some(&part.name)).unwrap());
    }
    if let Ok(svg) = svg(&sources, None) {
        let (start, rest) = svg.split_once("<style>").unwrap();
        text += &format!("\n--- svg\n{start}{}", rest.split_once("</style>").unwrap().1);
    }
    text
}

/// Attributes we write; none of them runs anything.
const ATTRIBUTES: &[&str] = &[
    "aria-hidden",
    "aria-label",
    "aria-labelledby",
    "charset",
    "class",
    "content",
    "cx",
    "cy",
    "data-kind",
    "data-series",
    "data-v",
    "download",
    "height",
    "href",
    "http-equiv",
    "id",
    "lang",
    "name",
    "points",
    "r",
    "rel",
    "role",
    "scope",
    "tabindex",
    "transform",
    "viewBox",
    "width",
    "x",
    "x1",
    "x2",
    "xmlns",
    "y",
    "y1",
    "y2",
];

/// Elements we write.
const ELEMENTS: &[&str] = &[
    "a",
    "b",
    "body",
    "caption",
    "circle",
    "code",
    "dd",
    "desc",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "g",
    "h1",
    "h2",
    "head",
    "header",
    "html",
    "li",
    "line",
    "link",
    "main",
    "meta",
    "nav",
    "ol",
    "p",
    "polygon",
    "polyline",
    "pre",
    "rect",
    "script",
    "section",
    "small",
    "span",
    "strong",
    "style",
    "summary",
    "svg",
    "table",
    "tbody",
    "td",
    "text",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
];

/// Markup is ours alone: known elements and attributes, each quoted and each closed.
pub(crate) fn is_only_ours(markup: &str) {
    assert!(!markup.chars().any(|c| c.is_control() && c != '\n'));
    let mut open: Vec<&str> = Vec::new();
    let mut rest = markup;
    while let Some((_, tail)) = rest.split_once('<') {
        let (tag, after) = tail.split_once('>').expect("a tag ends");
        rest = after;
        if tag.starts_with("!DOCTYPE") {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{markup}");
            continue;
        }
        let is_closed = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(ELEMENTS.contains(&name), "<{tag}>");
        while let Some((key, value)) = attributes.trim_start().split_once("=\"") {
            assert!(ATTRIBUTES.contains(&key), "{key} in <{tag}>");
            attributes = value.split_once('"').expect("a value ends").1;
        }
        assert_eq!(attributes.trim(), "", "<{tag}>");
        match name {
            "meta" | "link" => {}
            "script" | "style" => rest = rest.split_once(&format!("</{name}>")).expect("an end").1,
            _ if is_closed => {}
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// Every form of a record is inert, whatever names it contains.
pub(crate) fn is_inert(record: &Record) {
    is_only_ours(&page(record));
    let sources = [Source { name: "<b>.json", record, bytes: b"" }];
    for part in parts(&sources) {
        match part.kind {
            crate::PartKind::Chart => is_only_ours(&svg(&sources, Some(&part.name)).unwrap()),
            crate::PartKind::Table => {
                let text = csv(&sources, Some(&part.name)).unwrap();
                assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
                let width = |line: &str| {
                    line.split('"').step_by(2).map(|s| s.matches(',').count()).sum::<usize>()
                };
                let first = text.lines().next().map(width);
                assert!(text.lines().all(|line| Some(width(line)) == first), "{text}");
            }
        }
    }
    let text = markdown(&sources, None).unwrap();
    assert!(!text.contains(['<', '>']) && !text.chars().any(|c| c.is_control() && c != '\n'));
}
