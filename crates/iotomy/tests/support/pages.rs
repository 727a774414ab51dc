//! A page of `iotomy report` in a browser, and what holds for every one.

use std::path::Path;

use tempfile::TempDir;

use crate::support::browser::{Browser, pictures};
use crate::support::iotomy;

/// A page of records, in a browser.
pub(crate) struct Page {
    pub(crate) browser: Browser,
    folder: TempDir,
}

impl Page {
    /// None where there is no browser.
    pub(crate) fn from_records(records: &[&Path]) -> Option<Self> {
        let browser = Browser::start(1280, 1000)?;
        let folder = tempfile::tempdir().unwrap();
        let mut page = Self { browser, folder };
        let file = page.folder.path().join("report.html");
        let mut command = iotomy(&["report", "-o"]);
        let made = command.arg(&file).args(records).output().unwrap();
        assert!(made.status.success() && made.stderr.is_empty(), "{made:?}");
        page.browser.open(&file);
        page.asks_nobody();
        let ready = "return document.documentElement.dataset.ready !== undefined";
        assert_eq!(page.browser.run(ready), true, "the script ran to its end");
        Some(page)
    }

    /// Nothing is said on the console, and nothing asked for but the file itself.
    fn asks_nobody(&mut self) {
        assert_eq!(self.browser.console_messages(), [""; 0]);
        let strange =
            |url: &String| !["file:", "data:", "blob:"].iter().any(|ours| url.starts_with(ours));
        let strange: Vec<String> = self.browser.requests().into_iter().filter(strange).collect();
        assert_eq!(strange, [""; 0]);
        let loaded = "return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length";
        assert_eq!(self.browser.count(loaded), 0);
    }

    /// A picture of it in both widths and both colours, in which nothing runs out of its place.
    pub(crate) fn keeps_pictures(&mut self, name: &str) {
        for (wide, theme) in [(1280, "light"), (480, "light"), (1280, "dark"), (480, "dark")] {
            self.browser.resize(wide, 1000);
            self.browser.run(&format!("document.documentElement.dataset.theme = '{theme}'"));
            let over = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(self.browser.run(over), 0, "{name} at {wide} is not wider than its window");
            self.browser.picture(&pictures().join(format!("{name}-{wide}-{theme}.png")));
        }
        self.asks_nobody();
    }

    /// In windows so wide nothing is outside of the window, but for what scrolls in a box of its own, and nothing is cut
    /// off; in the widest one no words of a table have to be scrolled to.
    pub(crate) fn fits_its_windows(&mut self) {
        for wide in [400, 800, 1280] {
            self.browser.resize(wide, 1000);
            let found = self.browser.run(
                "const page = document.documentElement, wide = page.clientWidth, bad = [];
                 if (page.scrollWidth > wide) bad.push('the page: ' + page.scrollWidth);
                 const tell = (what, e) => bad.push(what + ' ' + e.tagName + ' in ' + (e.closest('[id]') || e).id + ': '
                   + e.textContent.slice(0, 60));
                 const box = e => e.parentElement && e.parentElement.closest('.scroll, .draw, nav');
                 for (const e of document.querySelectorAll('body *')) {
                   const at = e.getBoundingClientRect(), style = getComputedStyle(e);
                   if (!at.width || !at.height || e.matches('.skip, .table caption')) continue;
                   if (at.right > wide + 1 && !box(e)) tell('outside', e);
                   if (['hidden', 'clip'].includes(style.overflowX) && e.scrollWidth > e.clientWidth + 1) tell('cut', e);
                 }
                 for (const e of document.querySelectorAll('.scroll td.w, .scroll th.w'))
                   if (wide >= 1280 && e.getBoundingClientRect().right > box(e).getBoundingClientRect().right + 1)
                     tell('to be scrolled to', e);
                 return bad;",
            );
            assert_eq!(found.as_array().unwrap().len(), 0, "at {wide}: {found:#}");
        }
    }

    /// Texts of a picture do not lie on each other.
    pub(crate) fn has_no_text_over_text(&mut self) {
        let found = self.browser.run(
            "const bad = [];
             for (const chart of document.querySelectorAll('.chart:not(.key)')) {
               const boxes = Array.from(chart.querySelectorAll('text'), t => [t.textContent, t.getBoundingClientRect()]);
               boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
                 if (x.width && y.width && x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 3 && y.top < x.bottom - 3)
                   bad.push(a + ' / ' + b);
               }));
             }
             return bad;",
        );
        assert_eq!(found.as_array().unwrap().len(), 0, "{found}");
    }

    pub(crate) fn points(&mut self, figure: &str) -> u64 {
        self.browser.count(&format!(
            "return document.querySelectorAll('figure[id=\"{figure}\"] .chart .point').length"
        ))
    }

    /// Cells of a column of a table, those that are shown.
    pub(crate) fn column(&mut self, table: &str, column: usize) -> Vec<String> {
        let found = self.browser.run(&format!(
            "return Array.from(document.querySelector('#{table} tbody').rows).filter(r => !r.hidden)\
             .map(r => r.cells[{column}].textContent)"
        ));
        found.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn click_head(&mut self, table: &str, column: usize) -> String {
        self.browser.text(&format!(
            "const head = document.querySelectorAll('#{table} thead th')[{column}];\
             head.querySelector('button').click(); return head.getAttribute('aria-sort')"
        ))
    }

    /// On paper there is nothing to press, no dark ground, nothing cut at the right, and nothing folded.
    pub(crate) fn prints(&mut self, name: &str) {
        self.browser.run("document.documentElement.dataset.theme = 'dark'");
        // A4 less Chromium's own margins, in the units of CSS.
        self.browser.resize(718, 1000);
        self.browser.print_media("print");
        let over = self.browser.run(
            "const wide = document.documentElement.clientWidth;
             const out = e => { const box = e.getBoundingClientRect(); return box.width && box.right > wide + 1; };
             return Array.from(document.querySelectorAll('table, svg, pre, p, h1, h2, li, dd'))
               .filter(out).map(e => e.tagName + ' ' + (e.closest('[id]') || e).id + ' ' + e.getBoundingClientRect().right);",
        );
        assert_eq!(over.as_array().unwrap().len(), 0, "{name}: {over}");
        let pressed = self.browser.run(
            "const seen = e => e.getClientRects().length && getComputedStyle(e).visibility === 'visible';
             const bare = e => { const s = getComputedStyle(e); return parseFloat(s.borderTopWidth) === 0; };
             return Array.from(document.querySelectorAll('button, input, output, nav, a.get, #tip'))
               .filter(e => seen(e) && !(bare(e) && e.closest('th, .legend')))
               .map(e => e.outerHTML.slice(0, 80));",
        );
        assert_eq!(pressed.as_array().unwrap().len(), 0, "{name}: {pressed}");
        let colours = self.browser.text(
            "const s = getComputedStyle(document.body); return s.color + ' on ' + s.backgroundColor",
        );
        assert_eq!(colours, "rgb(22, 25, 29) on rgb(255, 255, 255)");
        let scrolls = self.browser.count(
            "return Array.from(document.querySelectorAll('.scroll, .draw')).filter(e => e.scrollWidth > e.clientWidth + 1).length",
        );
        assert_eq!(scrolls, 0, "{name}: on paper nothing scrolls");
        self.browser.paper(&pictures().join(format!("{name}.pdf")));
        self.browser.print_media("");
        self.asks_nobody();
    }
}
