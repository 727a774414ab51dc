//! What conditions make of calls by their names alone and by their facts, and which are refused.

use iotomy_sys::syscalls::Abi;

use super::*;

fn verdict(text: &str, call: &str) -> Verdict {
    Filter::new(text).unwrap_or_else(|problem| panic!("{}", problem.shown_in(text))).of_call(call)
}

#[test]
fn a_name_that_nothing_has_is_a_problem_at_its_place() {
    for (text, name) in [
        ("call == \"reed\"", "\"reed\""),
        ("bytes > 1 && call != \"ring:reed\"", "\"ring:reed\""),
        ("call == \"ring:\"", "\"ring:\""),
        ("call == \"raed*\" || call == \"read\"", "\"raed*\""),
        ("group == \"%files\"", "\"%files\""),
        ("call == \"syscall_999\"", "\"syscall_999\""),
    ] {
        let problem = Filter::new(text).unwrap_err();
        assert_eq!(&text[problem.span.clone()], name, "{}", problem.shown_in(text));
        let until = Filter::new("call == \"read\"").unwrap().until(text).unwrap_err();
        assert_eq!(until.span, problem.span);
    }
    for text in [
        "call == \"ring:read*\"",
        "call == \"*(i386)\"",
        "call == \"syscall_*\"",
        "call == \"syscall_500\"",
        "call == \"syscall_other(i386)\"",
        "group == \"net\" && path == \"reed\"",
        "group == \"%ring\"",
    ] {
        assert!(Filter::new(text).is_ok(), "{text}");
    }
}

#[test]
fn numbers_beyond_the_tables_are_one_call() {
    for name in ["syscall_511", "syscall_999", "syscall_other"] {
        for (text, expected) in [
            ("call == \"syscall_other\"", Verdict::All),
            ("call == \"syscall_*\"", Verdict::All),
            ("call != \"read\"", Verdict::All),
            ("call == \"syscall_5*\"", Verdict::None),
            ("group == \"%io\"", Verdict::None),
            ("fd == -1 && path == \"\"", Verdict::All),
            ("errno == ENOSYS", Verdict::Open),
        ] {
            assert_eq!(verdict(text, name), expected, "{text} {name}");
            let verdict = verdict(text, &format!("{name}(i386)"));
            assert_eq!(verdict, expected, "{text} {name}(i386)");
        }
    }
    let advice = Filter::new("call == \"syscall_999\"").unwrap_err().advice;
    assert_eq!(advice, "numbers that no call has, from 511 on, are syscall_other");
}

#[test]
fn a_misspelt_name_is_answered_with_the_nearest() {
    for (text, near) in [
        ("call == \"raed\"", "\"read\""),
        ("bytes > 1 || call != \"fdatasnyc\"", "\"fdatasync\""),
        ("call == \"openatt*\"", "\"openat\""),
        ("call == \"ring:reed\"", "\"ring:read\""),
        ("group != \"%flie\"", "\"%file\""),
    ] {
        let problem = Filter::new(text).unwrap_err();
        assert_eq!(problem.advice, format!("did you mean {near}?"), "{text}");
    }
}

#[test]
fn a_condition_that_no_value_fulfils_is_a_problem_where_it_is_barred() {
    for (text, part, range) in [
        ("bytes < 0", "bytes < 0", "bytes is 0 or more"),
        ("call == \"read\" && 0 > bytes", "0 > bytes", "bytes is 0 or more"),
        ("errno == 5000", "errno == 5000", "errno is from 0 to 4095"),
        ("(errno == 5000 || fd == 3) && duration < 0s", "duration < 0s", "duration is 0 or more"),
        ("fd > 4G || bytes == -1", "bytes == -1", "bytes is 0 or more"),
        ("!(pid < 5000000)", "(pid < 5000000)", "pid is from 0 to 4194304"),
        ("fd == 3 && fd == 4", "fd == 4", "fd is 3 here"),
        ("bytes > 10 && bytes < 5", "bytes < 5", "bytes is 11 or more"),
        ("bytes + 1 < 0 && 0 ? 1 : errno < 0", "errno < 0", "errno is from 0 to 4095"),
    ] {
        let problem = Filter::new(text).expect_err(text);
        assert_eq!(&text[problem.span.clone()], part, "{}", problem.shown_in(text));
        assert_eq!(problem.advice, range, "{text}");
        assert!(Filter::new("1").unwrap().until(text).is_err(), "{text}");
    }
    assert!(Filter::default().until("count() < 1").is_err());
    for text in [
        "bytes >= 0",
        "fd == -5",
        "errno == 4095 && pid == 4194304",
        "errno < 0 || bytes >= 0",
        "bytes > 10 || bytes < 5",
        "fd == 3 || fd == 4",
        "bytes + 1 < 0",
        "fd % 5 == -4",
        "(fd == 3 ? 1 : 2) == 2 && fd == 4",
        "1 / bytes == 0",
        "-errno == -2",
        "bytes & 1 && bytes & 2",
    ] {
        assert!(Filter::new(text).is_ok(), "{text}");
    }
}

#[test]
fn much_is_settled_by_the_call_alone() {
    for (text, call, expected) in [
        ("call == \"read\"", "read", Verdict::All),
        ("call == \"read\"", "read(i386)", Verdict::All),
        ("call == \"*(i386)\"", "read(i386)", Verdict::All),
        ("call == \"*(i386)\"", "read", Verdict::None),
        ("call == \"read\"", "write", Verdict::None),
        ("call == \"read\" && bytes < 512", "read", Verdict::Open),
        ("call == \"read\" && bytes < 512", "write", Verdict::None),
        ("bytes < 512", "getpid", Verdict::All),
        ("fd == 5", "getpid", Verdict::None),
        ("fd == 5", "close", Verdict::Open),
        ("path == \"/etc/*\"", "getpid", Verdict::None),
        ("path == \"/etc/*\"", "openat", Verdict::Open),
        ("path == \"/etc/*\"", "read", Verdict::Open),
        ("path == \"\"", "getpid", Verdict::All),
        ("group == \"%net\"", "sendto", Verdict::All),
        ("group == \"net\" || group == \"%file\"", "openat", Verdict::All),
        ("group != \"%net\"", "sendto", Verdict::None),
        ("errno == ENOENT", "getpid", Verdict::Open),
        ("1 / bytes", "getpid", Verdict::Open),
        ("execname == \"cat\" && pid == tid", "getpid", Verdict::Open),
    ] {
        assert_eq!(verdict(text, call), expected, "{text} of {call}");
    }
    assert_eq!(Filter::default().of_call("read"), Verdict::All);
    let all = Filter::default();
    assert_eq!((all.has_until(), all.ends_at_call("read")), (false, Verdict::None));
}

#[test]
fn ring_operations_are_settled_as_calls_are() {
    let verdict = |text: &str, operation: &str| Filter::new(text).unwrap().of_ring(operation);
    for (text, operation, expected) in [
        ("call == \"ring:read\"", "read", Verdict::All),
        ("call == \"ring:read*\"", "readv", Verdict::All),
        ("call == \"ring:read\"", "write", Verdict::None),
        ("call == \"read\"", "read", Verdict::None),
        ("call != \"read\"", "read", Verdict::All),
        ("group == \"%ring\" && bytes < 512", "read", Verdict::Open),
        ("group == \"ring\" && bytes < 512", "accept", Verdict::All),
        ("group == \"%io\"", "read", Verdict::None),
        ("fd == 5", "nop", Verdict::None),
        ("fd == 5", "op_99", Verdict::Open),
        ("path == \"/etc/*\"", "timeout", Verdict::None),
        ("path == \"/etc/*\"", "openat", Verdict::Open),
        ("peer == \"tcp *\"", "openat", Verdict::None),
        ("peer == \"tcp *\"", "connect", Verdict::Open),
        ("errno == ECANCELED", "nop", Verdict::Open),
    ] {
        assert_eq!(verdict(text, operation), expected, "{text} of {operation}");
    }
    assert_eq!(Filter::default().of_ring("read"), Verdict::All);
    let filter = Filter::new("group == \"%ring\"").unwrap();
    let filter = filter.until("call == \"ring:write\" && errno == EIO").unwrap();
    assert_eq!(filter.ends_at_ring("write"), Verdict::Open);
    assert_eq!(filter.ends_at_ring("read"), Verdict::None);
    assert_eq!(filter.ends_at_call("write"), Verdict::None);
    assert_eq!((filter.ring_bits("write"), filter.ring_bits("read")), (0b11, 0b01));
}

#[test]
fn what_ends_the_watch_is_a_counted_call() {
    let both = |first: &str, second: &str| Filter::new(first).unwrap().until(second).unwrap();
    for (counted, ends, call, expected) in [
        ("call == \"read\"", "call == \"read\"", "read", Verdict::All),
        ("call == \"read\"", "1", "write", Verdict::None),
        ("call == \"read\"", "duration > 1ms", "write", Verdict::None),
        ("bytes > 5", "call == \"read\"", "read", Verdict::All),
        ("bytes > 5", "count() > 3", "read", Verdict::Open),
        ("call != \"read\"", "call == \"write\" && count() > 3", "close", Verdict::None),
    ] {
        assert_eq!(both(counted, ends).ends_at_call(call), expected, "{counted} {ends} {call}");
    }
    assert!(both("bytes > 5", "sum(duration) > 3s").uses_sums());
    assert!(!both("bytes > 5", "duration > 3s").uses_sums());
    let filter = both("path == \"/a\"", "path == \"/b\" || sum(bytes) == 7");
    assert_eq!(filter.tests().len(), 2);
    let facts = CallFacts { paths: vec!["/a".to_owned()], ..CallFacts::default() };
    let sums = Sums { bytes: 7, ..Sums::default() };
    let read = (Abi::X86_64, 0);
    assert_eq!(filter.holds(read, &facts), Outcome::True);
    assert_eq!(filter.ends_at(read, &facts, &sums), Outcome::True);
    assert_eq!(filter.ends_at(read, &facts, &Sums::default()), Outcome::False);
    assert!(Filter::new("count() > 3").unwrap_err().to_string().contains("unknown function"));
}

#[test]
fn the_facts_of_a_call_decide_the_rest() {
    let facts = CallFacts {
        fd: 3,
        errno: 2,
        duration_ns: 1_500_000,
        paths: vec!["/a".to_owned(), "/b/c".to_owned()],
        images: vec!["script.py".to_owned(), "python3".to_owned()],
        threadname: "worker".to_owned(),
        cgroups: vec!["/".to_owned(), "/x/y".to_owned()],
        title: "worker 7 of \\xff".to_owned(),
        ..CallFacts::default()
    };
    let holds =
        |text: &str| Filter::new(text).unwrap().holds((Abi::X86_64, 82), &facts) == Outcome::True;
    for text in [
        "call == \"rename\" && path == \"/b/*\" && path == \"/a\"",
        "errno == ENOENT && duration > 1ms && fd == 3",
        "image == \"python*\" && execname == \"script.py\" && image != \"perl\"",
        "title == \"worker ? of *\" && title != \"worker\"",
        "threadname == \"work*\" && cgroup == \"/x/*\" && cgroup != \"/z\"",
    ] {
        assert!(holds(text), "{text}");
    }
    assert!(!holds("path == \"\"") && !holds("errno == EWOULDBLOCK"));
}

#[test]
fn the_whole_room_is_for_instructions() {
    let long = |terms: i32| {
        let terms: Vec<String> = (0..terms).map(|term| format!("fd == {term}")).collect();
        Filter::new(&terms.join(" || "))
    };
    assert!(long(250).is_ok());
    let sums = vec!["fd * 3 / bytes - errno % (duration + 1) != 7"; 120].join(" || ");
    assert!(Filter::new(&sums).unwrap_err().message.contains("of at most 2040"));
}
