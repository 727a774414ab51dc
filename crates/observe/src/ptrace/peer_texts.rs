//! What a call's socket is connected to, in text, for conditions and groups: as `peer.bpf.h` has it.

use iotomy_sys::syscalls;

use super::entered::Entered;
use super::procfs;
use super::session::PtraceSession;
use super::sockets::Descriptor;
use crate::sockets::SocketName;

/// How many texts are kept; when there are more, they are found anew.
const MOST: usize = 4096;

impl PtraceSession {
    /// The peer of a thread's descriptor; empty if that is not a socket, or has no peer.
    pub(super) fn peer_of(&mut self, tid: u32, fd: i32) -> String {
        let Some(inode) = procfs::socket_of(tid, fd) else { return String::new() };
        if let Some(text) = self.peer_texts.0.get(&inode) {
            return text.clone();
        }
        let Some(name) = self.name_of(tid, fd, inode) else { return String::new() };
        let text = name.peer_text();
        if name.is_connected() {
            if self.peer_texts.0.len() >= MOST {
                self.peer_texts.0.clear();
            }
            self.peer_texts.0.insert(inode, text.clone());
        }
        text
    }

    /// The peer of a call that has returned, if it is not that of its descriptor before.
    pub(super) fn other_peer(
        &mut self,
        tid: u32,
        entered: &Entered,
        value: Result<u64, u32>,
    ) -> Option<String> {
        let args = &entered.args;
        let fd = args[0] as u32 as i32;
        let (address, length) = match syscalls::name(entered.call.0, entered.call.1).as_ref() {
            "connect" => (args[1], args[2]),
            "sendto" if args[4] != 0 => (args[4], args[5]),
            "accept" | "accept4" => return Some(self.peer_of(tid, value.ok()? as u32 as i32)),
            _ => return None,
        };
        let inode = procfs::socket_of(tid, fd)?;
        // It may be connected to another one from now on.
        self.peer_texts.0.remove(&inode);
        let mut name = self.name_of(tid, fd, inode)?;
        if let Some(asked) = procfs::bytes_at(tid, address, (length as u32).min(128) as usize) {
            name.set_remote(&asked);
        }
        Some(name.peer_text())
    }

    fn name_of(&self, tid: u32, fd: i32, inode: u64) -> Option<SocketName> {
        let process = self.tracees.process_of(tid)?;
        let copy = self.sockets.copy(Descriptor { process, thread: tid, fd }, inode)?;
        copy.name().filter(SocketName::is_connectable)
    }
}
