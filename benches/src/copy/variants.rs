//! The movers of a sweep: each that may serve a route, with the options it has a choice of.

use iotomy_movers::{Declaration, MOVERS};

use crate::copy::contender::Variant;
use crate::copy::route::{Route, Sharing, Source, Target};

/// Every mover with every choice worth trying on a route. Those that turn out not to serve it are
/// skipped with their reason.
pub(crate) fn variants(route: Route) -> Vec<Variant> {
    let mut variants = Vec::new();
    for mover in MOVERS {
        let Declaration { name, calls, .. } = *mover.declaration();
        // `null` moves nothing.
        if calls.is_empty() || !worth_trying(name, route) {
            continue;
        }
        for options in choices(name, route) {
            let options = options.split_whitespace().map(|option| format!("--{option}"));
            variants.push(Variant { mover: name, options: options.collect() });
        }
    }
    variants
}

/// Leaves out what would only be refused.
fn worth_trying(name: &str, route: Route) -> bool {
    let from_file = route.source == Source::File;
    let files = from_file && route.target == Target::File;
    match name {
        "copy-file-range" | "parallel" | "direct" => files,
        "fallocate" => route.source == Source::Zero,
        "reflink" => route.sharing == Sharing::Auto,
        "mmap-write" | "sendfile" | "pipelined" => from_file,
        "vmsplice" => route.target == Target::Pipe,
        _ => true,
    }
}

fn choices(name: &str, route: Route) -> &'static [&'static str] {
    let files = route.source == Source::File && route.target == Target::File;
    match name {
        "read-write" => &[
            "block-size=32768",
            "block-size=65536",
            "block-size=131072",
            "block-size=262144",
            "block-size=1048576",
        ],
        "io-uring" if files => &[
            "block-size=131072 depth=2",
            "block-size=131072 depth=8",
            "block-size=1048576 depth=2",
            "block-size=1048576 depth=8",
        ],
        "io-uring" => &["block-size=65536", "block-size=262144", "block-size=1048576"],
        "parallel" => &[
            "threads=2 block-size=65536",
            "threads=2 block-size=262144",
            "threads=2 block-size=1048576",
            "threads=4 block-size=262144",
        ],
        "pipelined" => &["block-size=131072", "block-size=262144", "block-size=524288"],
        "vmsplice" => &["block-size=65536", "block-size=262144", "block-size=1048576"],
        "direct" => &["block-size=1048576"],
        _ => &[""],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mover_that_moves_is_tried_on_some_route() {
        for mover in MOVERS {
            let name = mover.declaration().name;
            let tried =
                Route::ALL.iter().any(|route| variants(*route).iter().any(|one| one.mover == name));
            assert_eq!(tried, !mover.declaration().calls.is_empty(), "{name}");
        }
    }
}
