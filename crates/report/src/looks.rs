//! What holds for every report of whatever record, for the property tests of each.

use crate::Style;
use crate::page::columns;

/// A report keeps to its width and to what a terminal can show, in ASCII if asked.
pub(crate) fn keeps_to(width: usize, unicode: bool, render: impl Fn(&Style) -> String) {
    let text = render(&Style { color: false, unicode, width });
    assert!(unicode || text.is_ascii());
    for line in text.lines() {
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(columns(line) <= width.max(20), "{line:?}");
        assert!(!line.ends_with(' '), "{line:?}");
    }
}

/// A report in colour is the plain one, coloured.
pub(crate) fn is_only_coloured(render: impl Fn(&Style) -> String) {
    let coloured = render(&Style { color: true, ..Style::default() });
    let plain = coloured
        .split('\x1b')
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split_once('m').expect("an ink").1 });
    assert_eq!(plain.collect::<String>(), render(&Style::default()));
}
