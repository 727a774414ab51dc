//! The end of a mover's threads.

use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

/// Waits until a thread has ended. A scope waits for what its threads run, and these make calls
/// until they end: an exit of the process would cut them short.
pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
