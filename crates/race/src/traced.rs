//! The result of tracing a command.

use iotomy_record::Trace;

/// The result of tracing a command.
#[derive(Debug, Clone, Default)]
pub(super) struct Traced {
    /// The run that stands for it.
    pub(super) trace: Option<Trace>,
    /// Why there is none, where one was wanted.
    pub(super) untraced: Option<String>,
}

impl Traced {
    pub(super) fn missed(&mut self, why: String) {
        if self.trace.is_none() {
            self.untraced = Some(why);
        }
    }
}
