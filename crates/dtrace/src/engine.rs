//! What runs a program: the reference evaluator, or the kernel.

use std::collections::{BTreeMap, BTreeSet};

use crate::form::{Action, DropCause, Form};
use crate::machine::{Aggregations, Firing, Machine, Output, World};
use crate::output::Printer;

/// Runs a program, and keeps what it leaves until that is taken.
pub trait Engine {
    /// Runs the clauses of a probe that fires.
    ///
    /// # Errors
    /// It cannot be fired.
    fn fire(&mut self, world: &World, firing: &Firing) -> Result<(), String>;

    /// Takes what is first in the buffer.
    fn take(&mut self) -> Option<Output>;

    /// Has the aggregations as they are now.
    fn refresh(&mut self) {}

    /// The aggregations when they were last refreshed, for their reader to read and change.
    fn aggregations(&mut self) -> &mut Aggregations;

    /// Their reader is about to clear or truncate one, once it has been refreshed: what comes from now on counts
    /// behind that.
    fn clearing(&mut self, _aggregation: u16) {}

    /// Their reader has cleared or truncated one.
    fn cleared(&mut self, _aggregation: u16) {}

    /// What was not kept, by cause.
    fn drops(&mut self) -> BTreeMap<DropCause, u64>;

    /// How often clauses ended by an error, by its kind.
    fn faults(&mut self) -> BTreeMap<&'static str, u64>;

    /// The status of `exit()`, once it was called.
    fn exit(&self) -> Option<i32>;
}

/// Does what an engine's output says: prints it, and changes the aggregations that it names.
pub fn deliver(
    engine: &mut impl Engine,
    form: &Form,
    printer: &mut Printer<'_>,
    output: &Output,
    source: &str,
) {
    let records = match output {
        Output::Event(event) => event.records.as_slice(),
        Output::Error(_) => &[],
    };
    let actions = || records.iter().map(|(number, _)| &form.records[usize::from(*number)].action);
    let concerns_aggregations = |action: &Action| {
        matches!(
            action,
            Action::Printa(..)
                | Action::Clear(_)
                | Action::Truncate(_)
                | Action::Normalize(_)
                | Action::Denormalize(_)
        )
    };
    let cleared = actions().filter_map(|action| match action {
        Action::Clear(aggregation) | Action::Truncate(aggregation) => Some(*aggregation),
        _ => None,
    });
    let cleared: BTreeSet<u16> = cleared.collect();
    cleared.iter().for_each(|aggregation| engine.clearing(*aggregation));
    if actions().any(concerns_aggregations) {
        engine.refresh();
    }
    printer.output(output, engine.aggregations(), source);
    cleared.iter().for_each(|aggregation| engine.cleared(*aggregation));
}

impl Engine for Machine<'_> {
    fn fire(&mut self, world: &World, firing: &Firing) -> Result<(), String> {
        Machine::fire(self, world, firing);
        Ok(())
    }

    fn take(&mut self) -> Option<Output> {
        Machine::take(self)
    }

    fn aggregations(&mut self) -> &mut Aggregations {
        &mut self.aggregations
    }

    fn drops(&mut self) -> BTreeMap<DropCause, u64> {
        Machine::drops(self).clone()
    }

    fn faults(&mut self) -> BTreeMap<&'static str, u64> {
        self.errors().clone()
    }

    fn exit(&self) -> Option<i32> {
        Machine::exit(self)
    }
}
