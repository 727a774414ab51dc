//! The contenders: iotomy's copy and its peers, and the command line of each on a route.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::copy::route::{Route, Sharing, Source, Target};

/// A program that copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tool {
    /// `iotomy copy`.
    Iotomy,
    /// GNU cat.
    Cat,
    /// GNU cp.
    Cp,
    /// GNU dd, with the fastest block size on the route.
    Dd,
    /// GNU head, for endless sources.
    Head,
    /// pv, silent.
    Pv,
    /// uutils' cat.
    UuCat,
    /// uutils' cp.
    UuCp,
}

impl Tool {
    pub(crate) const PEERS: [Self; 7] =
        [Self::Cat, Self::Cp, Self::Dd, Self::Head, Self::Pv, Self::UuCat, Self::UuCp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Iotomy => "iotomy copy",
            Self::Cat => "cat",
            Self::Cp => "cp",
            Self::Dd => "dd",
            Self::Head => "head",
            Self::Pv => "pv",
            Self::UuCat => "uutils cat",
            Self::UuCp => "uutils cp",
        }
    }

    /// Returns whether the tool can copy on this route and does the same work there as the others.
    pub(crate) fn serves(self, route: Route) -> bool {
        let by_name =
            route.source == Source::File && matches!(route.target, Target::File | Target::Null);
        match self {
            Self::Iotomy => true,
            Self::Cp | Self::UuCp => by_name,
            // cat shares extents automatically, and no option disables that.
            Self::Cat if route.sharing == Sharing::Never => false,
            Self::Cat if route.sharing == Sharing::Auto => true,
            // These never share extents, so on such a route they do different work.
            _ if route.sharing == Sharing::Auto => false,
            // cat has no option for a byte count.
            Self::Cat | Self::UuCat => route.source != Source::Zero,
            Self::Head => route.source == Source::Zero,
            Self::Dd | Self::Pv => true,
        }
    }

    /// Returns whether the tool copies several files into a directory.
    pub(crate) fn copies_many(self) -> bool {
        matches!(self, Self::Iotomy | Self::Cp | Self::UuCp)
    }

    fn program(self, tools: &Tools) -> &Path {
        match self {
            Self::Iotomy => &tools.iotomy,
            Self::UuCat | Self::UuCp => &tools.uutils,
            tool => Path::new(tool.name()),
        }
    }

    /// Returns whether the tool opens a named target itself; otherwise it writes to its standard
    /// output.
    fn names_target(self) -> bool {
        matches!(self, Self::Iotomy | Self::Cp | Self::UuCp | Self::Dd)
    }
}

/// A tool with its options.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Contender {
    pub(crate) tool: Tool,
    /// The block size in bytes, for dd.
    pub(crate) block: u64,
    /// The mover that iotomy must use, and its options.
    pub(crate) mover: Option<Variant>,
}

/// A mover with options, as iotomy receives them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variant {
    pub(crate) mover: &'static str,
    pub(crate) options: Vec<String>,
}

impl Contender {
    pub(crate) fn plain(tool: Tool) -> Self {
        Self { tool, block: 0, mover: None }
    }

    pub(crate) fn name(&self) -> String {
        match (&self.mover, self.tool) {
            (Some(Variant { mover, options }), _) => {
                let options: Vec<&str> =
                    options.iter().map(|option| option.trim_start_matches("--")).collect();
                [&[*mover], &options[..]].concat().join(" ")
            }
            (None, Tool::Dd) => format!("dd bs={}K", self.block >> 10),
            (None, tool) => tool.name().to_owned(),
        }
    }
}

/// The paths of the programs.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    /// iotomy.
    pub(crate) iotomy: PathBuf,
    /// The single program of uutils.
    pub(crate) uutils: PathBuf,
}

/// The bytes that a run copies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) route: Route,
    pub(crate) bytes: u64,
    /// The paths of source and target, when they are files.
    pub(crate) source: &'a Path,
    pub(crate) target: &'a Path,
}

/// A command line, and whether its standard output is the target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) writes_stdout: bool,
    /// The working directory, when it differs from this program's.
    pub(crate) folder: Option<PathBuf>,
}

impl Contender {
    /// Returns the command line that does the work. Pipes and sockets are standard input and
    /// output.
    pub(crate) fn line(&self, tools: &Tools, work: Work<'_>) -> Line {
        let Work { route, bytes, source, target } = work;
        let from = match route.source {
            Source::File => Some(source),
            Source::Zero => Some(Path::new("/dev/zero")),
            Source::Pipe | Source::Socket => None,
        };
        let to = match route.target {
            Target::File => Some(target),
            Target::Null => Some(Path::new("/dev/null")),
            Target::Pipe | Target::Socket => None,
        };
        let count = (route.source == Source::Zero).then_some(bytes);
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |text: &str| arguments.push(text.into());
        let program = self.tool.program(tools);
        match self.tool {
            Tool::Iotomy => {
                self.iotomy_arguments(work, count, &mut add);
            }
            Tool::UuCat => add("cat"),
            Tool::UuCp => add("cp"),
            Tool::Head => add(&format!("-c{bytes}")),
            Tool::Pv => add("-q"),
            Tool::Dd => {
                add(&format!("bs={}", self.block));
                add("status=none");
                if count.is_some() || (route.source == Source::File && bytes % self.block == 0) {
                    add(&format!("count={}", bytes / self.block));
                }
            }
            Tool::Cat | Tool::Cp => {}
        }
        if matches!(self.tool, Tool::Cp | Tool::UuCp) && route.sharing == Sharing::Never {
            add("--reflink=never");
        }
        if let (Tool::Pv, Some(count)) = (self.tool, count) {
            add("-S");
            add(&format!("-s{count}"));
        }
        let prefixed = |prefix: &str, path: &Path| {
            let mut text = OsString::from(prefix);
            text.push(path);
            text
        };
        let dash = Path::new("-");
        match self.tool {
            Tool::Iotomy => {
                arguments.push(from.unwrap_or(dash).into());
                arguments.push(to.unwrap_or(dash).into());
            }
            Tool::Dd => {
                arguments.extend(from.map(|path| prefixed("if=", path)));
                arguments.extend(to.map(|path| prefixed("of=", path)));
            }
            Tool::Cp | Tool::UuCp => {
                arguments.extend(from.map(Into::into));
                arguments.extend(to.map(Into::into));
            }
            _ => arguments.extend(from.map(Into::into)),
        }
        let writes_stdout = to.is_none() || !self.tool.names_target();
        Line { program: program.to_owned(), arguments, writes_stdout, folder: None }
    }

    /// Returns the command line that copies files of the working directory to the directory
    /// `target`.
    pub(crate) fn line_of_many(&self, tools: &Tools, names: &[String], target: &Path) -> Line {
        let verb: &[&str] = match self.tool {
            Tool::Iotomy => &["copy"],
            Tool::UuCp => &["cp"],
            _ => &[],
        };
        let mut arguments: Vec<OsString> = verb.iter().map(Into::into).collect();
        arguments.extend(names.iter().map(Into::into));
        arguments.push(target.into());
        Line { program: self.tool.program(tools).to_owned(), arguments, ..Line::default() }
    }

    fn iotomy_arguments(&self, work: Work<'_>, count: Option<u64>, add: &mut impl FnMut(&str)) {
        add("copy");
        if let Some(count) = count {
            add(&format!("--count={count}"));
        }
        if work.route.sharing == Sharing::Never {
            add("--reflink=never");
        }
        let Some(Variant { mover, options }) = &self.mover else {
            return;
        };
        for option in options {
            add(option);
        }
        add(&format!("--mover={mover}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::volumes::FileSystem;

    fn line(contender: &Contender, source: Source, target: Target) -> (String, bool) {
        let tools = Tools { iotomy: "iotomy".into(), uutils: "coreutils".into() };
        let route = Route { files: FileSystem::Tmpfs, source, target, sharing: Sharing::None };
        let (source, target) = (Path::new("a"), Path::new("b"));
        let line = contender.line(&tools, Work { route, bytes: 1 << 20, source, target });
        let words = [line.program.into_os_string()].into_iter().chain(line.arguments);
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        (words.join(" "), line.writes_stdout)
    }

    #[test]
    fn tools_are_given_names_or_streams_as_they_like() {
        let of = |tool, source, target| line(&Contender::plain(tool), source, target);
        let (words, stdout) = of(Tool::Cat, Source::File, Target::File);
        assert_eq!((words.as_str(), stdout), ("cat a", true));
        let (words, stdout) = of(Tool::Cp, Source::File, Target::Null);
        assert_eq!((words.as_str(), stdout), ("cp a /dev/null", false));
        let (words, stdout) = of(Tool::Pv, Source::Zero, Target::File);
        assert_eq!((words.as_str(), stdout), ("pv -q -S -s1048576 /dev/zero", true));
        let (words, stdout) = of(Tool::UuCat, Source::Pipe, Target::Socket);
        assert_eq!((words.as_str(), stdout), ("coreutils cat", true));
        let (words, stdout) = of(Tool::Iotomy, Source::Pipe, Target::Pipe);
        assert_eq!((words.as_str(), stdout), ("iotomy copy - -", true));
        let dd = Contender { block: 65536, ..Contender::plain(Tool::Dd) };
        let (words, stdout) = line(&dd, Source::Zero, Target::File);
        let expected = "dd bs=65536 status=none count=16 if=/dev/zero of=b";
        assert_eq!((words.as_str(), stdout), (expected, false));
    }

    #[test]
    fn where_extents_may_be_shared_only_those_who_share_compete() {
        let shared = Route {
            files: FileSystem::Btrfs,
            source: Source::File,
            target: Target::File,
            sharing: Sharing::Auto,
        };
        let serving: Vec<Tool> =
            Tool::PEERS.into_iter().filter(|tool| tool.serves(shared)).collect();
        assert_eq!(serving, [Tool::Cat, Tool::Cp, Tool::UuCp]);
        assert!(!Tool::Cat.serves(Route { sharing: Sharing::Never, ..shared }));
    }

    #[test]
    fn a_variant_is_named_by_its_mover_and_options() {
        let options = vec!["--block-size=65536".to_owned()];
        let variant = Variant { mover: "read-write", options };
        let contender = Contender { mover: Some(variant), ..Contender::plain(Tool::Iotomy) };
        assert_eq!(contender.name(), "read-write block-size=65536");
    }
}
