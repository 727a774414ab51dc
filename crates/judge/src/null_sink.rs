//! Bytes written to the null device.

use iotomy_record::Verdict;
use iotomy_record::numbers::bytes;
use serde_json::json;

use crate::run::{MIB, NULL, Run};
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "null-sink",
    verdict: Verdict::Note,
    summary: "what was written went to the null device, which looks at nothing",
    description: "1 MiB or more was written to /dev/null. A write there returns at once, whatever it is \
                  given: the time is that of making the bytes, and not of moving them.",
    rule: Rule::OfRun(judge),
};

fn judge(run: &Run<'_>) -> Option<Found> {
    let discarded = run.discarded_bytes();
    (discarded >= MIB).then(|| {
        let text = format!(
            "{} were written to {NULL}, which looks at none of them: the time is not that of a copy",
            bytes(discarded.into())
        );
        Found::new(text, [("bytes", json!(discarded))])
    })
}
