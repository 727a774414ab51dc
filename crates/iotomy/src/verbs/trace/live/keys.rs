//! Bytes of a terminal to keys.

use iotomy_report::live::Key;

/// The keys in the bytes of one read. An unknown sequence is skipped as a whole.
pub(super) fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    let mut keys = Vec::new();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\x1b' => {
                let (key, left) = sequence(rest);
                rest = left;
                keys.extend(key);
            }
            '\n' | '\r' => keys.push(Key::Enter),
            '\t' => keys.push(Key::Tab),
            '\x08' | '\x7f' => keys.push(Key::Backspace),
            c => keys.push(Key::Char(c)),
        }
    }
    keys
}

/// The key that an escape sequence stands for, and the rest of the text.
fn sequence(rest: &str) -> (Option<Key>, &str) {
    let Some(body) = rest.strip_prefix(['[', 'O']) else { return (Some(Key::Escape), rest) };
    let Some(end) = body.find(|c| ('@'..='~').contains(&c)) else { return (None, "") };
    let (numbers, left) = body.split_at(end);
    let key = match (&left[..1], numbers.split(';').next()) {
        ("A", _) => Some(Key::Up),
        ("B", _) => Some(Key::Down),
        ("C", _) => Some(Key::Right),
        ("D", _) => Some(Key::Left),
        ("H", _) | ("~", Some("1" | "7")) => Some(Key::Home),
        ("F", _) | ("~", Some("4" | "8")) => Some(Key::End),
        ("~", Some("5")) => Some(Key::PageUp),
        ("~", Some("6")) => Some(Key::PageDown),
        ("Z", _) => Some(Key::BackTab),
        _ => None,
    };
    (key, &left[1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_terminals_send_for_them() {
        use Key::*;
        assert_eq!(keys(b"q \t\x7f\r"), [Char('q'), Char(' '), Tab, Backspace, Enter]);
        assert_eq!(keys(b"\x1b[A\x1bOB\x1b[1;5C\x1b[D"), [Up, Down, Right, Left]);
        assert_eq!(
            keys(b"\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[Z"),
            [PageUp, PageDown, Home, End, BackTab]
        );
        assert_eq!(keys(b"\x1b"), [Escape]);
        assert_eq!(keys("µ\x0c".as_bytes()), [Char('µ'), Char('\x0c')]);
    }

    #[test]
    fn what_is_not_known_is_no_key() {
        assert_eq!(keys(b"\x1b[200~x\x1b[?1;2c"), [Key::Char('x')]);
        assert_eq!(keys(b"\x1b[12"), []);
        assert_eq!(keys(b"\xff"), [Key::Char('\u{fffd}')]);
    }
}
