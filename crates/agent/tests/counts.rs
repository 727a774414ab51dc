//! What the metrics say of programs that do a known thing.

use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Agent, Program, Samples};

/// Reads and writes of a `dd`.
fn moved(samples: &Samples, service: &str) -> [u64; 2] {
    ["read", "write"].map(|call| samples.calls(service, call))
}

#[test]
fn the_calls_of_a_program_are_counted_exactly() {
    let Some(agent) = Agent::start(&[]) else { return };
    let dd = Program::unique("dd");
    // What its start takes, and its end.
    dd.dd(0);
    let [reads, writes] = agent.settled(|samples| {
        Some(moved(samples, &dd.name)).filter(|_| samples.calls(&dd.name, "close") > 0)
    });
    let mut expected = [reads, writes];
    for count in [1, 1_000, 70_000] {
        dd.dd(count);
        expected = [expected[0] + reads + count, expected[1] + writes + count];
        let at = agent.until(&format!("{expected:?} are counted"), |samples| {
            let now = moved(samples, &dd.name);
            assert!(now[0] <= expected[0] && now[1] <= expected[1], "{now:?} of {expected:?}");
            (now == expected).then(|| samples.clone())
        });
        let of = |metric: &str, call: &str, more: &str| {
            at.get(&format!("{metric}{{service=\"{}\",call=\"{call}\"{more}}}", dd.name)) as u64
        };
        // Each write is of a byte; its reads at the start are of files.
        let bytes = of("iotomy_call_bytes_total", "write", ",direction=\"write\"");
        assert_eq!(bytes, expected[1]);
        for call in ["read", "write"] {
            let count = of("iotomy_call_duration_seconds_count", call, "");
            assert_eq!(count, at.calls(&dd.name, call));
            let name = format!(
                "iotomy_call_duration_seconds_bucket{{le=\"+Inf\",service=\"{}\",call=\"{call}\"}}",
                dd.name
            );
            assert_eq!(at.get(&name) as u64, count);
        }
    }
    let last = agent.scrape();
    assert_eq!(moved(&last, &dd.name), expected);
    assert_eq!(last.get("iotomy_lost_events_total"), 0.0);
}

/// Its libraries are looked for in many directories, so that `openat` has the place of a frequent call before `write`
/// comes, whose counters of 8 bits overflow then: between looks, and while one reads them.
#[test]
fn counters_that_overflow_during_a_look_are_not_counted_twice() {
    const RUNS: u64 = 300;
    const WRITES: u64 = 20_000;
    let Some(agent) = Agent::start(&[]) else { return };
    let dd = Program::unique("dd");
    let directories: Vec<String> = (0..60).map(|n| format!("/nowhere/{n}")).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                agent.scrape();
            }
        });
        let count = format!("count={WRITES}");
        for _ in 0..RUNS {
            let mut command = dd.command();
            command.args(["if=/dev/zero", "of=/dev/null", "bs=1", "status=none", &count]);
            command.env("LD_LIBRARY_PATH", directories.join(":"));
            assert!(command.status().unwrap().success());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let [_, writes] = agent.settled(|samples| {
        Some(moved(samples, &dd.name)).filter(|[_, writes]| *writes >= RUNS * WRITES)
    });
    assert_eq!(writes, RUNS * WRITES);
}

#[test]
fn errors_have_their_names_and_buckets_only_grow() {
    let Some(agent) = Agent::start(&[]) else { return };
    let perl = Program::unique("perl");
    // So many files that are not there, besides those that its start looks for.
    let opens = |count: u32| {
        let script = format!("open(F, '<', '/nowhere') for (1..{count})");
        assert!(perl.run(&["-e", &script]).success());
    };
    let refused = |samples: &Samples| {
        let labels = format!("service=\"{}\",call=\"openat\",errno=\"ENOENT\"", perl.name);
        samples.get(&format!("iotomy_call_errors_total{{{labels}}}")) as u64
    };
    opens(0);
    let (own, before) = agent.settled(|samples| {
        let is_counted = samples.calls(&perl.name, "close") > 0;
        is_counted.then(|| (refused(samples), samples.of(&perl.name)))
    });
    opens(23);
    let last = agent.until("its errors are counted", |samples| {
        let now = refused(samples);
        assert!(now <= 2 * own + 23, "{now}, {own}");
        (now == 2 * own + 23).then(|| samples.clone())
    });
    last.assert_not_before(&before);
    let mut buckets: Vec<(f64, f64)> = last
        .iter()
        .filter(|(name, _)| {
            name.starts_with("iotomy_call_duration_seconds_bucket")
                && name.contains(&format!("service=\"{}\",call=\"openat\"", perl.name))
        })
        .map(|(name, value)| {
            let (_, rest) = name.split_once("le=\"").unwrap();
            let bound = rest.split('"').next().unwrap().replace("+Inf", "inf");
            (bound.parse().unwrap(), value)
        })
        .collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(buckets.len(), iotomy_agent::BOUNDS_NS.len() + 1);
    assert!(buckets.windows(2).all(|two| two[0].1 <= two[1].1), "{buckets:?}");
}

#[test]
fn the_time_of_threads_is_what_their_states_add_up_to() {
    let Some(agent) = Agent::start(&[]) else { return };
    let sleep = Program::unique("sleep");
    assert!(sleep.run(&["0.2"]).success());
    let at = agent.until("sleep is counted", |samples| {
        (samples.calls(&sleep.name, "clock_nanosleep") == 1).then(|| samples.clone())
    });
    let whole = at.get(&format!("iotomy_thread_seconds_total{{service=\"{}\"}}", sleep.name));
    let state = |state: &str| {
        let labels = format!("service=\"{}\",state=\"{state}\"", sleep.name);
        at.get(&format!("iotomy_thread_state_seconds_total{{{labels}}}"))
    };
    assert!(state("blocked") >= 0.2, "{}", at.text);
    let parts: f64 = ["user", "system", "blocked", "run_queue"].into_iter().map(state).sum();
    // It has ended: its ledger is closed.
    assert!((parts - whole).abs() < 1e-6 * whole, "{parts} of {whole}");
    let labels = format!("service=\"{}\",call=\"clock_nanosleep\"", sleep.name);
    let took = at.get(&format!("iotomy_call_duration_seconds_sum{{{labels}}}"));
    assert!((0.2..=whole).contains(&took), "{took} of {whole}");
}

#[test]
fn hostile_names_are_labels_like_others() {
    let Some(agent) = Agent::start(&[]) else { return };
    let long = [b'y'; 200];
    let names: [&[u8]; 3] = [b"a\"}1{#EOF\\n", b"\xff\xfe\\\x1b[31m", &long];
    let programs = names.map(|name| Program::copy_of("true", name));
    programs.iter().for_each(|one| assert!(one.run(&[]).success()));
    // Of a long name, the beginning.
    let labels = [r#"a\"}1{#EOF\\n"}"#, r#"\\xff\\xfe\\\\x1b[31m"}"#, &"y".repeat(100)];
    let series = labels.map(|label| format!("iotomy_thread_seconds_total{{service=\"{label}"));
    let last = agent.until("they are counted", |samples| {
        let is_there = |one: &String| samples.text.lines().any(|line| line.starts_with(one));
        series.iter().all(is_there).then(|| samples.clone())
    });
    let families = last.text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(families, iotomy_agent::METRICS.len());
    assert!(last.text.lines().all(|line| line.len() < 400));
}

#[test]
fn services_beyond_the_bound_are_added_up() {
    let Some(agent) = Agent::start(&["--max-services", "1"]) else { return };
    let names = |samples: &Samples| {
        let names = samples.iter().filter_map(|(name, _)| {
            let rest = name.strip_prefix("iotomy_thread_seconds_total{service=\"")?;
            Some(rest.strip_suffix("\"}").unwrap().to_owned())
        });
        names.collect::<Vec<String>>()
    };
    let before = agent.scrape();
    let dd = Program::unique("dd");
    dd.dd(4_000);
    let last = agent.until("dd is among the others", |samples| {
        (samples.calls("other", "write") >= 4_000 + before.calls("other", "write"))
            .then(|| samples.clone())
    });
    assert_eq!(names(&last).len(), 2, "{:?}", names(&last));
    assert_eq!(last.get("iotomy_agent_services"), 1.0);
    assert!(last.get("iotomy_agent_services_in_other") >= 1.0);
    assert_eq!(last.calls(&dd.name, "write"), 0);
}

#[test]
fn a_title_is_a_service_where_it_is_asked_for() {
    let Some(agent) = Agent::start(&["--by", "title"]) else { return };
    let name = format!("title-of-{}", std::process::id());
    let perl = Program::unique("perl");
    let script = format!("$0 = '{name}: worker 17'; <STDIN>");
    let mut worker = perl.command();
    worker.args(["-e", &script]).stdin(std::process::Stdio::piped()).arg0("perl");
    let mut worker = worker.spawn().unwrap();
    // Its number is none of the label.
    let label = format!("{}: worker *", iotomy_record::without_numbers(&name));
    agent.until("the title is a service", |samples| {
        let series = format!("iotomy_thread_seconds_total{{service=\"{label}\"}}");
        (samples.get(&series) > 0.0).then_some(())
    });
    drop(worker.stdin.take());
    assert!(worker.wait().unwrap().success());
}
