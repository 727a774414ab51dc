//! How a Chromium is called of which nothing is left, by the bench of pages and by their tests.

/// In a space of processes of its own, the first of which is the program behind these words: when that
/// ends, the kernel ends every process of the browser.
pub(crate) const ALONE: [&str; 7] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--pid",
    "--fork",
    "--kill-child=KILL",
    "--mount-proc",
];

/// Without a window, and with nobody else to talk to.
pub(crate) const OPTIONS: [&str; 7] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
];

/// Those of these programs that are not in the path.
pub(crate) fn missing<'a>(programs: &[&'a str]) -> Vec<&'a str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    programs.iter().copied().filter(|name| !has(name)).collect()
}
