//! What the titles of processes of one kind have in common.

use crate::{bytes_of, lossless};

/// A title with `*` for each number in it, so that `postgres: app shop 127.0.0.1(53124) idle` is
/// `postgres: app shop *(*) idle` for every client. As a pattern all of these match it, unless a title has signs of
/// patterns in it (`*`, `?`, `[`, `\`), which stay as they are. Digits with dots between them are one number.
pub fn without_numbers(title: &str) -> String {
    // The digits of a byte that is no UTF-8 (`\xff`) are none of the title's.
    let bytes = bytes_of(title);
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = &bytes[..];
    while let Some((first, behind)) = rest.split_first() {
        if !first.is_ascii_digit() {
            kept.push(*first);
            rest = behind;
            continue;
        }
        kept.push(b'*');
        rest = behind_number(rest);
    }
    lossless(&kept)
}

fn behind_number(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = &rest[digits..];
        match rest {
            [b'.', next, ..] if next.is_ascii_digit() => rest = &rest[1..],
            _ => return rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn numbers_are_left_out_of_titles() {
        for (title, expected) in [
            ("postgres: walwriter", "postgres: walwriter"),
            ("postgres: app shop 127.0.0.1(53124) idle", "postgres: app shop *(*) idle"),
            ("postgres: 15/main: checkpointer", "postgres: */main: checkpointer"),
            ("puma: cluster worker 0: 4711 [app]", "puma: cluster worker *: * [app]"),
            ("sshd: ann@pts/12", "sshd: ann@pts/*"),
            ("v1.2. 3.", "v*. *."),
            ("7", "*"),
            ("", ""),
            ("größe 5", "größe *"),
        ] {
            assert_eq!(without_numbers(title), expected);
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_stay_what_they_are() {
        assert_eq!(without_numbers(r"a\xff12"), r"a\xff*");
        assert_eq!(without_numbers(r"a\x5cxff12"), r"a\x5cxff*");
    }
}
