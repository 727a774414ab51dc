//! The content of the screen, and its changes by keys and snapshots.

use std::collections::{BTreeMap, HashSet};

use iotomy_record::{FileKind, FileUse, ImageCounts, Snapshot};

use super::output::Output;
use super::subject::Subject;
use super::tabs::{REQUESTS_A_SECOND, Tab};
use crate::Style;
use crate::page::Page;
use crate::peers::PeerNames;

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
    /// Why a preferred observer could not watch, so that this one does.
    pub fallback: Option<String>,
    /// Whether files are counted.
    pub files: bool,
    /// Whether connections are counted.
    pub connections: bool,
    /// Whether ring operations are counted.
    pub rings: bool,
    /// Whether requests are to be timed.
    pub requests: bool,
    /// Whether the kernel refused that.
    pub requests_refused: bool,
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
    /// That the counts are saved: [`Screen::counts`].
    Save,
}

/// What is shown alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Opened {
    Process {
        pid: u32,
        exec: String,
        image: u32,
    },
    File {
        kind: FileKind,
        path: String,
    },
    /// Its name now, and the path of one of its connections: more of them may change the name.
    Peer {
        name: String,
        path: String,
        /// Of the table of requests, the role of the row that it was opened from.
        is_served: Option<bool>,
    },
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
    pub(super) sorts: [Sort; 8],
    pub(super) is_paused: bool,
    /// Rows above the first shown.
    pub(super) skipped: usize,
    /// The row that Enter opens.
    pub(super) selected: usize,
    /// What it is about, once a key has chosen it: it stays selected wherever it is sorted to.
    pub(super) chosen: Option<Subject>,
    /// A key has moved the selection since the rows were known.
    pub(super) has_moved: bool,
    /// What is open, from the outside to the inside, and the tables from which it was opened.
    opened: Vec<(Opened, Tab)>,
    /// What the sockets and pipes of the latest snapshot lead to.
    pub(super) peers: PeerNames,
    /// Images that are in no recent snapshot: most have ended.
    past: BTreeMap<u32, ImageCounts>,
    /// Images that found no room there.
    left_out: u64,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    pub(super) shows_help: bool,
    pub(super) output: Output,
    pub(super) notice: Option<String>,
}

/// Rows that a page key moves by.
const PAGE: usize = 10;

/// Images that are kept when they have ended, for the process that is open and for a record.
const PAST: usize = 1 << 16;

/// No more is open, one inside the other: a file has processes, and these have files.
const OPENED: usize = 16;

/// No filter is longer.
const FILTER: usize = 60;

impl Screen {
    /// A screen without figures yet.
    pub fn new(setting: Setting) -> Self {
        // By wall time, by bytes read, by calls, by calls, by requests, by requests, by bytes read, by bytes read.
        let sorts = [4, 3, 2, 3, 1, REQUESTS_A_SECOND, 2, 3]
            .map(|column| Sort { column, is_reversed: false });
        Self {
            setting,
            before: Snapshot::default(),
            now: Snapshot::default(),
            pause: std::time::Duration::ZERO,
            tab: Tab::Calls,
            sorts,
            is_paused: false,
            skipped: 0,
            selected: 0,
            chosen: None,
            has_moved: false,
            opened: Vec::new(),
            peers: PeerNames::default(),
            past: BTreeMap::new(),
            left_out: 0,
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
                // Drawn anew, the line is still there.
                self.notice.take_if(|_| key != Key::Char('\x0c'));
                if self.is_typing { self.typed(key) } else { self.pressed(key) }
            }
            Event::Look(snapshot, pause) => {
                self.pause = pause;
                let now = std::mem::replace(&mut self.now, snapshot);
                let old = std::mem::replace(&mut self.before, now);
                self.keep(old);
                self.name_peers();
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
            Key::Escape if !self.filter.is_empty() => self.filter.clear(),
            Key::Escape | Key::Backspace => self.back(),
            Key::Enter if self.shows_help => self.shows_help = false,
            Key::Enter => self.open(),
            Key::Char('s') => return ScreenRequest::Save,
            Key::Char('?' | 'h') => {
                self.shows_help = !self.shows_help;
                self.skipped = 0;
            }
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('\x0c') => return ScreenRequest::Repaint,
            Key::Char('/') => self.is_typing = true,
            Key::Char('1') => self.go_to(Tab::Calls),
            Key::Char('2') => self.go_to(Tab::Files),
            Key::Char('3') => self.go_to(Tab::Processes),
            Key::Char('4') => self.go_to(Tab::Peers),
            Key::Char('5') => self.go_to(Tab::Rings),
            Key::Char('6') => self.go_to(Tab::Requests),
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(self.tabs().len() - 1),
            Key::Char('>') | Key::Right => self.sort_on(1),
            Key::Char('<') | Key::Left => self.sort_on(self.tab.columns() - 1),
            Key::Char('r') => self.sort_mut().is_reversed ^= true,
            Key::Up | Key::Char('k') => self.move_by(|at| at.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.move_by(|at| at.saturating_add(1)),
            Key::PageUp => self.move_by(|at| at.saturating_sub(PAGE)),
            Key::PageDown => self.move_by(|at| at.saturating_add(PAGE)),
            Key::Home => self.move_by(|_| 0),
            Key::End => self.move_by(|_| usize::MAX),
            Key::Char(_) => {}
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
        self.select_first();
        ScreenRequest::Redraw
    }

    /// The counts so far, with all images that are known, and how many were left out for want of
    /// room; `None` before the first snapshot.
    pub fn counts(&self) -> Option<(Snapshot, u64)> {
        if self.now.elapsed_ns == 0 {
            return None;
        }
        let known = self.past.values().chain(&self.before.images).chain(&self.now.images);
        let images: BTreeMap<u32, &ImageCounts> = known.map(|one| (one.id, one)).collect();
        let alive: HashSet<u32> = self.now.images.iter().map(|one| one.id).collect();
        let images = images.into_values().map(|one| ImageCounts {
            threads: if alive.contains(&one.id) { one.threads } else { 0 },
            ..one.clone()
        });
        let images = images.collect();
        Some((Snapshot { images, ..self.now.clone() }, self.left_out))
    }

    /// Whether peers are shown, or what one consists of.
    pub fn shows_peers(&self) -> bool {
        let is_peer = |(opened, _): &(Opened, Tab)| matches!(opened, Opened::Peer { .. });
        self.tab == Tab::Peers || self.opened.iter().any(is_peer)
    }

    /// Names the peers of a new snapshot. A process that has ended stays the end of its pipes.
    fn name_peers(&mut self) {
        let files = &self.now.files;
        self.peers.set_sockets(files.iter());
        self.peers.keep_pipes(files.iter());
        let label = |one: &FileUse| format!("{} ({})", one.exec, one.pid);
        self.peers.add_pipes(files.iter().chain(&self.now.uses), label);
        for (opened, _) in &mut self.opened {
            let Opened::Peer { name, path, .. } = opened else { continue };
            let member = files.iter().find(|file| file.path == *path);
            if let Some(now) = member.and_then(|file| self.peers.name(file)) {
                *name = now;
            }
        }
    }

    /// Keeps the images of an old snapshot that later ones do not have.
    fn keep(&mut self, old: Snapshot) {
        let later = self.before.images.iter().chain(&self.now.images);
        let later: HashSet<u32> = later.map(|one| one.id).collect();
        for image in old.images.into_iter().filter(|one| !later.contains(&one.id)) {
            if self.past.len() < PAST || self.past.contains_key(&image.id) {
                self.past.insert(image.id, image);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// The latest counts of an image.
    pub(super) fn image(&self, id: u32) -> Option<&ImageCounts> {
        let mut recent = self.now.images.iter().chain(&self.before.images);
        recent.find(|one| one.id == id).or_else(|| self.past.get(&id))
    }

    /// Its counts by the last refresh of those before that has them.
    pub(super) fn past_image(&self, id: u32) -> Option<&ImageCounts> {
        self.past.get(&id)
    }

    pub(super) fn opened(&self) -> Option<&Opened> {
        self.opened.last().map(|(opened, _)| opened)
    }

    /// Opens the selected row.
    fn open(&mut self) {
        let style = Style { unicode: self.setting.unicode, width: 80, ..Style::default() };
        self.settle(&Page::new(&style));
        let mut subjects = self.rows(&Page::new(&style)).into_iter().map(|row| row.subject);
        let (opened, tab) = match subjects.nth(self.selected) {
            Some(Subject::Process(pid, exec)) => {
                let is_it = |one: &&ImageCounts| one.pid == pid && one.program() == exec;
                let Some(image) = self.now.images.iter().rfind(is_it).map(|one| one.id) else {
                    self.notice = Some(format!("process {pid} has no counts of its own yet"));
                    return;
                };
                (Opened::Process { pid, exec, image }, Tab::Calls)
            }
            Some(Subject::File(kind, path)) => (Opened::File { kind, path }, Tab::Users),
            Some(Subject::Peer(name)) => (self.peer(name, None), Tab::Connections),
            Some(Subject::Requests(name, is_served)) => {
                (self.peer(name, Some(is_served)), Tab::Connections)
            }
            Some(Subject::Call(_) | Subject::RingOperation(_)) | None => return,
        };
        if self.opened.len() < OPENED {
            self.opened.push((opened, self.tab));
            self.filter.clear();
            self.show(tab);
        }
    }

    fn peer(&self, name: String, is_served: Option<bool>) -> Opened {
        let is_its = |file: &&FileUse| self.peers.name(file).as_ref() == Some(&name);
        // One that refuses has none.
        let file = self.now.files.iter().find(is_its);
        let path = file.map(|file| file.path.clone()).unwrap_or_default();
        Opened::Peer { name, path, is_served }
    }

    fn back(&mut self) {
        if let Some((opened, tab)) = self.opened.pop() {
            self.show(tab);
            self.chosen = Some(match opened {
                Opened::Process { pid, exec, .. } => Subject::Process(pid, exec),
                Opened::File { kind, path } => Subject::File(kind, path),
                Opened::Peer { name, is_served: None, .. } => Subject::Peer(name),
                Opened::Peer { name, is_served: Some(is_served), .. } => {
                    Subject::Requests(name, is_served)
                }
            });
        }
    }

    /// The tables there are of what is open.
    pub(super) fn tabs(&self) -> Vec<Tab> {
        let mut tabs = match self.opened() {
            None => Tab::ALL.to_vec(),
            Some(Opened::Process { .. }) => vec![Tab::Calls, Tab::Files, Tab::Peers],
            Some(Opened::File { .. }) => return vec![Tab::Users],
            Some(Opened::Peer { .. }) => return vec![Tab::Connections, Tab::Users],
        };
        if self.has_rings() || self.tab == Tab::Rings {
            tabs.push(Tab::Rings);
        }
        if self.setting.requests || self.tab == Tab::Requests {
            tabs.push(Tab::Requests);
        }
        tabs
    }

    /// Shows a table of what is open, or else of all.
    fn go_to(&mut self, tab: Tab) {
        if !self.tabs().contains(&tab) {
            self.opened.clear();
        }
        self.show(tab);
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.select_first();
    }

    fn select_first(&mut self) {
        (self.skipped, self.selected, self.chosen, self.has_moved) = (0, 0, None, false);
    }

    fn move_by(&mut self, to: fn(usize) -> usize) {
        if self.shows_help {
            self.skipped = to(self.skipped);
        } else {
            self.selected = to(self.selected);
            self.has_moved = true;
        }
    }

    fn turn(&mut self, by: usize) {
        let tabs = self.tabs();
        let at = tabs.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        self.show(tabs[(at + by) % tabs.len()]);
    }

    fn sort_on(&mut self, by: usize) {
        let columns = self.tab.columns();
        let sort = self.sort_mut();
        *sort = Sort { column: (sort.column + by) % columns, is_reversed: false };
        self.select_first();
    }

    pub(super) fn sort(&self) -> Sort {
        self.sorts[self.tab as usize]
    }

    fn sort_mut(&mut self) -> &mut Sort {
        &mut self.sorts[self.tab as usize]
    }
}
