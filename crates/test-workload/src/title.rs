//! Titles that the subject writes over its arguments.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use crate::raw;

/// Makes N calls of getppid under its name, and then under each of these titles.
pub(crate) fn each(times: u64, titles: &[OsString]) {
    raw::getppid(times);
    for title in titles {
        set(title.as_bytes());
        raw::getppid(times);
    }
}

/// Makes a child for each of these titles, one after the other, which makes N calls of getppid under it.
pub(crate) fn children(times: u64, titles: &[OsString]) {
    for title in titles {
        // SAFETY: the program has one thread.
        match unsafe { libc::fork() } {
            0 => {
                set(title.as_bytes());
                raw::getppid(times);
                std::process::exit(0);
            }
            // SAFETY: no status is asked for.
            child => _ = unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) },
        }
    }
}

/// Fills the area of the arguments with the title and zeros, by way of the file of its memory.
fn set(title: &[u8]) {
    let stat = fs::read("/proc/self/stat").expect("a process has its stat");
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let (_, fields) = stat.rsplit_once(')').expect("its name is in brackets");
    // Behind the name, the third field of proc(5) comes first.
    let fields: Vec<u64> = fields.split_whitespace().map(|one| one.parse().unwrap_or(0)).collect();
    let (start, end) = (fields[48 - 3], fields[49 - 3]);
    let mut area = title.to_vec();
    assert!(area.len() < (end - start) as usize, "the arguments have room for the title");
    area.resize((end - start) as usize, 0);
    let memory = OpenOptions::new().write(true).open("/proc/self/mem").expect("it is its own");
    memory.write_all_at(&area, start).expect("its stack is there");
}
