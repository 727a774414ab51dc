//! The C library `libiotomy-ports`: the functions of port.h, sys/event.h and iotomy/completion_port.h, and
//! `/dev/poll`, over the crate `ports`.
//!
//! It owns names and pointers, and the knowledge of which descriptor is which port, set or queue; the
//! semantics are the crate's. Beside the functions of port.h (`calls`) and sys/event.h (`queues`) it has
//! functions of the C library, which a program that is linked with it calls instead: those that close
//! descriptors (`closing`) end what is watched of them; those of timers (`timers`) take `SIGEV_PORT`; those
//! that open, write to and ask files (`dev_poll`) know `/dev/poll`; those that set what is done with signals
//! (`dispositions`) leave those counted that a queue watches. They call the C library's own for all else.

#![allow(
    unsafe_code,
    reason = "functions that C calls get pointers, and their symbols replace the C library's"
)]

pub mod calls;
pub mod closing;
pub mod completions;
pub mod dev_poll;
pub mod dispositions;
mod duplicates;
mod opened;
pub mod queues;
mod replaced;
pub mod timers;
