//! Signals by name, as Linux numbers them on x86 and ARM.

/// `SIGKILL` for 9; a number without a name is shown as one.
pub(crate) fn name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    // The C library keeps 32 and 33 for itself, so that programs count from 34.
    const FIRST_REAL_TIME: i32 = 34;
    match signal {
        1..=31 => format!("SIG{}", NAMES[signal as usize - 1]),
        FIRST_REAL_TIME => "SIGRTMIN".into(),
        35..=64 => format!("SIGRTMIN+{}", signal - FIRST_REAL_TIME),
        _ => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn known_numbers_have_names() {
        let known =
            [(1, "SIGHUP"), (9, "SIGKILL"), (13, "SIGPIPE"), (15, "SIGTERM"), (31, "SIGSYS")];
        for (number, text) in known {
            assert_eq!(name(number), text);
        }
        assert_eq!(name(34), "SIGRTMIN");
        assert_eq!(name(64), "SIGRTMIN+30");
        assert_eq!(name(-3), "signal -3");
    }
}
