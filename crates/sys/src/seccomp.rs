//! Filters that deny system calls to a program, to see how it does without them.
//!
//! A filter is bound to the process that sets it and to all its descendants, needs no privilege,
//! and cannot be removed. Every call pays for it; where the kernel sees that a call is allowed
//! whatever its arguments, as here, that is a look-up in a bitmap.

/// A filter, made before the process that sets it.
#[derive(Clone)]
pub struct Filter {
    program: Vec<libc::sock_filter>,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Filter({} statements)", self.program.len())
    }
}

/// `AUDIT_ARCH_X86_64` of `linux/audit.h`: the machine, 64 bits, little-endian.
const X86_64: u32 = 0xC000_003E;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

/// The most calls a filter takes away: a jump over more would not fit its 8 bits.
pub const MOST_DENIED: usize = 100;

impl Filter {
    /// Makes the 64-bit calls of these numbers fail with these errors without being executed; an
    /// empty list is a filter all the same. `None` with more than [`MOST_DENIED`] or an error
    /// number above 4095.
    pub fn deny(calls: &[(u32, u32)]) -> Option<Self> {
        if calls.len() > MOST_DENIED || calls.iter().any(|(_, errno)| *errno > 4095) {
            return None;
        }
        let load = |k| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, k, 0, 0);
        let equal = |k, yes, no| statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k, yes, no);
        let leave = |k| statement(libc::BPF_RET | libc::BPF_K, k, 0, 0);
        // Below 256 by the bound above.
        let over_all = u8::try_from(1 + 2 * calls.len()).ok()?;
        let mut program = vec![load(ARCH), equal(X86_64, 0, over_all), load(NUMBER)];
        for (number, errno) in calls {
            program.push(equal(*number, 0, 1));
            program.push(leave(libc::SECCOMP_RET_ERRNO | errno));
        }
        program.push(leave(libc::SECCOMP_RET_ALLOW));
        Some(Self { program })
    }

    /// Sets the filter for this process, for good. Async-signal-safe.
    ///
    /// # Errors
    /// The error number of the call the kernel refused.
    pub(crate) fn set(&self) -> Result<(), i32> {
        let program = libc::sock_fprog {
            // At most 204 statements.
            len: self.program.len() as u16,
            filter: self.program.as_ptr().cast_mut(),
        };
        // SAFETY: takes plain integers.
        if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
            return Err(errno());
        }
        // Without the flag older kernels switch on a mitigation that slows the program.
        for flags in [libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW, 0] {
            // SAFETY: `program` and the statements it points to outlive the call, which copies them.
            let set = unsafe {
                libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    flags,
                    &raw const program,
                )
            };
            if set == 0 {
                return Ok(());
            }
        }
        Err(errno())
    }
}

fn statement(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    // Codes of classic BPF have 16 bits.
    libc::sock_filter { code: code as u16, jt, jf, k }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_bounds() {
        assert!(Filter::deny(&vec![(0, 1); MOST_DENIED]).is_some());
        assert!(Filter::deny(&vec![(0, 1); MOST_DENIED + 1]).is_none());
        assert!(Filter::deny(&[(0, 4096)]).is_none());
        assert_eq!(Filter::deny(&[]).unwrap().program.len(), 4);
    }
}
