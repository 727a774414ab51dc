//! C programs that are compiled against the headers and linked with the library, shared and static.
//! Each runs cases that are written from the sentences of the manual pages (`c/`).

#![allow(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iotomy_test_requirements::{Need, skip};

/// The directory in which cargo put the libraries, beside this program.
fn libraries() -> PathBuf {
    env::current_exe().unwrap().parent().unwrap().to_owned()
}

#[derive(Clone, Copy)]
enum Link {
    Shared,
    Static,
    /// Not linked with it: the dynamic linker is told to load it.
    Preloaded,
}

/// Compiles a program of `c/` and runs it.
fn run(name: &str, link: Link) {
    let Some(compiler) = ["cc", "gcc", "clang"].into_iter().find(|name| is_there(name)) else {
        skip(Need::Programs, "there is no C compiler");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(name);
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
    command.arg(&program).arg(root.join("tests/c").join(name).with_extension("c"));
    command.arg("-I").arg(root.join("include"));
    match link {
        Link::Shared => {
            let library = folder.path().join("libiotomy-ports.so.0");
            fs::copy(libraries().join("libiotomy_ports_c.so"), &library).unwrap();
            command.arg(&library).arg(format!("-Wl,-rpath,{}", folder.path().display()));
        }
        Link::Preloaded => {}
        Link::Static => {
            command.arg(libraries().join("libiotomy_ports_c.a")).args(["-ldl", "-lm", "-lgcc_s"]);
        }
    }
    let compiled = command.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let mut command = Command::new(&program);
    if matches!(link, Link::Preloaded) {
        command.env("LD_PRELOAD", libraries().join("libiotomy_ports_c.so"));
    }
    let ran = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && out.ends_with(" cases\n"), "{}\n{err}{out}", ran.status);
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn each_error_is_the_one_that_the_pages_name() {
    run("errors", Link::Shared);
}

#[test]
fn each_function_does_what_its_page_says() {
    run("calls", Link::Shared);
}

#[test]
fn closed_descriptors_are_dissociated() {
    run("closes", Link::Shared);
}

#[test]
fn processes_share_ports_after_fork() {
    run("processes", Link::Shared);
}

#[test]
fn timers_send_events_to_ports() {
    run("timers", Link::Shared);
}

#[test]
fn signals_interrupt_waits_and_their_handlers_send() {
    run("signals", Link::Shared);
}

#[test]
fn files_send_their_changes() {
    run("files", Link::Shared);
}

#[test]
fn a_file_system_that_is_unmounted_sends_its_end() {
    let made = Command::new("unshare").args(["--mount", "true"]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        skip(Need::Namespaces, "no mount namespace can be made");
        return;
    }
    run("unmount", Link::Shared);
}

#[test]
fn dev_poll_is_there_for_linked_and_for_unlinked_programs() {
    run("devpoll", Link::Shared);
    run("devpoll", Link::Preloaded);
}

#[test]
fn queues_are_those_of_freebsd() {
    run("queues", Link::Shared);
}

#[test]
fn signals_of_queues_are_beside_what_the_program_does_with_them() {
    run("queue_signals", Link::Shared);
}

#[test]
fn ports_do_what_each_sentence_says() {
    run("sentences", Link::Shared);
}

#[test]
fn queues_do_what_each_sentence_says() {
    run("queue_sentences", Link::Shared);
}

#[test]
fn processes_that_share_a_port_close_it_and_are_killed() {
    run("relatives", Link::Shared);
}

#[test]
fn what_has_ended_is_not_told_of_by_ports() {
    run("races", Link::Shared);
}

#[test]
fn what_has_ended_is_not_told_of_by_queues() {
    run("queue_races", Link::Shared);
}

#[test]
fn sets_are_changed_and_polled_at_once() {
    run("devpoll_races", Link::Shared);
    run("devpoll_races", Link::Preloaded);
}

#[test]
fn flags_of_queues_are_combined_as_freebsd_does() {
    run("queue_flags", Link::Shared);
}

#[test]
fn limits_and_descriptors_that_are_replaced_are_errors_and_no_more() {
    run("misuse", Link::Shared);
}

#[test]
fn handlers_of_signals_close_whatever_they_interrupt() {
    run("handlers", Link::Shared);
}

#[test]
fn completion_ports_cap_how_many_threads_run() {
    run("completions", Link::Shared);
}

#[test]
fn the_static_library_is_the_same() {
    let names = ["calls", "closes", "timers", "devpoll", "queues", "queue_signals", "handlers"];
    for name in names {
        run(name, Link::Static);
    }
}

#[test]
fn a_static_program_ignores_the_library_that_is_to_be_loaded() {
    let Some(compiler) = ["cc", "gcc", "clang"].into_iter().find(|name| is_there(name)) else {
        skip(Need::Programs, "there is no C compiler");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("open.c"), folder.path().join("open"));
    let text =
        "#include <fcntl.h>\nint main(void) { return open(\"/dev/poll\", O_RDWR) < 0 ? 3 : 4; }\n";
    fs::write(&source, text).unwrap();
    for (arguments, status) in [(&["-static"][..], 3), (&[], 4)] {
        let mut compile = Command::new(compiler);
        let compiled = compile.args(arguments).arg("-o").arg(&program).arg(&source);
        let compiled = compiled.output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let library = libraries().join("libiotomy_ports_c.so");
        let ran = Command::new(&program).env("LD_PRELOAD", library).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(status) && err.is_empty(), "{}: {err}", ran.status);
    }
}

#[test]
fn the_installed_library_is_found_by_pkg_config() {
    let programs = ["cc", "pkg-config"];
    if let Some(missing) = programs.into_iter().find(|name| !is_there(name)) {
        skip(Need::Programs, &format!("there is no {missing}"));
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    let install = root.ancestors().nth(2).unwrap().join("scripts/install-ports");
    let installed = Command::new(install).arg(libraries()).arg(&prefix).status().unwrap();
    assert!(installed.success());
    for kind in ["", "--static"] {
        let program = folder.path().join("program");
        let script = format!(
            "cc -pthread '{0}/tests/c/calls.c' -o '{1}' -Wl,-rpath,'{2}/lib' \
             $(pkg-config --cflags --libs {kind} libiotomy-ports) && '{1}'",
            root.display(),
            program.display(),
            prefix.display(),
        );
        let ran = Command::new("sh")
            .args(["-c", &script])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[test]
fn the_headers_are_complete_in_c_and_in_cxx() {
    let Some(compiler) = ["cc", "gcc", "clang"].into_iter().find(|name| is_there(name)) else {
        skip(Need::Programs, "there is no C compiler");
        return;
    };
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let folder = tempfile::tempdir().unwrap();
    let headers_of_systems =
        ["port.h", "sys/port.h", "sys/port_impl.h", "sys/devpoll.h", "sys/event.h"];
    for header in headers_of_systems.into_iter().chain(["iotomy/completion_port.h"]) {
        let mut languages = vec!["c"];
        if is_there("c++") {
            languages.push("c++");
        }
        for language in languages {
            let source = folder.path().join("source");
            fs::write(&source, format!("#include <{header}>\n#include <{header}>\n")).unwrap();
            let checked = Command::new(compiler)
                .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", language])
                .arg("-I")
                .arg(&headers)
                .arg(&source)
                .output()
                .unwrap();
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        }
    }
}
