//! An array of shards on Debian's Slurm, with several nodes on this machine, one of which dies.

use crate::support;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iotomy_record::{Sweep, store};
use support::labs::{User, until_measured};
use support::servers::Server;
use support::{has_server, iotomy, root};
use tempfile::TempDir;

const NODES: [&str; 3] = ["node1", "node2", "node3"];

/// Sixteen cases in four points, which take some seconds each.
const PLAN: [&str; 4] = ["null-sink", "-L", "size=32M,64M,96M,128M", "--max-time=20"];

const SHARDS: &str = "4";

/// A controller and its nodes, each with the processes of its jobs in a namespace that ends with it.
struct Cluster {
    folder: TempDir,
    nodes: Vec<(&'static str, Server)>,
    _controller: Server,
}

/// A daemon whose processes, daemons of its own included, end with this test.
fn daemon(words: &[&str], config: &Path, log: &Path) -> Server {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child"]);
    command.args(["--mount-proc", "sh", "-c", "exec \"$@\" >>\"$0\" 2>&1"]).arg(log).args(words);
    Server::start(command.env("SLURM_CONF", config))
}

impl Cluster {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.map(|one| one.local_addr().unwrap().port());
        let host = nix::sys::utsname::uname().unwrap().nodename().to_str().unwrap().to_owned();
        let at = folder.path().to_str().unwrap();
        let mut config = format!(
            "ClusterName=iotomy\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\n\
             AuthType=auth/none\nCredType=cred/none\nSlurmUser=root\nSlurmdUser=root\n\
             StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/%n\n\
             SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/%n.pid\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             JobAcctGatherType=jobacct_gather/none\nMpiDefault=none\nSelectType=select/linear\n\
             PartitionName=all Nodes=ALL Default=YES State=UP\n",
            ports[0]
        );
        for (name, port) in NODES.iter().zip(&ports[1..]) {
            config += &format!(
                "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1\n"
            );
        }
        let path = folder.path().join("slurm.conf");
        fs::write(&path, config).unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let log = |name: &str| folder.path().join(format!("{name}.log"));
        let controller = daemon(&["slurmctld", "-D", "-i"], &path, &log("slurmctld"));
        let node = |name: &&'static str| {
            fs::create_dir(folder.path().join(name)).unwrap();
            (*name, daemon(&["slurmd", "-D", "-N", name], &path, &log(name)))
        };
        let nodes = NODES.iter().map(node).collect();
        let cluster = Self { nodes, _controller: controller, folder };
        cluster.until("all nodes are idle", || {
            (cluster.says(&["sinfo", "-h", "-N", "-o", "%t"]) == "idle\nidle\nidle\n").then_some(())
        });
        cluster
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        command
    }

    /// What a command of Slurm prints, also while there is no controller.
    fn says(&self, words: &[&str]) -> String {
        String::from_utf8(self.command(words).output().unwrap().stdout).unwrap()
    }

    fn done(&self, words: &[&str]) {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    /// Waits for it, and longer than other tests do: jobs take their time.
    fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        for _ in 0..6_000 {
            if let Some(found) = found() {
                return found;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("waited in vain until {what}; {}\n{}", self.queue(), self.logs());
    }

    /// What the daemons printed.
    fn logs(&self) -> String {
        let log = |name: &str| {
            let log = fs::read(self.folder.path().join(format!("{name}.log"))).unwrap_or_default();
            format!("{name}.log:\n{}", String::from_utf8_lossy(&log))
        };
        ["slurmctld"].into_iter().chain(NODES).map(log).collect()
    }

    fn kill(&mut self, name: &str) {
        self.nodes.retain(|(node, _)| *node != name);
        let update = format!("NodeName={name}");
        self.done(&["scontrol", "update", &update, "State=DOWN", "Reason=killed"]);
    }

    /// The jobs that are not over.
    fn queue(&self) -> String {
        self.says(&["squeue", "-h", "-a", "-o", "%i %T %N"])
    }
}

/// Submits the array as a user does.
fn submit(cluster: &Cluster, user: &User, to: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/slurm/submit");
    let mut command = cluster.command(&[script.to_str().unwrap(), "-n", SHARDS, "-d"]);
    command.arg(to).args(["-o", "--time=10"]).args(PLAN).arg("--path").arg(user.work.path());
    command.env("IOTOMY", iotomy(&[]).get_program()).env("XDG_STATE_HOME", user.state.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The records of shards that are there, with their bytes.
fn records(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_record = |path: &PathBuf| path.extension().is_some_and(|of| of == "json");
    let mut found: Vec<_> =
        paths.filter(is_record).map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    found.sort();
    found
}

#[test]
#[ignore = "needs Slurm: make test-fleet"]
fn an_array_that_lost_a_node_is_resumed_and_has_the_cases_of_one_piece() {
    if !root() || !has_server("slurmctld") || !has_server("slurmd") || !has_server("sbatch") {
        return;
    }
    let user = User::new();
    let whole = user.record(&PLAN);
    let mut cluster = Cluster::new();
    let to = user.work.path().join("records");
    submit(&cluster, &user, &to);
    // Which shard the node has that is to die, and what that has measured.
    let shard = cluster.until("node2 runs a shard", || {
        let queue = cluster.says(&["squeue", "-h", "-t", "R", "-w", "node2", "-o", "%K"]);
        queue.trim().parse::<u64>().ok()
    });
    let kept = cluster.until("its state is kept", || {
        let start = format!("lab-null-sink-{shard}-of-{SHARDS}-");
        let entries = fs::read_dir(user.state.path().join("iotomy")).ok()?;
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut found = paths.filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(&start) && name.ends_with(".json")
        });
        found.next()
    });
    until_measured(&kept);
    cluster.kill("node2");
    let record = to.join(format!("null-sink-{shard}-of-{SHARDS}.json"));
    assert!(!record.exists(), "the node died midway");
    let before = store::load_sweep(&kept).unwrap();
    assert!(before.run.is_partial);
    cluster
        .until("a shard of another node is complete", || (!records(&to).is_empty()).then_some(()));
    cluster.done(&["scancel", "-u", "root"]);
    cluster.until("the array is over", || cluster.queue().is_empty().then_some(()));
    let complete = records(&to);
    let merged = to.join("null-sink.json");
    assert!(!merged.exists() && complete.len() < 4, "{complete:?}");
    // Asked for again, as it was.
    submit(&cluster, &user, &to);
    cluster.until("all is merged", || {
        assert!(merged.exists() || !cluster.queue().is_empty(), "{}", logs(&to));
        merged.exists().then_some(())
    });
    for (path, bytes) in &complete {
        assert_eq!(&fs::read(path).unwrap(), bytes, "{path:?} was not run again");
    }
    let said = logs(&to);
    assert_eq!(said.matches(" is complete in ").count(), complete.len(), "{said}");
    let resumed = store::load_sweep(&record).unwrap();
    assert_eq!(resumed.started, before.started, "it went on: {said}");
    assert!(!kept.exists());
    let merged = store::load_sweep(&merged).unwrap();
    let cases = |of: &Sweep| of.cases.iter().map(|case| case.params.clone()).collect::<Vec<_>>();
    assert_eq!(cases(&merged), cases(&whole));
    assert_eq!((&merged.axes, &merged.about), (&whole.axes, &whole.about));
    assert_eq!((merged.run.shards.len(), merged.machines.len()), (4, 0));
    assert_eq!(merged.machine.name, whole.machine.name);
    let claims = |of: &Sweep| of.claims.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    assert_eq!(claims(&merged), claims(&whole));
    assert!(merged.cases.iter().all(|case| !case.samples.is_empty()), "{:?}", merged.cases);
}

/// What the jobs printed.
fn logs(folder: &Path) -> String {
    let entries = fs::read_dir(folder.join("log")).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| fs::read_to_string(path).unwrap()).collect()
}
