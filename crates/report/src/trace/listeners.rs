//! Who gets the connections: where several processes accept those of one listener, what came to each.
//!
//! Computed from `connections` and the sockets among `files`, as the table of peers.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use iotomy_record::{Connection, FileUse, Role, Socket, Trace, statistic};

use super::images::Names;
use super::peers::queue;
use super::{USUAL_ROWS, rows};
use crate::columns::{Columns, Extent};
use crate::numbers::{counted, fixed};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};

/// Columns of a listener.
const NAME: usize = 40;

/// A process at a listener, or several identical ones that are put together.
#[derive(Default)]
struct Worker {
    listener: String,
    name: String,
    processes: u32,
    /// Its own ends of the connections.
    addresses: BTreeSet<String>,
    made: Connection,
    traffic: FileUse,
    /// Of what all of the listener accepted, in percent; unknown where that is nothing.
    share: Option<f64>,
}

/// The name of the listener that a socket was accepted from: its port here, or its path.
fn listener(socket: &Socket) -> Option<String> {
    let local = socket.local.as_deref().filter(|_| socket.role == Some(Role::Accept))?;
    let end = match socket.is_unix() {
        true => local.to_owned(),
        // One that listens at all addresses accepts at several.
        false => format!("port {}", local.rsplit_once(':')?.1),
    };
    Some(format!("{} {end}", socket.protocol))
}

/// The processes of the listeners that have several: by listener, those first that accepted most.
fn workers(page: &Page<'_>, record: &Trace) -> Vec<Worker> {
    let names = Names::from_record(record);
    let mut all: Vec<Worker> = Vec::new();
    let mut at: HashMap<(String, u32, &str), usize> = HashMap::new();
    for one in &record.connections {
        let Some(listener) = listener(&one.ends) else { continue };
        let at = *at.entry((listener.clone(), one.pid, &one.exec)).or_insert_with(|| {
            let name = names.label(page, &one.exec, one.pid);
            let processes = names.count(&one.exec, one.pid);
            all.push(Worker { listener, name, processes, ..Worker::default() });
            all.len() - 1
        });
        all[at].made.merge(one);
        all[at].addresses.extend(one.ends.local.clone());
    }
    for file in &record.files {
        let Some(listener) = file.socket.as_ref().and_then(listener) else { continue };
        if let Some(at) = at.get(&(listener, file.pid, &file.exec)) {
            statistic::add(&mut all[*at].traffic, file);
        }
    }
    all.sort_by(|a, b| {
        let key = |one: &Worker| (Reverse(one.made.opened), one.name.clone());
        a.listener.cmp(&b.listener).then_with(|| key(a).cmp(&key(b)))
    });
    let mut several = Vec::new();
    for workers in all.chunk_by_mut(|a, b| a.listener == b.listener).filter(|all| shares(all)) {
        let accepted = accepted(workers);
        for mut worker in workers.iter_mut().map(std::mem::take) {
            let share = worker.made.opened as f64 / accepted as f64 * 100.0;
            worker.share = (accepted > 0).then_some(share);
            several.push(worker);
        }
    }
    several
}

/// Whether several processes have accepted at one address: those at two addresses of a port have a listener each.
fn shares(workers: &[Worker]) -> bool {
    let mut seen = BTreeSet::new();
    workers.iter().any(|one| one.processes > 1 && one.made.opened > 0)
        || workers.iter().flat_map(|one| &one.addresses).any(|address| !seen.insert(address))
}

fn accepted(workers: &[Worker]) -> u64 {
    workers.iter().fold(0, |sum, one| sum.saturating_add(one.made.opened))
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace) {
    if !record.view.peers {
        return;
    }
    let workers = workers(page, record);
    if workers.is_empty() {
        return;
    }
    page.blank();
    let extent = Extent { rows: rows(record, USUAL_ROWS), name: NAME };
    table(page, &workers, extent).print(page, "");
    for of_one in workers.chunk_by(|a, b| a.listener == b.listener).take(extent.rows) {
        for line in balance(page, of_one).into_iter().chain(waited(page, of_one)) {
            page.line(&[(Ink::Dim, &format!("  {line}"))]);
        }
    }
}

/// How evenly the connections of a listener came to its processes.
fn balance(page: &Page<'_>, workers: &[Worker]) -> Option<String> {
    let (first, accepted) = (workers.first()?, accepted(workers));
    let processes = workers.iter().fold(0, |sum: u128, one| sum + u128::from(one.processes));
    // Of several that are put together, the busiest is not known.
    let is_known = workers.iter().all(|one| one.processes == 1);
    let busiest = first.made.opened as f64 / (accepted as f64 / processes as f64);
    let busiest = match is_known {
        true => format!("; the busiest accepted {} × the mean", fixed(busiest, 2)),
        false => String::new(),
    };
    (accepted > 0).then(|| {
        format!(
            "{}: {} of {}{busiest}",
            page.name(&first.listener, NAME),
            counted(accepted.into(), "connection", "connections"),
            counted(processes, "process", "processes"),
        )
    })
}

/// What was in the queue of a listener when its processes accepted, and what it dropped.
fn waited(page: &Page<'_>, workers: &[Worker]) -> Option<String> {
    let mut made = Connection::default();
    workers.iter().for_each(|one| made.merge(&one.made));
    let queue = queue(&made).join(", ");
    let name = &workers.first()?.listener;
    (!queue.is_empty()).then(|| format!("{}: {queue}", page.name(name, NAME)))
}

/// All of them, for a page.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    let workers = workers(page, record);
    let is_any = !workers.is_empty();
    is_any.then(|| table(page, &workers, Extent::PAGE).without_empty_columns())
}

fn table(page: &Page<'_>, workers: &[Worker], extent: Extent) -> Sheet {
    let share = Field::number("share_percent", "share", "%").worth(8);
    // Another process, or another thread, had the connection.
    let vain = Field::number("accept_eagain", "EAGAIN", "").worth(6);
    let columns = Columns::new()
        .text(Field::text("listener", "listener").worth(9), |one: &Worker| {
            page.name(&one.listener, extent.name)
        })
        .text(Field::text("process", "process").worth(11), |one| one.name.clone())
        .number(Field::number("accepted", "accepted", "").worth(10), |one| {
            Cell::count(one.made.opened)
        })
        .number(share, |one| {
            Cell::from_option(one.share, |share| Cell::real(share, fixed(share, 1)))
        })
        .number(Field::number("max_queued", "queue", "").worth(5), |one| {
            Cell::count(one.made.max_queued).if_any()
        })
        .declared(0, |one: &Worker| Some(&one.traffic))
        .number(vain, |one| {
            Cell::count(one.made.errors.get("EAGAIN").copied().unwrap_or(0)).if_any()
        });
    columns.sheet("listeners", "Who gets the connections", workers, None, extent)
}
