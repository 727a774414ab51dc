//! The programs of a run, under the names that both sides share.

use std::collections::HashMap;

use iotomy_record::{Process, Trace};

/// The program of forks that execute another.
const BEFORE_EXEC: &str = "before exec";

/// The commands' own programs, where these are called differently on the two sides: two builds of
/// one program, or a program and what replaces it.
#[derive(Debug, Default)]
pub(crate) struct Renamed(Option<[String; 2]>);

impl Renamed {
    pub(crate) fn between(a: &[&Trace], b: &[&Trace]) -> Self {
        let root = |side: &[&Trace]| {
            let trace = side.iter().find(|trace| !trace.command.is_empty())?;
            Some(trace.processes.first()?.program().to_owned())
        };
        let has = |side: &[&Trace], name: &str| {
            side.iter().flat_map(|trace| &trace.processes).any(|process| process.program() == name)
        };
        match (root(a), root(b)) {
            (Some(old), Some(new)) if !has(b, &old) && !has(a, &new) => Self(Some([old, new])),
            _ => Self(None),
        }
    }

    fn name(&self, program: &str) -> String {
        match &self.0 {
            Some([old, new]) if program == old || program == new => format!("{old} → {new}"),
            _ => program.to_owned(),
        }
    }
}

/// The programs of a trace by image.
pub(crate) struct Programs<'t> {
    by_image: HashMap<(u32, &'t str, u32), &'t Process>,
    renamed: &'t Renamed,
}

impl<'t> Programs<'t> {
    pub(crate) fn new(trace: &'t Trace, renamed: &'t Renamed) -> Self {
        let mut by_image = HashMap::new();
        for process in &trace.processes {
            by_image.entry((process.pid, process.exec.as_str(), process.image)).or_insert(process);
        }
        Self { by_image, renamed }
    }

    pub(crate) fn name(&self, pid: u32, exec: &str, image: u32) -> String {
        match self.by_image.get(&(pid, exec, image)) {
            Some(process) => self.name_of(process),
            None => self.renamed.name(exec),
        }
    }

    pub(crate) fn name_of(&self, process: &Process) -> String {
        match process.before_exec {
            true => BEFORE_EXEC.to_owned(),
            false => self.renamed.name(process.program()),
        }
    }
}
