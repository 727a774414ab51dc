//! A container that an engine really runs, watched by its name and by its id.

use crate::support;

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use support::cgroups::unique;
use support::servers::{Client, Sockets, ended, free_port, successes};
use support::{Need, Tracing, bpf, has_server, root, skip, until, until_watching};

const REQUESTS: usize = 12;

/// A container with a web server on the machine's loopback; it is removed with the test.
struct Container {
    name: String,
    id: String,
}

impl Container {
    /// The web server's process.
    fn pid(&self) -> u32 {
        let output = podman(&["inspect", "-f", "{{.State.Pid}}", &self.name]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }

    /// Runs `busybox httpd` on the port.
    ///
    /// # Errors
    /// The engine's reason why it cannot.
    fn start(rootfs: &Path, port: u16) -> Result<Self, String> {
        for folder in ["bin", "www"] {
            fs::create_dir(rootfs.join(folder)).unwrap();
        }
        fs::write(rootfs.join("www/index.html"), "x".repeat(1234)).unwrap();
        let path = std::env::var_os("PATH");
        let busybox = iotomy_sys::launch::find_program("busybox".as_ref(), path.as_deref());
        let program = fs::read(busybox.unwrap()).unwrap();
        if program.windows(9).any(|bytes| bytes == b"/ld-linux") {
            return Err("busybox is not static".to_owned());
        }
        support::program(&rootfs.join("bin"), "busybox", &program);
        let name = unique("iotomy-test");
        // Engines want more than a machine that is a container itself may give.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
        let files = limit.map_or_else(|| "1024".to_owned(), |limit| limit.to_string());
        let mut command = podman(&["run", "-d", "--rm", "--network", "host", "--name", &name]);
        command.args([
            "--ulimit",
            &format!("nofile={files}:{files}"),
            "--ulimit",
            "nproc=1000:1000",
        ]);
        command.arg("--rootfs").arg(rootfs);
        let address = format!("127.0.0.1:{port}");
        command.args(["/bin/busybox", "httpd", "-f", "-p", &address, "-h", "/www"]);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if !output.status.success() {
            let _ = podman(&["rm", "-f", &name]).output();
            return Err(text(&output.stderr));
        }
        let container = Self { name, id: text(&output.stdout) };
        until("the container listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        Ok(container)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = podman(&["rm", "-f", "-t", "0", &self.name]).output();
    }
}

fn podman(arguments: &[&str]) -> Command {
    let mut command = Command::new("podman");
    // Without systemd; and by runc, because crun refuses a machine with both versions of control groups.
    command.args(["--cgroup-manager=cgroupfs", "--runtime=runc"]).args(arguments);
    command
}

#[test]
fn requests_of_a_container_are_those_of_its_clients() {
    if !bpf() || !root() || !["podman", "runc", "busybox"].iter().all(|program| has_server(program))
    {
        return;
    }
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let container = match Container::start(folder.path(), port) {
        Ok(container) => container,
        Err(reason) => return skip(Need::Machine, &format!("podman cannot run here: {reason}")),
    };
    for named in [&container.name, &container.id[..12]] {
        let watching = Tracing::new("bpf", &["--files", "--container", named], &[]).start();
        until_watching(&watching, "bpf", watching.pid());
        let (mut sent, mut received) = (0, 0);
        for _ in 0..REQUESTS {
            // Each connection is served by a process that starts for it.
            let mut client = Client::to(port);
            assert_eq!(client.get("/index.html").len(), 1234);
            sent += client.sent;
            received += client.received;
        }
        let record = ended(watching, container.pid());
        assert_eq!(record.targets[0].kind, "container");
        let Sockets { read_bytes, write_bytes, .. } = Sockets::of(&record);
        assert_eq!([read_bytes, write_bytes], [sent, received], "{named}");
        let made = ["fork", "vfork", "clone", "clone3"].map(|call| successes(&record, call));
        assert_eq!(made.iter().sum::<u64>(), REQUESTS as u64);
    }
}
