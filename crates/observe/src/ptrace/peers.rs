//! The calls that make, use and close connections, as the tracer sees them.
//!
//! Sockets are looked at when a thread has stopped in front of a call that moves bytes through one
//! for the first time, or closes a connection, and behind one that connects or accepts: a few
//! requests each, however many sockets there are.

use std::time::Instant;

use iotomy_record::{FileKind, FileUse, Role};
use iotomy_sys::syscalls;

use super::connections::{EALREADY, EISCONN, Use, is_interruption, says_nothing};
use super::entered::Entered;
use super::procfs;
use super::session::PtraceSession;
use super::sockets::Descriptor;
use crate::call_names::descriptor;
use crate::naming::{CallNumber, call_name};
use crate::sockets::SocketName;
use crate::tally::{FileRef, ImageId};

impl PtraceSession {
    /// A call is entered that may close connections, or be the first of a socket after its connect.
    pub(super) fn look_before(&mut self, tid: u32, call: CallNumber, args: &[u64; 6]) {
        let Some(connections) = self.connections.as_ref().filter(|all| !all.is_empty()) else {
            return;
        };
        let awaits_any = connections.awaits_any();
        let name = syscalls::name(call.0, call.1);
        // The kernel, too, looks at the lower half only.
        let fd = |at: u8| args[usize::from(at)] as u32 as i32;
        match name.as_ref() {
            "close" | "connect" => self.look_at(tid, fd(0)),
            "dup2" | "dup3" => self.look_at(tid, fd(1)),
            "close_range" => {
                const CLOSE_RANGE_CLOEXEC: u64 = 4;
                if args[2] & CLOSE_RANGE_CLOEXEC == 0 {
                    let range = args[0] as u32..=args[1] as u32;
                    self.look_at_all(tid, &|fd| range.contains(&fd.cast_unsigned()));
                }
            }
            "execve" | "execveat" => self.look_at_all(tid, &|_| true),
            name if awaits_any => {
                if let Some(at) = descriptor(name) {
                    self.look_at_awaited(tid, fd(at));
                }
            }
            _ => {}
        }
    }

    /// A thread ends: the last one of a process closes its descriptors.
    pub(super) fn look_before_end(&mut self, tid: u32) {
        let Some(process) = self.tracees.process_of(tid) else { return };
        let Some(connections) = &self.connections else { return };
        if connections.is_empty() || !self.tracees.is_last(tid) {
            return;
        }
        self.look_at_all(tid, &|_| true);
        if let Some(connections) = &mut self.connections {
            connections.forget_process(process);
        }
    }

    /// A call that is counted moves bytes through a file, and is entered.
    pub(super) fn meet(&mut self, tid: u32, image: Option<ImageId>, fd: i32, file: &FileRef) {
        let Some(inode) = procfs::socket_inode(&file.path) else { return };
        let (Some(image), Some(process)) = (image, self.tracees.process_of(tid)) else { return };
        let descriptor = Descriptor { process, thread: tid, fd };
        let of = Use { image, counted: true, descriptor, now: Instant::now() };
        let connections = self.connections.as_mut().filter(|_| self.tally.has_room_for(image));
        let tracked = connections.and_then(|all| all.add_use(of, inode));
        if self.tally.is_met(file) {
            return;
        }
        let name = match tracked {
            Some(name) => name,
            None => {
                let Some(copy) = self.sockets.copy(descriptor, inode) else { return };
                let Some(name) = copy.name() else { return };
                if name.is_tcp()
                    && let Some(info) = copy.tcp_info()
                {
                    drop(copy);
                    self.make_room();
                    if let Some(connections) = &mut self.connections {
                        connections.add_met(of, inode, &name, info);
                    }
                }
                name
            }
        };
        let socket = Some(name.socket());
        let kind = FileKind::Socket;
        self.tally.note_file(file.clone(), FileUse { kind, socket, ..FileUse::default() });
    }

    /// A call has returned that may have made a connection, or told what came of one.
    pub(super) fn look_behind(
        &mut self,
        tid: u32,
        image: ImageId,
        entered: &Entered,
        value: Result<u64, u32>,
        (counts, now): (bool, Instant),
    ) {
        let Some(connections) = &self.connections else { return };
        let name = call_name(entered.call.0, entered.call.1);
        let awaits_any = connections.awaits_any();
        let Some(process) = self.tracees.process_of(tid) else { return };
        if !self.tally.has_room_for(image) {
            return;
        }
        let counted = counts && self.is_wanted(&name);
        let fd = entered.args[0] as u32 as i32;
        let descriptor = Descriptor { process, thread: tid, fd };
        let of = Use { image, counted, descriptor, now };
        match syscalls::name(entered.call.0, entered.call.1).as_ref() {
            "connect" => {
                let _ = self.connected(of, entered, value);
            }
            "accept" | "accept4" if counted => {
                let _ = self.accepted(of, value);
            }
            "getsockopt" if awaits_any => {
                let _ = self.asked_for_error(of, &entered.args, value);
            }
            name if awaits_any && syscalls::transfer(name).is_some() => {
                let _ = self.failed_to_move(of, value);
            }
            _ => {}
        }
    }

    /// A connect has returned.
    fn connected(&mut self, of: Use, entered: &Entered, value: Result<u64, u32>) -> Option<()> {
        let Descriptor { thread, fd, .. } = of.descriptor;
        let inode = procfs::socket_of(thread, fd)?;
        let connections = self.connections.as_mut()?;
        if connections.has(inode) {
            let info = self.sockets.copy(of.descriptor, inode).and_then(|copy| copy.tcp_info());
            connections.connect_again(of, inode, value, info);
            return Some(());
        }
        let copy = self.sockets.copy(of.descriptor, inode)?;
        let name = copy.name().filter(SocketName::is_connectable)?;
        let mut name = SocketName { role: Some(Role::Connect), ..name };
        let asked = || {
            let length = (entered.args[2] as u32).min(128);
            procfs::bytes_at(thread, entered.args[1], length as usize)
        };
        match value {
            Err(EISCONN | EALREADY) => return None,
            Err(error) if says_nothing(error) => {
                if !name.is_tcp() {
                    return None;
                }
            }
            Err(error) => {
                // The socket has no remote address.
                if name.set_remote(&asked()?) {
                    name.peer_pid = 0;
                    connections.add_failed(of, &name, error);
                }
                return None;
            }
            Ok(_) => {}
        }
        if name.lacks_remote() && !name.set_remote(&asked()?) {
            return None;
        }
        if !name.is_tcp() {
            connections.add_opened(of, &name, Some(entered.at));
            return Some(());
        }
        let info = copy.tcp_info()?;
        drop(copy);
        self.make_room();
        self.connections.as_mut()?.add_connecting(of, inode, name, entered.at, info);
        Some(())
    }

    /// An accept that is counted has returned.
    fn accepted(&mut self, of: Use, value: Result<u64, u32>) -> Option<()> {
        let fd = match value {
            Ok(fd) => fd as u32 as i32,
            Err(error) if is_interruption(error) => return None,
            Err(_) => of.descriptor.fd,
        };
        let listener = of.descriptor;
        let descriptor = Descriptor { fd, ..listener };
        let of = Use { descriptor, ..of };
        let inode = procfs::socket_of(descriptor.thread, fd)?;
        let copy = self.sockets.copy(descriptor, inode)?;
        let name = copy.name().filter(SocketName::is_connectable)?;
        drop(copy);
        let name = SocketName { role: Some(Role::Accept), ..name };
        let connections = self.connections.as_mut()?;
        if let Err(error) = value {
            connections.add_failed(of, &name, error);
        } else {
            // When it was made is not seen.
            connections.add_opened(of, &name, None);
        }
        if name.is_tcp()
            && let Some((queued, limit)) = self.queue(listener)
        {
            let queued = u64::from(queued) + u64::from(value.is_ok());
            let connections = self.connections.as_mut()?;
            connections.note_queue(of, &name, (queued, limit.into()));
        }
        if name.is_tcp() && value.is_ok() {
            self.make_room();
            self.connections.as_mut()?.add_accepted(of, inode, name);
        }
        Some(())
    }

    /// How many connections wait at a listener, and their limit.
    fn queue(&self, listener: Descriptor) -> Option<(u32, u32)> {
        let inode = procfs::socket_of(listener.thread, listener.fd)?;
        self.sockets.copy(listener, inode)?.tcp_info()?.queue
    }

    /// A program has asked for the error of a socket.
    fn asked_for_error(&mut self, of: Use, args: &[u64; 6], value: Result<u64, u32>) -> Option<()> {
        const SOL_SOCKET: u32 = 1;
        const SO_ERROR: u32 = 4;
        if value.is_err() || (args[1] as u32, args[2] as u32) != (SOL_SOCKET, SO_ERROR) {
            return None;
        }
        let Descriptor { thread, fd, .. } = of.descriptor;
        let inode = procfs::socket_of(thread, fd)?;
        let error = procfs::bytes_at(thread, args[3], 4)?;
        let error = u32::from_ne_bytes(error.try_into().ok()?);
        if error > 0 {
            self.connections.as_mut()?.end_connect(inode, error);
        }
        Some(())
    }

    /// A call that moves bytes through a socket has returned: by the error of its connect, if that has
    /// failed.
    fn failed_to_move(&mut self, of: Use, value: Result<u64, u32>) -> Option<()> {
        const EAGAIN: u32 = 11;
        const EFAULT: u32 = 14;
        const EINVAL: u32 = 22;
        const EPIPE: u32 = 32;
        const ENOTCONN: u32 = 107;
        let error = value.err().filter(|error| !says_nothing(*error))?;
        if [EAGAIN, EFAULT, EINVAL, EPIPE, ENOTCONN].contains(&error) {
            return None;
        }
        let inode = procfs::socket_of(of.descriptor.thread, of.descriptor.fd)?;
        self.connections.as_mut()?.end_connect(inode, error);
        Some(())
    }

    /// Reads TCP's figures of a descriptor, if it is one of a connection.
    fn look_at(&mut self, tid: u32, fd: i32) {
        let Some(inode) = procfs::socket_of(tid, fd) else { return };
        self.look_at_socket(tid, fd, inode);
    }

    /// The same, if its connect has no outcome yet.
    fn look_at_awaited(&mut self, tid: u32, fd: i32) {
        let Some(inode) = procfs::socket_of(tid, fd) else { return };
        if self.connections.as_ref().is_some_and(|all| all.awaits(inode)) {
            self.look_at_socket(tid, fd, inode);
        }
    }

    /// The same, of all descriptors of a process that meet a condition.
    fn look_at_all(&mut self, tid: u32, wanted: &dyn Fn(i32) -> bool) {
        let (Some(process), Some(connections)) = (self.tracees.process_of(tid), &self.connections)
        else {
            return;
        };
        for (inode, fd) in connections.of_process(process) {
            if wanted(fd) {
                self.look_at_socket(tid, fd, inode);
            }
        }
    }

    fn look_at_socket(&mut self, tid: u32, fd: i32, inode: u64) {
        let Some(process) = self.tracees.process_of(tid) else { return };
        let Some(connections) = self.connections.as_mut().filter(|all| all.has(inode)) else {
            return;
        };
        let descriptor = Descriptor { process, thread: tid, fd };
        let info = self.sockets.copy(descriptor, inode).and_then(|copy| copy.tcp_info());
        if let Some(info) = info {
            connections.update(inode, info, Instant::now());
        }
    }

    /// Looks for closed connections, where that is due, before another one is tracked.
    fn make_room(&mut self) {
        let Some(connections) = &mut self.connections else { return };
        if connections.is_sweep_due() {
            connections.sweep(&self.tracees.one_of_each_process());
        }
    }
}
