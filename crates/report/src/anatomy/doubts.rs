//! The limitations of the samples of a run.

use iotomy_record::{DissectedCall, Sampling};

use super::on_cpu;
use crate::numbers::{counted, share, thousands};
use crate::page::Ink;

/// Something to know before the samples are believed.
pub(crate) struct SampleWarning {
    pub(crate) ink: Ink,
    /// For the text.
    pub(crate) word: &'static str,
    /// For a page, where it stands alone.
    pub(crate) says: &'static str,
    pub(crate) text: String,
}

/// All there is to know, of samples of these calls.
pub(crate) fn doubts(sampling: &Sampling, calls: &[DissectedCall]) -> Vec<SampleWarning> {
    let doubt = |ink, word, says| move |text| SampleWarning { ink, word, says, text };
    let lost = lacks(sampling).into_iter().map(doubt(Ink::Red, "lost", "lost"));
    let few = missed(sampling, calls).map(doubt(Ink::Yellow, "few", "few samples"));
    let short = cut_short(sampling).map(doubt(Ink::Yellow, "short", "short stacks"));
    lost.chain(few).chain(short).collect()
}

/// Samples that found no room.
fn lacks(sampling: &Sampling) -> Vec<String> {
    let lacks = [
        (sampling.lost, "sample", "samples", "did not fit into a bounded table"),
        (
            sampling.lost_stacks,
            "stack",
            "stacks",
            "did not fit into a bounded table and stayed unknown",
        ),
        (sampling.lost_sleeps, "sleep", "sleeps", "did not fit into a bounded table"),
        (sampling.lost_names, "mapped file", "mapped files", "did not fit into the table of names"),
    ];
    let user = sampling.user_stacks.unwrap_or_default();
    let of_user = [
        (
            user.lost,
            "user-space stack",
            "user-space stacks",
            "did not fit into a bounded \
            table",
        ),
        (
            user.lost_mappings,
            "mapping",
            "mappings",
            "did not fit into a bounded table: the functions there have no names",
        ),
    ];
    let lacks = lacks.into_iter().chain(of_user).filter(|(n, ..)| *n > 0);
    lacks.map(|(n, one, many, what)| format!("{} {what}", counted(n.into(), one, many))).collect()
}

/// Missing samples mean time in which the kernel took none.
fn missed(sampling: &Sampling, calls: &[DissectedCall]) -> Option<String> {
    let expected = on_cpu(calls) as f64 * f64::from(sampling.hz) / 1e9;
    let missing = expected - sampling.samples as f64;
    let are_few = sampling.event == "cpu-clock" && missing > 0.1 * expected + 4.0 * expected.sqrt();
    are_few.then(|| {
        format!(
            "{} of {} samples arrived: the kernel throttled the sampling, or a hypervisor stopped \
             this machine at times",
            thousands(sampling.samples.into()),
            thousands(expected as u128),
        )
    })
}

/// The number of user stacks with only the innermost function, and the advice.
fn cut_short(sampling: &Sampling) -> Option<String> {
    let user = sampling.user_stacks.filter(|user| user.cut_short > 0)?;
    let part = share(user.cut_short.into(), user.samples.max(1).into());
    Some(format!(
        "{part} of the user-space stacks end after one or two functions, as they do without frame \
         pointers: build the program and its libraries with -fno-omit-frame-pointer, or with -C \
         force-frame-pointers=yes"
    ))
}
