//! How many: descriptors and processes.

use iotomy_record::numbers;
use iotomy_sys::probe::limits;
use rustix::process::{Resource, getrlimit};

use crate::check::{Check, Context, Outcome, number_in, refusal_text};

#[rustfmt::skip]
pub(crate) static CHECKS: &[Check] = &[
    Check { name: "descriptors", purpose: "lab wait: thousands of connections", try_it: descriptors },
    Check { name: "processes", purpose: "lab herd: thousands of processes", try_it: processes },
];

/// The largest point of the experiment `wait` in the articles is 15,000 descriptors.
const DESCRIPTORS_WANTED: u64 = 15_000 + 1_000;
/// The largest point of the experiment `herd` is 16,384 processes.
const PROCESSES_WANTED: u64 = 16_384 + 1_000;

fn descriptors(_: &Context) -> Outcome {
    let limit = getrlimit(Resource::Nofile);
    // No limit is one too: the kernel's own for a process.
    let most = number_in("/proc/sys/fs/nr_open").unwrap_or(1 << 20);
    let hard = limit.maximum.unwrap_or(most);
    let soft = limit.current.unwrap_or(most);
    let real = match limits::raise_descriptors(hard) {
        Ok(()) => hard,
        Err(refusal) => {
            return Outcome::missing(
                format!(
                    "{} for {} descriptors",
                    refusal_text(&refusal),
                    numbers::thousands(hard.into())
                ),
                format!("ulimit -n {soft}; see fs.nr_open and fs.file-max"),
            );
        }
    };
    let privileged = most > hard && limits::raise_descriptors(most).is_ok();
    let reach = if privileged { most } else { real };
    let more = if privileged { "; may raise it" } else { "" };
    let text = format!(
        "{} (soft {}, hard {}{more})",
        numbers::thousands(reach.into()),
        numbers::thousands(soft.into()),
        numbers::thousands(hard.into())
    );
    if reach >= DESCRIPTORS_WANTED {
        return Outcome::ready(text);
    }
    Outcome::missing(
        format!(
            "{text}; the largest experiments need {}",
            numbers::thousands(DESCRIPTORS_WANTED.into())
        ),
        format!("ulimit -Hn {DESCRIPTORS_WANTED} as root (or LimitNOFILE={DESCRIPTORS_WANTED})"),
    )
}

fn processes(_: &Context) -> Outcome {
    let (count, limited_by, remedy) = tightest(&process_limits());
    let text = format!("{} (by {limited_by})", numbers::thousands(count.into()));
    if count >= PROCESSES_WANTED {
        return Outcome::ready(text);
    }
    Outcome::missing(
        format!(
            "{text}; the largest experiments need {}",
            numbers::thousands(PROCESSES_WANTED.into())
        ),
        remedy,
    )
}

/// A limit: the number, the setting that bounds it, and the way to raise it.
type Limit = (u64, String, String);

fn tightest(limits: &[Limit]) -> Limit {
    let unlimited = || (u64::MAX, "nothing".to_owned(), String::new());
    limits.iter().min_by_key(|(count, ..)| *count).cloned().unwrap_or_else(unlimited)
}

fn process_limits() -> Vec<Limit> {
    let wanted = PROCESSES_WANTED;
    let mut limits = Vec::new();
    // The kernel does not count root's.
    if !rustix::process::geteuid().is_root()
        && let Some(hard) = getrlimit(Resource::Nproc).maximum
    {
        let remedy = format!("ulimit -Hu {wanted} as root (or LimitNPROC={wanted})");
        limits.push((hard, "RLIMIT_NPROC".to_owned(), remedy));
    }
    for name in ["pid_max", "threads-max"] {
        if let Some(count) = number_in(format!("/proc/sys/kernel/{name}")) {
            let remedy = format!("sysctl kernel.{name}={}", 4 * wanted);
            limits.push((count, format!("kernel.{name}"), remedy));
        }
    }
    let groups = iotomy_host::kernel_text("/proc/self/cgroup").unwrap_or_default();
    limits.extend(group_files(&groups).into_iter().filter_map(|file| {
        let count = number_in(&file)?;
        Some((count, file.clone(), format!("echo {} > {file}", 4 * wanted)))
    }));
    limits
}

/// The `pids.max` of this process's control group and of those it is in, for the one hierarchy of
/// version 2 (also where version 1 is mounted beside it) and for version 1.
fn group_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let roots: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            list if list.split(',').any(|name| name == "pids") => &["/sys/fs/cgroup/pids"],
            _ => continue,
        };
        for root in roots {
            let mut at = path.trim_end_matches('/');
            loop {
                files.push(format!("{root}{at}/pids.max"));
                match at.rfind('/') {
                    Some(end) => at = &at[..end],
                    None => break,
                }
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_is_the_one_named() {
        let limit = |count, name: &str| (count, name.to_owned(), String::new());
        assert_eq!(tightest(&[limit(9, "a"), limit(3, "b"), limit(5, "c")]).1, "b");
        assert_eq!(tightest(&[]).0, u64::MAX);
    }

    #[test]
    fn a_control_group_is_limited_by_those_around_it_too() {
        assert_eq!(
            group_files("8:pids,cpu:/a/b\n4:memory:/x\n"),
            ["a/b/", "a/", ""].map(|path| format!("/sys/fs/cgroup/pids/{path}pids.max"))
        );
        assert_eq!(
            group_files("0::/\nnonsense\n"),
            ["/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/unified/pids.max"]
        );
    }
}
