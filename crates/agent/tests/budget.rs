//! `--budget`: what is exact, and what is scaled. That estimates are near is proved where they are made
//! (`crates/stats/src/windows.rs`), what a budget decides in its own tests; here is what holds in every run.

use std::io::Read;
use std::process::{Child, Stdio};

use iotomy_agent::MOST_FACTOR;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Agent, Program, Samples};

const FACTOR: &str = "iotomy_agent_sample_factor";

/// So little that no machine comes to it: calls count in the smallest part of the time.
const NEXT_TO_NOTHING: &str = "0.0001%";

/// A series of the writes of a service.
fn of_writes(samples: &Samples, metric: &str, service: &str, more: &str) -> u64 {
    samples.get(&format!("{metric}{{service=\"{service}\",call=\"write\"{more}}}")) as u64
}

/// Panics where bytes, buckets and calls of writes of 8 bytes do not belong together. While the thread runs, a look may read
/// some of the numbers before it counts a call, and others after it: they may be `apart` by what a call stands for.
fn assert_consistent(samples: &Samples, service: &str, apart: u64) -> u64 {
    let of = |metric: &str, more: &str| of_writes(samples, metric, service, more);
    let calls = samples.calls(service, "write");
    let bytes = of("iotomy_call_bytes_total", ",direction=\"write\"");
    assert!(bytes.abs_diff(8 * calls) <= 8 * apart, "{bytes} bytes of {calls}");
    let timed = of("iotomy_call_duration_seconds_count", "");
    assert!(timed.abs_diff(calls) <= apart, "{timed} timed of {calls}");
    let all = format!(
        "iotomy_call_duration_seconds_bucket{{le=\"+Inf\",service=\"{service}\",call=\"write\"}}"
    );
    assert_eq!(samples.get(&all) as u64, timed);
    calls
}

#[test]
fn with_a_budget_of_all_of_the_time_all_calls_count_exactly() {
    let Some(agent) = Agent::start(&["--budget", "100%"]) else { return };
    // It is answered once calls count.
    assert_eq!(agent.scrape().get(FACTOR), 1.0);
    let dd = Program::unique("dd");
    let moved = |samples: &Samples| ["read", "write"].map(|call| samples.calls(&dd.name, call));
    dd.dd(0);
    let own = agent
        .settled(|samples| Some(moved(samples)).filter(|_| samples.calls(&dd.name, "close") > 0));
    let mut expected = own;
    for count in [1, 70_000] {
        dd.dd(count);
        expected = [expected[0] + own[0] + count, expected[1] + own[1] + count];
        agent.until(&format!("{expected:?} are counted"), |samples| {
            let now = moved(samples);
            assert!(now[0] <= expected[0] && now[1] <= expected[1], "{now:?} of {expected:?}");
            (now == expected).then_some(())
        });
    }
    let last = agent.scrape();
    assert_eq!((last.get(FACTOR), last.get("iotomy_agent_budget_ratio")), (1.0, 1.0));
    let overhead = last.get("iotomy_agent_overhead_ratio");
    assert!((0.0..=1.0).contains(&overhead), "{overhead}");
    // That it is there, and nothing: no call was estimated.
    assert!(last.text.contains("\niotomy_calls_variance_total{call=\"write\"} 0.0\n"));
}

/// Writes 8 bytes at a time until it is told to end; says in as many bytes how many it has written so.
const WRITES: &str = "$SIG{TERM} = sub { $over = 1 }; open N, '>', '/dev/null' or die; \
                      until ($over) { syswrite N, '12345678'; $n++ } printf '%08d', $n + 1";

/// Ended with the test.
struct Running(Child);

impl Running {
    /// What it says at its end.
    fn ended(mut self) -> u64 {
        kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM).unwrap();
        let mut said = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        said.parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn where_a_part_of_the_time_counts_what_is_counted_is_scaled() {
    let Some(agent) = Agent::start(&["--budget", NEXT_TO_NOTHING]) else { return };
    let most = u64::from(MOST_FACTOR);
    agent.until("the budget is exceeded", |samples| {
        (samples.get(FACTOR) as u64 == most).then_some(())
    });
    let perl = Program::unique("perl");
    let mut writes = perl.command();
    let running = Running(writes.args(["-e", WRITES]).stdout(Stdio::piped()).spawn().unwrap());
    let mut before = agent.scrape();
    // Several windows, whenever they open.
    for _ in 0..5 {
        let seen = before.calls(&perl.name, "write");
        before = agent.until("a window has seen it", |samples| {
            samples.assert_not_before(&before);
            let now = assert_consistent(samples, &perl.name, most);
            assert_eq!(now % most, 0, "{now}");
            (now > seen).then(|| samples.clone())
        });
    }
    let made = running.ended();
    let last = agent.scrape();
    last.assert_not_before(&before);
    let estimate = assert_consistent(&last, &perl.name, 0);
    assert_eq!(last.get(FACTOR) as u64, most);
    assert!(last.get("iotomy_agent_overhead_ratio") > last.get("iotomy_agent_budget_ratio"));
    // Its writes are slower in windows, and others want the CPU: the bound is wide.
    let variance = last.get("iotomy_calls_variance_total{call=\"write\"}");
    assert!(variance > 0.0);
    let off = estimate.abs_diff(made) as f64;
    let bound = 6.0 * variance.sqrt() + 0.75 * made as f64;
    assert!(off <= bound, "{estimate} of {made}: off by {off}, more than {bound}");
    // The time of its thread is all there, whatever counted.
    let series = format!("iotomy_thread_seconds_total{{service=\"{}\"}}", perl.name);
    let lived = last.get(&series);
    let states: f64 = ["user", "system", "blocked", "run_queue"]
        .map(|state| {
            last.get(&format!(
                "iotomy_thread_state_seconds_total{{service=\"{}\",state=\"{state}\"}}",
                perl.name
            ))
        })
        .iter()
        .sum();
    assert!(lived > 1.0 && (states / lived - 1.0).abs() < 0.1, "{states} of {lived}");
}
