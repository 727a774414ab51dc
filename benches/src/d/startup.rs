//! The time from the start of a D program to the command's first call, and from the command's end to that of the output:
//! the wall time of a script over `true`, less that of `true`.

use std::fs;

use anyhow::{Context, Result};

use crate::child::Signals;
use crate::order::Order;
use crate::scratch::Scratch;

/// In the form of the second article's: the calls of a command, and their time on a CPU, by call and file.
const SCRIPT: &str = "\
syscall:::entry
/pid == $target/
{
	self->start = vtimestamp;
	self->arg0 = arg0;
}

syscall:::return
/self->start/
{
	@calls[probefunc, fds[self->arg0].fi_pathname] = count();
	@time[probefunc] = sum(vtimestamp - self->start);
	self->start = 0;
	self->arg0 = 0;
}
";

/// Wall times in ns, round by round.
#[derive(Debug, Default)]
pub(crate) struct Startup {
    pub(crate) bare: Vec<f64>,
    pub(crate) d: Vec<f64>,
}

impl Startup {
    /// Returns the wall time with the script minus the bare one, round by round.
    pub(crate) fn added(&self) -> Vec<f64> {
        self.d.iter().zip(&self.bare).map(|(d, bare)| d - bare).collect()
    }
}

/// Measures so many rounds.
pub(crate) fn measure(
    signals: &Signals,
    iotomy: &str,
    folder: &Scratch,
    order: &mut Order,
    rounds: u32,
) -> Result<Startup> {
    let script = folder.path().join("startup.d");
    fs::write(&script, SCRIPT).context("cannot write a script")?;
    let script = script.to_string_lossy().into_owned();
    let output = folder.path().join("seen").to_string_lossy().into_owned();
    let d = [iotomy, "d", "-q", "-o", &output, "-s", &script, "-c", "true"].map(str::to_owned);
    let bare = ["true".to_owned()];
    let mut startup = Startup::default();
    let mut due = [false, true];
    for _ in 0..rounds {
        order.shuffle(&mut due);
        for by_d in due {
            let wall = signals.wall_ns(if by_d { &d } else { &bare })?;
            if by_d { &mut startup.d } else { &mut startup.bare }.push(wall);
        }
    }
    Ok(startup)
}
