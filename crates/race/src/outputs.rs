//! Where commands' output goes.
//!
//! A pipe is emptied by a thread of this process, which really reads the bytes, as a reader would:
//! what is only passed on by reference costs its maker nothing and proves nothing. All commands
//! share the pipe and its reader, so none has a better one. While a command is silent, the thread
//! sleeps.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use iotomy_record::store::Place;
use iotomy_sys::launch::Streams;
use iotomy_sys::startup::was_closed;
use rustix::event::{PollFd, PollFlags, poll};

/// How much of the end of standard error is kept to be shown.
const KEPT: usize = 16 * 1024;

/// Where standard output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// To the null device.
    Null,
    /// Into a pipe that is emptied at once.
    Pipe,
    /// To a file without a name, emptied before each run.
    File,
    /// To this file, emptied before each run.
    Path(PathBuf),
    /// Where this process's goes; standard error, too.
    Inherit,
}

/// The streams commands get, and what came out of them.
pub(super) struct Outputs {
    streams: Streams,
    /// The file to be emptied before each run.
    file: Option<File>,
    drain: Arc<Mutex<Drain>>,
    counts: bool,
    /// Held open so that the reading ends never hang up.
    _writers: (OwnedFd, OwnedFd),
    stop: Option<PipeWriter>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Drain {
    output: PipeReader,
    error: PipeReader,
    buffer: Vec<u8>,
    bytes: u64,
    tail: Vec<u8>,
}

impl Outputs {
    pub(super) fn open(output: &Output) -> io::Result<Self> {
        let (out_read, out_write) = io::pipe()?;
        let (error_read, error_write) = io::pipe()?;
        for end in [&out_read, &error_read] {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        let null = File::open("/dev/null")?;
        let writers =
            (out_write.as_fd().try_clone_to_owned()?, error_write.as_fd().try_clone_to_owned()?);
        let mut file = None;
        let mut error = OwnedFd::from(error_write);
        let stdout: OwnedFd = match output {
            Output::Null => OpenOptions::new().write(true).open("/dev/null")?.into(),
            Output::Pipe => out_write.into(),
            Output::Inherit => {
                error = io::stderr().as_fd().try_clone_to_owned()?;
                io::stdout().as_fd().try_clone_to_owned()?
            }
            Output::File | Output::Path(_) => {
                let made = match output {
                    // It is emptied, too: no link of another user leads that elsewhere.
                    Output::Path(path) => Place::resolve(path)?.append()?,
                    _ => tempfile::tempfile()?,
                };
                file = Some(made.try_clone()?);
                made.into()
            }
        };
        let inherits = *output == Output::Inherit;
        let given = |stream: OwnedFd, closed: bool| (!closed).then(|| Arc::new(stream));
        let drain = Drain {
            output: out_read,
            error: error_read,
            buffer: vec![0; 256 * 1024],
            bytes: 0,
            tail: Vec::new(),
        };
        let mut outputs = Self {
            streams: Streams {
                input: Some(Arc::new(null.into())),
                output: given(stdout, inherits && was_closed(io::stdout().as_fd())),
                error: given(error, inherits && was_closed(io::stderr().as_fd())),
            },
            file,
            drain: Arc::new(Mutex::new(drain)),
            counts: *output == Output::Pipe,
            _writers: writers,
            stop: None,
            thread: None,
        };
        outputs.begin()?;
        Ok(outputs)
    }

    /// Starts the thread that empties the pipes.
    fn begin(&mut self) -> io::Result<()> {
        let (stopped, stop) = io::pipe()?;
        let shared = Arc::clone(&self.drain);
        let (output, error) = {
            let drain = shared.lock().unwrap_or_else(PoisonError::into_inner);
            (drain.output.try_clone()?, drain.error.try_clone()?)
        };
        let work = move || {
            loop {
                let mut waits = [
                    PollFd::new(&stopped, PollFlags::IN),
                    PollFd::new(&output, PollFlags::IN),
                    PollFd::new(&error, PollFlags::IN),
                ];
                match poll(&mut waits, None) {
                    Ok(_) if !waits[0].revents().is_empty() => return,
                    Ok(_) => shared.lock().unwrap_or_else(PoisonError::into_inner).empty(),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return,
                }
            }
        };
        self.thread = Some(std::thread::Builder::new().name("drain".into()).spawn(work)?);
        self.stop = Some(stop);
        Ok(())
    }

    pub(super) fn streams(&self) -> Streams {
        self.streams.clone()
    }

    /// Forgets what came so far; empties the file.
    pub(super) fn clear(&self) -> io::Result<()> {
        let mut drain = self.drain.lock().unwrap_or_else(PoisonError::into_inner);
        drain.empty();
        drain.bytes = 0;
        drain.tail.clear();
        match &self.file {
            // Only regular files can be emptied, and only they need it.
            Some(file) if file.metadata()?.is_file() => {
                file.set_len(0)?;
                // A file without a name is not in append mode: its offset is shared by all runs.
                io::Seek::rewind(&mut file.try_clone()?)
            }
            _ => Ok(()),
        }
    }

    /// The output since the last [`Outputs::clear`]: the number of bytes of standard output where
    /// they are counted, and the end of standard error.
    pub(super) fn take(&self) -> (Option<u64>, Vec<u8>) {
        let mut drain = self.drain.lock().unwrap_or_else(PoisonError::into_inner);
        drain.empty();
        let tail = std::mem::take(&mut drain.tail);
        match &self.file {
            Some(file) => (file.metadata().ok().map(|metadata| metadata.len()), tail),
            None => (self.counts.then_some(drain.bytes), tail),
        }
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drain {
    /// Reads all there is now.
    fn empty(&mut self) {
        while let Ok(got @ 1..) = self.output.read(&mut self.buffer) {
            self.bytes += got as u64;
        }
        while let Ok(got @ 1..) = self.error.read(&mut self.buffer) {
            self.tail.extend_from_slice(&self.buffer[..got]);
            let beyond = self.tail.len().saturating_sub(KEPT);
            self.tail.drain(..beyond);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_goes_into_the_pipe_is_read_and_counted() {
        let outputs = Outputs::open(&Output::Pipe).unwrap();
        let mut pipe = File::from(outputs.streams().output.unwrap().try_clone().unwrap());
        // More than a pipe holds: without a reader, this would never return.
        pipe.write_all(&vec![7; 1 << 20]).unwrap();
        let mut error = File::from(outputs.streams().error.unwrap().try_clone().unwrap());
        error.write_all(b"oh").unwrap();
        assert_eq!(outputs.take(), (Some(1 << 20), b"oh".to_vec()));
        outputs.clear().unwrap();
        assert_eq!(outputs.take(), (Some(0), vec![]));
    }

    #[test]
    fn a_file_is_empty_before_each_run() {
        let outputs = Outputs::open(&Output::File).unwrap();
        for _ in 0..2 {
            outputs.clear().unwrap();
            File::from(outputs.streams().output.unwrap().try_clone().unwrap())
                .write_all(b"abc")
                .unwrap();
            assert_eq!(outputs.take().0, Some(3));
        }
    }
}
