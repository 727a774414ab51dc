//! What a socket is connected to.

use serde::{Deserialize, Serialize};

/// How connections were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// By a connect.
    Connect,
    /// By the connect of the other end.
    Accept,
}

/// A socket, when a call first moved bytes through it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Socket {
    /// `tcp`, `udp`, `unix`…; a number where the protocol has no name here.
    pub protocol: String,
    /// Its own address and port, `127.0.0.1:80` or `[::1]:80`; of a UNIX socket its path, where it has
    /// one. A name that is not a path begins with `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// That of the other end, where it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Of a UNIX socket: the process that connected, or that listened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_pid: Option<u32>,
    /// Its name when the watch ended; absent where that process had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// How it was connected, where that was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

impl Socket {
    /// Whether its addresses are paths.
    pub fn is_unix(&self) -> bool {
        self.protocol.starts_with("unix")
    }

    /// The same without the name of the process at its other end, which is not known at every moment.
    #[must_use]
    pub fn unnamed(&self) -> Self {
        Self { peer: None, ..self.clone() }
    }

    /// In a line: `tcp 127.0.0.1:80 to 127.0.0.1:4000`, `unix /run/x to redis (1234)`.
    pub fn text(&self) -> String {
        let mut text = self.protocol.clone();
        let known = match (&self.peer, self.peer_pid) {
            (Some(peer), Some(pid)) => Some(format!("{peer} ({pid})")),
            (Some(peer), None) => Some(peer.clone()),
            (None, pid) => pid.map(|pid| format!("process {pid}")),
        };
        let ends = [self.remote.clone(), known].into_iter().flatten();
        let remote = ends.collect::<Vec<_>>().join(" of ");
        if let Some(local) = &self.local {
            text = format!("{text} {local}");
        }
        if remote.is_empty() { text } else { format!("{text} to {remote}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_told_in_a_line() {
        let some = |text: &str| Some(text.to_owned());
        let tcp = Socket { protocol: "tcp".into(), local: some("[::1]:1"), ..Socket::default() };
        assert_eq!(tcp.text(), "tcp [::1]:1");
        assert_eq!(Socket { remote: some("[::1]:2"), ..tcp }.text(), "tcp [::1]:1 to [::1]:2");
        let unix = Socket { protocol: "unix".into(), peer_pid: Some(7), ..Socket::default() };
        assert_eq!(unix.text(), "unix to process 7");
        let unix = Socket { remote: some("/run/x"), peer: some("redis"), ..unix };
        assert_eq!(unix.text(), "unix to /run/x of redis (7)");
    }
}
