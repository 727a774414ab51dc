//! The command line of a Chromium that leaves nothing behind, for the bench of pages and for their
//! tests.

/// Runs the program that follows these words as the first process of a separate PID namespace: when it ends, the kernel
/// ends every process of the browser.
pub(crate) const ALONE: [&str; 7] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--pid",
    "--fork",
    "--kill-child=KILL",
    "--mount-proc",
];

/// Without a window and without background network traffic.
pub(crate) const OPTIONS: [&str; 7] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
];

/// Returns the programs that are not in `PATH`.
pub(crate) fn missing<'a>(programs: &[&'a str]) -> Vec<&'a str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    programs.iter().copied().filter(|name| !has(name)).collect()
}
