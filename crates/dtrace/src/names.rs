//! The name that was meant by one that does not exist.

/// The nearest of these, if one is near: two slips in a long word, one in a short one.
pub fn nearest<'a>(word: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A word of this length is not a slip of any of ours.
    if word.len() > 40 {
        return None;
    }
    let most = if word.len() > 4 { 2 } else { 1 };
    let near = among.map(|one| (slips(&word.to_ascii_lowercase(), &one.to_ascii_lowercase()), one));
    near.filter(|(slips, _)| *slips <= most).min_by_key(|(slips, _)| *slips).map(|(_, one)| one)
}

/// How many letters were left out, added, changed or swapped with the next.
fn slips(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for at in 0..=from.len() {
        for to_at in 0..=to.len() {
            rows[at][to_at] = match (at, to_at) {
                (0, count) | (count, 0) => count,
                _ => {
                    let is_other = usize::from(from[at - 1] != to[to_at - 1]);
                    let mut least = (rows[at - 1][to_at] + 1)
                        .min(rows[at][to_at - 1] + 1)
                        .min(rows[at - 1][to_at - 1] + is_other);
                    let is_swapped = at > 1
                        && to_at > 1
                        && from[at - 1] == to[to_at - 2]
                        && from[at - 2] == to[to_at - 1];
                    if is_swapped {
                        least = least.min(rows[at - 2][to_at - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_found_and_a_far_one_is_not() {
        let among = ["bytes", "path", "errno", "ENOENT"];
        for (word, expected) in [
            ("byte", Some("bytes")),
            ("ptah", Some("path")),
            ("ERRNO", Some("errno")),
            ("enoet", Some("ENOENT")),
            ("duration", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, among.into_iter()), expected, "{word}");
        }
    }
}
