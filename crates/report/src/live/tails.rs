//! How long the calls of processes took since the last refresh, waits for work apart.

use std::collections::HashMap;

use iotomy_record::calls::is_idle_wait;
use iotomy_record::{Call, ImageCounts, ProcessCounts, Times};

use super::screen::Screen;

/// By process id and program.
pub(super) struct Tails<'s>(HashMap<(u32, &'s str), Times>);

impl<'s> Tails<'s> {
    pub(super) fn from_screen(screen: &'s Screen) -> Self {
        let before: HashMap<u32, &ImageCounts> =
            screen.before.images.iter().map(|image| (image.id, image)).collect();
        let times = screen.now.images.iter().map(|image| {
            let earlier = before.get(&image.id).copied().or_else(|| screen.past_image(image.id));
            let of_image = since(image, earlier);
            ((image.pid, image.program()), of_image)
        });
        Self(times.collect())
    }

    /// In µs; 0 where no call but waits returned.
    pub(super) fn p99_us(&self, process: &ProcessCounts) -> f64 {
        let times = self.0.get(&(process.pid, &*process.exec));
        times.map_or(0.0, |times| times.quantile(0.99) as f64 / 1e3)
    }
}

fn since(now: &ImageCounts, before: Option<&ImageCounts>) -> Times {
    let before: HashMap<&str, &Call> = before
        .map(|image| image.calls.iter().map(|call| (&*call.syscall, call)).collect())
        .unwrap_or_default();
    let mut all = Times::default();
    for call in now.calls.iter().filter(|call| !is_idle_wait(plain(&call.syscall))) {
        match before.get(&*call.syscall) {
            Some(before) => all.merge(&call.wall_times.since(&before.wall_times)),
            None => all.merge(&call.wall_times),
        }
    }
    all
}

/// Without the mark of calls by the 32-bit entry.
fn plain(name: &str) -> &str {
    name.trim_end_matches("(i386)")
}
