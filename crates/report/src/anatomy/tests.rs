use iotomy_record::store::{self, Record};
use iotomy_record::{
    DissectedCall, Function, Layer, Sampling, Stack, StackKind, UserStacks, arbitrary,
};
use proptest::prelude::*;

use super::inside_tests::{io, timelines};
use super::*;
use crate::{Source, csv, looks, parts, svg};

fn layer(name: &str, on_cpu_ms: u64, asleep_ms: u64, functions: &[(&str, u64)]) -> Layer {
    let ns = |ms: u64| ms * 1_000_000;
    Layer {
        layer: name.into(),
        on_cpu_ns: ns(on_cpu_ms),
        error_ns: ns(on_cpu_ms) / 8,
        samples: on_cpu_ms,
        blocked_ns: ns(asleep_ms),
        waits: [("device".to_owned(), ns(asleep_ms))].into_iter().filter(|(_, n)| *n > 0).collect(),
        functions: functions
            .iter()
            .map(|(name, ms)| Function { name: (*name).into(), samples: *ms, on_cpu_ns: ns(*ms) })
            .collect(),
    }
}

fn dissected(call: Option<&str>, layers: Vec<Layer>) -> DissectedCall {
    let sum = |part: fn(&Layer) -> u64| layers.iter().map(part).sum();
    DissectedCall {
        pid: 29_838,
        exec: "dd".into(),
        image: 0,
        syscall: call.map(str::to_owned),
        on_cpu_ns: sum(|layer| layer.on_cpu_ns),
        blocked_ns: sum(|layer| layer.blocked_ns),
        samples: sum(|layer| layer.samples),
        layers,
        ..DissectedCall::default()
    }
}

fn stack(call: Option<&str>, layer: &str, kind: StackKind, ms: u64, frames: &str) -> Stack {
    Stack {
        pid: 29_838,
        exec: "dd".into(),
        image: 0,
        syscall: call.map(str::to_owned),
        kind,
        layer: layer.into(),
        reason: (kind == StackKind::Blocked).then(|| "device".to_owned()),
        samples: ms,
        ns: ms * 1_000_000,
        user: Vec::new(),
        frames: frames.split(';').map(str::to_owned).collect(),
    }
}

/// A dd that reads, writes and waits for the disk; with this many ms of copying.
fn record(copying: u64) -> Anatomy {
    let trace = crate::trace::tests::records::dd();
    let (write, read) = (Some("write"), Some("read"));
    let cache = "page cache and copying";
    Anatomy {
        schema: Anatomy::SCHEMA.into(),
        started: trace.started.clone(),
        trace,
        sampling: Sampling {
            event: "cpu-clock".into(),
            hz: 997,
            samples: copying + 30,
            lost: 2,
            price_ns_per_sample: 1_900.0,
            ..Sampling::default()
        },
        calls: vec![
            dissected(
                write,
                vec![
                    layer(cache, copying, 14, &[("copy_folio_from_iter_atomic", copying)]),
                    layer("file system (ext4)", 5, 0, &[("ext4_da_get_block_prep", 3)]),
                ],
            ),
            dissected(read, vec![layer("driver", 12, 0, &[("read_iter_zero", 12)])]),
            dissected(None, vec![layer("program", 13, 0, &[("dd", 13)])]),
        ],
        stacks: vec![
            stack(write, cache, StackKind::OnCpu, copying, "ksys_write;generic_perform_write"),
            stack(write, cache, StackKind::Blocked, 14, "ksys_write;io_schedule"),
            stack(write, "file system (ext4)", StackKind::OnCpu, 3, "ksys_write;ext4_write_begin"),
            stack(read, "driver", StackKind::OnCpu, 12, "ksys_read;read_iter_zero"),
            stack(None, "program", StackKind::OnCpu, 13, "dd"),
        ],
        block: Some(io()),
        timelines: Some(timelines()),
    }
}

fn as_record(anatomy: Anatomy) -> Record {
    Record::Anatomy(Box::new(anatomy))
}

/// The same, with user stacks.
fn with_callers() -> Anatomy {
    let mut record = record(30);
    record.sampling.user_stacks =
        Some(UserStacks { samples: 60, cut_short: 15, lost: 1, lost_mappings: 0 });
    let chains = [
        "main;copy;put;write",
        "main;header;put;write",
        "main;copy;put;write",
        "main;copy;get;read",
        "main;copy",
    ];
    for (stack, chain) in record.stacks.iter_mut().zip(chains) {
        stack.user = chain.split(';').map(str::to_owned).collect();
    }
    record
}

#[test]
fn functions_of_user_space_stand_between_the_program_and_the_call() {
    let folded = folded(&with_callers());
    for line in [
        "dd;main;copy 13000",
        "dd;main;copy;get;read;read;ksys_read;read_iter_zero 12000",
        "dd;main;header;put;write;write;[blocked: device];ksys_write;io_schedule 14000",
    ] {
        assert!(folded.lines().any(|known| known == line), "{line}: {folded}");
    }
    let page = looks::page_alone(&as_record(with_callers()));
    assert!(page.contains("header: 14"), "{page}");
    assert!(page.contains("functions of the program, and on-CPU time in them"), "{page}");
}

#[test]
fn callers_are_told_where_there_are_several_and_how_many_are_unknown() {
    let text = anatomy(&with_callers(), &Style::default());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("from copy › put › write"), "{text}");
    assert!(words.contains("from header › put › write"), "{text}");
    assert!(!words.contains("from copy › get › read"), "{text}");
    assert!(words.contains("short 25.0 % of the user-space stacks end after"), "{text}");
    assert!(words.contains("lost 1 user-space stack did not fit into a bounded table"), "{text}");
    assert!(!words.contains("innermost function is known"), "{text}");
}

#[test]
fn what_one_of_two_does_not_tell_is_no_difference() {
    let picture = difference(&record(30), &with_callers()).unwrap();
    assert!(!picture.contains("<title>header"), "{picture}");
    let picture = difference(&with_callers(), &with_callers()).unwrap();
    assert!(picture.contains("<title>header"), "{picture}");
}

#[test]
fn a_page() {
    insta::assert_snapshot!(looks::page_alone(&as_record(record(30))));
}

#[test]
fn other_forms() {
    insta::assert_snapshot!(looks::other_forms(&as_record(record(30))));
}

#[test]
fn a_page_of_nothing() {
    let mut empty = record(0);
    (empty.calls, empty.stacks, empty.block, empty.timelines) = (vec![], vec![], None, None);
    empty.trace.ledger.clear();
    let empty = as_record(empty);
    let source = Source { name: "a.json", record: &empty, bytes: b"{}" };
    let names: Vec<String> = parts(&[source]).into_iter().map(|part| part.name).collect();
    assert!(!names.iter().any(|name| ["icicle", "flame"].contains(&name.as_str())), "{names:?}");
    looks::is_inert(&empty);
}

#[test]
fn every_later_anatomy_is_held_against_the_first() {
    let (first, second) = (as_record(record(30)), as_record(record(12)));
    let sources = [&first, &second, &first];
    let sources = sources.map(|record| Source { name: "a.json", record, bytes: b"{}" });
    let names: Vec<String> = parts(&sources).into_iter().map(|part| part.name).collect();
    let with: Vec<&String> = names.iter().filter(|name| name.ends_with("/difference")).collect();
    // The third is the first itself.
    assert_eq!(with, ["2/difference"]);
    let picture = svg(&sources, Some("2/difference")).unwrap();
    assert!(picture.contains("<title>write −18 ms: 49 ms before, 31 ms now</title>"), "{picture}");
    let table = csv(&sources, Some("2/differences")).unwrap();
    let row = "write,page cache and copying,on-CPU,30000000,12000000,-18000000";
    assert_eq!(table.lines().nth(1), Some(row));
}

#[test]
fn a_box_of_another_colour_is_asleep_or_of_the_program() {
    let source = as_record(record(30));
    let source = Source { name: "a.json", record: &source, bytes: b"{}" };
    for part in ["flame", "icicle"] {
        let picture = svg(&[source], Some(part)).unwrap();
        let class_of = |name: &str| {
            let (before, _) = picture.split_once(&format!("<title>{name}")).unwrap();
            before.rsplit_once("class=\"").unwrap().1.split_once('"').unwrap().0.to_owned()
        };
        let asleep =
            if part == "flame" { "io_schedule: " } else { "page cache and copying, blocked" };
        assert_eq!(class_of(asleep), "f-asleep apart");
        assert_eq!(class_of("dd: 13 ms"), "f-user apart");
        assert!(class_of("read_iter_zero: ").starts_with("f-hot"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_record_renders(record in arbitrary::anatomy(), unicode: bool, width in 20usize..120) {
        looks::keeps_to(width, unicode, |style| anatomy(&record, style));
        looks::is_only_coloured(|style| anatomy(&record, style));
        let other = Record::Anatomy(Box::new(record.clone()));
        let same = Record::Anatomy(Box::new(record.clone()));
        let sources = [&other, &same].map(|record| Source { name: "a", record, bytes: b"" });
        for part in parts(&sources).iter().filter(|part| part.name.contains("/difference")) {
            let form = if part.kind == crate::PartKind::Chart { svg } else { csv };
            let text = form(&sources, Some(&part.name)).unwrap();
            if text.starts_with("<svg") {
                looks::is_only_ours(&text);
            }
        }
        folded(&record);
        for picture in [flame(&record), difference(&record, &record)].iter().flatten() {
            looks::is_only_ours(picture);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_record_is_inert_in_every_form(record in arbitrary::anatomy()) {
        looks::is_inert(&Record::Anatomy(Box::new(record)));
    }
}

/// The record of the guide's example.
fn example() -> Anatomy {
    store::parse_anatomy(include_bytes!("../../../../docs/examples/dd-to-disk.json")).unwrap()
}

#[test]
fn names_of_layers_and_functions_are_whole_on_a_usual_terminal() {
    let record = example();
    let names = record.calls.iter().flat_map(|call| &call.layers).flat_map(|layer| {
        let waits = layer.waits.keys().map(|what| format!("{}, blocked: {what}", layer.layer));
        waits.chain(layer.functions.iter().map(|function| function.name.clone()))
    });
    let names: Vec<String> = names.collect();
    for width in [80, 90, 100, 120] {
        let text = anatomy(&record, &Style { width, ..Style::default() });
        let table = text.split("where the time went").nth(1).unwrap();
        let table = table.split("thread time").next().unwrap();
        assert!(!table.contains('…'), "{text}");
        assert!(table.contains("page cache and copying, blocked: device"), "{text}");
        let shown = names.iter().filter(|name| table.contains(name.as_str())).count();
        assert!(shown > 10, "{shown} at {width}");
    }
}

#[test]
fn a_program_has_the_name_that_its_user_knows_in_every_part() {
    let mut attached = record(8);
    let process = &mut attached.trace.processes[0];
    process.called = "redis-server".into();
    let (pid, exec) = (process.pid, process.exec.clone());
    let (mut block, mut slow) = (io(), timelines());
    block.requests.iter_mut().for_each(|row| (row.pid, row.exec) = (pid, exec.clone()));
    block.read_ahead.iter_mut().for_each(|row| (row.pid, row.exec) = (pid, exec.clone()));
    slow.calls.iter_mut().for_each(|row| (row.pid, row.exec) = (pid, exec.clone()));
    (attached.block, attached.timelines) = (Some(block), Some(slow));
    let lines = folded(&attached);
    assert!(lines.lines().all(|line| line.starts_with("redis-server;")), "{lines}");
    let text = anatomy(&attached, &Style { width: 140, ..Style::default() });
    for line in text
        .lines()
        .filter(|line| line.contains(&format!("{exec}:")) || line.contains(" requested "))
    {
        assert!(line.contains("redis-server"), "{line}");
    }
    assert!(text.contains("redis-server requested "), "{text}");
    assert!(text.contains(&format!("redis-server ({pid}) fsync")), "{text}");
}

#[test]
fn a_call_with_too_few_samples_says_so_in_its_own_row() {
    let mut record = example();
    let call = |name: &str, samples| DissectedCall {
        exec: "dd".into(),
        syscall: Some(name.into()),
        on_cpu_ns: 40_000_000,
        samples,
        ..DissectedCall::default()
    };
    record.calls = vec![call("execve", 0), call("exit_group", 4)];
    record.calls.push(DissectedCall { blocked_ns: 50_000_000, ..call("openat", 9) });
    let text = anatomy(&record, &Style::default());
    let line = |name: &str| text.lines().find(|line| line.trim().starts_with(name)).unwrap();
    assert!(line("execve").ends_with("   no sample"), "{text}");
    assert!(line("exit_group").ends_with("   too few samples (4)"), "{text}");
    assert!(line("openat").ends_with('%'), "{text}");
    assert_eq!(text.matches("on-CPU  ").count(), 1, "{text}");
}

#[test]
fn operations_of_rings_have_their_error_and_their_threads_are_in_the_sum() {
    let mut record = record(30);
    let residual = |text: &str| {
        let line = text.lines().find(|line| line.trim().starts_with("residual")).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().to_owned()
    };
    let before = residual(&anatomy(&record, &Style::default()));
    let threads: u64 = record.trace.ledger.iter().map(|row| row.thread_ns).sum();
    record.trace.ledger[0].worker_ns = 40_000_000;
    record.calls.push(DissectedCall {
        syscall: Some("ring:read".into()),
        error_ns: 7_000_000,
        ..dissected(None, vec![layer("VFS", 40, 0, &[("vfs_read", 40)])])
    });
    let text = anatomy(&record, &Style::default());
    let words = |name: &str| {
        let line = text.lines().find(|line| line.trim().starts_with(name)).unwrap();
        line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words("ring:read")[1..3], ["40.0", "7.0"], "{text}");
    let whole = format!("{:.1}", (threads + 40_000_000) as f64 / 1e6);
    assert!(words("thread time, with the CPU time of io_uring's").contains(&whole), "{text}");
    assert_eq!(residual(&text), before, "{text}");
    let page = looks::page_alone(&as_record(record));
    assert!(page.contains("thread time, with the CPU time of io_uring&#39;s"), "{page}");
}

#[test]
fn a_price_that_could_not_be_measured_is_not_nothing() {
    let mut record = example();
    record.sampling.price_ns_per_sample = 0.0;
    let text = anatomy(&record, &Style::default());
    assert!(text.contains("at 997 Hz; overhead of a sample unknown"), "{text}");
}
