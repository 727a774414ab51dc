//! Single calls of a watch that goes on, named while the programs still count: the one that fulfilled the condition,
//! and the slowest since these were taken before.

use iotomy_record::{EndedBy, WholeCall};

use super::books::Books;
use super::details::SlowRow;
use super::layout::{FileName, Image};
use super::object::Session;
use super::slowest;
use super::user_stack::UserStack;
use crate::request::Request;

/// The call, in the record's terms; times are since the watch began. `None` where no call fulfilled the condition.
pub(super) fn told(
    session: &Session,
    books: &mut Books,
    request: &Request,
    began_ns: u64,
) -> Option<EndedBy> {
    let (row, sums) = session.firing()?;
    books.take_programs(session);
    let of_call = books_of(session, books, std::slice::from_ref(&row));
    let call = slowest::one(&of_call, row, began_ns, &|_| 0);
    Some(request.filter.ended_by(call, sums))
}

/// The slowest calls since they were taken before; none where that is not asked for.
///
/// # Errors
/// The kernel's error.
pub(super) fn slowest(
    session: &Session,
    books: &mut Books,
    request: &Request,
    began_ns: u64,
) -> Result<Vec<WholeCall>, String> {
    if request.slowest == 0 || !request.takes_slowest {
        return Ok(Vec::new());
    }
    let rows = session.take_slowest()?;
    books.take_programs(session);
    let of_calls = books_of(session, books, &rows);
    Ok(slowest::calls(&of_calls, rows, began_ns, &|_| 0))
}

/// What names calls: their images, the programs of these, and the places of their paths.
fn books_of(session: &Session, books: &Books, rows: &[SlowRow]) -> Books {
    let mut of_calls = Books::default();
    for row in rows {
        add_names(&mut of_calls, session, books, row);
    }
    of_calls
}

fn add_names(of_calls: &mut Books, session: &Session, books: &Books, row: &SlowRow) {
    let mut at = row.image;
    // An origin is always older, so the walk ends.
    while !of_calls.images.contains_key(&at) {
        let known = books.images.get(&at).cloned();
        let image = known.or_else(|| session.row::<Image>("images", &at.to_ne_bytes()));
        let Some(image) = image else { break };
        let origin = image.origin;
        of_calls.images.insert(at, image);
        if let Some(program) = books.programs.get(&at) {
            of_calls.programs.insert(at, program.clone());
            break;
        }
        if origin == 0 || origin >= at {
            break;
        }
        at = origin;
    }
    let callers = row.callers.iter().map(|caller| caller.file);
    let mapped = row.stack.iter().flat_map(UserStack::files);
    for key in [row.file, row.directory, row.on_top.file].into_iter().chain(callers).chain(mapped) {
        if let Some(name) = session.row::<FileName>("directories", &key.wire()) {
            of_calls.paths.directories.insert(key, name);
        }
    }
}
