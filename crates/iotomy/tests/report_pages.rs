//! The pages of `iotomy report` in a real browser: nothing is asked of anybody, the pictures have what
//! the records have, and what a reader can do with them works.

use crate::support;
use crate::support::anatomies;
use crate::support::pages;
use crate::support::records;

use std::fs;
use std::path::{Path, PathBuf};

use iotomy_record::store::{Record, load};
use pages::Page;
use records::HOSTILE;
use support::traced;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/dd-and-cat.json")
}

#[test]
fn a_page_of_a_trace_sorts_filters_and_tells() {
    let script = "for n in 1 2 3 4 5 6; do head -c 100000 /dev/zero | cat > /dev/null; done; ls /nonexistent";
    let traced = traced("auto", &["-q", "--files"], &["sh", "-c", script]);
    let Some(mut page) = Page::from_records(&[&traced.json()]) else { return };
    let Record::Trace(record) = load(traced.json()).unwrap() else { panic!("a trace") };
    let mut names: Vec<&str> = record.calls.iter().map(|call| call.syscall.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut shown = page.column("r1-calls", 0);
    shown.sort();
    assert_eq!(shown, names);
    // By words from A, by numbers from the largest; again turns it round.
    assert_eq!(page.click_head("r1-calls", 0), "ascending");
    assert!(page.column("r1-calls", 0).is_sorted());
    assert_eq!(page.click_head("r1-calls", 0), "descending");
    assert!(page.column("r1-calls", 0).iter().rev().is_sorted());
    assert_eq!(page.click_head("r1-calls", 1), "descending");
    let calls: Vec<u64> = page
        .column("r1-calls", 1)
        .iter()
        .map(|text| text.replace(',', "").parse().unwrap())
        .collect();
    assert!(calls.iter().rev().is_sorted(), "{calls:?}");
    assert_eq!(calls.iter().sum::<u64>(), record.calls.iter().map(|call| call.calls).sum::<u64>());
    page.browser.run(
        "const input = document.querySelector('#r1-calls input'); input.value = 'WRITE';\
         input.dispatchEvent(new Event('input'))",
    );
    let left = page.column("r1-calls", 0);
    assert!(!left.is_empty() && left.iter().all(|name| name.contains("write")), "{left:?}");
    assert!(page.points("r1-ledger") > 2);
    // The keyboard goes from figure to figure.
    let told = page.browser.text(
        "const frame = document.querySelector('#r1-ledger .draw'); frame.focus();\
         frame.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));\
         return document.querySelector('#tip').hidden ? '' : document.querySelector('#tip').textContent",
    );
    assert!(told.contains(" ms"), "{told}");
    page.browser.run("document.activeElement.blur()");
    page.has_no_text_over_text();
    page.keeps_pictures("trace");
    page.prints("trace");
}

#[test]
fn a_page_of_a_race_has_every_run_and_its_record() {
    let Some(mut page) = Page::from_records(&[&example()]) else { return };
    let Record::Race(record) = load(example()).unwrap() else { panic!("a race") };
    assert_eq!(page.points("r1-runs-in-order"), record.order.len() as u64);
    let rounds = record.rounds.iter().filter(|round| !round.redone).count() as u64;
    assert_eq!(page.points("r1-pairs-a-b"), rounds);
    assert!(page.points("r1-waterfall-a-b") > 3);
    assert_eq!(page.column("r1-commands", 0), ["A", "B"]);
    // The legend takes a command's runs away, and gives them back.
    let toggle = "document.querySelector('#r1-runs-in-order .legend button').click();\
                  return Array.from(document.querySelectorAll('#r1-runs-in-order .chart .point'))\
                  .filter(p => p.getBoundingClientRect().width > 0).length";
    let of_b = record.commands[1].runs.len() as u64;
    assert_eq!(page.browser.count(toggle), of_b);
    assert_eq!(page.browser.count(toggle), record.order.len() as u64);
    // What is downloaded is the record, to the byte.
    let size = page.browser.count(
        "const link = document.querySelector('a.get');\
         const packed = Uint8Array.from(atob(link.href.slice(link.href.indexOf(',') + 1)), c => c.charCodeAt(0));\
         const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));\
         return new Response(stream).arrayBuffer().then(b => b.byteLength)",
    );
    assert_eq!(size, fs::metadata(example()).unwrap().len());
    page.has_no_text_over_text();
    page.keeps_pictures("race");
    page.prints("race");
}

#[test]
fn a_page_of_a_sweep_has_a_point_a_case() {
    let folder = tempfile::tempdir().unwrap();
    let path = records::sweep(folder.path());
    let Some(mut page) = Page::from_records(&[&path]) else { return };
    let Record::Sweep(record) = load(&path).unwrap() else { panic!("a sweep") };
    let measured = record.cases.iter().filter(|case| case.median.is_some()).count() as u64;
    assert_eq!(page.points("r1-chart"), measured);
    let hidden = page.browser.count(
        "document.querySelector('#r1-chart .legend button').click();\
         return document.querySelectorAll('#r1-chart g[hidden] .point').length",
    );
    assert_eq!(hidden, measured / 2);
    page.browser.run("document.querySelector('#r1-chart .legend button').click()");
    let verdicts = page.browser.text(
        "return Array.from(document.querySelectorAll('#r1 .findings .badge'), b => b.textContent).join(' ')",
    );
    assert_eq!(verdicts, "holds fails");
    page.has_no_text_over_text();
    page.keeps_pictures("sweep");
    page.prints("sweep");
}

#[test]
fn a_page_of_several_records_holds_results_against_the_ceiling() {
    let folder = tempfile::tempdir().unwrap();
    let (limits, impossible) = (records::limits(folder.path()), records::impossible(folder.path()));
    let copy = records::copy(folder.path());
    let Some(mut page) = Page::from_records(&[&impossible, &limits, &copy]) else { return };
    let kinds = page.browser.text(
        "return Array.from(document.querySelectorAll('.record'), s => s.dataset.kind).join(' ')",
    );
    assert_eq!(kinds, "trace limits copy");
    assert_eq!(page.browser.count("return document.querySelectorAll('.top nav a').length"), 3);
    // The verdict is on the picture itself, in both records.
    for figure in ["r1-ceilings", "r2-ceilings"] {
        let verdict = page.browser.text(&format!(
            "return document.querySelector('#{figure} .chart .verdict').textContent"
        ));
        assert_eq!(verdict, "IMPOSSIBLE");
        assert!(page.points(figure) > 0);
    }
    assert_eq!(page.points("r2-machine-floors-chart"), 3);
    page.has_no_text_over_text();
    page.keeps_pictures("limits");
    page.prints("limits");
}

#[test]
fn nothing_of_a_page_is_outside_its_window_or_cut_off() {
    let script = "head -c 100000 /dev/zero | cat > /dev/null; ls /nonexistent-directory/of-a-long-name /usr/bin /etc";
    let options = ["-q", "--files", "--paths", "--threads", "--slowest", "20", "--by", "call,path"];
    let traced = traced("auto", &options, &["sh", "-c", script]);
    let folder = tempfile::tempdir().unwrap();
    let sweep = records::sweep(folder.path());
    let anatomy = anatomies::anatomy(folder.path());
    let all = [traced.json(), example(), anatomy, sweep];
    let all: Vec<&Path> = all.iter().map(PathBuf::as_path).collect();
    let Some(mut page) = Page::from_records(&all) else { return };
    page.fits_its_windows();
}

#[test]
fn hostile_names_are_words_in_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = records::hostile(folder.path());
    let Some(mut page) = Page::from_records(&[&path]) else { return };
    assert_eq!(page.browser.run("return window.hacked === undefined"), true);
    assert_eq!(
        page.browser.count("return document.querySelectorAll('img, iframe, object').length"),
        0
    );
    assert_eq!(page.browser.count("return document.scripts.length"), 1);
    let text = page.browser.text("return document.body.textContent");
    assert!(text.contains(HOSTILE) && !text.contains('\u{1b}'), "it is shown as it is");
    // Also what a page would add of them later.
    let added = "const div = document.createElement('div'); document.body.append(div);\
                 div.innerHTML = '<img src=x onerror=\"window.hacked = 1\">';\
                 return new Promise(done => setTimeout(() => done(window.hacked === undefined), 100))";
    assert_eq!(page.browser.run(added), true, "the policy keeps handlers from running");
}

/// Rows that are drawn are bounded, whatever the record: time is measured by `make bench-report`.
#[test]
fn a_page_of_a_large_record_is_bounded_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = records::large(folder.path(), 4 << 20);
    let Some(mut page) = Page::from_records(&[&path]) else { return };
    let elements = page.browser.count("return document.querySelectorAll('*').length");
    assert!(elements < 30_000, "{elements} elements");
    let hidden = page.browser.text("return document.querySelector('.hidden-rows').textContent");
    assert!(hidden.contains("--csv --part calls-of-processes"), "{hidden}");
    assert!(page.browser.count("return document.querySelectorAll('tbody tr').length") < 2_500);
}
