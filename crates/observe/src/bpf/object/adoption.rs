//! The beginning of a watch: which processes are watched from now on.

use std::collections::BTreeSet;

use libbpf_rs::{MapCore, MapFlags};

use super::{Session, iterate, map, refusal};
use crate::attach::executed_name;
use crate::bpf::cgroups;
use crate::bpf::layout::EXEC_LEN;

/// Which tasks the next run of `adopt` begins to watch.
#[derive(Debug, Clone, Copy)]
pub(in crate::bpf) enum Adoption {
    /// A child held in front of its exec.
    Launcher(u32),
    /// One thread.
    Thread(u32),
    /// Every process but this one.
    Machine,
    /// The selected processes.
    Selected,
}

/// The numbers of `trace.h` for how far `adopt` has come with the selected processes.
const GATHERING: u32 = 1;
const FOLLOWING: u32 = 2;

/// Most runs of `adopt` in a row: each finds what those made that the one before has found, where
/// ids do not go up.
const MOST_PASSES: usize = 16;

impl Session {
    /// Begins to watch what `whom` names; threads made from now on by watched ones follow.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn adopt(&self, whom: Adoption) -> Result<(), String> {
        if !matches!(whom, Adoption::Thread(_)) && self.has_details() {
            map(&self.object, ".data.slow_floor")
                .update(&0u32.to_ne_bytes(), &[0; 16], MapFlags::ANY)
                .map_err(|error| refusal("keep the slowest calls", &error))?;
        }
        match whom {
            Adoption::Launcher(pid) => self.ask_for([0, 0, pid, 0])?,
            Adoption::Thread(tid) => self.ask_for([0, tid, 0, 0])?,
            Adoption::Machine => {
                self.tell_executed_names(crate::attach::all)?;
                self.ask_for([GATHERING, 0, 0, 0])?;
            }
            Adoption::Selected => {
                self.ask_for([GATHERING, 0, 0, 0])?;
                self.adopt_newcomers()?;
                return self.ask_for([FOLLOWING, 0, 0, 0]);
            }
        }
        iterate(&self.object, "adopt")
    }

    /// Has the calls that measure the overhead be of those that are left out.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn leave_out_own_calls(&self) -> Result<(), String> {
        match self.samples {
            true => self.shutter()?.close(),
            false => self.ask_for([0, 0, 0, 1]),
        }
    }

    /// Watches the selected processes that are not yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn adopt_newcomers(&self) -> Result<(), String> {
        self.tell_executed_names(|| self.selection.running().into_iter())?;
        for _ in 0..MOST_PASSES {
            let before = self.counters().adopted;
            iterate(&self.object, "adopt")?;
            if self.counters().adopted == before {
                break;
            }
        }
        Ok(())
    }

    /// A process that is selected by its id, runs, and was not found among the tasks of the kernel.
    pub(in crate::bpf) fn hidden_process(&self) -> Option<u32> {
        let is_found = |pid: u32| self.row::<u32>("attached_images", &pid.to_ne_bytes()).is_some();
        // It may have ended in the meantime.
        let is_hidden = |pid: &u32| !is_found(*pid) && crate::attach::process(*pid).is_ok();
        self.selection.processes.iter().copied().find(is_hidden)
    }

    /// Tells the programs by which names processes were executed before they are watched, where a condition asks for that.
    fn tell_executed_names<P>(&self, processes: impl FnOnce() -> P) -> Result<(), String>
    where
        P: Iterator<Item = u32>,
    {
        if !self.asks_for_images {
            return Ok(());
        }
        let table = map(&self.object, "executed_names");
        // An id may have become another's.
        let mut stale: BTreeSet<Vec<u8>> = table.keys().collect();
        for pid in processes() {
            let Some(mut name) = executed_name(pid) else { continue };
            name.resize(EXEC_LEN - 1, 0);
            name.push(0);
            let id = pid.to_ne_bytes();
            stale.remove(&id[..]);
            // Where there is no room, the name of its file is the process's.
            let _ = table.update(&id, &name, MapFlags::ANY);
        }
        // Last: processes that are watched already keep their names meanwhile.
        for id in stale {
            table.delete(&id).map_err(|error| refusal("tell the names of programs", &error))?;
        }
        Ok(())
    }

    /// `struct adoption` of `trace.h`.
    fn ask_for(&self, adoption: [u32; 4]) -> Result<(), String> {
        map(&self.object, ".data.adoption")
            .update(&0u32.to_ne_bytes(), &adoption.map(u32::to_ne_bytes).concat(), MapFlags::ANY)
            .map_err(|error| refusal("ask for tasks to watch", &error))
    }

    /// Tells the programs what is selected.
    pub(super) fn fill_selection(&self) -> Result<(), String> {
        let put = |table: &str, key: &[u8], row: &[u8]| {
            map(&self.object, table)
                .update(key, row, MapFlags::ANY)
                .map_err(|error| refusal("select processes to watch", &error))
        };
        let one = 1u32.to_ne_bytes();
        for pid in &self.selection.processes {
            put("selected_pids", &pid.to_ne_bytes(), &one)?;
        }
        for (at, name) in self.selection.names.iter().enumerate() {
            let table: Vec<u8> = name.table().into_iter().flat_map(u64::to_ne_bytes).collect();
            put("selected_names", &(at as u32).to_ne_bytes(), &table)?;
        }
        cgroups::select(&self.selection.cgroups, |table, key| put(table, key, &one))
    }
}
