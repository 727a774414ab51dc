//! The facilities that the experiments build their test environments from.

use std::fs::OpenOptions;

use iotomy_host::privilege::{in_user_namespace, is_root, not_allowed, privilege};
use iotomy_sys::probe::{Refusal, namespaces, privileges};

use crate::check::{Check, Context, Outcome, number_in};

#[rustfmt::skip]
pub(crate) static CHECKS: &[Check] = &[
    Check { name: "network-namespaces", purpose: "lab: an isolated network", try_it: network },
    Check { name: "user-namespaces", purpose: "the same for unprivileged users", try_it: user },
    Check { name: "loop-devices", purpose: "lab: a private file system", try_it: loop_devices },
    Check { name: "real-time", purpose: "limits: undisturbed wake-ups", try_it: real_time },
];

fn network(_: &Context) -> Outcome {
    match namespaces::network() {
        Ok(()) => Outcome::ready("one was created and left"),
        Err(refusal) if not_allowed(&refusal) => {
            Outcome::refused(&refusal, privilege(&["CAP_SYS_ADMIN"]))
        }
        Err(refusal) => Outcome::refused(&refusal, "boot a kernel with CONFIG_NET_NS=y"),
    }
}

fn user(_: &Context) -> Outcome {
    let refusal = match namespaces::user_and_network() {
        Ok(()) => return Outcome::ready("an unprivileged user created one, and a network in it"),
        Err(refusal) => refusal,
    };
    let switches = [
        ("kernel.unprivileged_userns_clone", "kernel/unprivileged_userns_clone", 1),
        (
            "kernel.apparmor_restrict_unprivileged_userns",
            "kernel/apparmor_restrict_unprivileged_userns",
            0,
        ),
    ];
    let closed = switches.iter().find(|(_, file, open)| {
        number_in(format!("/proc/sys/{file}")).is_some_and(|now| now != *open)
    });
    let remedy = match closed {
        Some((name, _, open)) => format!("sysctl {name}={open}"),
        None if number_in("/proc/sys/user/max_user_namespaces") == Some(0) => {
            "sysctl user.max_user_namespaces=10000".to_owned()
        }
        None => "allow unshare in the container's seccomp profile, or boot a kernel with \
                 CONFIG_USER_NS=y"
            .to_owned(),
    };
    Outcome::refused(&refusal, remedy)
}

fn loop_devices(_: &Context) -> Outcome {
    // Opening makes no device; only asking for a free one would.
    match OpenOptions::new().read(true).write(true).open("/dev/loop-control") {
        Ok(_) => Outcome::ready("/dev/loop-control"),
        Err(source) => {
            let refusal = Refusal::new("open /dev/loop-control", source);
            let remedy = match not_allowed(&refusal) {
                true if in_user_namespace() => "run as root, outside of this user namespace",
                true if is_root() => "give this container --device /dev/loop-control",
                true => "run as root",
                false => "modprobe loop",
            };
            Outcome::refused(&refusal, remedy)
        }
    }
}

fn real_time(_: &Context) -> Outcome {
    match privileges::real_time() {
        Ok(()) => Outcome::ready("SCHED_FIFO at priority 1"),
        Err(refusal) => {
            let remedy =
                format!("ulimit -r 1 (or LimitRTPRIO=1), or {}", privilege(&["CAP_SYS_NICE"]));
            Outcome::refused(&refusal, remedy)
        }
    }
}
