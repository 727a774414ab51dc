//! A race that gets no thread for its traced runs. The limit is this process's, so no other test is here.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

use std::fs;

use iotomy_race::{Cache, Options, Output, RaceHost, Untraced, race};
use iotomy_record::{Machine, Trace};
use iotomy_sys::launch::Command;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Leaves room for anything smaller than the stack of a thread, once it comes to tracing.
struct Narrow;

impl RaceHost for Narrow {
    fn trace(&mut self, _: &Command) -> Result<Trace, Untraced> {
        panic!("there was a thread to be had");
    }

    fn is_interrupted(&self) -> fn() -> bool {
        || false
    }

    fn progress(&mut self, text: &str) {
        if text.starts_with("tracing") {
            let statm = fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
            let page = rustix::param::page_size() as u64;
            let (_, most) = getrlimit(Resource::RLIMIT_AS).unwrap();
            setrlimit(Resource::RLIMIT_AS, pages * page + (1 << 20), most).unwrap();
        }
    }
}

#[test]
fn clean_up_is_run_where_no_traced_run_could_be_started() {
    let folder = tempfile::tempdir().unwrap();
    let cleaned = folder.path().join("cleaned");
    let options = Options {
        commands: vec!["true".into()],
        axes: vec![],
        denials: vec![],
        output: Output::Null,
        cache: Cache::AsIs,
        drop_caches: false,
        warmup: Some(0),
        runs: Some(1),
        min_effect: 0.01,
        max_time: None,
        seed: 1,
        prepare: None,
        setup: None,
        cleanup: Some(format!("echo > {}", cleaned.display())),
        ignore_failure: false,
        redo: 0,
        trace: true,
    };
    let error = race(&options, String::new(), Machine::default(), &mut Narrow).unwrap_err();
    assert!(error.to_string().contains("start the timer thread"), "{error}");
    assert!(cleaned.exists());
}
