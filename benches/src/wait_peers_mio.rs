//! `wait-peers-mio list | wait-peers-mio mio PAIRS`: rounds through mio, one for each line of standard input, as
//! `wait-peers` makes those of libevent and libuv.

use std::process::ExitCode;

use iotomy_benches::run::ended;
use iotomy_benches::wait_peers_mio;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    ended("wait-peers-mio", wait_peers_mio(&words).map(|()| ExitCode::SUCCESS))
}
