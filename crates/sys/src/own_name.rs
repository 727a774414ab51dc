//! A name of its own for a process that is to outlive iotomy: a kill of everything called `iotomy`, by
//! the name (`pkill iotomy`, `killall iotomy`) or by the command line (`pkill -f iotomy`), must not hit
//! both iotomy and the process that cleans up after it.
//!
//! The command line that other processes read of a process is memory of that process, so it writes
//! over its own copy. Nothing may read the words of the command line from there afterwards.

use std::ffi::CStr;
use std::fs;

/// A name, and the memory that holds the command line, which a child made by fork has at the same place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnName {
    name: &'static CStr,
    words: (usize, usize),
}

impl OwnName {
    /// To be made before the fork: this allocates. Without /proc only the short name will differ.
    pub(crate) fn new(name: &'static CStr) -> Self {
        Self { name, words: words().unwrap_or_default() }
    }

    /// Takes the name. For a process made by fork that never reads its command line; makes only
    /// async-signal-safe calls.
    pub(crate) fn take(self) {
        // SAFETY: the name is a string that ends in NUL.
        unsafe { libc::prctl(libc::PR_SET_NAME, self.name.as_ptr(), 0, 0, 0) };
        let (start, end) = self.words;
        let shown = self.name.to_bytes();
        let Some(room) = end.checked_sub(start).filter(|room| *room > 0) else { return };
        // The last byte stays NUL, or the kernel would take the environment for more of the words.
        let shown = &shown[..shown.len().min(room - 1)];
        let memory = std::ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: the kernel names `start..end` as the memory of this process's command line, on its
        // stack, which is writable and never unmapped; the caller vouches that nobody reads it as text.
        unsafe { memory.write_bytes(0, room) };
        // SAFETY: as above; the name is shorter than the room and overlaps with nothing there.
        unsafe { memory.copy_from_nonoverlapping(shown.as_ptr(), shown.len()) };
    }
}

/// Where the command line of this process begins and ends in memory: the 48th and 49th field of
/// `/proc/self/stat`.
fn words() -> Option<(usize, usize)> {
    let stat = fs::read("/proc/self/stat").ok()?;
    // The second field, a name in brackets, may hold anything, also half a letter.
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(45);
    let start: usize = fields.next()?.parse().ok()?;
    let end: usize = fields.next()?.parse().ok()?;
    (start != 0).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_command_line_takes_as_much_of_a_name_as_it_has_room_for() {
        let mut words = *b"iotomy\0HOME=/\0";
        let start = words.as_mut_ptr().expose_provenance();
        OwnName { name: c"another-name", words: (start, start + 7) }.take();
        assert_eq!(words, *b"anothe\0HOME=/\0");
        OwnName { name: c"brief", words: (start, start + 7) }.take();
        assert_eq!(words, *b"brief\0\0HOME=/\0");
    }

    #[test]
    fn a_child_takes_a_name_and_its_parent_keeps_its_own() {
        let before = fs::read("/proc/self/cmdline").unwrap();
        let (start, end) = words().unwrap();
        assert_eq!(end - start, before.len());
        let name = OwnName::new(c"another-name");
        let (mut read, write) = std::io::pipe().unwrap();
        // SAFETY: the child makes async-signal-safe calls only, and then waits to be killed.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            name.take();
            // SAFETY: one readable byte; then a call without arguments.
            unsafe {
                libc::write(std::os::fd::AsRawFd::as_raw_fd(&write), c"x".as_ptr().cast(), 1)
            };
            loop {
                // SAFETY: as above.
                unsafe { libc::pause() };
            }
        }
        std::io::Read::read_exact(&mut read, &mut [0]).unwrap();
        let of_child = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap();
        let (comm, cmdline) = (of_child("comm"), of_child("cmdline"));
        // SAFETY: takes plain integers; the child has not been waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        // SAFETY: no status is asked for.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        assert_eq!(comm, b"another-name\n");
        let shown: Vec<u8> = cmdline.into_iter().filter(|byte| *byte != 0).collect();
        assert_eq!(shown, b"another-name");
        assert_eq!(fs::read("/proc/self/cmdline").unwrap(), before);
    }
}
