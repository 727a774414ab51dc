//! How far the ledger closes: what has no place in it, and by what two counts of one time differ.

use crate::support;

use support::invariants::closes;
use support::{bpf, doubled_until, has, perl_with_threads, traced};

/// Programs that spend their time in one way each; what they do once is the less of it, the more rounds they make.
const PROGRAMS: [(&str, &str); 7] = [
    ("calls", "syscall 110 for 1..20_000 * shift"),
    ("user time", "my $n = 0; $n += $_ for 1..300_000 * shift"),
    ("sleeps", "select undef, undef, undef, 0.005 for 1..10 * shift"),
    ("page faults", "for (1..shift) { my $memory = 'x' x (16 << 20) }"),
    (
        "processes",
        "my $n = 5_000 * shift; for (1..4) { if (!fork) { syscall 110 for 1..$n; exit } } 1 while wait > 0",
    ),
    (
        "images",
        "my $n = 5_000 * shift; syscall 110 for 1..$n; \
         exec 'perl', '-e', 'syscall 110 for 1..$ARGV[0]', $n",
    ),
    (
        "a dialogue",
        "my $n = 500 * shift; pipe my $a, my $b; pipe my $c, my $d; \
         if (!fork) { for (1..$n) { sysread $a, my $x, 1; syswrite $d, 'y' } exit } \
         for (1..$n) { syswrite $b, 'x'; sysread $c, my $x, 1 } wait",
    ),
];

const THREADS: &str = "use threads; my $n = 5_000 * shift; \
     $_->join for map { threads->create(sub { syscall 110 for 1..$n }) } 1..4";

#[test]
fn a_fiftieth_at_most_has_no_place_in_the_ledger() {
    if !bpf() || !has("perl") {
        return;
    }
    let threads = perl_with_threads().then_some(("threads", THREADS));
    for (name, script) in PROGRAMS.into_iter().chain(threads) {
        doubled_until(1, closes, |rounds| {
            let words = ["perl", "-e", script, &rounds.to_string()];
            let traced = traced("bpf", &[], &words);
            assert_eq!(traced.code(), 0, "{name}: {}", traced.stderr());
            traced.whole_record()
        });
    }
}
