//! `iotomy-agent`: a watch for as long as it runs, whose counts Prometheus scrapes, or which are pushed to a collector of
//! OpenTelemetry.
//!
//! One thread watches and makes the texts of scrapes (`view`); another one serves them (`server`) and pushes (`otlp`), and
//! asks the first by an eventfd (`desk`). Counts are added up by service and call (`totals`, `service`), and written as the
//! metrics are declared (`metrics`): as the text of a scrape (`exposition`), or as a message of OTLP (`otlp`). With a
//! budget, calls count in a part of the time (`budget`), and stand for those of all of it (`totals`).
//!
//! The one invariant: nothing grows with time or with what others do. The watch forgets what has ended, services and
//! connections have bounds, and what does not fit is counted.

mod access;
mod budget;
mod desk;
mod exposed;
mod exposition;
mod messages;
mod metric;
mod metrics;
mod otlp;
mod samples;
mod server;
mod service;
mod settings;
mod target;
mod totals;
mod trusted;
mod view;

use std::ffi::OsString;
use std::net::TcpListener;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use iotomy_observe::{observer, take_interrupt};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};

pub use self::budget::{MOST as MOST_FACTOR, Share};
pub use self::exposition::CONTENT_TYPE;
pub use self::metric::{In, Kind, Metric};
pub use self::metrics::METRICS;
pub use self::otlp::Endpoint;
pub use self::server::{MOST as MOST_CONNECTIONS, PATH};
pub use self::service::{By, MOST_OTHERS, OTHER};
pub use self::settings::{Args, LISTEN, MAX_SERVICES, OTLP_INTERVAL, Settings, TlsFiles};
pub use self::totals::BOUNDS_NS;

use self::access::Access;
use self::desk::Desk;
use self::view::MetricsView;

/// It could not run, or not go on.
const COULD_NOT_RUN: u8 = 2;

/// The observer: the only one that watches the machine.
const OBSERVER: &str = "bpf";

/// The signals that a watch holds back while it goes on.
const HELD: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// The program: parses its words, and runs until a signal ends it.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) if messages::usage(&error) => return ExitCode::SUCCESS,
        Err(_) => return ExitCode::from(COULD_NOT_RUN),
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            messages::say_error(&error);
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

fn run(args: Args) -> Result<()> {
    // Held from here on: a watch takes them one by one, and those that come between two watches wait for the next one.
    let held: SigSet = HELD.into_iter().collect();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held), None).context("cannot hold signals")?;
    let settings = Settings::read(&args)?;
    let first = target::target(&settings)?;
    let access = Access::read(&settings)?;
    let listener = TcpListener::bind(settings.listen)
        .with_context(|| format!("cannot listen on {}", settings.listen))?;
    let desk = Desk::new().context("cannot make an eventfd")?;
    let observer = observer(OBSERVER).context("there is no observer bpf")?;
    let mut view = MetricsView::new(args, settings, first, access, listener, desk);
    loop {
        observer.watch_before(&view.request(), Some(&mut view))?;
        if let Some(reason) = view.take_failure() {
            return Err(anyhow!(reason));
        }
        // A signal that came when the watch was being taken down is noted there.
        let is_ended = take_interrupt().is_some_and(|signal| signal != Signal::SIGHUP as i32);
        match view.next_target.take() {
            Some(next) if !is_ended => view.turn_to(next),
            _ => break,
        }
    }
    view.push_last();
    Ok(())
}
