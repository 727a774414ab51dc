//! A crew: [`Children`] that are spoken to over a socket each.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use crate::children::Children;

/// Processes at work. Dropping it ends them and waits for each.
#[derive(Debug)]
pub struct Crew {
    children: Children,
    lines: Vec<UnixStream>,
}

impl Crew {
    /// Forks this many members; each runs `work` with its number and its end of the socket, and
    /// exits when that returns. It keeps no other descriptor.
    ///
    /// # Errors
    /// As fork(2) and socketpair(2); those that were made are ended.
    pub fn start(members: usize, work: &dyn Fn(usize, UnixStream)) -> io::Result<Self> {
        let mut crew = Self { children: Children::with_capacity(members), lines: Vec::new() };
        for at in 0..members {
            let (ours, theirs) = UnixStream::pair()?;
            crew.children.fork(&[theirs.as_raw_fd()], || work(at, theirs))?;
            crew.lines.push(ours);
        }
        Ok(crew)
    }

    /// The members' process ids, in their order.
    pub fn pids(&self) -> &[i32] {
        self.children.pids()
    }

    /// This side's end of the sockets, in the order of the members.
    pub fn lines(&self) -> &[UnixStream] {
        &self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn members_answer_and_end_with_the_crew() {
        let work = |at: usize, mut line: UnixStream| {
            let mut byte = [0];
            while line.read_exact(&mut byte).is_ok() {
                let answer = [byte[0] + u8::try_from(at).unwrap_or(0)];
                if line.write_all(&answer).is_err() {
                    return;
                }
            }
        };
        let crew = Crew::start(3, &work).unwrap();
        let pids = crew.pids().to_vec();
        for (at, mut line) in (0u8..).zip(crew.lines()) {
            line.write_all(&[10]).unwrap();
            let mut answer = [0];
            line.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [10 + at]);
        }
        drop(crew);
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        }
    }
}
