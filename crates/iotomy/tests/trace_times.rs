//! How long calls took, against a program that measures its own.

use crate::support;

use iotomy_record::QUANTILES;
use support::{Tracing, each_observer, has};

/// Sleeps as long as it says, by a call it names, and says how long that took by its own clock.
const SLEEPS: &str = r#"
    use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
    for (1..200) {
        my $wanted = 0.0005 * 40 ** (($_ * 73 % 200) / 200);
        my $before = clock_gettime(CLOCK_MONOTONIC);
        select undef, undef, undef, $wanted;
        my $after = clock_gettime(CLOCK_MONOTONIC);
        printf "%d %d\n", $wanted * 1e9, ($after - $before) * 1e9;
    }
"#;

/// The value that a share of all does not exceed.
fn exact(mut values: Vec<u64>, share: f64) -> f64 {
    values.sort_unstable();
    values[((share * values.len() as f64).ceil() as usize).max(1) - 1] as f64
}

/// The longest so many of them; of none, there would be nothing to look at.
fn longest(values: &[u64], count: usize) -> Vec<u64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    assert!((1..=values.len()).contains(&count), "{count} of {}", values.len());
    values.split_off(values.len() - count)
}

#[test]
fn quantiles_are_between_what_was_asked_for_and_what_the_program_measured() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let traced = Tracing::new(observer, &[], &["perl", "-e", SLEEPS]).run();
        assert_eq!(traced.code(), 0, "{}", traced.stderr());
        let (mut wanted, mut took) = (Vec::new(), Vec::new());
        for line in traced.stdout().lines() {
            let (asked, measured) = line.split_once(' ').unwrap();
            wanted.push(asked.parse::<u64>().unwrap());
            took.push(measured.parse::<u64>().unwrap());
        }
        let record = traced.record();
        let sleeps = |name: &str| name.starts_with("select") || name.starts_with("pselect6");
        let call = record.calls.iter().find(|call| sleeps(&call.syscall)).unwrap();
        assert_eq!(call.wall_times.total(), 200, "{observer}");
        for (name, share) in QUANTILES {
            // A sleep lasts no less than it was asked to, and the program's clock runs around it.
            let (least, most) = (exact(wanted.clone(), share), exact(took.clone(), share));
            let found = call.wall_times.quantile(share) as f64;
            assert!(
                found > least * 0.974 && found < most * 1.026,
                "{name}: {least} {found} {most}"
            );
            if observer == "bpf" {
                // A sleep that was over before it began, on a CPU that was itself held up, did not
                // block: those that did may be the longest.
                let slept = usize::try_from(call.blocked_times.total()).unwrap();
                let most = exact(longest(&took, slept), share);
                let blocked = call.blocked_times.quantile(share) as f64;
                assert!(blocked < most * 1.026, "{name}: {blocked} {most}");
                // Such a sleep is a call's whole time but for its ends.
                assert!(call.on_cpu_times().unwrap().quantile(share) as f64 <= found * 1.05);
            }
        }
        let max = call.wall_times.max_ns as f64;
        assert!(max >= exact(wanted.clone(), 1.0) && max <= exact(took.clone(), 1.0), "{max}");
        assert!(traced.stderr().contains("how long a call took"), "{}", traced.stderr());
    });
}

#[test]
fn a_call_that_is_frequent_and_one_that_is_rare_are_counted_alike() {
    if !has("perl") {
        return;
    }
    // More of getppid than the counter of a frequent call holds, and of getuid, which wants the same
    // place among the thread's frequent calls, many more than that of a rare one.
    const CALLS: &str = "syscall 110 for 1..70000; syscall 102 for 1..3000";
    each_observer(|observer| {
        let traced = Tracing::new(observer, &[], &["perl", "-e", CALLS]).run();
        let record = traced.whole_record();
        let calls = |name: &str| {
            let rows = record.calls.iter().filter(|call| call.syscall == name);
            rows.map(|call| call.wall_times.total()).sum::<u64>()
        };
        assert_eq!(calls("getppid"), 70_000, "{observer}");
        // Perl asks for it when it begins, too.
        assert!((3000..3010).contains(&calls("getuid")), "{observer}: {}", calls("getuid"));
    });
}
