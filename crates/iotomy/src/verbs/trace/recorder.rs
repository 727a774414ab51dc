//! The records that a watch writes while it goes on (`--ring`): one for each call that fulfilled `--until`, where
//! there is `--keep`, and one for each SIGUSR1.
//!
//! They are written by a thread: a disk that is slow, which is what one may wait for, delays no snapshot. The one
//! invariant is the bound: one record is written and one waits; what comes meanwhile is left out, with a message.
//! However the watch ends, it waits for the thread: a process that exits would cut a record short.

use std::collections::VecDeque;
use std::io::Write;
use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

use anyhow::{Result, anyhow};
use iotomy_host::rfc3339;
use iotomy_observe::CallerNames;
use iotomy_record::store::{AnotherFile, OutputFile, RecordRef};
use iotomy_record::{Trace, lossless};
use std::os::unix::ffi::OsStrExt;

use super::text::report_text;
use crate::errors::print_error;
use crate::screen::{OutputStyle, shown};
use crate::verbs::outputs;

/// Records that wait to be written.
const WAITING: usize = 1;

/// How records are written.
#[derive(Clone, Default)]
pub(super) struct Form {
    /// How many there are at most; the oldest goes.
    pub(super) keep: Option<usize>,
    /// Whether there are reports.
    pub(super) reports: bool,
    pub(super) is_brief: bool,
    pub(super) quiet: bool,
    pub(super) each: bool,
    pub(super) looks: OutputStyle,
}

/// Has records written.
pub(super) struct Recorder {
    idle: Option<Writer>,
    records: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<(Writer, Result<()>)>>,
    failed: Result<()>,
}

/// A record, and why it is written.
struct Job {
    record: Trace,
    cause: String,
}

/// The outputs, and what was written beside each.
struct Writer {
    form: Form,
    outputs: Vec<Output>,
    names: CallerNames,
}

struct Output {
    option: &'static str,
    to: OutputFile,
    /// With `--keep`, the files beside it, the oldest first.
    kept: VecDeque<AnotherFile>,
}

impl Recorder {
    /// To these outputs, by the options that name them.
    pub(super) fn new(form: Form, outputs: Vec<(&'static str, OutputFile)>) -> Self {
        let output = |(option, to)| Output { option, to, kept: VecDeque::new() };
        let outputs = outputs.into_iter().map(output).collect();
        let idle = Some(Writer { form, outputs, names: CallerNames::default() });
        Self { idle, records: None, thread: None, failed: Ok(()) }
    }

    /// Once the signals are held, so that the thread gets none.
    pub(super) fn begin(&mut self) {
        let Some(writer) = self.idle.take() else { return };
        let (records, waiting) = sync_channel(WAITING);
        self.records = Some(records);
        self.thread = Some(std::thread::spawn(move || writer.write_all(&waiting)));
    }

    /// Has a record written, because of `cause`.
    pub(super) fn write(&mut self, record: Trace, cause: String) {
        let Some(records) = &self.records else { return };
        // The channel is closed only if the thread panicked: `end` reports that.
        if let Err(TrySendError::Full(job)) = records.try_send(Job { record, cause }) {
            self.fail(anyhow!(
                "a record was left out ({}): those before it are still being written",
                job.cause
            ));
        }
    }

    /// A record that there is not.
    pub(super) fn fail(&mut self, error: anyhow::Error) {
        print_error(&error);
        self.failed = Err(anyhow!("not every record was written"));
    }

    /// Returns the outputs, once all is written.
    ///
    /// # Errors
    /// A record was not written; what it was has been printed.
    pub(super) fn end(mut self) -> (Vec<(&'static str, OutputFile)>, Result<()>) {
        // Without a sender, the writer comes to the end.
        self.records = None;
        let failed = mem::replace(&mut self.failed, Ok(()));
        let (writer, written) = match self.thread.take().map(JoinHandle::join) {
            Some(Ok((writer, written))) => (Some(writer), written),
            // It took the outputs with it.
            Some(Err(_)) => {
                (None, Err(anyhow!("cannot write records: the thread that writes them panicked")))
            }
            None => (self.idle.take(), Ok(())),
        };
        let outputs = writer.map(|writer| writer.outputs).unwrap_or_default();
        let outputs = outputs.into_iter().map(|output| (output.option, output.to)).collect();
        (outputs, failed.and(written))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.records = None;
        if let Some(thread) = self.thread.take() {
            // Of what failed there, its messages tell.
            let _ = thread.join();
        }
    }
}

impl Writer {
    fn write_all(mut self, records: &Receiver<Job>) -> (Self, Result<()>) {
        let mut all = Ok(());
        for job in records {
            if let Err(error) = self.write(job) {
                print_error(&error);
                all = Err(anyhow!("not every record was written"));
            }
        }
        (self, all)
    }

    /// The report first, as at the end.
    fn write(&mut self, Job { mut record, cause }: Job) -> Result<()> {
        self.names.name_all(&mut record);
        if !self.form.each {
            record.roll_up();
        }
        let now = SystemTime::now();
        let mark = mark(now);
        if !self.form.quiet {
            let line = format!("{}: {cause}", rfc3339(now));
            let _ = writeln!(std::io::stderr(), "iotomy: {}", shown(&line));
        }
        let Form { looks, is_brief, keep, .. } = self.form;
        let has_own_file = self.outputs.iter().any(|output| output.option == "--output");
        let to_screen = match self.form.reports && !has_own_file {
            true => outputs::report(None, looks, |style| report_text(&record, is_brief, style)),
            false => Ok(()),
        };
        let mut names = Vec::new();
        let mut written = vec![to_screen.map_err(Into::into)];
        for output in &mut self.outputs {
            let done = output.write(&record, &mark, (looks, is_brief)).map(|file| {
                names.extend(file.as_ref().map(|file| lossless(file.name().as_bytes())));
                // Where all of them stay, none is remembered: a watch may last.
                output.kept.extend(file.filter(|_| keep.is_some()));
            });
            written.extend([done, output.keep_newest(keep)]);
        }
        if !self.form.quiet && !names.is_empty() {
            let _ = writeln!(std::io::stderr(), "iotomy: wrote {}", shown(&names.join(" and ")));
        }
        outputs::all(written)
    }
}

impl Output {
    /// Returns the file that it made, if any.
    fn write(
        &self,
        record: &Trace,
        mark: &str,
        (looks, is_brief): (OutputStyle, bool),
    ) -> Result<Option<AnotherFile>> {
        let bytes = match self.option {
            "--json" if self.to.is_file() => RecordRef::Trace(record).json()?,
            // One after another, each in a line.
            "--json" => RecordRef::Trace(record).line()?,
            _ => {
                let style = match self.to.is_standard() {
                    true => looks.on(&std::io::stdout()),
                    false => looks.in_a_file(),
                };
                report_text(record, is_brief, &style).into_bytes()
            }
        };
        Ok(self.to.put_another(mark, &bytes)?)
    }

    fn keep_newest(&mut self, keep: Option<usize>) -> Result<()> {
        while keep.is_some_and(|keep| self.kept.len() > keep)
            && let Some(oldest) = self.kept.pop_front()
        {
            self.to.remove_another(&oldest)?;
        }
        Ok(())
    }
}

/// `20261124-163700`, in UTC as all times of records are.
pub(super) fn mark(now: SystemTime) -> String {
    let time: String = rfc3339(now).chars().take(19).filter(char::is_ascii_digit).collect();
    let (day, time) = time.split_at(8);
    format!("{day}-{time}")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_mark_has_the_date_and_the_time() {
        assert_eq!(mark(UNIX_EPOCH + Duration::from_secs(951_782_400)), "20000229-000000");
    }
}
