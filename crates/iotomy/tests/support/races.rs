//! Races to be run, and what holds for every record of one.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use iotomy_record::{Metric, Race, RaceVerdict, Term, TermKind};
use iotomy_sys::syscalls::{Abi, number};
use tempfile::TempDir;

use super::iotomy;
use super::over::EndedCommand;

/// A race that is over.
pub(crate) struct FinishedRace(EndedCommand);

impl Deref for FinishedRace {
    type Target = EndedCommand;

    fn deref(&self) -> &EndedCommand {
        &self.0
    }
}

/// `iotomy race` with `options`, to be run; its record goes to the folder.
pub(crate) fn racing(folder: &TempDir, options: &[&str]) -> Command {
    let mut command = iotomy(&["race", "--json"]);
    command.arg(folder.path().join("race.json")).args(options).current_dir(folder.path());
    command
}

/// Runs a race in a folder of its own.
pub(crate) fn raced(options: &[&str]) -> FinishedRace {
    let folder = tempfile::tempdir().unwrap();
    let output = racing(&folder, options).output().unwrap();
    FinishedRace::from_output(output, folder)
}

impl FinishedRace {
    pub(crate) fn from_output(output: Output, folder: TempDir) -> Self {
        Self(EndedCommand { output, folder })
    }

    pub(crate) fn json(&self) -> PathBuf {
        self.folder.path().join("race.json")
    }

    /// The record of a race that was run to its end, checked.
    pub(crate) fn record(&self) -> Race {
        assert_eq!(self.code(), 0, "{}", self.stderr());
        let race = iotomy_record::store::load_race(self.json()).unwrap();
        check(&race);
        race
    }
}

/// The term of this kind and name of the wall time's attribution.
pub(crate) fn term<'a>(race: &'a Race, kind: TermKind, name: &str) -> Option<&'a Term> {
    let wall = race.attributions.iter().find(|found| found.metric == Metric::Wall)?;
    wall.terms.iter().find(|term| term.kind == kind && term.name == name)
}

/// Writes a program that makes one call of the kernel so many times and ends: a file of the least
/// there can be of an executable, of which two differ by nothing but those calls. The call is a sleep
/// of `ns`.
pub(crate) fn sleeper(folder: &Path, name: &str, times: u32, ns: u64) -> PathBuf {
    const BASE: u64 = 0x40_0000;
    /// The sizes of `Elf64_Ehdr`, `Elf64_Phdr` and `struct timespec`.
    const HEADERS: u64 = 64 + 56;
    const START: u64 = HEADERS + 16;
    let mut once = vec![0xB8]; // mov eax, the call's number
    once.extend(number(Abi::X86_64, "nanosleep").unwrap().to_le_bytes());
    once.extend([0x48, 0xBF]); // mov rdi, the time's address
    once.extend((BASE + HEADERS).to_le_bytes());
    once.extend([0x31, 0xF6, 0x0F, 0x05]); // xor esi, esi; syscall
    once.extend([0x41, 0xFF, 0xCC, 0x75]); // dec r12d; jnz back
    let back = i8::try_from(once.len() + 1).unwrap();
    once.push((-back).cast_unsigned());
    let mut code = vec![0x41, 0xBC]; // mov r12d, times
    code.extend(times.to_le_bytes());
    code.extend(once);
    code.extend([0xB8, 60, 0, 0, 0, 0x31, 0xFF, 0x0F, 0x05]); // exit(0)
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]); // an executable for x86-64
    for word in [BASE + START, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]); // one segment, to be read and executed: the whole file
    let size = START + code.len() as u64;
    for word in [0, BASE, BASE, size, size, 0x1000, ns / 1_000_000_000, ns % 1_000_000_000] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    super::program(folder, name, &file)
}

/// What holds for every record of a race.
pub(crate) fn check(race: &Race) {
    assert_eq!(race.schema, "iotomy.race/1");
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    race.order.iter().for_each(|label| *made.entry(label).or_default() += 1);
    for one in &race.commands {
        assert_eq!(made.get(one.label.as_str()).copied().unwrap_or(0), one.runs.len());
        for run in &one.runs {
            assert!(0 < run.startup_ns && run.startup_ns <= run.wall_ns, "{run:?}");
            assert!((run.round as usize) < race.rounds.len());
        }
        assert!(one.runs.windows(2).all(|pair| pair[0].round <= pair[1].round));
        assert!(one.wall.min_ns <= one.wall.median_ns && one.wall.median_ns <= one.wall.max_ns);
    }
    for found in &race.comparisons {
        let [low, high] = found.ci95;
        assert!(found.ratio > 0.0 && found.base != found.other);
        assert!(
            (low, high) == (0.0, 0.0) || low <= found.ratio && found.ratio <= high,
            "{found:?}"
        );
        if matches!(found.verdict, RaceVerdict::Faster | RaceVerdict::Slower) {
            assert!(high < 1.0 || low > 1.0, "{found:?}");
        }
    }
    for found in &race.attributions {
        let terms: i64 = found.terms.iter().map(|term| term.delta_ns).sum();
        assert_eq!(terms + found.residual_ns, found.delta_ns, "{found:?}");
        for term in &found.terms {
            assert_eq!(term.other_ns - term.base_ns, term.delta_ns, "{term:?}");
        }
    }
}
