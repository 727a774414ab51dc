//! The groups of calls as the kernel side has them (`where.h`), in the record's terms.

use std::collections::HashMap;

use iotomy_record::{Group, Key, lossless, without_numbers};

use super::books::Books;
use super::layout::{Fields, Wire};
use super::names::call_or_ring;
use super::object::{RowAction, Session};
use crate::grouping::{GroupBook, MOST_KEYS, error, lowest};
use crate::request::Request;
use crate::variables::fact;

/// In place of a text: there was no room for it.
const NO_ROOM: u64 = 1;
const KEPT_TEXT: usize = 512;

struct KernelKey([u64; MOST_KEYS]);

impl Wire for KernelKey {
    const SIZE: usize = 8 * MOST_KEYS;

    fn read(from: &mut Fields<'_>) -> Self {
        Self(std::array::from_fn(|_| from.u64()))
    }
}

struct KernelRow(Group);

impl Wire for KernelRow {
    const SIZE: usize = 40;

    fn read(from: &mut Fields<'_>) -> Self {
        Self(Group {
            key: Vec::new(),
            calls: from.u64(),
            errors: from.u64(),
            bytes: from.u64(),
            wall_ns: from.u64(),
            max_ns: from.u64(),
        })
    }
}

struct Hash(u64);

impl Wire for Hash {
    const SIZE: usize = 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self(from.u64())
    }
}

struct KeptText(String);

impl Wire for KeptText {
    const SIZE: usize = 8 + KEPT_TEXT;

    fn read(from: &mut Fields<'_>) -> Self {
        let length = from.u64() as usize;
        let mut text = lossless(from.bytes(length.min(KEPT_TEXT)));
        if length > KEPT_TEXT {
            text.push('…');
        }
        Self(text)
    }
}

/// The groups at the end of a watch.
pub(super) fn read(session: &Session, books: &Books, request: &Request) -> GroupBook {
    let mut book = GroupBook::default();
    let by = &request.filter.by;
    if by.is_none() {
        return book;
    }
    let mut texts: HashMap<u64, String> = HashMap::new();
    session.visit("texts", |Hash(hash), KeptText(text)| {
        texts.insert(hash, text);
        RowAction::Freed
    });
    let of_text = |hash: u64| match hash {
        0 => String::new(),
        NO_ROOM => "?".to_owned(),
        hash => texts.get(&hash).cloned().unwrap_or_else(|| "?".to_owned()),
    };
    session.visit("by_rows", |KernelKey(words), KernelRow(row)| {
        let word = |fact: u16| {
            let at = by.facts().iter().position(|known| *known == fact);
            at.and_then(|at| words.get(at)).copied().unwrap_or(0)
        };
        let call = match word(fact::CALL) {
            0 => word(fact::GROUP),
            call => call,
        };
        let value = |fact: u16| match fact {
            fact::FD | fact::THREAD | fact::PID => Key::Number(word(fact).cast_signed()),
            fact::ERRNO => error(word(fact)),
            fact::BYTES | fact::DURATION => Key::Number(lowest(word(fact))),
            fact::IMAGE => {
                let program = books.program(word(fact) as u32);
                Key::Text(program.map_or_else(|| "?".to_owned(), |program| program.exec.clone()))
            }
            fact::TITLE => Key::Text(without_numbers(&of_text(word(fact::TITLE)))),
            fact => Key::Text(of_text(word(fact))),
        };
        for key in by.keys(&call_or_ring(call as u32), &value) {
            book.add(key, &row, u32::MAX);
        }
        RowAction::Freed
    });
    book.lose(session.lost_groups());
    book
}
