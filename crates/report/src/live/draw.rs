//! The screen as cells, from 40 by 10 on: the headline, where the time goes, a table, the command's last
//! lines, the keys.
//!
//! Computed by `take` in `crates/observe/src/bpf/snapshot.rs`.

use std::cmp::Ordering;

use iotomy_record::{FileKind, FileUse, SortKey, statistic};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style as Look};

use super::ring_rows::submitted;
use super::rows::{Row, SnapshotDelta, rate, shown};
use super::screen::{Opened, Screen, Setting};
use super::tabs::{BY, ERRORS, OF_CONNECTIONS, REQUESTS_BY, ROLE, Tab, specs};
use crate::Style;
use crate::numbers::{bytes, counted, duration_range, thousands};
use crate::page::{Page, ascii, columns};
use crate::table::{self, Table};
use crate::trace::CallSum;
use crate::trace::ledger::{LedgerEntry, parts, print_parts};

/// The smallest screen there is room on.
const LEAST: (u16, u16) = (40, 10);

/// The largest size that is drawn: above any real one, while a terminal may report 65,535 by
/// 65,535.
const MOST: (u16, u16) = (1_000, 300);

/// Lines below which there is no ledger, and no output.
const LEDGER_FROM: u16 = 16;
const OUTPUT_FROM: u16 = 20;

const HELP: [(&str, &str); 13] = [
    ("q", "close the view; a command runs on, otherwise the watch ends"),
    ("Ctrl-C", "interrupt the command, or end the watch"),
    ("p, space", "pause the display; counting continues"),
    ("1 … 6, Tab", "calls, files, processes, peers, ring operations, requests"),
    ("↑ ↓ k j, PgUp…", "select a row; Home and End"),
    ("Enter", "open the process, file or peer; Esc or Backspace goes back"),
    ("s", "save the counts so far as a record in the current directory"),
    ("← →, < >", "sort by the column before, the next column"),
    ("r", "reverse the order"),
    ("/", "show only names that contain a text; Esc shows all"),
    ("Ctrl-L", "redraw the screen"),
    ("Ctrl-Z", "stop, with the command, until `fg`"),
    ("?, Esc", "close this help"),
];

/// Where the text of the help begins.
const HELP_AT: usize = 18;

/// Columns of time split into on the CPU and off it.
const SPLIT: [&str; 5] = ["on-CPU", "blocked", "CPU", "user", "runq"];

const KEYS: [&str; 9] = [
    "q quit",
    "? help",
    "Enter open",
    "s save",
    "p pause",
    "Tab table",
    "← → sort",
    "/ filter",
    "r reverse",
];

/// Lines from top to bottom.
struct Canvas {
    buffer: Buffer,
    y: u16,
    color: bool,
    unicode: bool,
}

impl Canvas {
    fn line(&mut self, text: &str, look: Look) {
        self.at(0, text, look);
        self.y += 1;
    }

    fn at(&mut self, x: usize, text: &str, look: Look) {
        let area = self.buffer.area;
        let Ok(x) = u16::try_from(x) else { return };
        if x >= area.width || self.y >= area.height {
            return;
        }
        let text = if self.unicode { text.to_owned() } else { ascii(text) };
        self.buffer.set_stringn(x, self.y, text, usize::from(area.width - x), look);
    }

    fn ink(&self, color: Color) -> Look {
        if self.color { Look::new().fg(color) } else { Look::new() }
    }
}

const PLAIN: Look = Look::new();
const BOLD: Look = Look::new().add_modifier(Modifier::BOLD);
const DIM: Look = Look::new().add_modifier(Modifier::DIM);
const BAR: Look = Look::new().add_modifier(Modifier::REVERSED);

impl Screen {
    /// The screen, `width` by `height` cells, or the most of them that are allowed; scrolling is
    /// limited to the content.
    pub fn draw(&mut self, width: u16, height: u16) -> Buffer {
        let (width, height) = (width.min(MOST.0), height.min(MOST.1));
        let area = Rect::new(0, 0, width, height);
        let (color, unicode) = (self.setting.color, self.setting.unicode);
        let mut canvas = Canvas { buffer: Buffer::empty(area), y: 0, color, unicode };
        if width < LEAST.0 || height < LEAST.1 {
            canvas.line("too small: at least 40 by 10", PLAIN);
            return canvas.buffer;
        }
        let style = Style { unicode, width: width.into(), ..Style::default() };
        self.title(&mut canvas, &Page::new(&style));
        if self.shows_help {
            self.help(&mut canvas);
        } else {
            let between = SnapshotDelta::from_screen(self);
            self.sums(&mut canvas, &between);
            if height >= LEDGER_FROM {
                self.ledger(&mut canvas, &style, &between);
            }
            self.settle(&Page::new(&style));
            let rows = self.rows(&Page::new(&style));
            self.table(&mut canvas, &Page::new(&style), rows);
            if height >= OUTPUT_FROM && !self.output.is_empty() {
                self.last_lines(&mut canvas, &Page::new(&style));
            }
        }
        canvas.y = height - 1;
        self.keys(&mut canvas, &Page::new(&style));
        canvas.buffer
    }

    /// The title: the target of the watch, its start and its observer.
    fn title(&self, canvas: &mut Canvas, page: &Page<'_>) {
        let Setting { pid, observer, .. } = &self.setting;
        let mut right = clock(self.now.elapsed_ns);
        let cost = duration_range(self.setting.cost_range_ns);
        if page.width() >= 70 {
            right = format!("{} {cost} a call · {right}", page.name(observer, 12));
        }
        if self.is_paused {
            right = format!("PAUSED · {right}");
        }
        // Without a command, the subject has it.
        let pid = pid.filter(|_| self.setting.is_command);
        let pid = pid.map_or_else(String::new, |pid| format!(" ({pid})"));
        let width = page.width();
        let room = width.saturating_sub(columns(&right) + columns(&pid) + 4);
        let subject = page.name(&self.setting.subject, room);
        canvas.line(&" ".repeat(width), BAR);
        canvas.y -= 1;
        canvas.at(1, &format!("{subject}{pid}"), BAR.add_modifier(Modifier::BOLD));
        canvas.at(width.saturating_sub(columns(&right) + 1), &right, BAR);
        canvas.y += 1;
        if let Some(reason) = &self.setting.fallback {
            let line = format!(" watching by {observer}, because of {reason}");
            canvas.line(&page.name(&line, width), canvas.ink(Color::Yellow));
        }
    }

    /// Rates and sums of all rows; warnings come first.
    fn sums(&self, canvas: &mut Canvas, between: &SnapshotDelta<'_>) {
        if self.now.elapsed_ns == 0 {
            canvas.line(" counting…", DIM);
            return;
        }
        let total = CallSum::total("", between.calls_now);
        let new = total.since(Some(&CallSum::total("", between.calls_before)));
        let mut parts = Vec::new();
        if self.setting.times_inflated {
            parts.push("times inflated".into());
        }
        if self.pause.as_secs() > 1 {
            parts.push(format!("every {} s", self.pause.as_secs()));
        }
        let lost = self.now.lost.saturating_add(self.now.lost_connections);
        let lost = lost.saturating_add(self.now.lost_requests);
        let lost = lost.saturating_add(self.now.lost_exchanges);
        if lost > 0 {
            parts.push(format!("{} lost", thousands(lost.into())));
        }
        parts.push(format!("{} calls/s", rate(between.a_second(new.calls()))));
        parts.push(format!("{}/s", bytes(between.a_second(new.bytes()).round() as u128)));
        if new.errors() > 0 {
            let errors = rate(between.a_second(new.errors()));
            parts.push(format!("{errors} errors/s"));
        }
        let requests = submitted(between.rings_now).saturating_sub(submitted(between.rings_before));
        if requests > 0 {
            parts.push(format!("{} ring operations/s", rate(between.a_second(requests.into()))));
        }
        if between.has_ended {
            parts.push("it has ended".into());
        } else {
            parts.push(counted(between.threads.into(), "thread", "threads"));
        }
        parts.push(format!("total {} calls, {}", thousands(total.calls()), bytes(total.bytes())));
        let look = if lost > 0 { canvas.ink(Color::Red) } else { PLAIN };
        let mut line = format!(" {}", parts[0]);
        for part in &parts[1..] {
            if columns(&line) + columns(part) + 3 <= canvas.buffer.area.width.into() {
                line += &format!(" · {part}");
            }
        }
        canvas.line(&line, look);
    }

    /// The time of all threads since the last snapshot.
    fn ledger(&self, canvas: &mut Canvas, style: &Style, between: &SnapshotDelta<'_>) {
        let (Some(now), height) = (between.ledger_now, canvas.buffer.area.height) else { return };
        let new = statistic::since(now, &mut between.ledger_before.cloned().unwrap_or_default());
        let mut page = Page::new(style);
        let mut calls: Vec<CallSum<'_>> =
            between.calls(SortKey::ON_CPU).into_iter().map(|(new, _)| new).collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.on_cpu()));
        let mut parts = parts(&page, &calls, &new, Vec::new());
        for part in &mut parts {
            part.ns = between.a_second(part.ns.max(0).unsigned_abs()) as i128;
        }
        parts.retain(|part: &LedgerEntry| part.ns > 0);
        parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
        let room = usize::from((4 + height.saturating_sub(20) / 4).min(11));
        parts.truncate(room);
        let whole = between.a_second(new.thread_ns.into()) as u128;
        let title = "where the time goes";
        print_parts(&mut page, title, "ms/s", &parts, "thread time", whole);
        canvas.y += 1;
        let text = page.finish();
        let last = text.lines().count().saturating_sub(1);
        for (i, line) in text.lines().enumerate() {
            let look = if i == 0 || i == last { BOLD } else { PLAIN };
            canvas.line(line, look);
        }
        // At 24 lines, there is room for ten rows of the table below.
        canvas.y += u16::from(height > 24);
    }

    /// The rows of the table, in order.
    pub(super) fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let between = SnapshotDelta::from_screen(self);
        let mut rows = match self.tab {
            Tab::Calls => between.call_rows(page),
            Tab::Files => between.file_rows(page),
            Tab::Processes => between.process_rows(page),
            Tab::Peers => between.peer_rows(page),
            Tab::Rings => between.ring_rows(page),
            Tab::Requests => between.request_rows(page),
            Tab::Users => between.user_rows(page),
            Tab::Connections => between.connection_rows(page),
        };
        let wanted = self.filter.to_lowercase();
        rows.retain(|row| row.cells[0].to_lowercase().contains(&wanted));
        let column = self.sort().column;
        let is_text = is_text(self.tab, column) && !has_key(self.tab, column);
        rows.sort_by(|a, b| {
            let by_name = a.cells[0].cmp(&b.cells[0]);
            if is_text {
                a.cells[column].cmp(&b.cells[column]).then(by_name)
            } else {
                // One that refuses moves no bytes, and is not to be missed.
                let by_errors = match self.tab {
                    Tab::Peers => b.keys[ERRORS].total_cmp(&a.keys[ERRORS]),
                    _ => Ordering::Equal,
                };
                b.keys[column].total_cmp(&a.keys[column]).then(by_errors).then(by_name)
            }
        });
        if self.sort().is_reversed {
            rows.reverse();
        }
        rows
    }

    /// Puts the selection on a row there is: the one that a key chose, wherever it is now.
    pub(super) fn settle(&mut self, page: &Page<'_>) {
        let rows = self.rows(page);
        if let Some(chosen) = self.chosen.as_ref().filter(|_| !self.has_moved) {
            let at = rows.iter().position(|row| row.subject == *chosen);
            self.selected = at.unwrap_or(self.selected);
        }
        self.selected = self.selected.min(rows.len().saturating_sub(1));
        if std::mem::take(&mut self.has_moved) {
            self.chosen = rows.get(self.selected).map(|row| row.subject.clone());
        }
    }

    fn table(&mut self, canvas: &mut Canvas, page: &Page<'_>, rows: Vec<Row>) {
        let height = canvas.buffer.area.height;
        let below = 1 + self.output_lines(height);
        let room = usize::from(height.saturating_sub(canvas.y + 3 + below));
        let least = (self.selected + 1).saturating_sub(room);
        self.skipped = self.skipped.clamp(least, self.selected.max(least));
        self.skipped = self.skipped.min(rows.len().saturating_sub(room));
        self.draw_tabs(canvas, page, rows.len(), room);
        let specs = specs(self.tab);
        let mark = if self.sort().is_reversed { "▴" } else { "▾" };
        let mark = if page.unicode() { mark } else { "*" };
        let heads: Vec<String> = specs
            .iter()
            .enumerate()
            .map(|(i, (head, ..))| match i == self.sort().column {
                true => format!("{mark}{head}"),
                false => (*head).to_owned(),
            })
            .collect();
        let layout = specs.iter().zip(&heads).enumerate().map(|(i, (spec, head))| {
            let (name, unit, worth, width) = *spec;
            let column = match is_text(self.tab, i) {
                true => table::Column::text(head, worth),
                false => table::Column::number(head, unit, worth),
            };
            // A column that the observer cannot fill is not shown.
            let is_split = SPLIT.contains(&name) && self.now.ledger.is_none();
            let is_not_counted =
                self.tab == Tab::Peers && OF_CONNECTIONS.contains(&i) && !self.setting.connections;
            if is_split || is_not_counted { column } else { column.at_least(width) }
        });
        let mut table = Table::new(&layout.collect::<Vec<_>>());
        let is_empty = rows.is_empty();
        for row in rows.into_iter().skip(self.skipped).take(room) {
            table.push(table::Row { cells: row.cells, ..table::Row::default() });
        }
        let (heads, lines) = table.lines(page);
        for head in heads {
            canvas.line(&head, DIM);
        }
        let width = page.width();
        for (i, line) in lines.iter().enumerate() {
            let is_selected = self.skipped + i == self.selected;
            let rest = " ".repeat(width.saturating_sub(columns(line)));
            match is_selected {
                true => canvas.line(&format!("{line}{rest}"), BAR),
                false => canvas.line(line, PLAIN),
            }
        }
        if is_empty {
            canvas.line(&format!("  {}", self.nothing()), DIM);
        }
    }

    fn nothing(&self) -> &'static str {
        match self.tab {
            _ if !self.filter.is_empty() => "no name matches (Esc shows all)",
            Tab::Files if !self.setting.files => "files of the whole machine need --files",
            Tab::Peers if !self.setting.files => "peers of the whole machine need --peers",
            Tab::Peers if self.has_unknown_sockets() => {
                "the other ends of sockets are not known to this observer"
            }
            Tab::Peers => "no counted call has moved bytes through a socket or a pipe",
            Tab::Rings if !self.setting.rings => "ring operations are not watched",
            Tab::Rings => "no request of a ring has been submitted",
            Tab::Requests if !self.setting.requests => "requests need --requests",
            Tab::Requests if self.setting.requests_refused => {
                "the kernel does not let requests be timed"
            }
            Tab::Requests => "no request went over a connection",
            Tab::Users | Tab::Connections if !self.setting.files => {
                "connections of the whole machine need --peers"
            }
            Tab::Users => "no process that is alive has read, written or mapped it",
            Tab::Connections if matches!(self.opened(), Some(Opened::Peer { path, .. }) if path.is_empty()) => {
                "no counted call has moved bytes through a connection to it"
            }
            Tab::Connections => "no connection of it is known any more",
            Tab::Files if self.opened().is_some() => "no file in use",
            _ => "nothing yet",
        }
    }

    fn has_unknown_sockets(&self) -> bool {
        self.now.files.iter().any(|file| file.kind == FileKind::Socket && file.socket.is_none())
    }

    /// The tables, the selected one, and its visible part.
    fn draw_tabs(&self, canvas: &mut Canvas, page: &Page<'_>, rows: usize, room: usize) {
        let mut x = 1;
        if let Some(opened) = self.opened() {
            let tabs: usize = self.tabs().iter().map(|tab| tab.name().len() + 2).sum();
            let room = page.width().saturating_sub(tabs + 3).max(8);
            let name = match opened {
                Opened::Process { pid, exec, .. } => {
                    let pid = format!(" ({pid})");
                    let name = page.name(exec, room.saturating_sub(pid.len()).clamp(4, 24));
                    format!("{name}{pid}")
                }
                Opened::File { kind, path } => {
                    let is_it = |file: &&FileUse| (file.kind, &file.path) == (*kind, path);
                    let file = self.now.files.iter().find(is_it);
                    page.name(&file.map_or(path.into(), shown), room)
                }
                Opened::Peer { name, .. } => page.name(name, room),
            };
            canvas.at(x, &name, BOLD);
            x += columns(&name) + 1;
        }
        let width = |tab: &Tab| tab.name().len() + 2;
        let mut tabs = self.tabs();
        // The selected one stays in sight.
        while tabs[0] != self.tab && x + tabs.iter().map(width).sum::<usize>() > page.width() {
            tabs.remove(0);
        }
        for tab in tabs {
            let is_shown = tab == self.tab;
            let name =
                if is_shown { format!("[{}]", tab.name()) } else { format!(" {} ", tab.name()) };
            canvas.at(x, &name, if is_shown { BOLD } else { PLAIN });
            x += columns(&name);
        }
        let mut right = String::new();
        if self.is_typing || !self.filter.is_empty() {
            let cursor = if self.is_typing { "_" } else { "" };
            right = format!("/{}{cursor}  ", page.name(&self.filter, 20));
        }
        if rows > room {
            let last = (self.skipped + room).min(rows);
            right += &format!("{} to {last} of {rows}", self.skipped + 1);
        }
        // A part of a number would be another number.
        if !self.is_typing && x + columns(&right) + 2 > page.width() {
            right.clear();
        }
        canvas.at(page.width().saturating_sub(columns(&right) + 1).max(x + 1), &right, DIM);
        canvas.y += 1;
    }

    /// Lines the output takes, its head included.
    fn output_lines(&self, height: u16) -> u16 {
        if height < OUTPUT_FROM || self.output.is_empty() { 0 } else { 1 + height / 8 }
    }

    fn last_lines(&self, canvas: &mut Canvas, page: &Page<'_>) {
        let height = canvas.buffer.area.height;
        let lines = self.output_lines(height);
        canvas.y = height - 1 - lines;
        let rule = if page.unicode() { "─" } else { "-" };
        let title = format!("{0}{0} output ", rule);
        canvas.line(&format!("{title}{}", rule.repeat(page.width() - columns(&title))), DIM);
        for line in self.output.lines(usize::from(lines - 1)) {
            canvas.line(&page.name(&line, page.width()), PLAIN);
        }
    }

    fn help(&mut self, canvas: &mut Canvas) {
        let room = usize::from(canvas.buffer.area.height - 2);
        let width = usize::from(canvas.buffer.area.width);
        let mut lines = Vec::new();
        for (keys, what) in HELP {
            let mut keys = Some(keys);
            let mut line = String::new();
            for word in what.split(' ') {
                if !line.is_empty() && HELP_AT + columns(&line) + columns(word) >= width {
                    lines.push((keys.take(), std::mem::take(&mut line)));
                }
                let blank = if line.is_empty() { "" } else { " " };
                line = format!("{line}{blank}{word}");
            }
            lines.push((keys, line));
        }
        self.skipped = self.skipped.min(lines.len().saturating_sub(room));
        for (keys, line) in lines.iter().skip(self.skipped).take(room) {
            canvas.at(2, keys.unwrap_or_default(), BOLD);
            canvas.at(HELP_AT, line, PLAIN);
            canvas.y += 1;
        }
    }

    fn keys(&self, canvas: &mut Canvas, page: &Page<'_>) {
        if let Some(notice) = &self.notice {
            let look = canvas.ink(Color::Yellow).add_modifier(Modifier::BOLD);
            canvas.line(&format!(" {}", page.name(notice, page.width() - 1)), look);
            return;
        }
        let mut line = String::new();
        for key in KEYS {
            let key = if self.is_paused && key == "p pause" { "p resume" } else { key };
            if columns(&line) + columns(key) + 3 <= page.width() {
                line += &format!("  {key}");
            }
        }
        canvas.line(&line, DIM);
    }
}

fn is_text(tab: Tab, column: usize) -> bool {
    column == 0
        || matches!(
            (tab, column),
            (Tab::Files | Tab::Connections, 1)
                | (Tab::Processes, 10)
                | (Tab::Peers, ERRORS | BY)
                | (Tab::Requests, ROLE | REQUESTS_BY)
        )
}

/// Whether a column of texts is sorted by what they count.
fn has_key(tab: Tab, column: usize) -> bool {
    (tab, column) == (Tab::Peers, ERRORS)
}

/// Hours, minutes and seconds.
fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let seconds = seconds % 60;
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}
