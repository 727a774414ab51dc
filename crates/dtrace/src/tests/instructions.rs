//! How many instructions conditions take: every call pays for them.

use super::variable;
use crate::{Aggregation, Kind, Scope, Variable, compile};

/// As the observer has them.
const VARIABLES: [Variable; 12] = [
    variable("fd", Kind::Integer, 0),
    variable("errno", Kind::Integer, 1),
    variable("bytes", Kind::Integer, 2),
    variable("duration", Kind::Integer, 3),
    variable("thread", Kind::Integer, 4),
    variable("pid", Kind::Integer, 5),
    variable("call", Kind::String, 0x100),
    variable("group", Kind::String, 0x101),
    variable("path", Kind::String, 0x102),
    variable("image", Kind::String, 0x103),
    variable("threadname", Kind::String, 0x104),
    variable("peer", Kind::String, 0x106),
];
const AGGREGATIONS: [Aggregation; 3] = [
    Aggregation { function: "count", of: None, fact: 6, summary: "" },
    Aggregation { function: "sum", of: Some("bytes"), fact: 7, summary: "" },
    Aggregation { function: "sum", of: Some("duration"), fact: 8, summary: "" },
];

const MOST: &[(usize, &str)] = &[
    (13, "call == \"read\" && bytes < 512 && path == \"/var/lib/*\""),
    (10, "errno == ENOENT && group == \"%file\""),
    (10, "duration > 10ms && image == \"postgres\""),
    (10, "group == \"%ring\" && errno != 0"),
    (10, "call == \"ring:read\" && bytes < 512"),
    (11, "errno == ENOENT && duration > 1ms && fd == 3"),
    (14, "image == \"python*\" && image == \"script.py\" && image != \"perl\""),
    (14, "call != \"read\" && peer == \"tcp *\" || path == \"\""),
    (10, "!(call == \"write\" || errno == 0)"),
    (20, "call == \"read\" ? bytes == 512 : bytes == 0"),
    (11, "pid == thread && threadname == \"work*\""),
    (34, "fd * 3 / bytes - errno % (duration + 1) != 7"),
    (22, "bytes && duration / bytes > 100"),
    (21, "duration / 1000 > 5 && bytes % 4096 == 0"),
    (11, "(bytes & 511) == 0 || (bytes & 4095) != 0"),
    (22, "(call == \"read\") ^^ (bytes > 4KiB)"),
    (21, "(call == \"read\") + (bytes > 512) + (errno == 0) >= 2"),
    (20, "(call == \"read\" && bytes < 512) + (errno != 0) == 1"),
    (15, "(bytes > 512 ? bytes : fd) == 1 << fd"),
    (16, "bytes > 5000000000 || duration + 5000000000 < 0"),
    (7, "count() >= 1000"),
    (22, "sum(bytes) > 1GiB && sum(bytes) / count() > 4 * 1024"),
    (24, "sum(duration) / count() > 1ms || -errno == fd"),
];

#[test]
fn conditions_take_few_instructions() {
    let constants = [("ENOENT", 2)];
    let scope = Scope { variables: &VARIABLES, constants: &constants, aggregations: &AGGREGATIONS };
    for (most, text) in MOST {
        let code = compile(text, scope).unwrap().emit(10, 2040).unwrap();
        assert!(code.len() <= *most, "{} in place of {most}: {text}", code.len());
    }
}
