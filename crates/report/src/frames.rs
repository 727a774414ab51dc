//! Times that are parts of times, as boxes: a row a level, and a box as wide as its time. Flame graphs
//! grow upwards from the whole, icicles downwards.
//!
//! Boxes too small to be drawn are left out and counted. The boxes are in the order of a walk
//! through the tree, a parent before its children: the page's script finds the parents again by
//! that order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::chart::{Drawing, WIDE, start};
use crate::page::head;

/// A time and its parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    pub(crate) name: String,
    /// Its figures in words.
    pub(crate) says: String,
    /// The kind of time.
    pub(crate) class: &'static str,
    /// Its time. Its parts are no longer than it together.
    pub(crate) width: u128,
    /// The time of parts in front of it, of the same whole, that are too small to be drawn.
    pub(crate) gap: u128,
    pub(crate) parts: Vec<Frame>,
}

/// Where the whole stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootPosition {
    /// Below its parts: flames.
    Below,
    /// Above them: icicles.
    Above,
}

/// The boxes that could be drawn.
pub(crate) struct DrawnFrames {
    pub(crate) drawing: Drawing,
    /// Boxes that are not, since they are too small or too many.
    pub(crate) left_out: usize,
}

/// Height of a row, and of a box in it.
pub(crate) const ROW: f64 = 18.0;
const BOX: f64 = 17.0;

/// Boxes of a picture, at most: a browser still follows the pointer at once.
pub(crate) const MOST: usize = 2_500;

/// A box of less than one part in this many could not be seen, nor its place be written with three
/// decimals.
const LEAST: u128 = 100_000;

/// Rows, at most: a stack of the kernel has 127 functions at most, as one of user space has, and the call
/// and the program stand below.
const LEVELS: usize = 259;

/// Columns of a name.
const NAME: usize = 120;

/// The picture of a time.
pub(crate) fn draw(root: &Frame, whole: RootPosition) -> DrawnFrames {
    let mut widths = Vec::new();
    measure(root, 0, &mut widths);
    let all = widths.len();
    widths.sort_unstable_by_key(|width| std::cmp::Reverse(width.0));
    let least = least(root.width);
    let shown = widths.iter().take(MOST).take_while(|width| width.0 >= least).count();
    // Of several that are as large as the smallest shown, all are or none is.
    let floor = match widths.get(shown) {
        Some((next, _)) if *next >= least => next + 1,
        _ => least,
    };
    let levels = widths.iter().filter(|width| width.0 >= floor).map(|width| width.1 + 1);
    let levels = levels.max().unwrap_or(1);
    let mut drawing = Drawing::new(WIDE, ROW * levels as f64);
    drawing.zooms = true;
    let mut pen = Pen { whole, levels, floor, scale: WIDE / root.width.max(1) as f64, drawing };
    pen.frame(root, 0, 0);
    DrawnFrames { left_out: all - pen.drawing.points, drawing: pen.drawing }
}

/// The least width that can be seen in a picture so wide.
fn least(width: u128) -> u128 {
    (width / LEAST).max(1)
}

/// Of many boxes, from which width on they are drawn: so that a tree need not hold the others.
#[derive(Default)]
pub(crate) struct Largest {
    /// One more than are drawn: as large as the smallest of these none is.
    widths: BinaryHeap<Reverse<u128>>,
    /// All there are.
    pub(crate) count: usize,
}

impl Largest {
    pub(crate) fn add(&mut self, width: u128) {
        self.count += 1;
        self.widths.push(Reverse(width));
        if self.widths.len() > MOST + 1 {
            self.widths.pop();
        }
    }

    /// The least width that is drawn where the whole is so wide.
    pub(crate) fn floor(&self, whole: u128) -> u128 {
        match self.widths.peek() {
            Some(Reverse(next)) if self.count > MOST && *next >= least(whole) => next + 1,
            _ => least(whole),
        }
    }
}

/// The width and the level of every box.
fn measure(frame: &Frame, level: usize, widths: &mut Vec<(u128, usize)>) {
    widths.push((frame.width, level));
    if level + 1 < LEVELS {
        frame.parts.iter().for_each(|part| measure(part, level + 1, widths));
    }
}

struct Pen {
    whole: RootPosition,
    levels: usize,
    floor: u128,
    scale: f64,
    drawing: Drawing,
}

impl Pen {
    fn frame(&mut self, frame: &Frame, from: u128, level: usize) {
        if frame.width < self.floor {
            return;
        }
        let row = match self.whole {
            RootPosition::Above => level,
            RootPosition::Below => self.levels - 1 - level,
        };
        let (x, wide) = (from as f64 * self.scale, frame.width as f64 * self.scale);
        let name = head(&frame.name, NAME);
        let place = [x, row as f64 * ROW, wide, BOX];
        let tip = format!("{name}: {}", frame.says);
        self.drawing.frame(place, frame.class, &start(name, wide - 9.0), &tip);
        if level + 1 < LEVELS {
            let mut from = from;
            for part in &frame.parts {
                from = from.saturating_add(part.gap);
                self.frame(part, from, level + 1);
                from = from.saturating_add(part.width);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, width: u128, parts: Vec<Frame>) -> Frame {
        let says = format!("{width} ns");
        Frame { name: name.into(), says, class: "f-hot0", width, parts, ..Frame::default() }
    }

    #[test]
    fn a_box_is_as_wide_as_its_time_and_stands_on_its_whole() {
        let root = frame("all", 4, vec![frame("read", 1, vec![]), frame("write", 3, vec![])]);
        let body = |whole| draw(&root, whole).drawing.body;
        let (below, above) = (body(RootPosition::Below), body(RootPosition::Above));
        for text in [
            "<rect x=\"0\" y=\"18\" width=\"760\" height=\"17\"",
            "<rect x=\"0\" y=\"0\" width=\"190\" height=\"17\"",
            "<rect x=\"190\" y=\"0\" width=\"570\" height=\"17\"",
            "<title>write: 3 ns</title>",
        ] {
            assert!(below.contains(text), "{text}: {below}");
        }
        assert!(above.contains("<rect x=\"190\" y=\"18\" width=\"570\""), "{above}");
    }

    #[test]
    fn the_smallest_are_left_out_and_counted() {
        let many = |n: u128| (0..n).map(|at| frame("f", 1 + at % 2, vec![])).collect::<Vec<_>>();
        let root = frame("all", 6_000, many(4_000));
        let drawn = draw(&root, RootPosition::Below);
        assert_eq!((drawn.drawing.points, drawn.left_out), (2_001, 2_000));
        let root = frame("all", 10_000_000, many(4));
        let drawn = draw(&root, RootPosition::Below);
        assert_eq!((drawn.drawing.points, drawn.left_out), (1, 4));
        assert_eq!(draw(&Frame::default(), RootPosition::Above).drawing.points, 0);
    }

    #[test]
    fn names_are_cut_to_their_box() {
        assert_eq!(start("filemap_get_entry", 200.0), "filemap_get_entry");
        assert_eq!(start("filemap_get_entry", 44.0), "filem…");
        assert_eq!(start("filemap_get_entry", 30.0), "");
    }

    #[test]
    fn a_stack_without_end_has_an_end_here() {
        let mut root = frame("f", 1, vec![]);
        for _ in 0..1_000 {
            root = frame("f", 1, vec![root]);
        }
        assert_eq!(draw(&root, RootPosition::Below).drawing.points, LEVELS);
    }
}
