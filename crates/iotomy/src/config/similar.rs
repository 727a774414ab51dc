//! The name that a misspelt one may mean.

/// The nearest of the names, if it is near: at most a third of its characters differ.
pub(super) fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let each = names.into_iter().map(|name| (distance(word, name), name));
    let (apart, name) = each.min_by_key(|(apart, _)| *apart)?;
    (apart * 3 <= name.chars().count().max(3)).then_some(name)
}

/// How many characters have to be put in, taken out or replaced, or neighbours exchanged (optimal string
/// alignment).
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            let (Some(a), Some(b)) = (i.checked_sub(1), j.checked_sub(1)) else {
                rows[i][j] = i + j;
                continue;
            };
            let replaced = rows[a][b] + usize::from(one[a] != other[b]);
            let mut least = replaced.min(rows[a][j] + 1).min(rows[i][b] + 1);
            if a > 0 && b > 0 && one[a] == other[b - 1] && one[a - 1] == other[b] {
                least = least.min(rows[a - 1][b - 1] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let names = ["trace", "anatomy", "race", "top"];
        assert_eq!(nearest("trase", names), Some("trace"));
        assert_eq!(nearest("anatmoy", names), Some("anatomy"));
        assert_eq!(nearest("tpo", names), Some("top"));
        assert_eq!(nearest("tops", names), Some("top"));
        assert_eq!(nearest("zebra", names), None);
        assert_eq!(distance("", "abc"), 3);
    }
}
