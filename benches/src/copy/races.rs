//! The races: every route, many small files, one small file; in a sweep, the movers.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};

use crate::child::Signals;
use crate::copy::contender::{Contender, Tool, Tools, Variant};
use crate::copy::lanes::{Lane, Role, race};
use crate::copy::route::{Route, Sharing};
use crate::copy::runner::Runner;
use crate::copy::variants::variants;
use crate::copy::volumes::{FileSystem, Volume, Workshop};
use crate::order::Order;
use crate::run::progress;

/// Size of a small file in bytes.
const SMALL: usize = 4096;
/// The block sizes in bytes that are tried for dd, …
const DD_BLOCKS: [u64; 6] = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];
/// … with this fraction of the bytes, in this many blocks of runs.
const DD_PART: u64 = 4;
const DD_RUNS: u32 = 3;

/// The kind of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Many bytes along a route.
    Route,
    /// Many small files.
    Many,
    /// One small file.
    Startup,
}

/// The contenders on one route, and their times.
#[derive(Debug, Clone)]
pub(crate) struct Race {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Bytes per run.
    pub(crate) bytes: u64,
    pub(crate) remark: &'static str,
    /// The first choice of iotomy's chooser, and its reason.
    pub(crate) choice: String,
    pub(crate) lanes: Vec<Lane>,
}

/// The races to run, and their settings.
pub(crate) struct RacesPlan<'a> {
    pub(crate) signals: &'a Signals,
    pub(crate) tools: &'a Tools,
    pub(crate) workshop: &'a Workshop,
    /// The installed peers.
    pub(crate) peers: Vec<Tool>,
    pub(crate) blocks: u32,
    /// Number of pairs of starts.
    pub(crate) starts: u32,
    /// Number of small files.
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// Parts of race names; if empty, every race runs.
    pub(crate) only: Vec<String>,
    /// Whether to race only the movers.
    pub(crate) sweep: bool,
}

/// The results of all races, and the skipped races with the reasons.
#[derive(Default)]
pub(crate) struct CopyRaces {
    pub(crate) races: Vec<Race>,
    pub(crate) skipped: Vec<(String, String)>,
}

impl RacesPlan<'_> {
    /// Runs all races, one file system after the other.
    pub(crate) fn run(&self, order: &mut Order) -> Result<CopyRaces> {
        let feed = self.workshop.path().join("feed");
        fill(&feed, self.bytes)?;
        let mut raced = CopyRaces::default();
        for kind in FileSystem::ALL {
            self.on(kind, &feed, order, &mut raced)?;
        }
        progress("");
        Ok(raced)
    }

    fn wanted(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    fn on(
        &self,
        kind: FileSystem,
        feed: &Path,
        order: &mut Order,
        raced: &mut CopyRaces,
    ) -> Result<()> {
        let routes: Vec<Route> = Route::ALL
            .into_iter()
            .filter(|route| route.files == kind && self.wanted(&route.name()))
            .collect();
        let mut small: Vec<String> = Vec::new();
        if !self.sweep && matches!(kind, FileSystem::Tmpfs | FileSystem::Ext4) {
            small.push(format!("{} files {}", self.files, kind.name()));
        }
        if !self.sweep && kind == FileSystem::Tmpfs {
            small.push("start-up".to_owned());
        }
        small.retain(|name| self.wanted(name));
        let names = routes.iter().map(|route| route.name()).chain(small.clone());
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            return Ok(());
        }
        // Room for source and target, for blocks that a file system frees late, and for small
        // files.
        let volume = match self.workshop.volume(kind, 3 * self.bytes + (512 << 20)) {
            Ok(volume) => volume,
            Err(reason) => {
                raced.skipped.extend(names.into_iter().map(|name| (name, reason.clone())));
                return Ok(());
            }
        };
        let mut runner = self.runner(&volume, feed);
        if kind != FileSystem::Tmpfs && !routes.is_empty() {
            runner.source = volume.path().join("source");
            fs::copy(feed, &runner.source).context("cannot fill the volume")?;
            volume.settle()?;
        }
        for route in routes {
            raced.races.push(self.route(&runner, route, order)?);
        }
        for name in small {
            progress(&name);
            raced.races.push(if name == "start-up" {
                self.startup(&runner, &name, order)?
            } else {
                self.many(&runner, &name, order)?
            });
        }
        Ok(())
    }

    fn runner<'a>(&'a self, volume: &'a Volume, feed: &'a Path) -> Runner<'a> {
        Runner {
            signals: self.signals,
            tools: self.tools,
            volume,
            feed,
            source: feed.to_owned(),
            errors: self.workshop.path().join("errors"),
        }
    }

    fn route(&self, runner: &Runner<'_>, route: Route, order: &mut Order) -> Result<Race> {
        let name = route.name();
        progress(&name);
        let mut contenders = vec![(Contender::plain(Tool::Iotomy), Role::Ours)];
        if self.sweep {
            contenders.extend(variants().into_iter().map(of_mover));
        }
        for tool in self.peers.iter().copied().filter(|tool| tool.serves(route)) {
            let contender = match tool {
                Tool::Dd => self.best_dd(runner, route, order)?,
                tool => Contender::plain(tool),
            };
            contenders.push((contender, Role::Peer));
        }
        let mut lanes: Vec<Lane> =
            contenders.iter().map(|(contender, role)| Lane::new(contender.name(), *role)).collect();
        lanes.push(Lane::new("far ends alone".to_owned(), Role::Floor));
        // No byte is copied here, so the time is only that of a start.
        let shares = route.sharing == Sharing::Auto && !self.sweep;
        let blocks = if shares { self.starts } else { self.blocks };
        race(&mut lanes, blocks, order, |number, checked| match contenders.get(number) {
            Some((contender, _)) => runner.run(route, contender, self.bytes, checked),
            None => runner.floor(route, self.bytes),
        })?;
        let choice = runner.first_choice(route)?;
        Ok(Race {
            name,
            kind: Kind::Route,
            bytes: self.bytes,
            remark: route.remark(),
            choice,
            lanes,
        })
    }

    /// Returns dd with its fastest block size on this route.
    fn best_dd(&self, runner: &Runner<'_>, route: Route, order: &mut Order) -> Result<Contender> {
        let dd = DD_BLOCKS.map(|block| Contender { block, ..Contender::plain(Tool::Dd) });
        let mut lanes = dd.clone().map(|dd| Lane::new(dd.name(), Role::Peer));
        let part = self.bytes / DD_PART;
        race(&mut lanes, DD_RUNS, order, |number, checked| {
            runner.run(route, &dd[number], part, checked)
        })?;
        let wall = |number: &usize| lanes[*number].wall().unwrap_or(f64::INFINITY);
        let best = (0..dd.len()).min_by(|a, b| wall(a).total_cmp(&wall(b)));
        Ok(dd[best.unwrap_or(0)].clone())
    }

    fn many(&self, runner: &Runner<'_>, name: &str, order: &mut Order) -> Result<Race> {
        let from = runner.volume.path().join("originals");
        fs::create_dir(&from).context("cannot create the folder of small files")?;
        let names: Vec<String> = (0..self.files).map(|number| format!("{number:05}")).collect();
        for (number, name) in names.iter().enumerate() {
            let content = vec![(number % 251 + 1) as u8; SMALL];
            fs::write(from.join(name), content).context("cannot write a small file")?;
        }
        let tools = self.copiers();
        let mut lanes = self.lanes(&tools);
        race(&mut lanes, self.blocks, order, |number, _| {
            runner.many(tools[number], &from, &names)
        })?;
        let bytes = (self.files * SMALL) as u64;
        Ok(Race {
            name: name.to_owned(),
            kind: Kind::Many,
            bytes,
            remark: "",
            choice: String::new(),
            lanes,
        })
    }

    fn startup(&self, runner: &Runner<'_>, name: &str, order: &mut Order) -> Result<Race> {
        let source = runner.volume.path().join("small");
        fs::write(&source, vec![7; SMALL]).context("cannot write a small file")?;
        let small = Runner { source, errors: runner.errors.clone(), ..*runner };
        let tools = self.copiers();
        let mut lanes = self.lanes(&tools);
        for program in [&self.tools.iotomy, &self.tools.uutils] {
            read_anew(program).with_context(|| format!("cannot read {}", program.display()))?;
        }
        race(&mut lanes, self.starts, order, |number, checked| {
            let contender = Contender::plain(tools[number]);
            small.run(Route::ALL[0], &contender, SMALL as u64, checked)
        })?;
        Ok(Race {
            name: name.to_owned(),
            kind: Kind::Startup,
            bytes: SMALL as u64,
            remark: "",
            choice: String::new(),
            lanes,
        })
    }

    /// Returns iotomy and the peers that copy files by name.
    fn copiers(&self) -> Vec<Tool> {
        let peers = self.peers.iter().copied().filter(|tool| tool.copies_many());
        [Tool::Iotomy].into_iter().chain(peers).collect()
    }

    fn lanes(&self, tools: &[Tool]) -> Vec<Lane> {
        let role = |tool| if tool == Tool::Iotomy { Role::Ours } else { Role::Peer };
        tools.iter().map(|tool| Lane::new(tool.name().to_owned(), role(*tool))).collect()
    }
}

fn of_mover(variant: Variant) -> (Contender, Role) {
    (Contender { mover: Some(variant), ..Contender::plain(Tool::Iotomy) }, Role::Mover)
}

/// Reads a program into the page cache in one pass. After page faults or a linker's writes, the
/// cache holds it in smaller pieces. Each piece costs a page fault at the next start, so the start
/// would depend on the file's history.
fn read_anew(program: &Path) -> Result<()> {
    let mut file = File::open(program)?;
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    io::copy(&mut file, &mut io::sink())?;
    Ok(())
}

/// Creates a file of bytes that no file system can compress or store as a hole.
fn fill(path: &PathBuf, bytes: u64) -> Result<()> {
    let fill = || -> std::io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let mut state = 1_u64;
        for _ in 0..bytes / 8 {
            // xorshift64 never yields zero.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            file.write_all(&state.to_le_bytes())?;
        }
        file.flush()
    };
    fill().context("cannot fill the file in memory that is copied")
}
