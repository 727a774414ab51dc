//! The order in which people expect names with numbers in them.

/// A text by whose order `node9` comes before `node10`: its words, and its numbers by their size.
pub fn natural(text: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = vec![(String::new(), 0)];
    let mut is_in_number = false;
    for letter in text.chars() {
        let digit = letter.to_digit(10);
        if digit.is_none() && is_in_number {
            parts.push((String::new(), 0));
        }
        is_in_number = digit.is_some();
        let Some(last) = parts.last_mut() else { continue };
        match digit {
            Some(digit) => last.1 = last.1.saturating_mul(10).saturating_add(digit.into()),
            None => last.0.push(letter),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_compared_as_numbers() {
        let mut names = ["node10", "node9", "a", "node9b2", "node9b10", "node", ""];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["", "a", "node", "node9", "node9b2", "node9b10", "node10"]);
        // A number beyond all is the largest.
        assert!(natural("n99999999999999999999999") > natural("n1"));
    }
}
