//! A picture: its marks, its text alternative, and its legend.
//!
//! It is drawn in names of classes alone; the colours are the style sheet's, one for light and one for
//! dark. Every text that goes into it is escaped here, so that no name of a record can be markup.

use std::fmt::Write as _;

use crate::escape::markup;
use crate::page::{columns, head, wrap};

/// The size of a small letter's box, in the units of the picture.
pub(crate) const LETTER: f64 = 6.4;

/// The width of a picture that has the page's.
pub(crate) const WIDE: f64 = 760.0;

/// Colours of series; the ninth has that of the first, and another shape.
const SERIES: usize = 8;

/// From this width on a box has a line around it.
const APART: f64 = 5.0;

/// The width of a usual letter of a legend, which has the size of text, and of a label.
const WIDE_LETTER: f64 = 7.4;

/// The style of a picture in a file of its own: it includes the colours, which a page defines once
/// for all.
const STYLE: &str = concat!(
    ".chart{",
    include_str!("html/light.css"),
    "}\n@media (prefers-color-scheme:dark){.chart{",
    include_str!("html/dark.css"),
    "}}\n@media print{.chart.chart{",
    include_str!("html/light.css"),
    "}}\n",
    include_str!("html/chart.css"),
);

/// A picture of a part of a record.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// Its name among the parts of the record.
    pub(crate) id: String,
    pub(crate) title: String,
    /// The text alternative.
    pub(crate) says: String,
    pub(crate) legend: Vec<Key>,
    /// Notes that are needed to read it.
    pub(crate) notes: Vec<String>,
    pub(crate) drawing: Drawing,
}

/// An entry of a legend.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// The class of the thing it represents.
    pub(crate) class: String,
    pub(crate) label: String,
    /// The series that it shows and hides.
    pub(crate) series: Option<usize>,
}

impl Key {
    pub(crate) fn new(class: &str, label: &str) -> Self {
        Self { class: class.to_owned(), label: label.to_owned(), series: None }
    }
}

impl Chart {
    /// The picture as a file of its own, with the notes needed to read it, and its origin.
    pub(crate) fn file(&self, origin: &str) -> String {
        let Drawing { wide: width, high, body, .. } = &self.drawing;
        let mut below = Drawing::new(*width, 0.0);
        let high = self.foot(&mut below, *high, origin);
        let (title, says) = (markup(&self.title), markup(&self.says));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" viewBox=\"0 0 {width} {}\" \
             width=\"{width}\" height=\"{}\"><title>{title}</title><desc>{says}</desc><style>{STYLE}</style>\
             <rect class=\"paper\" width=\"{width}\" height=\"{}\"/>\
             <text class=\"bold\" x=\"8\" y=\"18\">{title}</text>\
             <g transform=\"translate(0 26)\">{body}{}</g></svg>\n",
            short(high + 26.0),
            short(high + 26.0),
            short(high + 26.0),
            below.body,
        )
    }

    /// Legend, notes and origin below a picture that is so high; how high it is with them.
    fn foot(&self, below: &mut Drawing, high: f64, origin: &str) -> f64 {
        let (mut x, mut y) = (8.0, high + 16.0);
        for key in &self.legend {
            let wide = 34.0 + columns(&key.label) as f64 * WIDE_LETTER;
            if x + wide > below.wide && x > 8.0 {
                (x, y) = (8.0, y + 18.0);
            }
            match key.series {
                Some(series) => below.mark(series, x + 6.0, y - 4.0, ""),
                None => below.rect([x, y - 10.0, 12.0, 12.0], &key.class, ""),
            }
            below.text(x + 18.0, y, "", &key.label);
            x += wide;
        }
        let mut y = if self.legend.is_empty() { high } else { y + 10.0 };
        let notes = self.notes.iter().map(String::as_str).chain([origin]);
        let room = ((below.wide - 16.0) / LETTER) as usize;
        for line in notes.filter(|note| !note.is_empty()).flat_map(|note| wrap(note, room, room)) {
            y += 15.0;
            below.text(8.0, y, "dim", &line);
        }
        y + if y > high { 10.0 } else { 0.0 }
    }
}

/// Lines, boxes and letters.
#[derive(Debug, Clone)]
pub(crate) struct Drawing {
    pub(crate) wide: f64,
    pub(crate) high: f64,
    pub(crate) body: String,
    /// Marks with numbers.
    pub(crate) points: usize,
    /// Whether it consists of [`frame`](Self::frame)s alone, which can be zoomed.
    pub(crate) zooms: bool,
}

impl Drawing {
    pub(crate) fn new(wide: f64, high: f64) -> Self {
        Self { wide, high, body: String::new(), points: 0, zooms: false }
    }

    // Writing to a String cannot fail.

    /// A box at x and y of this width and height; with words it is a point, which shows them.
    pub(crate) fn rect(&mut self, [x, y, wide, high]: [f64; 4], class: &str, tip: &str) {
        let (x, y, wide, high) = (short(x), short(y), short(wide.max(0.0)), short(high.max(0.0)));
        let _ = write!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" class=\"{}\"",
            self.classes(class, tip)
        );
        self.end("rect", tip);
    }

    /// A box with a name in it, and a text; wide ones are many, so positions have three decimals.
    pub(crate) fn frame(
        &mut self,
        [x, y, wide, high]: [f64; 4],
        class: &str,
        label: &str,
        tip: &str,
    ) {
        self.points += 1;
        // Of a thin one a line around it would leave nothing.
        let apart = if wide >= APART { " apart" } else { "" };
        let exact = |x: f64| (x * 1e3).round() / 1e3 + 0.0;
        let _ = write!(
            self.body,
            "<g class=\"point\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}{apart}\"/>\
             <title>{}</title>",
            exact(x),
            short(y),
            exact(wide),
            short(high),
            markup(tip),
        );
        if !label.is_empty() {
            self.text(x + 3.0, y + 12.5, "small", label);
        }
        self.body.push_str("</g>");
    }

    pub(crate) fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str) {
        let _ = write!(
            self.body,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>",
            short(x1),
            short(y1),
            short(x2),
            short(y2)
        );
    }

    /// A line through points.
    pub(crate) fn path(&mut self, points: &[(f64, f64)], class: &str) {
        if points.len() < 2 {
            return;
        }
        let points: Vec<String> =
            points.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
        let _ = write!(self.body, "<polyline points=\"{}\" class=\"{class}\"/>", points.join(" "));
    }

    /// A text from a record: it is escaped. `class` sets its anchor and its style.
    pub(crate) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = write!(
            self.body,
            "<text x=\"{}\" y=\"{}\"{class}>{}</text>",
            short(x),
            short(y),
            markup(text)
        );
    }

    /// The mark of a series: each has a colour and a shape, and no two of the first 32 have both.
    pub(crate) fn mark(&mut self, series: usize, x: f64, y: f64, tip: &str) {
        let of = |points: &[(f64, f64)]| {
            let points: Vec<String> = points
                .iter()
                .map(|(dx, dy)| format!("{},{}", short(x + dx), short(y + dy)))
                .collect();
            format!("<polygon points=\"{}\"", points.join(" "))
        };
        let kind = (series + series / SERIES) % 4;
        let shape = match kind {
            0 => format!("<circle cx=\"{}\" cy=\"{}\" r=\"4\"", short(x), short(y)),
            1 => of(&[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]),
            2 => of(&[(0.0, -4.8), (4.6, 3.4), (-4.6, 3.4)]),
            _ => of(&[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)]),
        };
        let class = self.classes(&format!("{} dot", series_class(series)), tip);
        let _ = write!(self.body, "{shape} class=\"{class}\"");
        let element = if kind == 0 { "circle" } else { "polygon" };
        self.end(element, tip);
    }

    /// Groups the marks of one series, so that it can be hidden.
    pub(crate) fn group(&mut self, series: usize, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.body, "<g data-series=\"{series}\">");
        draw(self);
        self.body.push_str("</g>");
    }

    fn classes(&self, class: &str, tip: &str) -> String {
        if tip.is_empty() { class.to_owned() } else { format!("{class} point") }
    }

    fn end(&mut self, element: &str, tip: &str) {
        if tip.is_empty() {
            self.body.push_str("/>");
        } else {
            self.points += 1;
            let _ = write!(self.body, "><title>{}</title></{element}>", markup(tip));
        }
    }
}

/// Labels below a floor, from the left, those that would lie on the one before left out.
pub(crate) fn labels_below(
    drawing: &mut Drawing,
    y: f64,
    labels: impl IntoIterator<Item = (f64, String)>,
) {
    let mut free = f64::NEG_INFINITY;
    for (x, label) in labels {
        let half = columns(&label) as f64 * LETTER / 2.0;
        let x = x.min(drawing.wide - half - 2.0);
        if x - half > free {
            drawing.text(x, y, "mid dim num", &label);
            free = x + half + LETTER;
        }
    }
}

/// The class of the colour of a series.
pub(crate) fn series_class(series: usize) -> String {
    format!("s{}", series % SERIES)
}

/// A place to a tenth of a unit; adding 0 makes −0 of rounding a 0.
pub(crate) fn short(x: f64) -> String {
    let x = if x.is_finite() { (x.clamp(-1e6, 1e6) * 10.0).round() / 10.0 + 0.0 } else { 0.0 };
    format!("{x}")
}

/// The start of a text within this many units; nothing where that would be meaningless.
pub(crate) fn start(text: &str, wide: f64) -> String {
    let letters = (wide / LETTER).max(0.0) as usize;
    match columns(text) {
        _ if letters < FEWEST_LETTERS => String::new(),
        columns if columns <= letters => text.to_owned(),
        _ => format!("{}…", head(text, letters - 1).trim_end()),
    }
}

/// Letters below which a text is meaningless.
const FEWEST_LETTERS: usize = 5;

/// A text within this many units, its middle left out.
pub(crate) fn fit(text: &str, wide: f64) -> String {
    crate::page::elide(text, letters(wide), "…")
}

/// The name of a process with its id, or with a count, within this many units: the end of the name is left out.
pub(crate) fn fit_process(label: &str, wide: f64) -> String {
    let letters = letters(wide);
    if columns(label) <= letters {
        return label.to_owned();
    }
    let at = [" (", " × "].iter().filter_map(|joint| label.rfind(joint)).max();
    let (name, id) = label.split_at(at.unwrap_or(label.len()));
    match letters.checked_sub(columns(id) + 1) {
        Some(room) if room >= FEWEST_LETTERS => {
            format!("{}…{id}", head(name, room).trim_end_matches([' ', '…']))
        }
        _ => fit(label, wide),
    }
}

/// The letters that this many units have room for in any font: text that begins left of a picture is cut.
fn letters(wide: f64) -> usize {
    (wide / WIDE_LETTER).max(4.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_its_id_and_is_cut_once() {
        let fit = |label: &str| fit_process(label, 192.0);
        assert_eq!(fit("nginx: master process n… (23094)"), "nginx: master pr… (23094)");
        assert_eq!(fit("an_overlong_program_name × 1,210"), "an_overlong_prog… × 1,210");
        assert_eq!(fit("a name (odd) of a command that is long"), "a name (…and that is long");
        assert_eq!(fit("dd (29838)"), "dd (29838)");
    }

    #[test]
    fn names_are_no_markup() {
        let mut drawing = Drawing::new(WIDE, 10.0);
        drawing.text(0.0, 0.0, "", "<script>&\"'");
        drawing.mark(1, 0.0, 0.0, "</title><x>");
        assert!(!drawing.body.contains("<script>") && !drawing.body.contains("<x>"));
        assert_eq!(drawing.points, 1);
    }

    #[test]
    fn a_picture_alone_has_every_colour_it_is_drawn_in() {
        let drawn = include_str!("html/chart.css");
        for name in drawn.split("var(").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let defined = STYLE.matches(&format!("{name}:#")).count();
            assert_eq!(defined, 3, "{name} in light, in dark and in print");
        }
    }

    #[test]
    fn no_two_of_many_series_look_the_same() {
        let looks: std::collections::BTreeSet<String> = (0..32)
            .map(|series| {
                let mut drawing = Drawing::new(WIDE, 10.0);
                drawing.mark(series, 0.0, 0.0, "");
                drawing.body
            })
            .collect();
        assert_eq!(looks.len(), 32);
    }

    #[test]
    fn places_are_short_whatever_they_are() {
        assert_eq!(
            [short(1.25), short(-0.04), short(f64::NAN), short(1e300)],
            ["1.3", "0", "0", "1000000"]
        );
    }
}
