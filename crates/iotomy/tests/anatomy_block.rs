//! What `iotomy anatomy` says of the block layer, of read-ahead and of single calls, held against
//! programs that do a known thing to a file system of their own.

use crate::support;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use iotomy_record::{
    Anatomy, BlockIo, BlockPath, ReadAhead, Requests, SlowCall, SlowestCalls, store,
};
use support::doubled_until;
use support::volume::{Volume, run};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// `iotomy anatomy` with `options` of a command, whose record goes to a folder.
fn anatomy(options: &[&str], words: &[&str]) -> (std::process::Command, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = support::iotomy(&["anatomy", "--quiet", "--json"]);
    command.arg(folder.path().join("record.json")).args(options).arg("--").args(words);
    (command, folder)
}

fn record(folder: &TempDir) -> Anatomy {
    store::load_anatomy(folder.path().join("record.json")).unwrap()
}

fn seen(options: &[&str], words: &[&str]) -> Anatomy {
    let (mut command, folder) = anatomy(options, words);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    record(&folder)
}

/// A volume, where the block layer can be watched; else the test is skipped.
fn volume() -> Option<Volume> {
    if support::anatomy() { Volume::ext4() } else { None }
}

fn block(record: &Anatomy) -> &BlockIo {
    let block = record.block.as_ref().expect("the block layer is watched where bpf works");
    assert_eq!((block.lost, block.lost_pages), (0, 0));
    block
}

/// Bytes that requests of a kind moved to a device.
fn bytes(block: &BlockIo, device: &str, of: impl Fn(&Requests) -> bool) -> u64 {
    let rows = block.requests.iter().filter(|row| row.device == device && row.operation == "write");
    rows.filter(|row| of(row)).map(|row| row.bytes).sum()
}

#[test]
fn direct_writes_are_as_many_requests_of_the_call() {
    let Some(volume) = volume() else { return };
    let of = format!("of={}", volume.file("direct"));
    let dd = ["dd", "status=none", "if=/dev/zero", &of, "bs=64k", "count=23", "oflag=direct"];
    let record = seen(&[], &dd);
    let device = volume.device();
    let mut rows = block(&record).requests.iter().filter(|row| {
        row.device == device && row.operation == "write" && row.syscall.as_deref() == Some("write")
    });
    let row = rows.next().expect("the writes are there");
    assert!(rows.next().is_none());
    assert_eq!((row.via, row.exec.as_str()), (BlockPath::Call, "dd"));
    assert_eq!((row.bios, row.requests, row.finished), (23, 23, 23));
    assert_eq!((row.bytes, row.bio_bytes), (23 << 16, 23 << 16));
    assert_eq!((row.size_log2.buckets[16], row.size_log2.total()), (23, 23));
    assert_eq!((row.queue_log2.total(), row.device_log2.total()), (23, 23));
    assert_eq!((row.errors, row.merged_bios), (0, 0));
    assert!(record.timelines.is_none());
}

#[test]
fn what_fsync_writes_is_the_calls_and_its_journals() {
    let Some(volume) = volume() else { return };
    let device = volume.device();
    let of_fsync = |record: &Anatomy, via: BlockPath| {
        let by = move |row: &Requests| row.via == via && row.syscall.as_deref() == Some("fsync");
        bytes(block(record), &device, by)
    };
    // The flusher of a machine with much to write, and the journal's own timer, may be first.
    let is_of_fsync = |(record, _): &(Anatomy, String)| {
        let is_synced = of_fsync(record, BlockPath::Call) >= MIB;
        is_synced && of_fsync(record, BlockPath::Journal) > 0
    };
    let (record, file) = doubled_until(1, is_of_fsync, |round| {
        let file = volume.file(&format!("synced{round}"));
        let of = format!("of={file}");
        let dd = ["dd", "status=none", "if=/dev/zero", &of, "bs=64k", "count=16", "conv=fsync"];
        (seen(&["--timeline=16"], &dd), file)
    });
    let by_write = |row: &Requests| row.syscall.as_deref() == Some("write");
    assert_eq!(bytes(block(&record), &device, by_write), 0);

    let timelines = timelines(&record);
    let fsync =
        timelines.calls.iter().find(|timeline| timeline.syscall == "fsync").expect("one fsync");
    assert_eq!(fsync.path.as_deref(), Some(file.as_str()));
    assert_eq!((fsync.returned, fsync.error.as_deref()), (0, None));
    assert!(first(fsync, "ext4_sync_file_enter") < first(fsync, "block-queue"));
    assert!(first(fsync, "block-queue") < first(fsync, "block-issue"));
    assert!(first(fsync, "block-issue") < first(fsync, "block-complete"));
    assert!(first(fsync, "jbd2_commit_logging") < last(fsync, "jbd2_end_commit"));
    assert!(last(fsync, "jbd2_end_commit") < last(fsync, "ext4_sync_file_exit"));
    assert!(first(fsync, "off-cpu") < last(fsync, "on-cpu"));
}

#[test]
fn what_two_images_of_one_name_ask_of_a_device_is_told_apart() {
    let Some(volume) = volume() else { return };
    if !support::has("perl") {
        return;
    }
    let (one, two) = (volume.file("one"), volume.file("two"));
    let sync = |file: &str, bytes: u32| {
        format!(
            "use IO::Handle; open(F, '>', '{file}'); syswrite(F, 'x' x {bytes}); F->sync; close F;"
        )
    };
    let line = format!("{} exec 'perl', '-e', \"{}\"", sync(&one, 65_536), sync(&two, 262_144));
    let written = |record: &Anatomy, image: u32, via: &dyn Fn(BlockPath) -> bool| {
        let device = volume.device();
        bytes(block(record), &device, |row| via(row.via) && row.image == image)
    };
    // The flusher of a machine with much to write may be first.
    let by_call = |record: &Anatomy| {
        [0, 1, 2].map(|image| written(record, image, &|via| via == BlockPath::Call))
    };
    let is_synced = |record: &Anatomy| by_call(record) == [0, 65_536, 262_144];
    let record = doubled_until(1, is_synced, |_| {
        let record = seen(&["--timeline=16"], &["perl", "-e", &line]);
        assert_eq!(written(&record, 0, &|_| true), 0, "{:#?}", block(&record).requests);
        record
    });
    let timelines = timelines(&record).calls.iter().filter(|timeline| timeline.syscall == "fsync");
    let mut told: Vec<(u32, Option<&str>)> =
        timelines.map(|timeline| (timeline.image, timeline.path.as_deref())).collect();
    told.sort_unstable();
    assert_eq!(told, [(1, Some(one.as_str())), (2, Some(two.as_str()))]);
}

#[test]
fn what_somebody_else_syncs_is_told_apart() {
    let Some(volume) = volume() else { return };
    let (first, second) = (volume.file("first"), volume.file("second"));
    let script = format!(
        "for file in {first} {second}; do dd status=none if=/dev/zero of=$file bs=64k count=16; done; \
         echo written; read line"
    );
    let device = volume.device();
    let by = |record: &Anatomy, via: BlockPath| {
        bytes(block(record), &device, |row| row.via == via && row.exec == "dd")
    };
    // The flusher of a machine with much to write may be before both.
    let is_synced = |record: &Anatomy| {
        [BlockPath::OtherProcess, BlockPath::WriteBack].iter().all(|via| by(record, *via) >= MIB)
    };
    let record = doubled_until(1, is_synced, |_| {
        let (mut command, folder) = anatomy(&[], &["sh", "-c", &script]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "written\n");
        // The one asks for its file and writes itself; the other for all, which a thread of the kernel does.
        run(&["sync", &first]);
        run(&["sync", "-f", &volume.path().to_string_lossy()]);
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(child.wait().unwrap().success());
        record(&folder)
    });
    assert_eq!(by(&record, BlockPath::Call), 0);
}

#[test]
fn what_iotomy_reads_to_measure_its_price_is_in_no_count() {
    if !support::anatomy() {
        return;
    }
    let record = seen(&["--timeline"], &["true"]);
    // The price is that of tens of thousands of reads of /dev/null. Whether one has a timeline or not, it is no call of the
    // command's, and these are counted by themselves.
    let timelines = timelines(&record);
    let counted: u64 = record.trace.calls.iter().map(|row| row.calls + row.in_flight).sum();
    assert!(timelines.followed > 0, "{timelines:?}");
    assert!(timelines.followed + timelines.not_followed <= counted, "{counted}: {timelines:?}");
    assert!(record.trace.observer.cost_ns_per_call > 0.0);
}

#[test]
fn a_sequential_read_finds_what_was_read_ahead() {
    let Some(volume) = volume() else { return };
    // How much is read ahead, and stays until it is read, is a matter of the machine's memory.
    let finds_it = |row: &ReadAhead| row.hit_pages > 900 && (1..100).contains(&row.missed_pages);
    let row = doubled_until(1, finds_it, |round| {
        let file = volume.cold_file(&format!("sequential{round}"), 1024);
        let dd = ["dd", "status=none", &format!("if={file}"), "of=/dev/null", "bs=4096"];
        let record = seen(&[], &dd);
        let mut rows = block(&record).read_ahead.iter();
        rows.find(|row| row.exec == "dd").expect("it reads").clone()
    });
    assert!(row.asked_pages >= 1024 && row.hit_pages <= row.ahead_pages, "{row:?}");
}

#[test]
fn random_reads_find_next_to_nothing_read_ahead() {
    let Some(volume) = volume() else { return };
    // Whether a page of dd itself has left memory is a matter of the machine.
    let finds_little = |(missed, hits): &(u64, u64)| *missed >= 20 && *hits <= 3;
    doubled_until(1, finds_little, |round| {
        let file = volume.cold_file(&format!("random{round}"), 4096);
        // Each from far before or behind the last.
        let script = format!(
            "n=7; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do \
             n=$(( (n * 1021 + 1667) % 4096 )); \
             dd status=none if={file} of=/dev/null bs=4096 count=1 skip=$n; done"
        );
        let record = seen(&[], &["sh", "-c", &script]);
        let of_dd = || block(&record).read_ahead.iter().filter(|row| row.exec == "dd");
        let missed: u64 = of_dd().map(|row| row.missed_pages).sum();
        (missed, of_dd().map(|row| row.hit_pages).sum())
    });
}

#[test]
fn a_cold_read_tells_of_pages_and_requests() {
    let Some(volume) = volume() else { return };
    let file = volume.cold_file("cold", 1024);
    let dd = ["dd", "status=none", &format!("if={file}"), "of=/dev/null", "bs=4M"];
    let record = seen(&["--timeline=16"], &dd);
    let timelines = timelines(&record);
    let ours =
        |timeline: &&SlowCall| timeline.path.as_deref() == Some(&file) && timeline.returned > 0;
    let read = timelines.calls.iter().find(ours).expect("the read of the file");
    assert_eq!((read.syscall.as_str(), read.offset), ("read", Some(0)));
    assert_eq!((read.asked_bytes, read.returned), (Some(4 * MIB), 4 << 20));
    assert!(first(read, "mm_filemap_add_to_page_cache") < first(read, "block-issue"));
    assert!(first(read, "block-queue") < last(read, "block-complete"));
    // The pages are many: most of them are only counted.
    let pages = read.hidden.iter().find(|hidden| hidden.event == "mm_filemap_add_to_page_cache");
    let shown =
        read.events.iter().filter(|event| event.event.starts_with("mm_filemap_add")).count();
    let hidden = pages.map_or(0, |pages| pages.count);
    assert!(shown > 0 && hidden + shown as u64 > 1, "{read:#?}");
}

/// The timelines, checked against what holds for any.
fn timelines(record: &Anatomy) -> &SlowestCalls {
    let timelines = record.timelines.as_ref().expect("they were asked for");
    assert_eq!(timelines.lost, 0);
    assert!(timelines.followed >= timelines.calls.len() as u64);
    assert!(timelines.calls.is_sorted_by_key(|timeline| std::cmp::Reverse(timeline.wall_ns)));
    for timeline in &timelines.calls {
        assert!(timeline.events.is_sorted_by_key(|event| event.at_ns), "{timeline:#?}");
        assert!(
            timeline.events.iter().all(|event| event.at_ns <= timeline.wall_ns),
            "{timeline:#?}"
        );
        assert!(timeline.on_cpu_ns + timeline.blocked_ns <= timeline.wall_ns, "{timeline:#?}");
    }
    timelines
}

/// Where in a timeline the first event of a name is.
fn first(timeline: &SlowCall, name: &str) -> usize {
    let at = timeline.events.iter().position(|event| event.event == name);
    at.unwrap_or_else(|| panic!("no {name} in {timeline:#?}"))
}

/// Where the last is.
fn last(timeline: &SlowCall, name: &str) -> usize {
    let at = timeline.events.iter().rposition(|event| event.event == name);
    at.unwrap_or_else(|| panic!("no {name} in {timeline:#?}"))
}
