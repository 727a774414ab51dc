//! Truth of requests: as many are counted as were answered, whichever way the server answers them.
//!
//! Watches wait for children of this process, so the tests run one at a time.

use crate::harness;

use harness::{command, each_observer, subject, watch};
use iotomy_observe::Request;
use iotomy_record::{Exchange, Exit, Role};
use iotomy_sys::nop_ring::NopRing;
use iotomy_test_requirements::{Need, skip};

const N: u64 = 23;

/// What the server thinks between a request and its answer, at least.
const THINK_NS: u64 = 2_000_000;

/// The requests of a role, summed.
fn sum(all: &[Exchange], role: Role) -> Exchange {
    let mut sum = Exchange::default();
    all.iter().filter(|row| row.ends.role == Some(role)).for_each(|row| sum.merge(row));
    sum
}

/// Watches a server, and checks the requests that it served, of which there were so many.
fn served(way: &str, count: u64, check: impl Fn(&Exchange)) {
    if let Err(e) = NopRing::entered() {
        return skip(Need::IoUring, &format!("no ring: {e}"));
    }
    each_observer(|observer| {
        if observer.declaration().name != "bpf" {
            return;
        }
        let request =
            Request { requests: true, ..command(subject(), &["served", way, &N.to_string()]) };
        let watched = watch(observer, &request);
        assert_eq!(watched.exit, Some(Exit::Code(0)), "{way}: {watched:?}");
        assert!(watched.observer.missing.is_empty(), "{:?}", watched.observer.missing);
        let all = &watched.requests;
        for role in [Role::Accept, Role::Connect] {
            let row = sum(all, role);
            let counts = [row.requests, row.unanswered, row.in_flight, row.pipelined];
            assert_eq!(counts, [count, 0, 0, 0], "{way}: {role:?} of {all:#?}");
            assert_eq!(row.unseen_arrivals, 0, "{way}: {all:#?}");
        }
        check(&sum(all, Role::Accept));
    });
}

/// The latency is that of the thought, and the thread that thinks is known.
fn thinks(served: &Exchange) {
    assert!(served.wall_ns >= served.requests * THINK_NS, "{served:#?}");
    assert!(served.other_ns >= served.requests * THINK_NS / 2, "{served:#?}");
}

#[test]
fn a_server_of_epoll_has_its_requests() {
    served("calls", N, thinks);
}

#[test]
fn a_server_of_io_uring_has_the_same_requests() {
    for way in ["ring", "messages", "multishot", "fixed", "zero-copy", "silent"] {
        served(way, N, thinks);
    }
}

#[test]
fn requests_that_threads_of_io_uring_carry_out_are_counted() {
    for way in ["async", "sqpoll"] {
        served(way, N, |row| {
            assert!(row.wall_ns >= N * THINK_NS, "{row:#?}");
            assert!(row.elsewhere_ns > 0, "{row:#?}");
        });
    }
}

#[test]
fn an_answer_that_is_linked_to_its_request_ends_it() {
    served("linked", N, |_| {});
}

#[test]
fn two_connections_side_by_side_have_their_own_requests() {
    served("two", 2 * N, |row| assert!(row.wall_ns >= 2 * N * THINK_NS, "{row:#?}"));
}

#[test]
fn a_send_that_completes_behind_the_next_receive_is_of_the_request_before() {
    served("late", N, |row| assert!(row.wall_ns >= N * THINK_NS, "{row:#?}"));
}
