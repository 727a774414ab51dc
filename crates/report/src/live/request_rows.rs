//! The rows of the table of requests over connections.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iotomy_record::{Exchange, Role, Socket, statistic};

use super::rows::{Row, SnapshotDelta, count, rate};
use super::subject::Subject;
use crate::numbers::{counted, figure};
use crate::page::Page;
use crate::trace::images::label;

/// The requests with a peer.
#[derive(Default)]
struct RequestSum<'a> {
    new: Exchange,
    all: Exchange,
    by: BTreeSet<(u32, &'a str)>,
}

/// The name of a peer, and whether its requests were served.
type Place = (String, bool);

impl<'a> SnapshotDelta<'a> {
    fn place(&self, of: &Exchange) -> Place {
        (self.peers.socket_name(&of.ends), of.ends.role == Some(Role::Accept))
    }

    fn requests_by_peer(&self) -> BTreeMap<Place, RequestSum<'a>> {
        let before: HashMap<Socket, &Exchange> =
            self.requests_before.iter().map(|row| (row.ends.unnamed(), row)).collect();
        let mut sums: BTreeMap<Place, RequestSum<'a>> = BTreeMap::new();
        for row in self.requests_now {
            let sum = sums.entry(self.place(row)).or_default();
            sum.all.merge(row);
            sum.new.merge(&since(row, before.get(&row.ends.unnamed()).copied()));
        }
        // Of what a process has, another one may have the same.
        for image in self.images() {
            for row in &image.requests {
                if let Some(sum) = sums.get_mut(&self.place(row)) {
                    sum.by.insert((image.pid, image.program()));
                }
            }
        }
        sums
    }

    pub(super) fn request_rows(&self, page: &Page<'_>) -> Vec<Row> {
        let row = |((peer, is_served), sum): (Place, RequestSum<'_>)| {
            let RequestSum { new, all, by } = sum;
            let subject = Subject::Requests(peer.clone(), is_served);
            let mut row = Row::new(subject, page.name(&peer, page.width()));
            row.text(if is_served { "served" } else { "asked" }.to_owned());
            row.cell(self.a_second(new.requests.into()), rate);
            row.cell(all.in_flight as f64, count);
            let mean_us = |ns: u64| ns as f64 / 1e3 / (new.requests.max(1)) as f64;
            row.cell(mean_us(new.wall_ns), figure);
            for share in [0.5, 0.9, 0.99, 0.999] {
                row.cell(new.wall_times.quantile(share) as f64 / 1e3, figure);
            }
            row.cell(all.max_ns as f64 / 1e3, figure);
            for part in [
                new.unread_ns,
                new.on_cpu_ns,
                new.runnable_ns,
                new.disk_ns,
                new.peer_ns,
                new.lock_ns,
                new.other_ns,
                new.elsewhere_ns,
            ] {
                row.cell(mean_us(part), figure);
            }
            for in_all in [all.requests, all.unanswered, all.pipelined] {
                row.cell(in_all as f64, count);
            }
            row.text(match by.first() {
                None => String::new(),
                Some((pid, exec)) if by.len() == 1 => label(page, exec, *pid),
                _ => counted(by.len() as u128, "process", "processes"),
            });
            row
        };
        self.requests_by_peer().into_iter().map(row).collect()
    }
}

/// What came since the snapshot before.
fn since(now: &Exchange, before: Option<&Exchange>) -> Exchange {
    let Some(before) = before else { return now.clone() };
    let mut new = statistic::since(now, &mut before.clone());
    new.wall_times = now.wall_times.since(&before.wall_times);
    new
}
