//! The viewers of a watch, by the options that ask for one: at most one of them.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use iotomy_host::rfc3339;
use iotomy_observe::{Request, Target};
use iotomy_record::store::OutputFile;
use iotomy_record::{Trace, lossless};
use iotomy_report::live::Setting;
use std::os::unix::ffi::OsStrExt;

use super::intervals::IntervalView;
use super::live::LiveView;
use super::recorder::{Form, Recorder};
use super::ring::RingView;
use super::{TraceArgs, record, reports};
use crate::verbs::outputs::Outputs;

/// The live view, and the command's streams as it leaves them.
pub(super) fn live(args: &TraceArgs, request: &mut Request) -> Result<LiveView> {
    let subject = match &request.target {
        Target::Command(command) => {
            let words = command.argv.iter().map(|word| lossless(word.as_bytes()));
            words.collect::<Vec<_>>().join(" ")
        }
        Target::Running(_) | Target::Machine => args.target.description(),
    };
    let setting = Setting {
        subject,
        files: request.files,
        connections: request.peers,
        requests: request.requests,
        is_command: matches!(request.target, Target::Command(_)),
        ..args.looks.of_a_screen()
    };
    let common = common(args, request);
    let mut view = LiveView::open(setting, common, args.each)?;
    if let Target::Command(command) = &mut request.target {
        command.setup.streams = Some(view.streams()?);
    }
    Ok(view)
}

/// What the records of parts of the watch have in common.
fn common(args: &TraceArgs, request: &Request) -> Trace {
    record(args, request, rfc3339(SystemTime::now()), Trace::default())
}

/// The view of `--interval`, with the outputs.
pub(super) fn interval(
    args: &TraceArgs,
    request: &Request,
    every: Duration,
    outputs: &mut Outputs,
) -> IntervalView {
    let common = common(args, request);
    let text = reports(args).then(|| {
        let to = outputs.take("--output");
        let style = match &to {
            None => args.looks.on(&std::io::stderr()),
            Some(to) if to.is_standard() => args.looks.on(&std::io::stdout()),
            Some(_) => args.looks.in_a_file(),
        };
        (style, to.unwrap_or_else(OutputFile::standard_error))
    });
    IntervalView::new(every, common, text, outputs.take("--json"))
}

/// The view of `--ring`, with the outputs.
pub(super) fn ring(
    args: &TraceArgs,
    request: &Request,
    length: Duration,
    outputs: &mut Outputs,
) -> RingView {
    let form = Form {
        keep: args.keep.map(|keep| keep as usize),
        reports: reports(args),
        is_brief: args.view.is_brief(),
        quiet: args.quiet,
        each: args.each,
        looks: args.looks,
    };
    let named = ["--json", "--output"].into_iter();
    let to = named.filter_map(|option| Some((option, outputs.take(option)?))).collect();
    RingView::new(length, common(args, request), Recorder::new(form, to), args.keep)
}
