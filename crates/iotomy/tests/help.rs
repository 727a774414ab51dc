//! What iotomy says of itself, and of a command line it does not understand.

use crate::support;

use std::fs;

use support::{bare, has, iotomy};

fn stdout_of(arguments: &[&str]) -> String {
    let output = iotomy(arguments).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_verb_and_option_is_in_the_help_and_fits_the_page() {
    let help = stdout_of(&["--help"]);
    let verbs = [
        "trace", "anatomy", "race", "copy", "limits", "lab", "show", "history", "report", "doctor",
        "diff", "d", "ports", "generate", "export", "agent",
    ];
    for verb in verbs {
        assert!(help.contains(&format!("\n  {verb} ")), "{help}");
        let of_verb = stdout_of(&[verb, "--help"]);
        assert!(of_verb.lines().all(|line| line.chars().count() <= 100), "{of_verb}");
        assert!(stdout_of(&[verb, "-h"]).len() <= of_verb.len());
    }
    let trace = stdout_of(&["trace", "--help"]);
    for option in [
        "-p, --pid",
        "-a, --all",
        "--name",
        "--cgroup",
        "--unit",
        "--container",
        "--only",
        "-d, --duration",
        "--live",
        "--wait",
        "--user",
        "--observer",
        "--call",
        "--files",
        "--sort",
        "--top",
        "--quantize",
        "--json",
        "-o, --output",
        "-q, --quiet",
        "--max-rows",
        "--color",
        "--ascii",
        "CMD",
    ] {
        assert!(trace.contains(option), "{option}: {trace}");
    }
    for name in ["auto", "bpf", "ptrace", "return", "on-cpu", "blocked"] {
        assert!(trace.contains(name), "{name}: {trace}");
    }
    let race = stdout_of(&["race", "--help"]);
    for option in [
        "-w, --warmup",
        "-r, --runs",
        "--min-effect",
        "--max-time",
        "--prepare",
        "--setup",
        "--cleanup",
        "--cache",
        "--drop-caches",
        "--output",
        "-i, --ignore-failure",
        "-L, --parameter",
        "--deny",
        "--seed",
        "--redo",
        "--no-trace",
        "--against",
        "--save",
        "--observer",
        "--json",
        "--export-csv",
        "--export-markdown",
        "-q, --quiet",
        "--color",
        "CMD",
    ] {
        assert!(race.contains(option), "{option}: {race}");
    }
    let lab = stdout_of(&["lab", "run", "--help"]);
    for option in [
        "--all",
        "-L, --axis",
        "--quick",
        "--full",
        "--max-time",
        "--resume",
        "--seed",
        "--path",
        "--json",
        "-q, --quiet",
        "--color",
        "--ascii",
        "NAME",
    ] {
        assert!(lab.contains(option), "{option}: {lab}");
    }
    let report = stdout_of(&["report", "--help"]);
    for option in
        ["-o, --output", "--open", "--svg", "--csv", "--markdown", "--list", "--part", "RECORD"]
    {
        assert!(report.contains(option), "{option}: {report}");
    }
    let show = stdout_of(&["show", "--help"]);
    assert!(["--sort", "--top", "--quantize", "--color"].iter().all(|o| show.contains(o)));
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(stdout_of(&["--version"]), format!("iotomy {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn man_pages_and_completions_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let man = folder.path().join("a/man");
    stdout_of(&["generate", "man", man.to_str().unwrap()]);
    for name in [
        "",
        "-trace",
        "-race",
        "-copy",
        "-limits",
        "-lab",
        "-lab-run",
        "-show",
        "-doctor",
        "-history",
        "-history-trend",
    ] {
        let page = fs::read_to_string(man.join(format!("iotomy{name}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains(".SH"), "{name}: {page}");
    }
    let page = fs::read_to_string(man.join("iotomy-trace.1")).unwrap();
    assert!(page.contains("quantize") && page.contains("duration"));
    let completions = folder.path().join("completions");
    stdout_of(&["generate", "completions", completions.to_str().unwrap()]);
    // These ask `iotomy complete`; tests/completion.rs runs them.
    for name in ["iotomy.bash", "_iotomy", "iotomy.fish"] {
        let script = fs::read_to_string(completions.join(name)).unwrap();
        assert!(script.contains("iotomy complete --"), "{name}");
    }
    for name in ["iotomy.elv", "_iotomy.ps1"] {
        let script = fs::read_to_string(completions.join(name)).unwrap();
        assert!(script.contains("quantize") && script.contains("trace"), "{name}");
        assert!(!script.contains("iotomy;complete"), "{name}");
    }
    let output = iotomy(&["generate", "man", "/proc/nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.starts_with(b"iotomy: cannot create the directory /proc/nowhere"));
}

/// The pages by name, each with its sections.
fn pages() -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    stdout_of(&["generate", "man", folder.path().to_str().unwrap()]);
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    fs::read_dir(folder.path()).unwrap().map(read).collect()
}

#[test]
fn man_pages_have_the_sections_of_man_pages_7_in_its_order() {
    let order = [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "COMMANDS",
        "OPTIONS",
        "EXIT STATUS",
        "ENVIRONMENT",
        "FILES",
        "EXAMPLES",
        "SEE ALSO",
    ];
    let pages = pages();
    assert!(pages.len() > 20);
    for (name, page) in &pages {
        let headings = page.lines().filter_map(|line| line.strip_prefix(".SH "));
        let headings: Vec<&str> = headings.map(|heading| heading.trim_matches('"')).collect();
        let expected = order.iter().filter(|one| headings.contains(one));
        assert!(headings.iter().eq(expected), "{name}: {headings:?}");
        let always =
            ["NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"];
        assert!(always.iter().all(|one| headings.contains(one)), "{name}: {headings:?}");
        // A shell's words, and no page of a verb that is not for users.
        assert!(page.is_ascii() && !page.contains("complete.1"), "{name}");
        // Every page that is named exists, of our own.
        for named in page.split("\\fBiotomy").skip(1).filter_map(|rest| rest.split_once("\\fR(1)"))
        {
            let file = format!("iotomy{}.1", named.0.replace('\\', ""));
            if !named.0.contains(char::is_whitespace) {
                assert!(pages.iter().any(|(name, _)| *name == file), "{name} names {file}");
            }
        }
    }
    let page = |name: &str| &pages.iter().find(|(of, _)| of == name).unwrap().1;
    assert!(page("iotomy-history.1").contains("history.db"));
    assert!(!page("iotomy-doctor.1").contains("history.db"));
}

#[test]
fn man_pages_are_formatted_without_a_warning() {
    let missing = ["groff", "troff"].iter().any(|program| !has(program));
    if missing {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    stdout_of(&["generate", "man", folder.path().to_str().unwrap()]);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let page = entry.unwrap().path();
        let words = ["-man", "-ww", "-b", "-z", "-Tutf8", page.to_str().unwrap()];
        let ran = bare("groff", &words).output().unwrap();
        assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    }
    // The warnings are on.
    let wrong = folder.path().join("wrong");
    fs::write(&wrong, ".TH a 1\n.SH NAME\n.nonsense\n").unwrap();
    let words = ["-man", "-ww", "-z", "-Tutf8", wrong.to_str().unwrap()];
    assert!(!bare("groff", &words).output().unwrap().stderr.is_empty());
}

#[test]
fn help_has_the_status_and_the_surroundings_and_the_short_one_only_examples() {
    let long = stdout_of(&["trace", "--help"]);
    for part in ["Exit status:", "Environment:", "Files:", "Examples:", "NO_COLOR", "history.db"] {
        assert!(long.contains(part), "{part}: {long}");
    }
    let short = stdout_of(&["trace", "-h"]);
    assert!(short.contains("Examples:\n  iotomy trace -- ") && !short.contains("Exit status"));
    // One that is read by a parser of its own, and one below another.
    assert!(stdout_of(&["copy", "--help"]).contains("\n  1\n          --verify found"));
    assert!(stdout_of(&["history", "rm", "-h"]).contains("iotomy history rm 3 4"));
}

/// The file that a page names below the folder of this variable.
fn named_file(page: &str, variable: &str) -> String {
    let page = page.replace('\\', "");
    let rest = page.split_once(&format!("${variable}/")).unwrap().1;
    rest.split("fR").next().unwrap().to_owned()
}

#[test]
fn the_files_that_pages_name_are_those_that_are_read_and_written() {
    let pages = pages();
    let page = &pages.iter().find(|(name, _)| name == "iotomy-limits.1").unwrap().1;
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let config = place("config").join(named_file(page, "XDG_CONFIG_HOME"));
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "history.always = true\n").unwrap();
    let mut run = iotomy(&["limits", "--only", "syscall"]);
    run.env_remove("IOTOMY_HISTORY").env_remove("IOTOMY_CONFIG");
    for (variable, name) in
        [("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data"), ("XDG_CACHE_HOME", "cache")]
    {
        run.env(variable, place(name));
    }
    assert!(run.output().unwrap().status.success());
    assert!(place("data").join(named_file(page, "XDG_DATA_HOME")).exists());
    let limits = place("cache").join(named_file(page, "XDG_CACHE_HOME"));
    let (begin, end) = limits.to_str().unwrap().split_once('*').unwrap();
    let is_it = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path().to_str().unwrap().to_owned();
        path.starts_with(begin) && path.ends_with(end)
    };
    assert!(fs::read_dir(limits.parent().unwrap()).unwrap().any(is_it));
}

fn refused(words: &[&str]) -> String {
    let output = iotomy(words).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
    error
}

#[test]
fn an_unknown_option_is_answered_with_the_closest_and_where_to_look() {
    for (words, expected) in [
        (
            &["trace", "--quantise", "wall", "true"][..],
            "trace has no option --quantise; is it --quantize? see iotomy trace --help",
        ),
        (
            &["trace", "-L", "n=3", "true"],
            "trace has no option -L; race has one; see iotomy trace --help",
        ),
        (&["trace", "-P", "3"], "trace has no option -P; is it -p? see iotomy trace --help"),
        (
            &["copy", "-v", "a", "b"],
            "copy has no option -v; is it --verify? see iotomy copy --help",
        ),
        (&["copy", "a", "--zzz=x", "b"], "copy has no option --zzz; see iotomy copy --help"),
        (
            &["race", "ls", "-la"],
            "race has no option -l; quote a command with its options as one word, as in \
             'ls -l'; see iotomy race --help",
        ),
        (
            &["--json", "f", "trace", "true"],
            "there is no option --json; options stand behind the verb, as in iotomy trace --json; \
             see iotomy --help",
        ),
        (
            &["lab", "--quick", "run", "copy"],
            "lab has no option --quick; options stand behind the verb, as in iotomy lab run \
             --quick; see iotomy lab --help",
        ),
    ] {
        assert_eq!(refused(words), format!("iotomy: {expected}\n"), "{words:?}");
    }
    // One that there is, and that another excludes.
    let error = refused(&["trace", "-a", "--user", "root"]);
    assert!(error.contains("cannot be used with") && !error.contains("has no option"), "{error}");
}

#[test]
fn no_error_advises_to_pass_an_option_as_a_value() {
    for words in [
        &["trace", "-r", "true"][..],
        &["anatomy", "--run", "3", "true"],
        &["race", "--bogus", "true"],
        &["copy", "--bogus", "a", "b"],
        &["report", "-z", "a"],
        &["history", "trend", "--bogus", "x"],
        &["lab", "run", "-x", "copy"],
        &["limits", "--bogus"],
        &["trac", "true"],
        &["history", "lst"],
        &["compare"],
        &["complet"],
    ] {
        let error = refused(words);
        assert!(!error.contains("as a value"), "{words:?}: {error}");
        assert!(!error.contains("complete"), "{words:?}: {error}");
        assert!(!error.contains("exist: \n"), "{words:?}: {error}");
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused_with_status_2() {
    for words in [
        &[][..],
        &["no-such-verb"],
        &["trace"],
        &["trace", "--"],
        &["trace", "--no-such-option", "true"],
        &["trace", "-p", "1", "true"],
        &["trace", "-p", "1", "-a"],
        &["trace", "-a", "true"],
        &["trace", "-a", "--wait"],
        &["trace", "-p", "1", "--user", "root"],
        &["trace", "-d", "0", "true"],
        &["trace", "-d", "-1", "true"],
        &["trace", "-d", "nan", "true"],
        &["trace", "-d", "1e30", "true"],
        &["trace", "--top", "-1", "true"],
        &["trace", "--top", "99999999999999999999", "true"],
        &["trace", "--sort", "size", "true"],
        &["trace", "--quantize", "size", "true"],
        &["trace", "--max-rows", "0", "true"],
        &["trace", "--max-rows", "4294967296", "true"],
        &["trace", "--observer", "strace", "true"],
        &["trace", "--call", "no_such_call", "true"],
        &["trace", "--call", "%no-such-group", "true"],
        &["trace", "--call", "", "true"],
        &["trace", "--json", "", "true"],
        &["trace", "--json", "a", "--json", "b", "true"],
        &["race"],
        &["race", ""],
        &["race", "  "],
        &["race", "echo 'a"],
        &["race", "no-such-program-here"],
        &["race", "/nonexistent/program", "true"],
        &["race", "-r", "0", "true"],
        &["race", "-r", "many", "true"],
        &["race", "--max-time", "0", "true"],
        &["race", "--min-effect", "-1%", "true"],
        &["race", "--min-effect", "100%", "true"],
        &["race", "--min-effect", "nan", "true"],
        &["race", "--cache", "lukewarm", "true"],
        &["race", "--output", "nowhere", "true"],
        &["race", "--output", "/nonexistent/folder/file", "true"],
        &["race", "-L", "x", "true"],
        &["race", "-L", "x=", "true {x}"],
        &["race", "-L", "x=1,,2", "true {x}"],
        &["race", "-L", "x=1,2", "true"],
        &["race", "-L", "x=1", "-L", "x=2", "true {x}"],
        &["race", "--deny", "no_such_call", "true"],
        &["race", "--deny", "read=EVIL", "true"],
        &["race", "--deny", "C:read", "true", "true"],
        &["race", "--json", "a", "--export-csv", "a", "true"],
        &["show"],
        &["show", "a", "b"],
        &["history"],
        &["history", "show"],
        &["history", "compare", "1"],
        &["history", "diff", "1"],
        &["history", "trend", "x", "--last", "0"],
        &["race", "--save=12", "true"],
        &["limits", "--list", "--save"],
        &["report"],
        &["report", "--svg", "--open", "a"],
        &["limits", "--list", "--refresh"],
        &["limits", "--only"],
        &["limits", "--path"],
        &["limits", "extra"],
        &["generate", "no-such-thing", "/tmp"],
    ] {
        let output = iotomy(words).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(output.stdout.is_empty() && !error.is_empty(), "{words:?}");
        assert!(!error.contains("panicked"), "{words:?}: {error}");
    }
}

#[test]
fn a_name_that_is_nearly_a_call_is_answered_with_those_there_are() {
    let answer = |words: &str| {
        let output = iotomy(&["trace", "--call", words, "true"]).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(answer("stat64x").contains("stat"));
    assert!(answer("%disk").contains("%file"));
}
