//! The line `carry` tells of a run.

/// What carry told.
#[derive(Debug)]
pub(crate) struct CarryReport {
    pub(crate) outcome: String,
    pub(crate) moved: usize,
    pub(crate) lost: usize,
    pub(crate) errno: i32,
    /// Bytes referenced, copied and touched.
    pub(crate) traffic: [usize; 3],
    pub(crate) source_at: Option<usize>,
    pub(crate) target_at: Option<usize>,
}

impl CarryReport {
    /// From its line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
        let (moved, lost, errno) = match *words.first()? {
            "done" => (number(1)?, 0, 0),
            "refused" => (0, 0, 0),
            "failed" => (number(2)?, number(3)?, i32::try_from(number(4)?).ok()?),
            _ => return None,
        };
        let outcome = words[0].to_owned();
        let end = words.len().checked_sub(5)?;
        let traffic = [number(end)?, number(end + 1)?, number(end + 2)?];
        let (source_at, target_at) = (number(end + 3), number(end + 4));
        Some(Self { outcome, moved, lost, errno, traffic, source_at, target_at })
    }
}
