//! The results of the bench, before they are printed and stored.

use crate::targets::Target;
use crate::trace::cold::Cold;
use crate::trace::costs::Cost;
use crate::trace::memory::Memory;
use crate::trace::paid::PaidOverhead;
use crate::trace::rounds::Measured;
use crate::trace::startup::Startup;

/// The results of the bench.
pub(crate) struct TraceResults {
    pub(crate) blocks: u32,
    pub(crate) versions: Vec<String>,
    pub(crate) measured: Measured,
    pub(crate) costs: Vec<Cost>,
    pub(crate) cold: Cold,
    pub(crate) paid: Vec<PaidOverhead>,
    pub(crate) startup: Startup,
    pub(crate) memory: Memory,
    pub(crate) targets: Vec<Target>,
}
