//! The functions that a JIT compiler has told of.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use iotomy_record::lossless;

/// The functions that a JIT compiler has told of: `perf-PID.map`, in lines of address, bytes and name.
#[derive(Debug, Default)]
pub(super) struct JitMap(Vec<u8>);

/// A longer one names nothing.
const LONGEST_MAP: u64 = 32 << 20;

impl JitMap {
    pub(super) fn of(pid: u32) -> Self {
        // By its number in its own namespace, where it has one.
        let status = iotomy_host::kernel_text(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name| status.lines().find_map(|line: &str| line.strip_prefix(name));
        let own = field("NSpid:").and_then(|ids| ids.split_whitespace().last()?.parse().ok());
        let owner = field("Uid:").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
        let inside = format!("/proc/{pid}/root/tmp/perf-{}.map", own.unwrap_or(pid));
        let text = text(&inside, owner).or_else(|| text(&format!("/tmp/perf-{pid}.map"), owner));
        Self(text.unwrap_or_default())
    }

    /// Where memory was used again, the later ones hold.
    pub(super) fn function(&self, address: u64) -> Option<String> {
        let hexadecimal = |word: &[u8]| {
            let word = std::str::from_utf8(word).ok()?;
            u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
        };
        let around = |line: &[u8]| {
            let mut words = line.splitn(3, |byte| *byte == b' ');
            let (start, bytes) = (hexadecimal(words.next()?)?, hexadecimal(words.next()?)?);
            let name = words.next()?;
            (address.checked_sub(start)? < bytes).then(|| lossless(name))
        };
        self.0.rsplit(|byte| *byte == b'\n').find_map(around)
    }
}

/// Of a file that the process has written, or root: nothing else that lies there is read.
fn text(path: &str, owner: Option<u32>) -> Option<Vec<u8>> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let of_file = std::fs::symlink_metadata(path).ok()?;
    let is_trusted = of_file.uid() == 0 || owner.is_none_or(|owner| of_file.uid() == owner);
    (of_file.is_file() && is_trusted && of_file.len() <= LONGEST_MAP).then_some(())?;
    let mut file = File::options();
    file.read(true).custom_flags(flags.bits().cast_signed());
    let file = file.open(path).ok()?;
    // It may have become another one.
    file.metadata().is_ok_and(|opened| opened.ino() == of_file.ino()).then_some(())?;
    let mut text = Vec::new();
    file.take(LONGEST_MAP).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_jit_is_the_last_one_that_was_put_there() {
        let map = JitMap(
            b"1000 20 first\nnonsense\n0x2000 10 a b\xff\n1000 20 second\n1020 8 third\n".to_vec(),
        );
        let found = |address| map.function(address);
        let names: Vec<_> = (0..0x3000).map(found).collect();
        let name = |address: usize| names[address].as_deref();
        assert_eq!(name(0x1000), Some("second"));
        assert_eq!(name(0x101f), Some("second"));
        assert_eq!(name(0x1020), Some("third"));
        assert_eq!(name(0x200f), Some(r"a b\xff"));
        assert_eq!([name(0xfff), name(0x1028), name(0x2010)], [None; 3]);
    }
}
