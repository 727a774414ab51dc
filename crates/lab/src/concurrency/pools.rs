//! The two queues that feed the threads.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use iotomy_host::Skip;
use iotomy_ports::{Completion, CompletionPort, PortCounts, RunWatch};

/// The names of the pools.
pub(super) const PLAIN: &str = "plain";
pub(super) const PORT: &str = "port";
pub(super) const PORT_EXACT: &str = "port-exact";

/// A queue of tasks.
pub(super) trait Pool: Send + Sync {
    /// Queues a task.
    fn post(&self, task: usize);

    /// Returns the next task; `None` when the pool is closed.
    fn get(&self) -> Option<usize>;

    /// Ends all waits.
    fn close(&self);

    /// Returns the port, where it is one.
    fn port(&self) -> Option<&CompletionPort> {
        None
    }

    /// Returns the counts of the port so far.
    fn counts(&self) -> PortCounts {
        self.port().map(CompletionPort::counts).unwrap_or_default()
    }
}

/// What an exact port learns by, or why there is nothing.
pub(super) type Knowledge = Result<Box<dyn RunWatch>, String>;

/// Creates a pool by name.
pub(super) fn pool(name: &str, exact: Option<Knowledge>) -> Result<Box<dyn Pool>, Skip> {
    match name {
        PLAIN => Ok(Box::new(PlainPool::default())),
        PORT => Ok(Box::new(PortPool(CompletionPort::new(0)))),
        PORT_EXACT => {
            let watch = exact.unwrap_or_else(|| Err("no watch was handed in".to_owned()));
            let watch = watch.map_err(|why| {
                Skip(format!("cannot be told which threads are blocked: {why} (iotomy doctor)"))
            })?;
            Ok(Box::new(PortPool(CompletionPort::with_watch(0, watch))))
        }
        _ => Err(Skip(format!("unknown pool {name}"))),
    }
}

/// A queue with a lock and a condition.
#[derive(Default)]
struct PlainPool {
    state: Mutex<PlainState>,
    has_more: Condvar,
}

#[derive(Default)]
struct PlainState {
    tasks: VecDeque<usize>,
    is_closed: bool,
}

impl PlainPool {
    fn lock(&self) -> MutexGuard<'_, PlainState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool for PlainPool {
    fn post(&self, task: usize) {
        self.lock().tasks.push_back(task);
        self.has_more.notify_one();
    }

    fn get(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            state = self.has_more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.has_more.notify_all();
    }
}

/// A completion port; a task is a completion.
struct PortPool(CompletionPort);

impl Pool for PortPool {
    fn post(&self, task: usize) {
        // It is refused only after the close, when no thread waits for the task.
        let _ = self.0.post(Completion { user: task, ..Completion::default() });
    }

    fn get(&self) -> Option<usize> {
        self.0.get(None).ok().flatten().map(|completion| completion.user)
    }

    fn close(&self) {
        self.0.close();
    }

    fn port(&self) -> Option<&CompletionPort> {
        Some(&self.0)
    }
}
