//! Which programs and tables are those of io_uring's operations, and which of them need which.

/// How the names of the tables and programs of io_uring's operations begin.
pub(super) const PREFIX: &str = "ring_";

/// The end of requests that these attached programs do not see, if there is one, with its tracepoint. Each end has a
/// program for every form of its tracepoint, and only that for this kernel's form can be attached.
pub(super) fn unseen_end<'n>(
    attached: impl Iterator<Item = &'n str> + Clone,
) -> Option<&'static str> {
    let has = |forms: [&str; 2]| attached.clone().any(|name| forms.contains(&name));
    if !has(["ring_submit_req", "ring_submit_sqe"]) {
        return Some("submissions (io_uring_submit_req)");
    }
    (!has(["ring_complete", "ring_complete_parts"])).then_some("completions (io_uring_complete)")
}

/// Whether a program counts what has neither beginning nor end where one of them is not seen.
pub(super) fn needs_both_ends(program: &str) -> bool {
    program.starts_with(PREFIX) && program != "ring_create"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_seen_where_both_of_their_ends_are() {
        let unseen = |programs: &[&str]| unseen_end(programs.iter().copied());
        let all = ["sched_switch", "ring_create", "ring_submit_req", "ring_complete"];
        assert_eq!(unseen(&all), None);
        assert_eq!(unseen(&["ring_submit_sqe", "ring_complete_parts"]), None);
        let completions = unseen(&["ring_create", "ring_submit_req", "ring_poll_arm"]).unwrap();
        assert!(completions.starts_with("completions"));
        let submissions = unseen(&["ring_complete", "ring_complete_parts", "ring_req_failed"]);
        assert!(submissions.unwrap().starts_with("submissions"));
    }
}
