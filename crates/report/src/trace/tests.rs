use iotomy_record::store::Record;
use iotomy_record::{Quantity, Ring, Running, SortKey, Trace, arbitrary};
use proptest::prelude::*;

use super::*;
use crate::looks;

pub(crate) mod records;

fn rendered(record: &Trace) -> String {
    trace(record, &Style::default())
}

macro_rules! golden {
    ($test:ident, $text:expr) => {
        #[test]
        fn $test() {
            insta::assert_snapshot!($text);
        }
    };
}

mod nothing;
mod overhead;
mod peers;
mod requests;
mod sample;
mod threads;
mod titles;

golden!(one_process, rendered(&records::dd()));
golden!(a_part_of_the_time, rendered(&sample::sampled(records::dd())));
golden!(a_part_of_the_time_of_a_tree, rendered(&sample::sampled(records::shell_tree())));
golden!(a_part_of_the_time_brief, trace_brief(&sample::sampled(records::dd()), &Style::default()));
golden!(a_tree_of_processes, rendered(&records::shell_tree()));
golden!(seen_by_ptrace, rendered(&records::by_ptrace()));
golden!(killed_by_a_signal, rendered(&records::killed()));
golden!(attached_to_a_process, rendered(&records::attached()));
golden!(by_thread, rendered(&records::threads()));
golden!(by_long_texts, rendered(&records::grouped()));
golden!(ring_operations, rendered(&records::rings()));
golden!(quantities_of_ring_operations, {
    let mut record = records::rings();
    record.calls.clear();
    record.view.calls = vec!["ring:read".into(), "%ring".into()];
    record.view.quantize = vec![Quantity::Return, Quantity::Wall, Quantity::Blocked];
    rendered(&record)
});
golden!(an_interval, crate::interval(&records::interval(), &Style::default()));
golden!(ring_operations_of_an_interval, {
    let mut record = records::interval();
    record.ring_operations = records::rings().ring_operations;
    record.ring_operations[0].max_is_bound = true;
    record.observer.lost_requests = 2;
    crate::interval(&record, &Style::default())
});
golden!(the_slowest_calls_of_an_interval, {
    let mut record = records::interval();
    record.slowest = records::ended_by_a_call().ended_by.map(|end| end.call).into_iter().collect();
    crate::interval(&record, &Style::default())
});
golden!(ended_by_a_call, rendered(&records::ended_by_a_call()));
golden!(ended_by_no_call, rendered(&records::ended_by_no_call()));
golden!(attached_to_the_machine, rendered(&records::idle_machine()));
golden!(a_watch_that_ended_before_its_command, rendered(&records::cut_short()));
golden!(nothing_at_all, rendered(&records::empty()));
golden!(many_images, rendered(&records::many()));
golden!(identical_images_put_together, rendered(&records::rolled_up()));
golden!(every_row, {
    let mut record = records::dd();
    record.view.top = Some(0);
    record.view.sort = SortKey::NAME;
    record.view.quantize = vec![Quantity::Blocked];
    rendered(&record)
});
golden!(every_quantity, {
    let mut record = records::attached();
    record.view.quantize =
        vec![Quantity::Blocked, Quantity::Return, Quantity::OnCpu, Quantity::Wall, Quantity::Wall];
    rendered(&record)
});
golden!(ascii, {
    let mut record = records::shell_tree();
    record.processes[1].argv.push("naïve".into());
    trace(&record, &Style { unicode: false, ..Style::default() })
});
golden!(narrow, trace(&records::dd(), &Style { width: 60, ..Style::default() }));

#[test]
fn a_headline_keeps_its_end_on_a_narrow_terminal() {
    let words = |width| {
        let text = trace(&records::attached(), &Style { width, ..Style::default() });
        let headline = text.split("\n\n").next().unwrap_or_default();
        headline.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // What joins two parts on a line is not there where they are on two.
    let parts = |width| words(width).into_iter().filter(|word| word != "·").collect::<Vec<_>>();
    for width in [40, 50, 60, 75] {
        assert_eq!(parts(width), parts(400), "{width} columns");
    }
}

golden!(colours, trace(&records::killed(), &Style { color: true, ..Style::default() }));

fn as_record(trace: Trace) -> Record {
    Record::Trace(Box::new(trace))
}

golden!(a_page, looks::page_alone(&as_record(records::shell_tree())));
golden!(a_page_of_little, looks::page_alone(&as_record(records::by_ptrace())));
golden!(a_page_by_thread, looks::page_alone(&as_record(records::threads())));
golden!(other_forms, looks::other_forms(&as_record(records::dd())));
golden!(
    other_forms_of_a_part_of_the_time,
    looks::other_forms(&as_record(sample::sampled(records::dd())))
);

#[test]
fn rows_follow_the_sort_key() {
    let first = |sort| {
        let mut record = records::dd();
        record.view.sort = sort;
        let text = rendered(&record);
        let table =
            text.lines().skip_while(|l| !l.starts_with("  call ")).nth(2).unwrap().to_string();
        table.split_whitespace().next().unwrap().to_string()
    };
    assert_eq!(first(SortKey::WALL), "write");
    assert_eq!(first(SortKey::ON_CPU), "write");
    assert_eq!(first(SortKey::BLOCKED), "write");
    assert_eq!(first(SortKey::CALLS), "read");
    assert_eq!(first(SortKey::ERRORS), "openat");
    let longest = records::dd().calls.into_iter().max_by_key(|call| call.ended().max_ns);
    assert_eq!(Some(first(SortKey::MAX)), longest.map(|call| call.syscall));
    // Equal: by name.
    assert_eq!(first(SortKey::BYTES), "read");
    assert_eq!(first(SortKey::NAME), "access");
}

#[test]
fn every_table_follows_the_keys_of_its_columns() {
    let rows = |key: &str, table: &str| {
        let mut record = if table == "thread" { records::threads() } else { records::shell_tree() };
        record.view.sort = SortKey::named(key).unwrap();
        let text = rendered(&record);
        let rows = text.lines().skip_while(|line| !line.starts_with(&format!("  {table}  ")));
        let rows = rows.skip(1).take_while(|line| !line.is_empty());
        rows.map(|row| row.split_whitespace().next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let [usual, reads, name] = ["wall", "reads", "name"].map(|key| rows(key, "file"));
    assert_ne!(usual, reads);
    assert!(name[..name.len() - 1].is_sorted(), "{name:?}");
    assert_eq!(rows("written", "call"), rows("wall", "call"), "they have no such column");
    assert_ne!(rows("involuntary", "thread"), rows("errors", "thread"));
}

#[test]
fn ring_operations_follow_the_sort_key() {
    let first = |sort| {
        let mut record = records::rings();
        record.ring_operations[3].max_ns = 9_000_000;
        record.view.sort = sort;
        let text = rendered(&record);
        let row = text.lines().skip_while(|l| !l.starts_with("  ring operation ")).nth(2).unwrap();
        row.split_whitespace().next().unwrap().to_string()
    };
    assert_eq!(first(SortKey::WALL), "read");
    assert_eq!(first(SortKey::MAX), "nop");
    assert_eq!(first(SortKey::NAME), "accept");
}

#[test]
fn processes_follow_the_sort_key() {
    let first = |sort| {
        let mut record = records::rolled_up();
        record.view.sort = sort;
        let text = rendered(&record);
        let row = text.lines().skip_while(|l| !l.starts_with("  process ")).nth(2).unwrap();
        row.split_whitespace().next().unwrap().to_string()
    };
    assert_eq!(first(SortKey::WALL), "make");
    assert_eq!(first(SortKey::ON_CPU), "cc1");
    assert_eq!(first(SortKey::BLOCKED), "make");
    assert_eq!(first(SortKey::CALLS), "cc1");
    assert_eq!(first(SortKey::NAME), "cc1");
    let mut each = records::rolled_up();
    each.view.each = true;
    assert!(!rendered(&each).contains("before exec"), "each was asked for");
}

#[test]
fn children_that_were_there_before_are_said_to_be_unwatched() {
    let mut record = records::attached();
    assert!(!rendered(&record).contains("not watched"));
    record.unwatched_children = vec![Running { pid: 77, exec: "worker".into() }];
    let text = rendered(&record);
    assert!(text.contains("not watched  worker (77): started before the watch"), "{text}");
}

#[test]
fn an_exec_is_no_second_thread() {
    let mut record = records::dd();
    let mut next = record.processes[0].clone();
    (next.exec, next.continued) = ("true".into(), 1);
    record.processes.push(next);
    assert!(!rendered(&record).contains("thread times are summed"));
    record.processes[1].threads = 2;
    assert!(rendered(&record).contains("thread times are summed over 2 threads"));
}

#[test]
fn zero_rows_means_all_of_them() {
    let mut record = records::many();
    record.view.top = Some(0);
    let text = rendered(&record);
    assert!(!text.contains("--top"), "{text}");
    assert!(text.contains("cc1 (5000)"));
    record.view.top = Some(1);
    let text = rendered(&record);
    assert!(text.contains("… 23 more (--top 24)"), "{text}");
}

#[test]
fn what_was_waited_for_is_not_advised_to_be() {
    let mut record = records::cut_short();
    assert!(!rendered(&record).contains("--wait"), "the time ended the watch");
    record.still_running.remove(0);
    assert!(rendered(&record).contains("; to wait for them: --wait"));
    record.view.wait = true;
    assert!(rendered(&record).contains("; the watch ended before them"));
    for (goes_on, is_told) in [(false, true), (true, false)] {
        record.ring = Some(Ring { goes_on, ..Ring::default() });
        assert_eq!(rendered(&record).contains("still running"), is_told, "{goes_on}");
    }
}

#[test]
fn the_ledger_adds_up_to_all_of_the_time() {
    for record in [records::dd(), records::shell_tree(), records::killed(), records::attached()] {
        let shares = ledger_shares(&rendered(&record));
        let (all, parts) = shares.split_last().unwrap();
        assert_eq!(*all, 100.0);
        let sum: f64 = parts.iter().sum();
        assert!((sum - 100.0).abs() <= 0.05 * parts.len() as f64 + 1e-6, "{shares:?}");
    }
}

/// The column of shares under "where the time went", the last being of the whole.
fn ledger_shares(text: &str) -> Vec<f64> {
    let rows = text.lines().skip_while(|l| !l.contains("where the time went")).skip(1);
    let mut shares = Vec::new();
    for row in rows {
        let Some((before, _)) = row.split_once(" %") else { break };
        shares.push(before.split_whitespace().last().unwrap().replace(',', "").parse().unwrap());
    }
    shares
}

#[test]
fn a_saved_record_renders_as_the_one_that_was_saved() {
    for record in [records::dd(), records::many(), records::by_ptrace()] {
        let bytes = iotomy_record::store::RecordRef::Trace(&record).json().unwrap();
        let loaded = iotomy_record::store::parse_trace(&bytes).unwrap();
        assert_eq!(rendered(&loaded), rendered(&record));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_record_renders_within_its_width(
        record in arbitrary::trace(), width in 0usize..200, unicode: bool,
    ) {
        looks::keeps_to(width, unicode, |style| trace(&record, style));
    }

    #[test]
    fn colour_changes_nothing_else(record in arbitrary::trace()) {
        looks::is_only_coloured(|style| trace(&record, style));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_record_is_inert_in_every_form(record in arbitrary::trace()) {
        looks::is_inert(&as_record(record));
    }
}

#[test]
fn a_run_with_a_ring_is_not_said_to_have_read_nothing() {
    let mut record = records::empty();
    record.view.files = true;
    assert!(rendered(&record).contains("no counted call read, wrote or mapped a file\n"));
    let call =
        iotomy_record::Call { syscall: "io_uring_enter".into(), calls: 9, ..Default::default() };
    record.calls.push(call);
    let text = rendered(&record);
    assert!(text.contains("what its rings did was not watched"), "{text}");
    record.observer.sees_rings = Some(true);
    assert!(!rendered(&record).contains("io_uring:"));
}

#[test]
fn requests_of_a_submission_are_told_where_the_program_submits_them() {
    let mut record = records::rings();
    // Of those of a submission thread it is not known.
    record.ring_operations.retain(|row| row.sqpoll == 0);
    let submitted: u64 = record.ring_operations.iter().map(|row| row.submitted).sum();
    assert_eq!(submitted, 772);
    let enter = record.calls.iter_mut().find(|call| call.syscall == "io_uring_enter").unwrap();
    (0..200).for_each(|_| enter.return_log2.add(4));
    enter.return_log2.add(0);
    let text = rendered(&record);
    assert!(
        text.contains("  3.9 requests a submission, by 200 calls of io_uring_enter\n"),
        "{text}"
    );
    assert!(!text.contains("in the ring before"), "{text}");
    record.ring_operations[0].sqpoll = 1;
    let text = rendered(&record);
    assert!(!text.contains("a submission"), "{text}");
    assert!(text.contains("sqpoll: the time of a request begins when"), "{text}");
}

#[test]
fn what_classic_asynchronous_io_moves_is_said_not_to_be_seen() {
    let mut record = records::dd();
    assert!(!rendered(&record).contains("io_submit"));
    let call = iotomy_record::Call { syscall: "io_submit".into(), calls: 9, ..Default::default() };
    record.calls.push(call);
    let text = rendered(&record);
    assert!(text.contains("what classic asynchronous I/O read and wrote is not seen"), "{text}");
}

#[test]
fn a_cut_command_line_has_the_number_of_its_words_and_an_empty_word_is_seen() {
    let mut record = records::shell_tree();
    let one = record.processes.iter_mut().find(|one| !one.before_exec).unwrap();
    one.argv = (0..300).map(|n| format!("word{n}")).chain(["…".to_owned()]).collect();
    one.argv_words = 1_200;
    let text = rendered(&record);
    assert!(text.contains("word0") && text.contains(" (1,200 words)\n"), "{text}");
    let page = looks::page_alone(&as_record(record.clone()));
    assert!(page.contains(" (1,200 words)</td>"), "{page}");
    for process in &mut record.processes {
        (process.argv, process.argv_words) = (vec![String::new()], 0);
    }
    let text = rendered(&record);
    assert!(text.lines().any(|line| line.ends_with(")   ''")), "{text}");
}
