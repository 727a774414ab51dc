//! What a tally gives: the counts so far for a snapshot, and the rows of a record at the end.

use std::collections::BTreeMap;

use iotomy_record::{
    Call, FileUse, ImageCounts, PathUse, Process, ProcessCounts, Snapshot, Thread, WholeCall,
    statistic,
};

use super::{CountedRow, FileRef, ImageId, Tally};
use crate::Request;
use crate::naming::{call_name, numbers, sort_calls};
use crate::threads::Threads;

/// The rows of a record that a tally ends in.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) processes: Vec<Process>,
    pub(crate) calls: Vec<Call>,
    pub(crate) files: Vec<FileUse>,
    pub(crate) paths: Vec<PathUse>,
    pub(crate) lost_files: u64,
    pub(crate) lost_paths: u64,
    pub(crate) threads: Vec<Thread>,
    pub(crate) allowed_cpus: Vec<u64>,
    pub(crate) slowest: Vec<WholeCall>,
    pub(crate) incomplete_calls: u64,
    pub(crate) lost_events: u64,
    /// Calls of those that are not asked for.
    pub(crate) calls_left_out: u64,
}

impl Tally {
    /// The counts so far of the calls that are `wanted`; of images, all there ever were, in order.
    pub(crate) fn snapshot(&self, wanted: &dyn Fn(&str) -> bool) -> Snapshot {
        let mut calls: BTreeMap<&str, Call> = BTreeMap::new();
        let mut files: BTreeMap<&FileRef, FileUse> = BTreeMap::new();
        let mut processes = Vec::with_capacity(self.images.len());
        let mut images = Vec::with_capacity(self.images.len());
        for image in &self.images {
            let mut doing = ProcessCounts {
                pid: image.process.pid,
                exec: image.process.program().to_owned(),
                title: image.process.title.clone(),
                ..ProcessCounts::default()
            };
            let rows = image.calls.values().map(|counted| &counted.row);
            images.push(ImageCounts {
                id: u32::try_from(images.len()).unwrap_or(u32::MAX),
                pid: image.process.pid,
                exec: image.process.exec.clone(),
                called: image.process.called.clone(),
                title: image.process.title.clone(),
                calls: rows.clone().filter(|row| wanted(&row.syscall)).map(so_far).collect(),
                ..ImageCounts::default()
            });
            for row in rows.filter(|row| wanted(&row.syscall)) {
                doing.calls += row.calls;
                doing.errors += row.errors;
                doing.bytes = doing.bytes.saturating_add(row.bytes);
                doing.calls_ns = doing.calls_ns.saturating_add(row.wall_ns);
                let sum = calls
                    .entry(&row.syscall)
                    .or_insert_with(|| Call { syscall: row.syscall.clone(), ..Call::default() });
                sum.calls += row.calls;
                sum.errors += row.errors;
                sum.bytes = sum.bytes.saturating_add(row.bytes);
                sum.wall_ns = sum.wall_ns.saturating_add(row.wall_ns);
                let open_ns = sum.open_ns.get_or_insert_default();
                *open_ns = open_ns.saturating_add(row.open_ns.unwrap_or(0));
                sum.max_ns = sum.max_ns.max(row.max_ns);
                sum.wall_times.merge(&row.wall_times);
            }
            for (file, used) in &image.files {
                files.entry(file).and_modify(|sum| join(sum, used)).or_insert_with(|| used.clone());
            }
            processes.push(doing);
        }
        let calls = calls.into_values().collect();
        let files = files.into_values().collect();
        // The newest images first: most of the others have ended.
        let uses = self.images.iter().rev().flat_map(|image| {
            image.files.values().map(|used| FileUse {
                pid: image.process.pid,
                exec: image.process.program().to_owned(),
                ..used.clone()
            })
        });
        let uses = uses.take(Snapshot::MOST_USES).collect();
        let lost = self.lost_events + self.lost_files;
        Snapshot { calls, files, processes, images, uses, lost, ..Snapshot::default() }
    }

    /// The record's rows: images in the order they began, their calls by time, largest first. The call
    /// that ended the watch gets the number of its image.
    pub(crate) fn into_rows(mut self, request: &Request, ended_by: Option<&mut WholeCall>) -> Rows {
        let mut rows = Rows {
            processes: Vec::with_capacity(self.images.len()),
            calls: Vec::new(),
            files: Vec::new(),
            paths: Vec::new(),
            lost_files: self.lost_files,
            lost_paths: self.lost_paths,
            threads: Vec::new(),
            allowed_cpus: self.allowed_cpus,
            slowest: self.slowest.take(),
            incomplete_calls: self.headless_calls,
            lost_events: self.lost_events,
            calls_left_out: 0,
        };
        let names = self.images.iter().map(|one| (one.process.pid, one.process.exec.as_str()));
        let numbers = numbers(&names.collect::<Vec<_>>());
        for call in rows.slowest.iter_mut().chain(ended_by) {
            call.image = numbers.get(call.image as usize).copied().unwrap_or(0);
        }
        let mut threads = self.threads.map(Threads::into_images).unwrap_or_default();
        let name = |(abi, number)| Some(call_name(abi, number)).filter(|name| request.wants(name));
        for (at, (mut image, number)) in self.images.into_iter().zip(numbers).enumerate() {
            image.process.image = number;
            let of_image = threads.remove(&ImageId(at)).unwrap_or_default().into_iter();
            rows.threads.extend(of_image.map(|thread| thread.into_row(&image.process, &name)));
            image.files.values_mut().for_each(|row| row.image = number);
            let mut counted: Vec<CountedRow> = image.calls.into_values().collect();
            counted.iter_mut().for_each(|call| call.row.image = number);
            counted.retain(|call| {
                let is_wanted = request.wants(&call.row.syscall);
                rows.calls_left_out += if is_wanted { 0 } else { call.row.calls };
                is_wanted
            });
            let open = counted.iter().filter(|call| !call.never_returns);
            rows.incomplete_calls +=
                open.map(|call| call.row.in_flight.saturating_sub(call.unseen)).sum::<u64>();
            let mut calls: Vec<Call> = counted.into_iter().map(|call| call.row).collect();
            sort_calls(&mut calls);
            rows.processes.push(image.process);
            rows.calls.extend(calls);
            rows.files.extend(image.files.into_values());
            image.paths.values_mut().for_each(|row| row.image = number);
            let mut paths: Vec<PathUse> = image.paths.into_values().collect();
            paths.retain(|row| request.wants(&row.syscall));
            paths.sort_by_key(|row| std::cmp::Reverse(row.calls));
            rows.paths.extend(paths);
        }
        rows
    }
}

/// A call's row for a snapshot: in flight are the calls that are so now.
fn so_far(row: &Call) -> Call {
    let open_ns = Some(row.open_ns.unwrap_or(0));
    Call { in_flight: 0, open_ns, entered_before: 0, ..row.clone() }
}

/// Adds the use of a file by another image.
fn join(sum: &mut FileUse, used: &FileUse) {
    if (sum.pid, &sum.exec) != (used.pid, &used.exec) {
        (sum.pid, sum.exec) = (0, String::new());
    }
    statistic::add(sum, used);
}
