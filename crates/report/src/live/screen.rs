//! The content of the screen, and its changes by keys and snapshots.

use iotomy_record::Snapshot;

use super::output::Output;

/// Settings that stay the same while the screen is up.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// The target of the watch: a command's words, or a description.
    pub subject: String,
    /// The process, if the watch is about one.
    pub pid: Option<u32>,
    /// The observer's name.
    pub observer: String,
    /// The overhead it adds to a call, from the cheapest to the most expensive call, in ns.
    pub cost_range_ns: [f64; 2],
    /// Whether it slows calls so much that their times cannot be taken at face value.
    pub times_inflated: bool,
    /// Whether files are counted.
    pub files: bool,
    /// Whether a command was started, whose output and end are shown.
    pub is_command: bool,
    /// Whether to use colours.
    pub color: bool,
    /// Whether characters outside ASCII may be used.
    pub unicode: bool,
}

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character, the space and Ctrl-L (`\x0c`) among them.
    Char(char),
    /// Arrows and their like.
    Up,
    /// Down.
    Down,
    /// Left.
    Left,
    /// Right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// The next table.
    Tab,
    /// The table before.
    BackTab,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
}

/// Something that happened.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a snapshot comes once a second")]
pub enum Event<'a> {
    /// A key was pressed.
    Key(Key),
    /// The present counts, and the time until the next snapshot.
    Look(Snapshot, std::time::Duration),
    /// The command wrote this.
    Output(&'a [u8]),
    /// Something the user is to know, until the next key.
    Notice(&'a str),
}

/// A user's request to the owner of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenRequest {
    /// Nothing: it is to be drawn again.
    Redraw,
    /// The same, from a clean screen.
    Repaint,
    /// An end of it.
    Leave,
}

/// The tables there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Calls,
    Files,
    Processes,
}

impl Tab {
    pub(super) const ALL: [Self; 3] = [Self::Calls, Self::Files, Self::Processes];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Files => "files",
            Self::Processes => "processes",
        }
    }

    /// How many columns it has, the name's included.
    pub(super) fn columns(self) -> usize {
        match self {
            Self::Calls => super::rows::CALLS.len(),
            Self::Files => super::rows::FILES.len(),
            Self::Processes => super::rows::PROCESSES.len(),
        }
    }
}

/// How the rows of a table are ordered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sort {
    pub(super) column: usize,
    /// The smallest first.
    pub(super) is_reversed: bool,
}

/// The state of a live view.
#[derive(Debug)]
pub struct Screen {
    pub(super) setting: Setting,
    /// The snapshot that the figures are differences to.
    pub(super) before: Snapshot,
    pub(super) now: Snapshot,
    /// Until the next snapshot.
    pub(super) pause: std::time::Duration,
    pub(super) tab: Tab,
    pub(super) sorts: [Sort; 3],
    pub(super) is_paused: bool,
    /// Rows above the first shown.
    pub(super) skipped: usize,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    pub(super) shows_help: bool,
    pub(super) output: Output,
    pub(super) notice: Option<String>,
}

/// Rows that a page key moves by.
const PAGE: usize = 10;

/// No filter is longer.
const FILTER: usize = 60;

impl Screen {
    /// A screen without figures yet.
    pub fn new(setting: Setting) -> Self {
        // By wall time, by bytes read, by calls.
        let sorts = [4, 3, 2].map(|column| Sort { column, is_reversed: false });
        Self {
            setting,
            before: Snapshot::default(),
            now: Snapshot::default(),
            pause: std::time::Duration::ZERO,
            tab: Tab::Calls,
            sorts,
            is_paused: false,
            skipped: 0,
            filter: String::new(),
            is_typing: false,
            shows_help: false,
            output: Output::default(),
            notice: None,
        }
    }

    /// The facts about the watch when it begins.
    pub fn setting_mut(&mut self) -> &mut Setting {
        &mut self.setting
    }

    /// Whether the figures are paused: no snapshot is requested.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Takes an event.
    pub fn on(&mut self, event: Event<'_>) -> ScreenRequest {
        match event {
            Event::Key(key) => {
                self.notice = None;
                if self.is_typing { self.typed(key) } else { self.pressed(key) }
            }
            Event::Look(snapshot, pause) => {
                self.pause = pause;
                self.before = std::mem::replace(&mut self.now, snapshot);
                ScreenRequest::Redraw
            }
            Event::Output(bytes) => {
                self.output.take(bytes);
                ScreenRequest::Redraw
            }
            Event::Notice(text) => {
                self.notice = Some(text.to_owned());
                ScreenRequest::Redraw
            }
        }
    }

    fn pressed(&mut self, key: Key) -> ScreenRequest {
        match key {
            Key::Char('q' | 'Q') => return ScreenRequest::Leave,
            Key::Escape if self.shows_help => self.shows_help = false,
            Key::Escape => self.filter.clear(),
            Key::Char('?' | 'h') => self.shows_help = !self.shows_help,
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('\x0c') => return ScreenRequest::Repaint,
            Key::Char('/') => self.is_typing = true,
            Key::Char('1') => self.show(Tab::Calls),
            Key::Char('2') => self.show(Tab::Files),
            Key::Char('3') => self.show(Tab::Processes),
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(Tab::ALL.len() - 1),
            Key::Char('s' | '>') | Key::Right => self.sort_on(1),
            Key::Char('S' | '<') | Key::Left => self.sort_on(self.tab.columns() - 1),
            Key::Char('r') => self.sort_mut().is_reversed ^= true,
            Key::Up | Key::Char('k') => self.skipped = self.skipped.saturating_sub(1),
            Key::Down | Key::Char('j') => self.skipped = self.skipped.saturating_add(1),
            Key::PageUp => self.skipped = self.skipped.saturating_sub(PAGE),
            Key::PageDown => self.skipped = self.skipped.saturating_add(PAGE),
            Key::Home => self.skipped = 0,
            Key::End => self.skipped = usize::MAX,
            Key::Char(_) | Key::Enter | Key::Backspace => {}
        }
        ScreenRequest::Redraw
    }

    /// A key while a filter is typed.
    fn typed(&mut self, key: Key) -> ScreenRequest {
        match key {
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            Key::Backspace => drop(self.filter.pop()),
            Key::Char(c) if !c.is_control() && self.filter.chars().count() < FILTER => {
                self.filter.push(c);
            }
            _ => {}
        }
        self.skipped = 0;
        ScreenRequest::Redraw
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.skipped = 0;
    }

    fn turn(&mut self, by: usize) {
        self.show(Tab::ALL[(self.tab as usize + by) % Tab::ALL.len()]);
    }

    fn sort_on(&mut self, by: usize) {
        let columns = self.tab.columns();
        let sort = self.sort_mut();
        *sort = Sort { column: (sort.column + by) % columns, is_reversed: false };
        self.skipped = 0;
    }

    pub(super) fn sort(&self) -> Sort {
        self.sorts[self.tab as usize]
    }

    fn sort_mut(&mut self) -> &mut Sort {
        &mut self.sorts[self.tab as usize]
    }
}
