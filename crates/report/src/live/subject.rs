//! What a row is about.

use iotomy_record::FileKind;

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    Call(String),
    File(FileKind, String),
    /// Its id, and the name that users know it by.
    Process(u32, String),
    Peer(String),
    RingOperation(String),
    /// By peer, and whether they were served.
    Requests(String, bool),
}
