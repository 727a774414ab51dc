//! The pages of anatomies in a real browser: their boxes zoom, are searched and walked by keys.

use crate::support;
use crate::support::anatomies;
use crate::support::browser;
use crate::support::pages;
use crate::support::records;

use std::path::Path;

use pages::Page;
use records::HOSTILE;

/// What a script about the flame graph begins with: its boxes by name, and keys that are pressed.
const FLAMES: &str = "
    const figure = document.querySelector('#r1-flame'), place = figure.querySelector('.draw');
    const points = Array.from(figure.querySelectorAll('.chart .point'));
    const named = name => points.find(p => p.dataset.tip.startsWith(name + ': '));
    const wide = name => Math.round(Number(named(name).querySelector('rect').getAttribute('width')));
    const seen = () => points.filter(p => !p.hasAttribute('hidden'));
    const press = key => place.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    const click = name => named(name).dispatchEvent(new MouseEvent('click', {bubbles: true}));
    const told = () => document.querySelector('#tip').hidden ? '' : document.querySelector('#tip').textContent;
    const tools = figure.querySelector('.tools'), search = tools.querySelector('input');
    const look = text => { search.value = text; search.dispatchEvent(new Event('input')); };
";

impl Page {
    fn flames(&mut self, script: &str) -> String {
        self.browser.text(&format!("{FLAMES} return String({script})"))
    }
}

#[test]
fn a_page_of_an_anatomy_has_every_box_and_moment() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut page) = Page::from_records(&[&anatomies::anatomy(folder.path())]) else { return };
    // dd, two calls, four functions in each, a sleep, and what no stack tells of.
    assert_eq!(page.points("r1-flame"), 13);
    // The threads, two calls with a layer each, a function, waiting for a CPU, and the residual.
    assert_eq!(page.points("r1-icicle"), 8);
    // Two causes in each of two bars.
    for of in ["sizes", "queued", "device"] {
        assert_eq!(page.points(&format!("r1-block-1-{of}")), 4);
    }
    // Four parts of the call, eight moments, and a bar of each of the five that begin something, one
    // of which has two.
    assert_eq!(page.points("r1-timeline-1"), 4 + 8 + 5);
    assert_eq!(page.column("r1-layers", 0), ["write", "fsync"]);
    assert_eq!(page.column("r1-block-io", 0), ["dd: fsync", "dd: fsync, journal"]);
    assert!(page.column("r1-functions", 0).contains(&"io_schedule".to_owned()));
    let times = page.column("r1-timeline-events", 1);
    assert_eq!(times.len(), 9);
    assert_eq!((times[0].as_str(), times[8].as_str()), ("4.8", "2,760.0"));
    page.has_no_text_over_text();
    page.keeps_pictures("anatomy");
    page.prints("anatomy");
}

#[test]
fn a_box_that_is_clicked_gets_all_of_the_width_and_escape_gives_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut page) = Page::from_records(&[&anatomies::anatomy(folder.path())]) else { return };
    // 45 of 75 ms are those of write.
    assert_eq!(page.flames("[wide('dd'), wide('write'), wide('ksys_write')]"), "760,456,405");
    assert_eq!(page.flames("(click('ksys_write'), wide('ksys_write'))"), "760");
    // What it stands on is as wide, what stands on it as wide as it was in it, and the rest is gone.
    assert_eq!(page.flames("[wide('write'), wide('dd'), seen().length]"), "760,760,6");
    let where_ = page.flames("tools.textContent");
    assert!(
        where_.contains("Show all") && where_.contains("ksys_write: 40 ms, 53.3 %"),
        "{where_}"
    );
    page.has_no_text_over_text();
    assert_eq!(page.flames("(press('Escape'), [wide('ksys_write'), seen().length])"), "405,13");
    // A click on what it stands on goes one step back; the button goes all of them.
    assert_eq!(page.flames("(click('do_syscall_64'), click('write'), wide('write'))"), "760");
    assert_eq!(page.flames("(tools.querySelector('button').click(), wide('write'))"), "456");
    assert_eq!(page.flames("tools.querySelector('button').hidden"), "true");
    // The names are cut to their boxes again.
    let names =
        page.flames("points.map(p => (p.querySelector('text') || p).textContent).join(' ')");
    assert!(names.contains("copy_folio_from_iter_atomic"), "{names}");
}

#[test]
fn what_is_searched_is_marked_with_its_share() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut page) = Page::from_records(&[&anatomies::anatomy(folder.path())]) else { return };
    let marked = "[figure.querySelectorAll('.found').length, tools.textContent.includes(WHAT)]";
    let marked = |what: &str| marked.replace("WHAT", &format!("'{what}'"));
    // In both stacks: 70 of 75 ms, whichever boxes stand on each other.
    let found = page.flames(&format!("(look('SYSCALL'), {})", marked("4 found, 93.3 %")));
    assert_eq!(found, "4,true");
    // Of what is looked at closely, the share of that.
    let found = page.flames(&format!("(click('write'), {})", marked("2 found, 88.9 %")));
    assert_eq!(found, "4,true");
    let found = page.flames(&format!("(press('Escape'), look('nowhere'), {})", marked("0 found")));
    assert_eq!(found, "0,true");
    assert_eq!(page.flames(&format!("(look(''), {})", marked("found"))), "0,false");
}

#[test]
fn the_keyboard_walks_from_box_to_box() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut page) = Page::from_records(&[&anatomies::anatomy(folder.path())]) else { return };
    assert_eq!(page.flames("(place.focus(), document.activeElement === place)"), "true");
    for (key, name) in [
        ("ArrowUp", "write: 45 ms, 60.0 %"),
        ("ArrowLeft", "fsync: 30 ms, 40.0 %"),
        ("ArrowLeft", "fsync: 30 ms"),
        ("ArrowRight", "write: 45 ms"),
        ("ArrowUp", "entry_SYSCALL_64_after_hwframe: 40 ms"),
        ("ArrowDown", "write: 45 ms"),
        ("Enter", "write: 45 ms"),
        ("ArrowUp", "entry_SYSCALL_64_after_hwframe: 40 ms, 53.3 %; 88.9 % of write"),
    ] {
        let said = page.flames(&format!("(press('{key}'), told())"));
        assert!(said.starts_with(name), "{key}: {said}");
    }
    assert_eq!(page.flames("wide('write')"), "760");
    assert_eq!(page.flames("(press('Escape'), [told(), wide('write')])"), ",456");
    // The icicle hangs from its whole: there, down goes to the parts.
    let down = page.browser.text(
        "const place = document.querySelector('#r1-icicle .draw'); place.focus();
         place.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown'}));
         return document.querySelector('#tip').textContent",
    );
    assert!(down.starts_with("write: 45 ms, 45.0 %"), "{down}");
}

#[test]
fn two_anatomies_show_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let (before, now) = (anatomies::anatomy(folder.path()), anatomies::faster(folder.path()));
    let Some(mut page) = Page::from_records(&[&before, &now]) else { return };
    assert_eq!(page.points("r1-difference"), 0);
    // Two calls, four functions in each, a sleep, what no stack tells of, and the whole.
    assert_eq!(page.points("r2-difference"), 13);
    let tips = page.browser.text(
        "return Array.from(document.querySelectorAll('#r2-difference .chart .point'),
           p => p.querySelector('rect').getAttribute('class') + ' ' + p.dataset.tip).join('\\n')",
    );
    assert!(tips.contains("f-less2 apart write −20 ms: 45 ms before, 25 ms now"), "{tips}");
    assert!(tips.contains("f-same apart fsync: 30 ms before, 30 ms now"), "{tips}");
    assert_eq!(page.column("r2-differences", 5)[0], "-20.0");
    page.has_no_text_over_text();
    page.keeps_pictures("anatomies");
    page.prints("anatomies");
}

#[test]
fn hostile_names_are_words_in_boxes_and_moments() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut page) = Page::from_records(&[&anatomies::hostile_anatomy(folder.path())]) else {
        return;
    };
    // Also when what was a title is written into a box anew.
    page.flames("(points.forEach(p => p.dispatchEvent(new MouseEvent('click', {bubbles: true}))), look('<img'))");
    assert_eq!(page.browser.run("return window.hacked === undefined"), true);
    assert_eq!(page.browser.count("return document.querySelectorAll('img').length"), 0);
    assert_eq!(page.browser.count("return document.scripts.length"), 1);
    let tips = page.flames("points.map(p => p.dataset.tip).join()");
    assert!(tips.contains(&HOSTILE[..40]) && !tips.contains('\u{1b}'), "{tips}");
}

#[test]
fn without_scripts_a_flame_graph_is_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let path = anatomies::anatomy(folder.path());
    let Some(mut browser) = browser::Browser::start(1280, 1000) else { return };
    let page = folder.path().join("page.html");
    let made = support::iotomy(&["report", "-o"]).arg(&page).arg(&path).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    browser.without_scripts();
    browser.open(&page);
    let count = |browser: &mut browser::Browser, what: &str| {
        browser.count(&format!("return document.querySelectorAll('#r1-flame {what}').length"))
    };
    assert_eq!(count(&mut browser, ".point title"), 13);
    assert_eq!(count(&mut browser, "input, button"), 0);
    let wide = browser.run(
        "return Array.from(document.querySelectorAll('#r1-flame .point rect'))
           .every(r => r.getBoundingClientRect().width > 10)",
    );
    assert_eq!(wide, true);
}

/// The example of the guide, which is a real one.
#[test]
fn a_page_of_a_usual_anatomy_is_below_a_mebibyte() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/dd-to-disk.json");
    let page = support::iotomy(&["report", "-o", "-"]).arg(example).output().unwrap();
    assert!(page.status.success(), "{page:?}");
    assert!(page.stdout.len() < 1 << 20, "{} bytes", page.stdout.len());
}
