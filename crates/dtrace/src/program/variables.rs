//! The variables that every program knows, and the members of the providers' structures.

use crate::types::{Integer, Object, Type};

/// A variable that every program knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The name in the text.
    pub name: &'static str,
    /// What it holds.
    pub of: Type,
}

/// A member of a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The name in the text.
    pub name: &'static str,
    /// What it holds.
    pub of: Type,
}

/// What holds a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// `curpsinfo`
    Psinfo,
    /// `curlwpsinfo`
    Lwpsinfo,
    /// `curcpu`
    Cpuinfo,
    /// `fds[n]`
    File,
    /// `args[n]`
    Argument(u8),
}

const STRING: Type = Type::String;
const INT: Type = Type::INT;
const UINT: Type = Type::Integer(Integer::UINT);
const I64: Type = Type::Integer(Integer::I64);
const U64: Type = Type::Integer(Integer::U64);

const fn variable(name: &'static str, of: Type) -> Variable {
    Variable { name, of }
}

/// `arg0` to `arg9` and `args[]` are besides these.
pub(crate) const VARIABLES: [Variable; 23] = [
    variable("cpu", INT),
    variable("cwd", STRING),
    variable("epid", UINT),
    variable("errno", INT),
    variable("execname", STRING),
    variable("gid", UINT),
    variable("id", UINT),
    variable("pid", INT),
    variable("ppid", INT),
    variable("probefunc", STRING),
    variable("probemod", STRING),
    variable("probename", STRING),
    variable("probeprov", STRING),
    variable("root", STRING),
    variable("stackdepth", UINT),
    variable("tid", INT),
    variable("timestamp", U64),
    variable("uid", UINT),
    variable("ustackdepth", UINT),
    variable("vtimestamp", U64),
    variable("walltimestamp", I64),
    variable("caller", U64),
    variable("ucaller", U64),
];

/// Names of DTrace, of bpftrace and of conditions that are not here, and what there is instead.
pub(crate) const MISSING: [(&str, &str); 13] = [
    ("curthread", "the kernel's structures are not known; take curlwpsinfo and curpsinfo"),
    ("uregs", "registers are not known; arg0 to arg9 are the arguments"),
    ("ipl", "Linux has no interrupt priority level"),
    ("zonename", "Linux has no zones; select by --cgroup"),
    ("vmregs", "registers are not known"),
    ("walltime", "take walltimestamp"),
    ("usecs", "take timestamp / 1000"),
    ("nsecs", "take timestamp"),
    ("comm", "take execname"),
    ("func", "take probefunc"),
    ("retval", "take arg1 in a return probe"),
    ("kstack", "take stack()"),
    ("title", "it is a variable of `iotomy trace --where` and `--by`; take execname"),
];

/// The members of a structure.
pub(crate) fn members(object: Object) -> &'static [Member] {
    const fn member(name: &'static str, of: Type) -> Member {
        Member { name, of }
    }
    const PSINFO: &[Member] = &[
        member("pr_pid", INT),
        member("pr_ppid", INT),
        member("pr_pgid", INT),
        member("pr_sid", INT),
        member("pr_uid", UINT),
        member("pr_euid", UINT),
        member("pr_gid", UINT),
        member("pr_egid", UINT),
        member("pr_nlwp", INT),
        member("pr_fname", STRING),
        member("pr_psargs", STRING),
        member("pr_size", U64),
        member("pr_rssize", U64),
        member("pr_start", U64),
        member("pr_dmodel", INT),
    ];
    const LWPSINFO: &[Member] = &[
        member("pr_lwpid", INT),
        member("pr_flag", INT),
        member("pr_pri", INT),
        member("pr_nice", INT),
        member("pr_state", INT),
        member("pr_sname", Type::Integer(Integer { bytes: 1, signed: true })),
        member("pr_syscall", INT),
        member("pr_name", STRING),
        member("pr_clname", STRING),
        member("pr_onpro", INT),
        member("pr_bindpro", INT),
    ];
    const CPUINFO: &[Member] = &[
        member("cpu_id", INT),
        member("cpu_pset", INT),
        member("cpu_chip", INT),
        member("cpu_lgrp", INT),
    ];
    const FILEINFO: &[Member] = &[
        member("fi_name", STRING),
        member("fi_dirname", STRING),
        member("fi_pathname", STRING),
        member("fi_offset", I64),
        member("fi_fs", STRING),
        member("fi_mount", STRING),
        member("fi_oflags", INT),
    ];
    const BUFINFO: &[Member] = &[
        member("b_flags", INT),
        member("b_bcount", U64),
        member("b_addr", U64),
        member("b_blkno", U64),
        member("b_lblkno", U64),
        member("b_resid", U64),
        member("b_bufsize", U64),
        member("b_error", INT),
        member("b_edev", U64),
    ];
    const DEVINFO: &[Member] = &[
        member("dev_major", INT),
        member("dev_minor", INT),
        member("dev_instance", INT),
        member("dev_name", STRING),
        member("dev_statname", STRING),
        member("dev_pathname", STRING),
    ];
    match object {
        Object::Psinfo => PSINFO,
        Object::Lwpsinfo => LWPSINFO,
        Object::Cpuinfo => CPUINFO,
        Object::Fileinfo => FILEINFO,
        Object::Bufinfo => BUFINFO,
        Object::Devinfo => DEVINFO,
    }
}

/// The variable that a member of the current process, thread or CPU is the same as.
pub(crate) fn same_variable(holder: Holder, member: &str) -> Option<&'static str> {
    Some(match (holder, member) {
        (Holder::Psinfo, "pr_pid") => "pid",
        (Holder::Psinfo, "pr_ppid") => "ppid",
        (Holder::Psinfo, "pr_uid") => "uid",
        (Holder::Psinfo, "pr_gid") => "gid",
        (Holder::Psinfo, "pr_fname") => "execname",
        (Holder::Lwpsinfo, "pr_lwpid") => "tid",
        (Holder::Cpuinfo, "cpu_id") => "cpu",
        _ => return None,
    })
}

/// The type of `args[number]` in a provider's probe.
pub(crate) fn argument(provider: &str, name: &str, number: u8) -> Option<Type> {
    let object = |object| Some(Type::Object(object));
    match (provider, name, number) {
        // Which request it is is not told.
        ("io", "wait-start" | "wait-done", _) => None,
        ("io", _, 0) => object(Object::Bufinfo),
        ("io", _, 1) => object(Object::Devinfo),
        ("io", _, 2) => object(Object::Fileinfo),
        ("sched", "sleep" | "on-cpu" | "remain-cpu" | "preempt", _) => None,
        ("sched", _, 0) => object(Object::Lwpsinfo),
        ("sched", _, 1) => object(Object::Psinfo),
        ("sched", "dequeue" | "enqueue", 2) => object(Object::Cpuinfo),
        ("sched", "enqueue", 3) => Some(INT),
        ("proc", "create", 0) => object(Object::Psinfo),
        (
            "proc",
            "exec" | "exec-failure" | "exit" | "fault" | "signal-clear" | "signal-handle",
            0,
        ) => Some(match name {
            "exec" => STRING,
            _ => INT,
        }),
        ("proc", "lwp-create" | "signal-discard" | "signal-send", 0) => object(Object::Lwpsinfo),
        ("proc", "lwp-create" | "signal-discard" | "signal-send", 1) => object(Object::Psinfo),
        ("proc", "signal-discard" | "signal-send", 2) => Some(INT),
        ("syscall", "entry", 0..=5) | ("syscall", "return", 0..=1) => Some(I64),
        ("profile" | "tick", _, 0..=1) | ("sysinfo" | "vminfo", _, 0) => Some(U64),
        _ => None,
    }
}
