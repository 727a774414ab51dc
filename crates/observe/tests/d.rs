//! Programs in the kernel leave what the reference evaluator leaves.
//!
//! The corpus is that of `crates/dtrace`: each program over its scripted firings, which user space makes
//! by running a program of the kernel's.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use iotomy_dtrace::form::Form;
use iotomy_dtrace::script::{Run, probes, run, run_on};
use iotomy_dtrace::{Macros, Probe, Scope, compile_program};
use iotomy_observe::d::{Console, Finished, Kernel, LoadError, Watch};
use iotomy_record::Exit;
use iotomy_sys::launch::Command;
use iotomy_test_requirements::{Need, skip};

const SCOPE: Scope<'_> = Scope { variables: &[], constants: &[], aggregations: &[] };

fn corpus() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dtrace/tests/programs");
    let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut all: Vec<PathBuf> = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|one| one == "d"))
        .filter(|path| path.with_extension("out").exists())
        .collect();
    all.sort();
    all
}

/// The command's part of a script, and the rest.
fn macros(script: &str, name: &str) -> (Macros, String) {
    let mut macros = Macros {
        arguments: vec![name.to_owned()],
        defaults: false,
        target: None,
        own: vec![("pid", 4242), ("ppid", 4241), ("uid", 1000), ("gid", 1000)],
    };
    let mut rest = String::new();
    for line in script.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("args") => macros.arguments.extend(words.map(str::to_owned)),
            Some("target") => macros.target = words.next().map(|word| word.parse().unwrap()),
            _ => rest.extend([line, "\n"]),
        }
    }
    (macros, rest)
}

/// The ring of the kernel has room for other numbers of events than the evaluator's buffer.
const COUNTED_OTHERWISE: &str = "buffer.d";

/// Programs with what the kernel's side refuses by name, or has no scripted facts of.
const REFUSED: [&str; 2] = ["process_information.d", "typed_arguments_of_sched.d"];

/// Names of files and directories are not to be scripted in the kernel.
const OF_FILES: [&str; 4] = [
    "files_by_descriptor.d",
    "known_variables.d",
    "reads_by_size_and_file.d",
    "typed_arguments_of_io.d",
];

/// Processes and memory are not to be scripted in the kernel.
fn is_of_this_machine(script: &str) -> bool {
    !script.lines().any(|line| {
        let first = line.split_whitespace().next();
        matches!(first, Some("user" | "kernel" | "parent" | "stack" | "ustack"))
    })
}

#[derive(Debug)]
enum Outcome {
    Same,
    Different(String),
    Unsupported(String),
    NoBpf(String),
}

/// Runs a program on both.
fn compared(form: &Form, source: &str, script: &str) -> Outcome {
    compared_for(form, source, script, &probes(script).unwrap())
}

/// The same where it is loaded for these probes.
fn compared_for(form: &Form, source: &str, script: &str, probes: &[Probe]) -> Outcome {
    let expected = run(form, source, script).unwrap();
    let mut kernel = match Kernel::load(form, probes) {
        Ok(kernel) => kernel,
        Err(LoadError::Program(error)) => return Outcome::Unsupported(error.to_string()),
        Err(LoadError::Refused(error)) if error.contains("EPERM") => return Outcome::NoBpf(error),
        Err(error) => return Outcome::Different(error.to_string()),
    };
    match run_on(&mut kernel, form, source, script) {
        Err(error) => Outcome::Different(error),
        Ok(is) if is == expected => Outcome::Same,
        Ok(is) => Outcome::Different(format!("{}instead of\n{}", shown(&is), shown(&expected))),
    }
}

fn shown(run: &Run) -> String {
    let text = String::from_utf8_lossy(&run.text);
    let rest = Run { text: Vec::new(), ..run.clone() };
    format!("{text}{rest:?}\n")
}

/// One half of the corpus, or the other: all of it would take a test too long.
fn half_of_the_corpus_runs(half: usize) {
    let only = std::env::var("D_ONLY").unwrap_or_default();
    let mut wrong = Vec::new();
    let mut unsupported = BTreeMap::new();
    let mut same = 0;
    for path in corpus().into_iter().skip(half).step_by(2) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.contains(&only) {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let script = fs::read_to_string(path.with_extension("firings")).unwrap_or_default();
        if !is_of_this_machine(&script) || name == COUNTED_OTHERWISE || OF_FILES.contains(&name) {
            continue;
        }
        let (macros, script) = macros(&script, name);
        let Ok(form) = compile_program(&source, SCOPE, &macros) else {
            continue;
        };
        match compared(&form, &source, &script) {
            Outcome::Same => same += 1,
            Outcome::Different(text) => wrong.push(format!("{name}: {text}")),
            Outcome::Unsupported(what) => _ = unsupported.insert(name.to_owned(), what),
            Outcome::NoBpf(reason) => return skip(Need::Bpf, &reason),
        }
    }
    println!("{same} programs are the same on both");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), same + wrong.len(), wrong.join("\n"));
    if only.is_empty() {
        let is_known = |name: &String| REFUSED.contains(&name.as_str());
        assert!(unsupported.keys().all(is_known), "{unsupported:#?}");
    }
}

#[test]
fn the_corpus_runs_in_the_kernel_as_in_the_evaluator() {
    half_of_the_corpus_runs(0);
}

#[test]
fn the_other_half_of_the_corpus_runs_in_the_kernel_as_in_the_evaluator() {
    half_of_the_corpus_runs(1);
}

/// Random programs of integers.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    fn leaf(&mut self) -> String {
        match self.below(4) {
            0 => self
                .one(&["0", "1", "2", "7", "0x7fffffff", "63", "0x8000000000000000ull"])
                .to_owned(),
            1 => self
                .one(&["g", "self->t", "self->u", "this->c", "x[arg1 & 3]", "y[pid, g & 1]"])
                .to_owned(),
            2 => format!("arg{}", self.below(4)),
            _ => self.one(&["pid", "errno", "cpu", "uid", "timestamp"]).to_owned(),
        }
    }

    fn expression(&mut self, depth: u64) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let mut part = || self.expression_or_leaf(depth - 1);
        let (one, other, third) = (part(), part(), part());
        match self.below(12) {
            0 => format!("{}({one})", self.one(&["-", "~", "!"])),
            1 => format!("({one} ? {other} : {third})"),
            2 => {
                let types = [
                    "int", "char", "short", "uint8_t", "uint16_t", "uint32_t", "int64_t",
                    "uint64_t",
                ];
                format!("(({})({one}))", self.one(&types))
            }
            // No constant, which may not be 0.
            3 => format!("({one} {} (arg{} & ({other})))", self.one(&["/", "%"]), self.below(4)),
            4 => format!("({one} {} {other})", self.one(&["<<", ">>"])),
            5 => format!("({one} {} {other})", self.one(&["&&", "||", "^^"])),
            6 => format!("({one} {} {other})", self.one(&["<", "<=", ">", ">=", "==", "!="])),
            _ => format!("({one} {} {other})", self.one(&["+", "-", "*", "&", "|", "^"])),
        }
    }

    fn expression_or_leaf(&mut self, depth: u64) -> String {
        if self.below(3) == 0 { self.leaf() } else { self.expression(depth) }
    }

    fn statement(&mut self, at: usize) -> String {
        let value = self.expression(3);
        let key = self.leaf();
        match self.below(13) {
            0 => format!("g = {value};"),
            1 => format!("self->t = {value};"),
            2 => format!("this->c = {value};"),
            3 => format!("x[arg1 & 3] = {value};"),
            4 => format!("y[pid, g & 1] = {value};"),
            5 => format!("@q{at}[{key}] = quantize((int64_t)({value}));"),
            6 => format!("@l{at} = lquantize((int64_t)({value}), -10, 100, 7);"),
            7 => format!("@n{at}[pid, {key}] = min((int64_t)({value}));"),
            8 => format!("@d{at} = stddev((int64_t)({value}) >> 40);"),
            9 => format!("trace({value});"),
            11 => format!("self->u = {value};"),
            10 => format!("@g{at}[probefunc] = llquantize((int64_t)({value}), 10, 0, 6, 20);"),
            _ => format!("@s{at}[{key}, probename, execname] = sum((int64_t)({value}));"),
        }
    }

    /// A program, and a script that fires its probes.
    fn program(&mut self) -> (String, String) {
        let mut source = String::from(
            "int64_t g; int64_t x[int64_t]; self int64_t t; self uint8_t u; this int64_t c; int64_t y[int64_t, int64_t];\n",
        );
        for at in 0..40 {
            let name = self.one(&["read:entry", "read:return", "write:entry"]);
            let predicate = match self.below(3) {
                0 => format!("/{}/", self.expression(2)),
                _ => String::new(),
            };
            let statements = [self.statement(2 * at), self.statement(2 * at + 1)].join(" ");
            source.push_str(&format!("syscall::{name} {predicate} {{ {statements} }}\n"));
        }
        let mut script = String::new();
        for _ in 0..30 {
            let name = self.one(&["read:entry", "read:return", "write:entry"]);
            let number = |random: &mut Self| match random.below(3) {
                0 => random.below(5).cast_signed(),
                1 => -random.below(1000).cast_signed(),
                _ => (random.below(u64::MAX) >> random.below(64)).cast_signed(),
            };
            let facts: Vec<String> = ["arg0", "arg1", "arg2", "arg3", "timestamp"]
                .map(|fact| format!("{fact}={}", number(self)))
                .into();
            script.push_str(&format!(
                "fire syscall::{name} pid={} tid={} execname={} errno={} {}\n",
                1 + self.below(3),
                1 + self.below(3),
                self.one(&["dd", "cat", "a-name-of-15-sg"]),
                self.below(3),
                facts.join(" ")
            ));
        }
        (source, script)
    }
}

#[test]
fn random_programs_run_in_the_kernel_as_in_the_evaluator() {
    let programs = std::env::var("D_PROGRAMS").ok().and_then(|many| many.parse().ok()).unwrap_or(4);
    let seed =
        std::env::var("D_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x9e37_79b9);
    let mut random = Random(seed);
    for number in 0..programs {
        let (source, script) = random.program();
        let (macros, _) = macros("", "random.d");
        let form = match compile_program(&source, SCOPE, &macros) {
            Ok(form) => form,
            Err(problems) => panic!("{}", problems[0].shown_in(&source)),
        };
        let mut all = probes(&script).unwrap();
        // With a probe of the scheduler, variables of threads are among those with keys.
        if number % 2 == 1 {
            let (provider, name) = ("sched".to_owned(), "on-cpu".to_owned());
            all.push(Probe { provider, name, ..Probe::default() });
        }
        match compared_for(&form, &source, &script, &all) {
            Outcome::Same => {}
            Outcome::NoBpf(reason) => return skip(Need::Bpf, &reason),
            Outcome::Different(text) | Outcome::Unsupported(text) => {
                panic!("program {number} of {seed}:\n{source}\n{script}\n{text}")
            }
        }
    }
}

#[derive(Debug, Default)]
struct Kept {
    text: Vec<u8>,
    errors: Vec<String>,
}

impl Console for Kept {
    fn print(&mut self, text: &[u8]) -> std::io::Result<()> {
        self.text.extend(text);
        Ok(())
    }

    fn error(&mut self, line: &str) {
        self.errors.push(line.to_owned());
    }

    fn system(&mut self, command: &OsStr) {
        unreachable!("no program here calls system(): {command:?}");
    }
}

/// Runs a program over what a shell runs, whose number is `$1`; what it printed. `None`: skipped.
fn over_commands(source: &str, commands: &str) -> Option<(String, Finished)> {
    let command = Command {
        program: "/bin/sh".into(),
        argv: ["sh", "-c", commands].map(OsString::from).to_vec(),
        ..Command::default()
    };
    let mut watch = Watch::of_command(&command).unwrap();
    let (mut macros, _) = macros("", "script.d");
    macros.arguments.push(watch.target().unwrap().to_string());
    let form = compile_program(source, SCOPE, &macros).unwrap();
    let mut kernel = match Kernel::for_machine(&form, &[]) {
        Err(LoadError::Refused(reason)) if reason.contains("EPERM") => {
            skip(Need::Bpf, &reason);
            return None;
        }
        loaded => loaded.unwrap(),
    };
    let mut kept = Kept::default();
    let finished = watch.run(&mut kernel, source, None, &mut kept).unwrap();
    assert_eq!(watch.wait().unwrap(), Some(Exit::Code(0)));
    assert!(kept.errors.is_empty(), "{kept:?}");
    Some((String::from_utf8(kept.text).unwrap(), finished))
}

const COMMANDS: &str = "dd if=/dev/zero of=/dev/null bs=8k count=23 status=none; cat /dev/null";

#[test]
fn calls_of_a_real_command_are_counted_exactly() {
    let source = "#pragma D option quiet\n\
        syscall::write:entry /progenyof($1) && execname == \"dd\"/ { @entries = count(); }\n\
        syscall::write:return /progenyof($1) && execname == \"dd\"/ { @sizes[arg1] = count(); }\n\
        END { printa(\"%@d\\n\", @entries); printa(\"%d %@d\\n\", @sizes); }\n";
    let Some((text, finished)) = over_commands(source, COMMANDS) else { return };
    assert_eq!(text, "23\n8192 23\n", "{finished:?}");
    assert!(finished.drops.is_empty() && finished.faults.is_empty(), "{finished:?}");
}

#[test]
fn variables_of_ended_threads_leave_their_room_to_others() {
    // A third of what is asked for at a time, if none were left.
    let source = "#pragma D option quiet\n#pragma D option dynvarsize=34000\n\
        syscall::exit_group:entry /progenyof($1)/ { self->ends = 1; @ = count(); }\n\
        END { printa(\"%@d\\n\", @); }\n";
    let commands = "i=0; while [ $i -lt 1500 ]; do (:); i=$((i + 1)); done";
    let Some((text, finished)) = over_commands(source, commands) else { return };
    assert_eq!(text, "1501\n", "{finished:?}");
    assert!(finished.drops.is_empty() && finished.faults.is_empty(), "{finished:?}");
}

#[test]
fn the_total_of_the_article_s_script_is_the_sum_of_its_calls() {
    let path = "../dtrace/tests/programs/article/syscalls.d";
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let Some((text, finished)) = over_commands(&source, COMMANDS) else { return };
    let mut sums: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    let rows = text.lines().skip_while(|line| !line.starts_with("SysCall")).skip(1);
    for row in rows {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [call, name, process, count] = words[..] else { break };
        let sum = sums.entry((name, process)).or_default();
        sum[usize::from(call == "total")] += count.parse::<u64>().unwrap();
    }
    assert!(sums.keys().any(|(name, _)| *name == "dd"), "{text}");
    assert!(sums.keys().any(|(name, _)| *name == "cat"), "{text}");
    assert!(sums.values().all(|[sum, total]| sum == total), "{text}");
    assert!(finished.drops.is_empty(), "{finished:?}");
}

#[test]
fn the_article_s_times_are_those_on_a_cpu() {
    let path = "../dtrace/tests/programs/article/times.d";
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let Some((text, finished)) = over_commands(&source, COMMANDS) else { return };
    // A name of Solaris's is one of Linux's here.
    assert!(text.lines().any(|line| line.trim_start().starts_with("mmap ")), "{text}");
    let total =
        text.lines().find(|line| line.trim_start().starts_with("total") && line.contains("dd"));
    let total = total.and_then(|line| line.split_whitespace().last()?.parse::<u64>().ok());
    assert!(total.is_some_and(|total| total > 0), "{text}");
    assert!(finished.drops.is_empty(), "{finished:?}");
}
