//! What the agent says: lines on standard error. If that is closed, nothing can be reported.

use std::io::{self, Write};

use iotomy_host::speaks_utf8;
use iotomy_record::{lines, message, one_line};

/// In one line, whatever names it has.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "iotomy: {}", message(text, speaks_utf8()));
}

pub(crate) fn say_error(error: &anyhow::Error) {
    say(&one_line(error.as_ref()));
}

/// Help and version are answers; anything else is an error like every other. Whether it was an answer.
pub(crate) fn usage(error: &clap::Error) -> bool {
    if !error.use_stderr() {
        return match error.print() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                say(&format!("cannot write to standard output: {error}"));
                false
            }
            _ => true,
        };
    }
    let text = error.render().to_string().replacen("error: ", "iotomy: ", 1);
    let _ = io::stderr().write_all(lines(&text, speaks_utf8()).as_bytes());
    false
}
