//! Sections of the guides in `docs/` that are generated from declarations: the lines between
//! `<!-- declared: NAME -->` and `<!-- end -->`. `make docs` regenerates them.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The variable that makes the tests write the guides instead of checking them.
const UPDATE: &str = "UPDATE";

/// Allows only one test of a process at a time to read and write pages.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Formats a Markdown table.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Vec<String> {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|&cell| cell.to_owned()).collect();
    let rule = vec!["---".to_owned(); header.len()];
    [line(&header), line(&rule)].into_iter().chain(rows.into_iter().map(|row| line(&row))).collect()
}

/// Fails the test unless the section `name` of `page` consists of these lines. The path of the page
/// is relative to the repository's root.
///
/// # Panics
/// When the page differs, has no such section, or cannot be read or written.
#[track_caller]
pub fn check(page: &str, name: &str, lines: &[String]) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(page);
    let old = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let Some(new) = with_part(&old, name, lines) else {
        panic!("{page} has no part between <!-- declared: {name} --> and <!-- end -->")
    };
    if new != old && std::env::var_os(UPDATE).is_some() {
        fs::write(&path, new).unwrap_or_else(|error| panic!("{page}: {error}"));
        return;
    }
    let text = lines.join("\n");
    assert!(new == old, "the part {name} of {page} is old; make docs writes it:\n{text}");
}

/// Returns the page with these lines in the section `name`, or `None` if the page has no such
/// section.
fn with_part(page: &str, name: &str, lines: &[String]) -> Option<String> {
    let begin = format!("<!-- declared: {name} -->\n");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}{begin}\n{}\n\n<!-- end -->{after}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_nothing_else() {
        let page = "a\n<!-- declared: x -->\n\nold\n\n<!-- end -->\nb\n";
        let rows = table(&["name", "what"], [vec!["`n`".to_owned(), "w".to_owned()]]);
        let new = with_part(page, "x", &rows).unwrap_or_default();
        let middle = "| name | what |\n| --- | --- |\n| `n` | w |";
        assert_eq!(new, format!("a\n<!-- declared: x -->\n\n{middle}\n\n<!-- end -->\nb\n"));
        assert_eq!(with_part(&new, "x", &rows), Some(new.clone()));
        assert_eq!(with_part(page, "y", &rows), None);
    }
}
