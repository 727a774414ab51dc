//! The questions, in D and in bpftrace's language.
//!
//! Calls are asked after by their numbers, since the kernel's events of single system calls are not everywhere: bpftrace's
//! programs are at `raw_syscalls`, as its users write them there. What bpftrace has no word for is replaced by what is
//! nearest and costs less.

/// The call that a question is about: its place among those that the subject times.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    Getpgid = 0,
    Lseek = 1,
    Getsid = 2,
}

/// A question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) name: &'static str,
    /// What is asked.
    pub(crate) text: &'static str,
    pub(crate) d: &'static str,
    pub(crate) bpftrace: &'static str,
    pub(crate) call: Call,
    /// How often probes fire for each call.
    pub(crate) firings: u32,
    /// Whether numbers at the ends of the lines of both add up to the calls.
    pub(crate) is_counted: bool,
}

/// All of them.
pub(crate) static ALL: [Question; 6] = [
    Question {
        name: "count",
        text: "how many calls, by call",
        d: "syscall::getpgid:entry /pid == $target/ { @[probefunc] = count(); }",
        bpftrace: "tracepoint:raw_syscalls:sys_enter /pid == cpid && args->id == 121/ { @[args->id] = count(); }",
        call: Call::Getpgid,
        firings: 1,
        is_counted: true,
    },
    Question {
        name: "quantize",
        text: "how the first arguments are distributed, by call",
        d: "syscall::getpgid:entry /pid == $target/ { @[probefunc] = quantize(arg0); }",
        bpftrace: "tracepoint:raw_syscalls:sys_enter /pid == cpid && args->id == 121/ { @[args->id] = hist(args->args[0]); }",
        call: Call::Getpgid,
        firings: 1,
        is_counted: false,
    },
    Question {
        name: "time-by-file",
        text: "the time that calls take, by file (bpftrace: wall time, by descriptor)",
        d: "syscall::lseek:entry /pid == $target/ { self->fd = arg0; self->start = vtimestamp; } \
            syscall::lseek:return /self->start/ { \
            @[fds[self->fd].fi_pathname] = sum(vtimestamp - self->start); self->start = 0; self->fd = 0; }",
        bpftrace: "tracepoint:raw_syscalls:sys_enter /pid == cpid && args->id == 8/ { \
                   @fd[tid] = args->args[0]; @start[tid] = nsecs; } \
                   tracepoint:raw_syscalls:sys_exit /@start[tid]/ { \
                   @[@fd[tid]] = sum(nsecs - @start[tid]); delete(@start[tid]); delete(@fd[tid]); }",
        call: Call::Lseek,
        firings: 2,
        is_counted: false,
    },
    Question {
        name: "string-keys",
        text: "how many calls, by program and call",
        d: "syscall::getpgid:entry /pid == $target/ { @[execname, probefunc] = count(); }",
        bpftrace: "tracepoint:raw_syscalls:sys_enter /pid == cpid && args->id == 121/ { @[comm, args->id] = count(); }",
        call: Call::Getpgid,
        firings: 1,
        is_counted: true,
    },
    Question {
        name: "many-keys",
        text: "how many calls, by 100,000 values of an argument",
        d: "syscall::getpgid:entry /pid == $target/ { @[arg0] = count(); }",
        bpftrace: "tracepoint:raw_syscalls:sys_enter /pid == cpid && args->id == 121/ { @[args->args[0]] = count(); }",
        call: Call::Getpgid,
        firings: 1,
        is_counted: true,
    },
    Question {
        name: "shuffled-keys",
        text: "the same in another order each time",
        d: "syscall::getsid:entry /pid == $target/ { @[arg0] = count(); }",
        bpftrace: "tracepoint:raw_syscalls:sys_enter /pid == cpid && args->id == 124/ { @[args->args[0]] = count(); }",
        call: Call::Getsid,
        firings: 1,
        is_counted: true,
    },
];

/// Those of these names; all without any.
pub(crate) fn chosen(names: &[String]) -> Vec<Question> {
    let is_chosen = |one: &&Question| names.is_empty() || names.iter().any(|name| name == one.name);
    ALL.iter().filter(is_chosen).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_chosen_by_name() {
        assert_eq!(chosen(&[]).len(), ALL.len());
        let named = chosen(&["many-keys".to_owned()]);
        assert_eq!(named.iter().map(|one| one.name).collect::<Vec<_>>(), ["many-keys"]);
    }
}
