//! Who calls whom in user space, of programs whose calls are known.

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use iotomy_record::{Anatomy, Race, Stack, StackKind, store};
use support::{BackgroundProcess, Need, bare, doubled_until, has, iotomy, skip};
use tempfile::TempDir;

/// `outer` calls `middle`, and that `inner`, `frameless` or `pushing`, which make the call: getppid so many
/// times, or a sleep of 10 ms.
const SOURCE: &str = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct timespec nap = {0, 10000000};

__attribute__((noinline)) long inner(long call, long times)
{
	long got = 0;

#ifdef FRAMES
	/* A leaf has a frame where it is asked for the frame's address. */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
#endif
	while (times--) {
		got = call;
		__asm__ volatile("syscall" : "+a"(got) : "D"(&nap), "S"(0) : "rcx", "r11", "memory");
	}
	return got;
}

long frameless(long call, long times, void *nap);
__asm__(".text\n.type frameless, @function\n"
	"frameless: mov %rdi, %r8; mov %rsi, %r9; mov %rdx, %rdi; xor %esi, %esi\n"
	"1: mov %r8, %rax; syscall; dec %r9; jnz 1b; ret\n"
	".size frameless, . - frameless\n");

/* The same, but something of its own is on top of the stack. */
long pushing(long call, long times, void *nap);
__asm__(".type pushing, @function\n"
	"pushing: push %rbx; mov %rdi, %r8; mov %rsi, %r9; mov %rdx, %rdi; xor %esi, %esi\n"
	"1: mov %r8, %rax; syscall; dec %r9; jnz 1b; pop %rbx; ret\n"
	".size pushing, . - pushing\n");

__attribute__((noinline)) long middle(long call, long times, int which)
{
	long got = which == 0 ? inner(call, times) :
		   which == 1 ? frameless(call, times, &nap) :
				pushing(call, times, &nap);

	__asm__ volatile("");
	return got + 1;
}

__attribute__((noinline)) long outer(long call, long times, int which)
{
	long got = middle(call, times, which);

	__asm__ volatile("");
	return got + 1;
}

int main(int argc, char **argv)
{
	long call = atol(argv[1]), times = atol(argv[2]);

	if (argc > 3 && fork()) {
		wait(NULL);
		return 0;
	}
	for (int which = 0; which < 3; which++)
		outer(call, times, which);
	return 0;
}
"#;
const GETPPID: &str = "110";
const NANOSLEEP: &str = "35";

const FRAMES: [&str; 2] = ["-fno-omit-frame-pointer", "-DFRAMES"];

/// The program, built; skipped where it cannot be, or anatomy does not work.
fn program(folder: &TempDir, options: &[&str]) -> Option<PathBuf> {
    if !support::anatomy() || !has("cc") {
        return None;
    }
    let source = folder.path().join("calls.c");
    fs::write(&source, SOURCE).unwrap();
    let program = folder.path().join("calls");
    let mut compiler = bare("cc", &["-O1", "-fno-optimize-sibling-calls"]);
    let output = compiler.args(options).arg(&source).arg("-o").arg(&program).output().unwrap();
    if !output.status.success() {
        skip(Need::Programs, "the C compiler does not make the program of the test");
        return None;
    }
    Some(program)
}

/// The record, what was said, and the folded stacks.
fn dissected(
    folder: &TempDir,
    options: &[&str],
    program: &std::path::Path,
    words: &[&str],
) -> (Anatomy, String, String) {
    let file = |name: &str| folder.path().join(name);
    let mut command = iotomy(&["anatomy", "--rate", &support::sampling::fast_rate(), "--json"]);
    command.arg(file("record.json")).arg("--folded").arg(file("folded")).args(options);
    let output = command.arg("--").arg(program).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let record = store::load_anatomy(file("record.json")).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (record, said, fs::read_to_string(file("folded")).unwrap())
}

/// The same of so many calls of getppid that each way to them has dozens of samples, and they tell `what`.
fn sampled(
    folder: &TempDir,
    program: &std::path::Path,
    what: impl Fn(&Anatomy) -> bool,
) -> (Anatomy, String, String) {
    let has_enough =
        |(record, ..): &(Anatomy, String, String)| record.sampling.samples >= 400 && what(record);
    doubled_until(150_000, has_enough, |times| {
        dissected(folder, &["--user-stacks"], program, &[GETPPID, &times.to_string()])
    })
}

/// What user space did for the calls of this name, most time first.
fn chains<'r>(record: &'r Anatomy, call: &str, kind: StackKind) -> Vec<&'r Stack> {
    let of_call = |stack: &&Stack| stack.syscall.as_deref() == Some(call) && stack.kind == kind;
    record.stacks.iter().filter(of_call).collect()
}

fn ends_with(stack: &Stack, end: &[&str]) -> bool {
    let from = stack.user.len().saturating_sub(end.len());
    stack.user[from..].iter().eq(end)
}

const FRAMED: [&str; 4] = ["main", "outer", "middle", "inner"];
const BARE: [&str; 4] = ["main", "outer", "middle", "frameless"];
const WITH_GAP: [&str; 4] = ["main", "outer", "[caller unknown]", "pushing"];

#[test]
fn samples_tell_who_calls_whom_from_the_outside_in() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(&folder, &FRAMES) else { return };
    let all = |record: &Anatomy| -> u64 {
        chains(record, "getppid", StackKind::OnCpu).iter().map(|stack| stack.samples).sum()
    };
    // A sample in an interrupt between the call and its function may have another end.
    let (record, said, folded) = sampled(&folder, &program, |record| {
        let found = chains(record, "getppid", StackKind::OnCpu);
        let parts = [&FRAMED, &BARE, &WITH_GAP].map(|end| {
            let those = found.iter().filter(|stack| ends_with(stack, end.as_slice()));
            those.map(|stack| stack.samples).sum::<u64>()
        });
        let told = record.sampling.user_stacks.unwrap();
        parts.iter().all(|part| *part > 0)
            && parts.iter().sum::<u64>() * 10 >= all(record) * 9
            && told.cut_short * 10 < told.samples
    });
    let all = all(&record);
    assert!(folded.contains(";main;outer;middle;inner;getppid;"), "{folded}");
    assert!(folded.contains(";main;outer;middle;frameless;getppid;"), "{folded}");
    assert!(folded.contains(";main;outer;[caller unknown];pushing;getppid;"), "{folded}");
    assert!(said.contains("from outer › middle › inner"), "{said}");
    let told = record.sampling.user_stacks.unwrap();
    assert!(told.samples >= all, "{told:?}");
    assert_eq!((told.lost, told.lost_mappings), (0, 0));
    assert!(!said.contains("is known"), "{said}");
}

#[test]
fn sleeps_tell_it_too_and_in_a_forked_child() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(&folder, &FRAMES) else { return };
    let options = ["--user-stacks"];
    // A sleep that was over before it began, on a CPU that was held up, did not block.
    let all_have_slept = |(record, ..): &(Anatomy, String, String)| {
        let found = chains(record, "nanosleep", StackKind::Blocked);
        let ends = [&FRAMED, &BARE, &WITH_GAP];
        ends.iter().all(|end| found.iter().any(|stack| ends_with(stack, end.as_slice())))
    };
    let (.., folded) = doubled_until(2, all_have_slept, |times| {
        let words = [NANOSLEEP, &times.to_string(), "fork"];
        dissected(&folder, &options, &program, &words)
    });
    let line = ";main;outer;middle;inner;nanosleep;[blocked: timer];";
    assert!(folded.contains(line), "{folded}");
}

#[test]
fn a_program_of_a_shell_has_its_own_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(&folder, &FRAMES) else { return };
    let whose = |(record, ..): &(Anatomy, String, String)| -> BTreeSet<u32> {
        let found = chains(record, "nanosleep", StackKind::Blocked).into_iter();
        found.filter(|stack| ends_with(stack, &FRAMED)).map(|stack| stack.pid).collect()
    };
    doubled_until(
        1,
        |found| whose(found).len() == 2,
        |times| {
            let program = program.display();
            let script =
                format!("{program} {NANOSLEEP} {times}; {program} {NANOSLEEP} {times}; exit 0");
            let shell = std::path::Path::new("sh");
            dissected(&folder, &["--user-stacks"], shell, &["-c", &script])
        },
    );
}

#[test]
fn without_frame_pointers_that_is_said_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(&folder, &["-fomit-frame-pointer"]) else { return };
    let (record, said, _) = sampled(&folder, &program, |record| {
        let told = record.sampling.user_stacks.unwrap();
        told.samples > 0 && told.cut_short * 2 > told.samples
    });
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("of the user-space stacks end after one or two functions"), "{said}");
    assert!(said.contains("-fno-omit-frame-pointer"), "{said}");
    let found = chains(&record, "getppid", StackKind::OnCpu);
    assert!(found.iter().any(|stack| ends_with(stack, &["inner"])), "{found:?}");
}

#[test]
fn a_running_process_is_told_of_by_what_it_has_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(&folder, &FRAMES) else { return };
    // Ends with the test, however that ends.
    let script = r#"echo on; exec "$0" "$@""#;
    let words = ["sh", "-c", script, program.to_str().unwrap(), NANOSLEEP, "1000000"];
    let (running, _) = BackgroundProcess::ready(&words);
    let pid = running.pid().to_string();
    let watch = |halves: u32| {
        let seconds = (f64::from(halves) / 2.0).to_string();
        let words = ["anatomy", "--user-stacks", "--json", "-", "-q", "-d", &seconds, "-p", &pid];
        let watched = iotomy(&words).output().unwrap();
        let record = store::parse_anatomy(&watched.stdout);
        record.unwrap_or_else(|error| panic!("{error}: {watched:?}"))
    };
    let has_slept = |record: &Anatomy| !chains(record, "nanosleep", StackKind::Blocked).is_empty();
    let record = doubled_until(1, has_slept, watch);
    drop(running);
    let found = chains(&record, "nanosleep", StackKind::Blocked);
    assert!(found.iter().any(|stack| ends_with(stack, &FRAMED)), "{found:?}");
}

#[test]
fn nothing_of_it_is_there_unless_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(&folder, &FRAMES) else { return };
    let (record, said, folded) = dissected(&folder, &[], &program, &[NANOSLEEP, "2"]);
    assert_eq!(record.sampling.user_stacks, None);
    assert!(record.stacks.iter().all(|stack| stack.user.is_empty()), "{record:?}");
    assert!(!folded.contains("inner;nanosleep"), "{folded}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("only the innermost function is known"), "{said}");
}

#[test]
fn the_flames_of_a_race_show_which_callers_are_others() {
    let [before, after] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let Some(first) = program(&before, &FRAMES) else { return };
    // The other version has another function in the place of one.
    let options = [&FRAMES[..], &["-Dmiddle=through"]].concat();
    let Some(second) = program(&after, &options) else { return };
    let sampled = |race: &Race| {
        let samples = |sampled: &iotomy_record::Sampled| sampled.sampling.samples;
        race.commands.iter().map(|one| one.sampled.as_ref().map_or(0, samples)).min()
    };
    let race_of = |times: u32| {
        let command = |path: &PathBuf| format!("{} {GETPPID} {times}", path.display());
        let mut race = iotomy(&["race", "-r", "2", "--json", "race.json", "--flame", "flames.svg"]);
        race.arg("--user-stacks").args([&first, &second].map(command)).current_dir(before.path());
        let output = race.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (output, store::load_race(before.path().join("race.json")).unwrap())
    };
    let enough = |(_, race): &(std::process::Output, Race)| sampled(race) >= Some(200);
    let (output, race) = doubled_until(40_000, enough, race_of);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let picture = fs::read_to_string(before.path().join("flames.svg")).unwrap();
    // A box of the function, and a sign behind its name where it is more or less than before.
    let shows = |name: &str| picture.contains(&format!("<title>{name}"));
    for both in ["main", "outer", "inner", "frameless", "getppid"] {
        assert!(shows(both), "{both}: {picture}");
    }
    // What is called by another function stands where it is now, and where it was.
    assert!(shows("through +") && shows("middle −"), "{picture}");
    assert!(!shows("through −") && !shows("middle +"), "{picture}");
    for (command, caller) in race.commands.iter().zip(["middle", "through"]) {
        let sampled = command.sampled.as_ref().unwrap();
        let ends = |stack: &&Stack| ends_with(stack, &["outer", caller, "inner"]);
        let found: u64 = sampled.stacks.iter().filter(ends).map(|stack| stack.samples).sum();
        let told = sampled.sampling.user_stacks.unwrap();
        assert!(found > 0 && told.samples >= found, "{sampled:?}");
        let is_said = stdout.contains(&format!("short  of {}, for the flame", command.label));
        assert_eq!(is_said, told.cut_short > 0, "{stdout}");
    }
}
