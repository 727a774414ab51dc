//! How often the machine's BPF programs run, and for how long: `bpf(2)` with `BPF_ENABLE_STATS` (Linux 5.8), and
//! what the kernel says of a program in `/proc/self/fdinfo`.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

const BPF_ENABLE_STATS: libc::c_int = 32;
const BPF_STATS_RUN_TIME: u32 = 0;

/// The runs of a program while they were counted, and what the verifier did for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgramStats {
    /// How often it ran.
    pub runs: u64,
    /// For how long in all.
    pub run_ns: u64,
    /// Instructions that the verifier looked at; 0 where the kernel does not say.
    pub verified_instructions: u64,
}

/// Has runs counted as long as the descriptor is open. It costs each run of any program some 20 ns.
///
/// # Errors
/// The kernel's error.
pub fn count_runs() -> io::Result<OwnedFd> {
    let kind = BPF_STATS_RUN_TIME;
    // SAFETY: the kernel reads the four bytes of `kind`, as many as are stated.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_ENABLE_STATS,
            std::ptr::from_ref(&kind),
            size_of_val(&kind),
        )
    };
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0);
    let fd = fd.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel just made the descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What the kernel says of a program.
///
/// # Errors
/// The kernel's error.
pub fn of_program(program: BorrowedFd<'_>) -> io::Result<ProgramStats> {
    let text = fs::read(format!("/proc/self/fdinfo/{}", program.as_raw_fd()))?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn parse(text: &str) -> ProgramStats {
    let number = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    ProgramStats {
        runs: number("run_cnt"),
        run_ns: number("run_time_ns"),
        verified_instructions: number("verified_insns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_their_names() {
        let text =
            "pos:\t0\nprog_type:\t26\nrun_time_ns:\t5210\nrun_cnt:\t10\nverified_insns:\t873\n";
        let stats = ProgramStats { runs: 10, run_ns: 5210, verified_instructions: 873 };
        assert_eq!(parse(text), stats);
        assert_eq!(parse("pos: 0"), ProgramStats::default());
    }
}
