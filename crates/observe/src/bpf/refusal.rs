//! Why libbpf or the kernel refused what was asked of it, in a line.

use std::cell::RefCell;

use libbpf_rs::{ErrorKind, PrintLevel};

thread_local! {
    /// The last message of libbpf: the reason of a refusal, which its error codes lack. It logs in
    /// the calling thread, and objects are loaded concurrently.
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps libbpf's messages of this thread for [`refusal`].
pub(super) fn keep_messages() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
        let _ = LOG.try_with(|log| log.borrow_mut().push(text.trim_end().to_owned()));
    })));
}

/// Forgets what libbpf has said in this thread.
pub(super) fn forget_messages() {
    LOG.take();
}

/// One line: the operation, the kernel's error, and, where a program was refused, the verifier's
/// last message: an error number alone would not name the cause.
pub(super) fn refusal(attempt: &str, error: &libbpf_rs::Error) -> String {
    let log = LOG.take();
    // Before the verifier's last word, which may be of a program that it let pass.
    if lacks_descriptors(&format!("{error:#}"), &log) {
        return format!("cannot {attempt}: {NO_DESCRIPTORS}");
    }
    let lines = || log.iter().flat_map(|text| text.lines());
    // A program that is refused before the verifier looks at it has an empty log.
    let verdict = lines()
        .zip(lines().skip(1))
        .find(|(_, next)| next.starts_with("processed ") || next.starts_with("-- END"))
        .map(|(line, _)| line.trim())
        .filter(|line| !line.contains("-- BEGIN"));
    match verdict {
        Some(verdict) => format!("cannot {attempt}: {verdict}"),
        None if error.kind() == ErrorKind::PermissionDenied => format!("cannot {attempt}: EPERM"),
        None => match lines().last().map(|said| said.trim_start_matches("libbpf: ")) {
            Some(said) => format!("cannot {attempt}: {error} ({said})"),
            None => format!("cannot {attempt}: {error:#}"),
        },
    }
}

/// The text for EMFILE: libbpf has it only in the text of the error or of its log.
pub(super) const NO_DESCRIPTORS: &str = "too many open files (EMFILE)";

fn lacks_descriptors(error: &str, log: &[String]) -> bool {
    let number = format!("os error {}", rustix::io::Errno::MFILE.raw_os_error());
    let texts = log.iter().map(String::as_str).chain([error]);
    texts.into_iter().any(|text| text.contains(&number) || text.contains("EMFILE"))
}

/// The remedy for that reason; `usual` otherwise.
pub(crate) fn remedy(reason: &str, usual: &str) -> String {
    match reason.ends_with(NO_DESCRIPTORS) {
        true => "raise it with `ulimit -n`".to_owned(),
        false => usual.to_owned(),
    }
}
