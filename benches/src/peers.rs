//! The programs that observe beside iotomy: whether they are installed, and their counts of a call.

use std::process::{Command, Stdio};

/// Returns the first line of a peer's version output, or the reason why it cannot be run.
pub(crate) fn version(program: &str) -> Result<String, String> {
    let asked =
        Command::new(program).arg("--version").stdin(Stdio::null()).output().map_err(|error| {
            match error.kind() {
                std::io::ErrorKind::NotFound => {
                    format!("{program} is not installed; see `scripts/setup bench`")
                }
                _ => format!("cannot run {program}: {error}"),
            }
        });
    asked.map(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().unwrap_or("of an unknown version").trim().to_owned()
    })
}

/// Parses `@calls[dd, 1112, 0]: 65538`; the number of the call is the last key.
pub(crate) fn bpftrace_count(line: &str, number: u32) -> Option<u64> {
    let (key, count) = line.strip_prefix("@calls[")?.split_once("]: ")?;
    let call = key.rsplit(", ").next()?;
    (call.parse() == Ok(number)).then(|| count.trim().parse().ok())?
}

/// Parses `   read                2003      0    46.268 …`.
pub(crate) fn perf_count(line: &str, name: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    (words.next()? == name).then(|| words.next()?.parse().ok())?
}

/// Parses ` 69.97    0.005369           2      2003           read`.
pub(crate) fn strace_count(line: &str, name: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    (words.last() == Some(&name)).then(|| words.get(3)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_counts_are_read_from_their_tables() {
        assert_eq!(bpftrace_count("@calls[dd, 1112, 0]: 65538", 0), Some(65538));
        assert_eq!(bpftrace_count("@calls[44]: 7", 44), Some(7));
        assert_eq!(bpftrace_count("@calls[dd, 1112, 10]: 3", 0), None);
        assert_eq!(bpftrace_count("@returns[dd, 1112, 0]: ", 0), None);
        let perf = "   read                2003      0    46.268     0.015     0.023";
        assert_eq!(perf_count(perf, "read"), Some(2003));
        assert_eq!(perf_count(perf, "write"), None);
        let strace = " 69.97    0.005369           2      2003           read";
        assert_eq!(strace_count(strace, "read"), Some(2003));
        assert_eq!(
            strace_count("100.00    0.000015           0        35        16 openat", "x"),
            None
        );
    }
}
