//! Long texts on a terminal: when they are paged, and what becomes of a pager that ends early or is not
//! there.

use crate::support;

use support::sessions::{TerminalSession, members, tools};
use support::{IOTOMY, has, iotomy, until};

/// The lines of `copy --list`, on a terminal of some rows, with the surroundings of `before`.
fn listed(rows: u32, before: &str, options: &str) -> String {
    let line = format!(
        "unset PAGER IOTOMY_PAGER LESS; stty rows {rows} cols 100; \
         printf '#!/bin/sh\\necho PAGED \"$@\"; head -n 1\\n' > pager; chmod +x pager\n\
         {before} {IOTOMY} copy --list {options}"
    );
    let session = TerminalSession::start(&line);
    session.until_shown("status ");
    let seen = session.seen();
    assert!(seen.contains("status 0"), "{seen}");
    seen
}

/// The last line of the text.
fn last() -> String {
    let text = String::from_utf8(iotomy(&["copy", "--list"]).output().unwrap().stdout).unwrap();
    assert!(text.lines().count() > 20, "{text}");
    text.lines().last().unwrap().trim().to_owned()
}

#[test]
fn a_text_that_does_not_fit_goes_through_the_pager_of_the_user() {
    if !tools() {
        return;
    }
    let last = last();
    let seen = listed(10, "IOTOMY_PAGER='./pager -x' PAGER=/nonexistent", "");
    // The pager ends after a line, which is no error.
    assert!(seen.contains("PAGED -x") && !seen.contains(&last), "{seen}");
    assert!(listed(10, "PAGER=./pager", "").contains("PAGED"));
}

#[test]
fn a_text_is_printed_plainly_where_there_is_nothing_to_page_with_or_for() {
    if !tools() {
        return;
    }
    let last = last();
    for (rows, before, options) in [
        // It fits.
        (2_000, "PAGER=./pager", ""),
        (10, "PAGER=./pager", "--no-pager"),
        (10, "IOTOMY_PAGER= PAGER=./pager", ""),
        (10, "PAGER=cat", ""),
        (10, "PAGER=/nonexistent/pager", ""),
        (10, "TERM=dumb PAGER=./pager", ""),
        // A pipe.
        (10, "PAGER=./pager", "| cat"),
    ] {
        let seen = listed(rows, before, options);
        assert!(seen.contains(&last) && !seen.contains("PAGED"), "{before} {options}: {seen}");
    }
}

#[test]
fn an_interrupt_is_the_pagers_and_nothing_is_left_behind() {
    if !tools() || !has("less") {
        return;
    }
    let line =
        format!("unset PAGER IOTOMY_PAGER LESS; stty rows 10 cols 100; {IOTOMY} copy --list");
    let mut session = TerminalSession::start(&line);
    // The prompt of less.
    session.until_shown("\n:");
    session.press("\x03");
    // An interrupt may take keys behind it with it.
    until("the pager has ended", || {
        session.press("q");
        session.seen().contains("status 0").then_some(())
    });
    let shell = session.shell();
    until("only the shell is left", || (members(shell).len() <= 1).then_some(()));
}
