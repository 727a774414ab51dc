//! Why libbpf or the kernel refused what was asked of it, in a line.

use std::cell::RefCell;

use libbpf_rs::{ErrorKind, PrintLevel};

use super::helper_calls::BEYOND;

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

/// What the kernel, or libbpf in its name, refused of an object.
#[derive(Debug, Default, Clone)]
pub(super) struct Verdict {
    pub(super) program: Option<String>,
    pub(super) map: Option<String>,
    /// The helper that the verifier does not know.
    pub(super) helper: Option<u32>,
    /// The name of the error.
    pub(super) answer: String,
    /// The verifier's last message.
    pub(super) reason: Option<String>,
}

/// What of an object was refused; `None` where the messages do not name it, which stay for [`refusal`].
pub(super) fn verdict(error: &libbpf_rs::Error) -> Option<Verdict> {
    let log = LOG.with_borrow(Clone::clone);
    if lacks_descriptors(&format!("{error:#}"), &log) {
        return None;
    }
    let verdict = of_log(&log)?;
    forget_messages();
    Some(verdict)
}

fn of_log(log: &[String]) -> Option<Verdict> {
    /// What libbpf says of a program, the most telling first, and of a map.
    const OF_PROGRAM: [&str; 3] =
        ["BPF program load failed", "failed to find kernel BTF type", "failed to load"];
    const OF_MAP: [&str; 1] = ["failed to create:"];
    let lines = || log.iter().flat_map(|text| text.lines());
    let said = |of: &str, ways: &[&str]| {
        let begin = format!("libbpf: {of} '");
        ways.iter().find_map(|way| {
            lines().find_map(|line| {
                let (name, rest) = line.strip_prefix(&begin)?.split_once('\'')?;
                rest.contains(way).then(|| (name.to_owned(), rest.to_owned()))
            })
        })
    };
    let answer = |rest: &str| {
        let answer = rest.rsplit(": ").next().unwrap_or(rest);
        answer.trim_start_matches('-').to_owned()
    };
    if let Some((program, rest)) = said("prog", &OF_PROGRAM) {
        let reason = verifiers_last(lines).map(str::to_owned);
        let helper = reason.as_deref().and_then(helper);
        return Some(Verdict {
            program: Some(program),
            helper,
            answer: answer(&rest),
            reason,
            map: None,
        });
    }
    let (map, rest) = said("map", &OF_MAP)?;
    Some(Verdict { map: Some(map), answer: answer(&rest), ..Verdict::default() })
}

/// The helper in `program of this type cannot use helper bpf_loop#181`, or `invalid func unknown#181`.
fn helper(reason: &str) -> Option<u32> {
    let number = reason.rsplit_once('#')?.1.parse::<u32>().ok()?;
    Some(if number < BEYOND { number } else { number - BEYOND })
}

/// The message in front of the end of the verifier's log. A program that is refused before the verifier looks at
/// it has an empty log.
fn verifiers_last<'l, L: Iterator<Item = &'l str>>(lines: impl Fn() -> L) -> Option<&'l str> {
    let pairs = lines().zip(lines().skip(1));
    let mut ends =
        pairs.filter(|(_, next)| next.starts_with("processed ") || next.starts_with("-- END"));
    ends.next().map(|(line, _)| line.trim()).filter(|line| !line.contains("-- BEGIN"))
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
    match verifiers_last(lines) {
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

/// The kernel's answer to a call of this process's own, in the words for which there is a [`remedy`].
pub(super) fn answer(error: &std::io::Error) -> String {
    match error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) {
        true => NO_DESCRIPTORS.to_owned(),
        false => error.to_string(),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn a_program_that_is_refused_before_it_is_verified_is_named_with_the_kernels_answer() {
        let verdict = of_log(&log(&[
            "libbpf: prog 'name_address': BPF program load failed: -EPERM",
            "libbpf: prog 'name_address': -- BEGIN PROG LOAD LOG --\n-- END PROG LOAD LOG --",
            "libbpf: prog 'name_address': failed to load: -EPERM",
            "libbpf: failed to load object 'iotomy'",
        ]));
        let verdict = verdict.unwrap();
        assert_eq!(verdict.program.as_deref(), Some("name_address"));
        assert_eq!((&*verdict.answer, verdict.reason, verdict.helper), ("EPERM", None, None));
    }

    #[test]
    fn a_helper_that_the_verifier_does_not_know_is_named() {
        for last in
            ["invalid func unknown#100181", "program of this type cannot use helper bpf_loop#181"]
        {
            let text = format!(
                "libbpf: prog 'sys_exit': -- BEGIN PROG LOAD LOG --\n12: (85) call\n{last}\nprocessed 9 insns"
            );
            let verdict =
                of_log(&log(&["libbpf: prog 'sys_exit': BPF program load failed: -EINVAL", &text]));
            let verdict = verdict.unwrap();
            assert_eq!((verdict.helper, &*verdict.answer), (Some(181), "EINVAL"));
            assert_eq!(verdict.reason.as_deref(), Some(last));
        }
    }

    #[test]
    fn a_map_that_is_refused_is_named() {
        let verdict = of_log(&log(&[
            "libbpf: Error in bpf_create_map_xattr(deaths): -EINVAL. Retrying without BTF.",
            "libbpf: map 'deaths': failed to create: -EINVAL",
            "libbpf: failed to load object 'iotomy'",
        ]));
        let verdict = verdict.unwrap();
        assert_eq!((verdict.map.as_deref(), &*verdict.answer), (Some("deaths"), "EINVAL"));
        assert!(of_log(&log(&["libbpf: failed to load object 'iotomy'"])).is_none());
    }
}
