//! The processes of `herd` and `accept`.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::io::Errno;

use iotomy_host::Skip;
use iotomy_test_requirements::wait::until;
use iotomy_test_requirements::{Need, skip};

use super::clients::Clients;
use super::gate::{Gate, probe, waits};
use super::plan::{HerdPlan, Wait, is_shared};
use super::processes::Herd;
use crate::harness::Experiment;
use crate::harness::patience::Patience;

/// Returns a gate with a herd of `members` once they are ready, or the reason that there is none.
fn herd(wait: Wait, members: usize) -> Result<(Gate, Herd), Skip> {
    let gate = Gate::new(wait)?;
    let duplicates = if matches!(wait, Wait::ReusePort | Wait::Waiter(_)) { 0 } else { 3 };
    let herd = gate.herd((members, duplicates), Patience::default())?;
    Ok((gate, herd))
}

#[test]
fn every_way_to_wait_serves_every_connection_once() {
    for name in waits() {
        let wait = match probe(name) {
            Ok(wait) => wait,
            Err(Skip(reason)) => {
                let is_ring = reason.contains("io_uring");
                let need = if is_ring { Need::IoUring } else { Need::Machine };
                skip(need, &format!("{name}: {reason}"));
                continue;
            }
        };
        let (gate, herd) = herd(wait, 5).unwrap_or_else(|e| panic!("{wait:?}: {e:?}"));
        for connection in 1..=11u64 {
            let mut stream = TcpStream::connect(gate.address).unwrap();
            // Only a guard against a hanging test.
            stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
            // The connection ends when the process that accepted it closes it.
            let end = io::Read::read(&mut stream, &mut [0]);
            assert_eq!(end.unwrap_or_else(|e| panic!("{wait:?}: {e}, {:?}", herd.check())), 0);
            let accepts = || herd.counts().iter().map(|one| one.accepts).sum::<u64>();
            until("it has been counted", || accepts() == connection);
        }
        herd.check().unwrap();
        let wakes: u64 = herd.counts().iter().map(|one| one.wakes).sum();
        assert!(wakes >= 10, "{wait:?}: {wakes}");
    }
}

#[test]
fn members_share_one_set_where_children_inherit_it_and_one_of_them_is_told() {
    let all = iotomy_waiters::WAITERS.iter().filter(|waiter| waits().contains(&waiter.name));
    let shared: Vec<_> = all.filter(|waiter| is_shared(waiter)).map(|waiter| waiter.name).collect();
    assert_eq!(shared, ["epoll-oneshot", "event-ports"]);
    let axes = super::accept::Accept.declaration().axes;
    let strategy = axes.iter().find(|axis| axis.name == "strategy").unwrap();
    let said = format!("{} are one set for all", shared.join(" and "));
    assert!(strategy.summary.contains(&said), "{}", strategy.summary);
    for name in shared {
        let (_gate, herd) = herd(Wait::Waiter(name), 5).unwrap();
        // None has opened a set of its own: beside the listener, each has the descriptors of the one set.
        let links = |pid: &i32| {
            let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
            fds.map(|fd| std::fs::read_link(fd.unwrap().path()).unwrap()).collect::<Vec<_>>()
        };
        for pid in herd.pids() {
            let sets =
                links(pid).iter().filter(|of| of.ends_with("anon_inode:[eventpoll]")).count();
            assert_eq!(sets, 1, "{name}: {:?}", links(pid));
        }
        herd.check().unwrap();
    }
}

#[test]
fn a_herd_that_is_dropped_is_gone() {
    let (_gate, herd) = herd(Wait::Epoll, 20).unwrap();
    let pids = herd.pids().to_vec();
    assert_eq!(pids.len(), 20);
    drop(herd);
    for pid in pids {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}

#[test]
fn what_a_member_could_not_do_is_told() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let plan = HerdPlan {
        listener: file.as_fd(),
        address: "127.0.0.1:1".parse().unwrap(),
        set: None,
        wait: Wait::Accept,
        members: 2,
        duplicates: 0,
    };
    let herd = Herd::start(&plan).unwrap();
    until("a member has failed", || herd.check().is_err());
    let error = herd.is_ready().unwrap_err();
    assert_eq!(
        (error.call, error.source.raw_os_error()),
        ("accept4", Some(Errno::NOTSOCK.raw_os_error()))
    );
}

#[test]
fn clients_tell_how_long_each_connection_took() {
    let (gate, herd) = herd(Wait::Poll, 2).unwrap();
    let mut clients = Clients::start(gate.address, 3, 7).unwrap();
    until("the clients are ready", || clients.is_ready());
    clients.go();
    until("the clients are over", || clients.is_over());
    let served = clients.end().unwrap();
    assert_eq!(served.times_ns.len(), 21);
    assert!(served.times_ns.iter().all(|time| (1..=served.wall_ns).contains(time)), "{served:?}");
    until("all are counted", || herd.counts().iter().map(|one| one.accepts).sum::<u64>() == 21);
}

#[test]
fn clients_that_find_nobody_say_so() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut clients = Clients::start(address, 1, 2).unwrap();
    clients.go();
    let error = clients.end().unwrap_err();
    assert_eq!(error.source.raw_os_error(), Some(Errno::CONNREFUSED.raw_os_error()));
}
