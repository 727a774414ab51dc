//! The timelines of a page: a row per event, in order, with its time, and to the right its position
//! in the call and the duration of the state that began there.

use iotomy_record::{CallEvent, SlowCall, SlowestCalls};

use super::moments::{
    ASLEEP, DEVICE, INSIDE, QUEUED, RUNNING, Span, UNKNOWN, WAITING, lasting, threads,
};
use super::timeline::{asked, call, details, headline, lost, ours, subject, times, untold};
use crate::axis::Axis;
use crate::chart::{Chart, Drawing, Key, WIDE, labels_below, start};
use crate::numbers::{bytes, duration, fixed, thousands};
use crate::page::Page;
use crate::section::Block;
use crate::sheet::{Cell, Field, Sheet};

/// Where times end, words begin and end, and the scale begins and ends.
const TIMES: f64 = 66.0;
const WORDS: f64 = 76.0;
const WORDS_END: f64 = 385.0;
const SCALE: f64 = 402.0;
const SCALE_END: f64 = 748.0;

/// Height of a row, and of a bar in it; of the row above all, which is the call's.
const ROW: f64 = 17.0;
const BAR: f64 = 10.0;
const TOP: f64 = 44.0;

/// Rows of a picture, which has a sheet of paper; pictures of a timeline, and timelines, at most: the table has
/// all.
const ROWS: usize = 52;
const SHEETS: usize = 4;
const TIMELINES: usize = 12;

/// The parts of a page.
pub(super) fn blocks(page: &Page<'_>, timelines: &SlowestCalls) -> Vec<Block> {
    let mut notes = vec![headline(timelines)];
    notes.extend(lost(timelines).map(|text| format!("lost: {text}")));
    let hidden = timelines.calls.len().saturating_sub(TIMELINES);
    if hidden > 0 {
        notes.push(format!("{hidden} more are only in the tables"));
    }
    let mut blocks = vec![Block::Head("Timelines of single calls".into()), Block::Notes(notes)];
    let told = timelines.calls.iter().take(TIMELINES).enumerate();
    blocks.extend(told.flat_map(|(at, timeline)| charts(page, at + 1, timeline)).map(Block::Chart));
    if !timelines.calls.is_empty() {
        blocks.push(Block::Sheet(summary(page, timelines)));
        blocks.push(Block::Sheet(events(page, timelines)));
    }
    blocks
}

/// The moments, and between them how many others there were that are only counted.
enum Line<'s> {
    Moment(usize, &'s CallEvent),
    Hidden(&'s str, u64),
}

fn lines(timeline: &SlowCall) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut hidden = timeline.hidden.iter().peekable();
    for (at, event) in timeline.events.iter().enumerate() {
        while let Some(next) = hidden.next_if(|hidden| hidden.before_ns <= event.at_ns) {
            lines.push(Line::Hidden(&next.event, next.count));
        }
        lines.push(Line::Moment(at, event));
    }
    lines.extend(hidden.map(|next| Line::Hidden(&next.event, next.count)));
    lines
}

/// The pictures of a timeline: as many as it has sheets of paper.
fn charts(page: &Page<'_>, number: usize, timeline: &SlowCall) -> Vec<Chart> {
    let lines = lines(timeline);
    let shown = &lines[..lines.len().min(ROWS * SHEETS)];
    let sheets = shown.len().div_ceil(ROWS).max(1);
    let mut charts = Vec::new();
    for nth in 0..sheets {
        let rows = &shown[nth * ROWS..shown.len().min((nth + 1) * ROWS)];
        let drawn = draw(page, timeline, rows);
        let part = match nth {
            0 => String::new(),
            nth => format!("-{}", nth + 1),
        };
        let of = match sheets {
            1 => String::new(),
            _ => format!(" ({} of {sheets})", nth + 1),
        };
        charts.push(Chart {
            id: format!("timeline-{number}{part}"),
            title: format!("{}, {}{of}", call(page, timeline), duration(timeline.wall_ns as f64)),
            says: format!("{} rows, from the call's entry to its return", rows.len()),
            legend: drawn.legend(),
            notes: Vec::new(),
            drawing: drawn.drawing,
        });
    }
    let mut notes = vec![subject(page, timeline)];
    notes.extend(Some(asked(page, timeline)).filter(|asked| !asked.is_empty()));
    notes = vec![notes.join(" · "), times(timeline)];
    if shown.len() < lines.len() {
        let n = thousands((lines.len() - shown.len()) as u128);
        notes.push(format!("{n} more rows are in the table"));
    }
    charts.last_mut().expect("a timeline has a picture").notes = notes;
    charts
}

/// Some of the rows, below the scale and where the thread was.
fn draw(page: &Page<'_>, timeline: &SlowCall, lines: &[Line<'_>]) -> Pen {
    let high = TOP + ROW * lines.len() as f64 + 4.0;
    let mut pen = Pen { drawing: Drawing::new(WIDE, high), whole: timeline.wall_ns.max(1) };
    pen.scale(high);
    pen.drawing.text(TIMES, 36.0, "end num bold", "0");
    pen.drawing.text(WORDS, 36.0, "bold", &start(&call(page, timeline), WORDS_END - WORDS));
    for part in threads(timeline) {
        pen.bar(27.0, &part, "");
    }
    for (row, line) in lines.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        match line {
            Line::Hidden(name, count) => {
                let text = untold(page, name, *count);
                pen.drawing.text(WORDS, y + 9.5, "dim", &start(&text, WORDS_END - WORDS));
            }
            Line::Moment(at, event) => pen.moment(page, y, timeline, *at, event),
        }
    }
    pen
}

struct Pen {
    drawing: Drawing,
    whole: u64,
}

impl Pen {
    fn x(&self, at: u64) -> f64 {
        let share = at.min(self.whole) as f64 / self.whole as f64;
        SCALE + share * (SCALE_END - SCALE)
    }

    /// Lines from above to below, with their times.
    fn scale(&mut self, high: f64) {
        self.drawing.text(TIMES, 13.0, "end dim", "µs");
        self.drawing.text(WORDS, 13.0, "dim", "what happened");
        let axis = Axis { low: 0.0, high: self.whole as f64, is_log: false };
        let ticks = axis.ticks(4);
        for tick in &ticks {
            let x = SCALE + axis.share(*tick) * (SCALE_END - SCALE);
            self.drawing.line([x, 18.0, x, high], "grid");
        }
        let label = |tick: f64| match tick {
            0.0 => "0".to_owned(),
            tick => duration(tick),
        };
        let labels: Vec<(f64, String)> = ticks
            .iter()
            .map(|tick| (SCALE + axis.share(*tick) * (SCALE_END - SCALE), label(*tick)))
            .collect();
        labels_below(&mut self.drawing, 13.0, labels);
    }

    fn bar(&mut self, y: f64, part: &Span, tip: &str) {
        let (from, until) = (self.x(part.from), self.x(part.until));
        let lasted = duration(part.until.saturating_sub(part.from) as f64);
        let tip = match tip {
            "" => format!("{} for {lasted}, from {} µs", part.what, micro(part.from)),
            tip => format!("{tip}; {} for {lasted}", part.what),
        };
        self.drawing.rect([from, y, (until - from).max(0.6), BAR], part.class, &tip);
    }

    fn moment(
        &mut self,
        page: &Page<'_>,
        y: f64,
        timeline: &SlowCall,
        at: usize,
        event: &CallEvent,
    ) {
        let words = words(page, event);
        let is_own = ours(&event.event).is_some();
        self.drawing.text(TIMES, y + 9.5, "end num dim", &micro(event.at_ns));
        let class = if is_own { "dim" } else { "" };
        self.drawing.text(WORDS, y + 9.5, class, &start(&words, WORDS_END - WORDS));
        let tip = format!("{} µs, CPU {}: {words}", micro(event.at_ns), event.cpu);
        for part in lasting(timeline, at, event) {
            self.bar(y, &part, &tip);
        }
        self.drawing.rect([self.x(event.at_ns) - 1.0, y - 1.0, 2.0, BAR + 2.0], "moment", &tip);
    }

    /// The keys of the symbols in the picture.
    fn legend(&self) -> Vec<Key> {
        let kinds = [RUNNING, ASLEEP, WAITING, UNKNOWN, QUEUED, DEVICE, INSIDE];
        let is_there =
            |class: &str| self.drawing.body.contains(&format!("class=\"{class} point\""));
        let there = kinds.into_iter().filter(|(class, _)| is_there(class));
        there.map(|(class, what)| Key::new(class, what)).collect()
    }
}

fn micro(ns: u64) -> String {
    fixed(ns as f64 / 1e3, 1)
}

/// The event, in words.
fn words(page: &Page<'_>, event: &CallEvent) -> String {
    let more = details(page, event);
    match ours(&event.event) {
        Some(what) if more.is_empty() => what.to_owned(),
        Some(what) if event.words.contains_key("state") => format!("{what}: {more}"),
        Some(what) => format!("{what} {more}"),
        None if more.is_empty() => page.name(&event.event, 60),
        None => format!("{}: {more}", page.name(&event.event, 60)),
    }
}

fn summary(page: &Page<'_>, timelines: &SlowestCalls) -> Sheet {
    let mut sheet = Sheet::new(
        "timelines",
        "The calls of the timelines",
        vec![
            Field::number("timeline", "timeline", ""),
            Field::text("call", "call"),
            Field::text("file", "file"),
            Field::number("offset", "at", ""),
            Field::number("asked_bytes", "asked for", ""),
            Field::number("returned", "returned", ""),
            Field::text("error", "error"),
            Field::number("start_ns", "began", "ms"),
            Field::number("wall_ns", "wall", "µs"),
            Field::number("on_cpu_ns", "on-CPU", "µs"),
            Field::number("blocked_ns", "blocked", "µs"),
        ],
    );
    let micros = |ns: u64| Cell::whole(ns, micro(ns));
    for (at, timeline) in timelines.calls.iter().enumerate() {
        let returned = i128::from(timeline.returned);
        let sign = if returned < 0 { "-" } else { "" };
        sheet.push(vec![
            Cell::whole(at as u64 + 1, (at + 1).to_string()),
            Cell::text(call(page, timeline)),
            Cell::text(subject(page, timeline)),
            timeline.offset.map_or_else(Cell::absent, |n| Cell::whole(n, thousands(n.into()))),
            timeline.asked_bytes.map_or_else(Cell::absent, |n| Cell::whole(n, bytes(n.into()))),
            Cell::whole(returned, format!("{sign}{}", thousands(returned.unsigned_abs()))),
            Cell::text(
                timeline.error.as_ref().map_or_else(String::new, |name| page.name(name, 20)),
            ),
            Cell::whole(timeline.start_ns, fixed(timeline.start_ns as f64 / 1e6, 1)),
            micros(timeline.wall_ns),
            micros(timeline.on_cpu_ns),
            micros(timeline.blocked_ns),
        ]);
    }
    sheet.without_empty_columns()
}

fn events(page: &Page<'_>, timelines: &SlowestCalls) -> Sheet {
    let mut sheet = Sheet::new(
        "timeline-events",
        "Events in the timelines, in order of time",
        vec![
            Field::number("timeline", "timeline", ""),
            Field::number("at_ns", "at", "µs"),
            Field::number("cpu", "CPU", ""),
            Field::text("event", "event"),
            Field::text("details", "details"),
        ],
    );
    for (number, timeline) in (1u64..).zip(&timelines.calls) {
        for line in lines(timeline) {
            let nth = Cell::whole(number, number.to_string());
            sheet.push(match line {
                Line::Hidden(name, count) => vec![
                    nth,
                    Cell::absent(),
                    Cell::absent(),
                    Cell::text(page.name(name, 60)),
                    Cell::text(format!("{} more", thousands(count.into()))),
                ],
                Line::Moment(_, event) => vec![
                    nth,
                    Cell::whole(event.at_ns, micro(event.at_ns)),
                    Cell::whole(event.cpu, event.cpu.to_string()),
                    Cell::text(page.name(&event.event, 60)),
                    Cell::text(details(page, event)),
                ],
            });
        }
    }
    sheet.folded = true;
    sheet
}
