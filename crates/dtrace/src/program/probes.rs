//! Probes, and the patterns by which clauses name them.

use std::fmt;

use crate::error::{Problem, Span};
use crate::glob::Glob;
use crate::names::nearest;

/// A probe that fires.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    /// Such as `syscall`.
    pub provider: String,
    /// Empty for most providers.
    pub module: String,
    /// Such as `read`.
    pub function: String,
    /// Such as `entry`.
    pub name: String,
    /// `id`
    pub id: u32,
}

impl Probe {
    /// The three probes of the language itself, by name.
    pub fn of_language(name: &str) -> Self {
        let id = match name {
            "BEGIN" => 1,
            "END" => 2,
            _ => 3,
        };
        Self { provider: "dtrace".to_owned(), name: name.to_owned(), id, ..Self::default() }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{}", self.provider, self.module, self.function, self.name)
    }
}

/// A description such as `syscall::read*:entry`: a pattern for each part, empty for any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePattern {
    parts: [Option<Glob>; 4],
    text: [String; 4],
    pub(crate) place: Span,
}

/// The providers there are.
const PROVIDERS: [&str; 9] =
    ["dtrace", "syscall", "proc", "sched", "io", "profile", "tick", "vminfo", "sysinfo"];

/// Providers of DTrace that are not here, and what there is instead.
const MISSING: [(&str, &str); 8] = [
    ("fbt", "syscall, io, sched and proc have the kernel's points"),
    ("pid", "functions of programs are not traced; syscall has their calls"),
    ("sdt", "syscall, io, sched and proc have the kernel's points"),
    ("lockstat", "iotomy trace --offcpu shows what threads wait for"),
    ("plockstat", "iotomy trace --offcpu shows what threads wait for"),
    ("mib", "nothing takes its place"),
    ("fpuinfo", "nothing takes its place"),
    ("cpc", "profile-97hz samples by time"),
];

impl ProbePattern {
    /// Reads a description.
    ///
    /// # Errors
    /// It has too many parts or a wrong pattern, or its provider is not there.
    pub(crate) fn read(text: &str, span: &Span) -> Result<Self, Problem> {
        let problem = |message: String, advice: &str| Problem::new(span.clone(), message, advice);
        let parts: Vec<&str> = text.split(':').collect();
        if parts.len() > 4 {
            let advice = "as in syscall::read:entry";
            return Err(problem("a probe has at most four parts".to_owned(), advice));
        }
        if text.contains('`') {
            return Err(problem("no probe has a ` in its name".to_owned(), ""));
        }
        // Parts are given from the right: `read:entry` has no provider and no module.
        let mut all = [""; 4];
        all[4 - parts.len()..].copy_from_slice(&parts);
        let mut globs: [Option<Glob>; 4] = [const { None }; 4];
        for (glob, part) in globs.iter_mut().zip(all) {
            if !part.is_empty() && part != "*" {
                let read = part.parse::<Glob>();
                *glob = Some(read.map_err(|error| problem(error.to_string(), ""))?);
            }
        }
        let pattern = Self { parts: globs, text: all.map(str::to_owned), place: span.clone() };
        pattern.check_provider(span)?;
        Ok(pattern)
    }

    fn check_provider(&self, span: &Span) -> Result<(), Problem> {
        let [provider, _, _, name] = &self.text;
        let named = match provider.as_str() {
            // `BEGIN`, `profile-97hz` and `tick-1s` stand alone.
            "" => match name.split_once('-') {
                Some((provider @ ("profile" | "tick"), _)) => provider,
                _ => return Ok(()),
            },
            provider => provider,
        };
        let at = span.start..span.start + named.len().min(span.len());
        let digits = named.trim_end_matches(|one: char| one.is_ascii_digit());
        if let Some((_, advice)) = MISSING.iter().find(|(missing, _)| {
            *missing == named || (*missing == "pid" && digits == "pid" && named != "pid")
        }) {
            let message = format!("the provider `{digits}` is not supported");
            return Err(Problem::new(at, message, *advice));
        }
        let is_pattern = named.contains(['*', '?', '[']);
        let is_known = match (is_pattern, &self.parts[0]) {
            (true, Some(glob)) => PROVIDERS.iter().any(|one| glob.matches(one.as_bytes())),
            _ => PROVIDERS.contains(&named),
        };
        if !is_known {
            let advice = match nearest(named, PROVIDERS.into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the providers are {}", PROVIDERS.join(", ")),
            };
            let shown: String = named.chars().take(40).collect();
            return Err(Problem::new(at, format!("no provider `{shown}`"), advice));
        }
        if matches!(named, "profile" | "tick") {
            return check_rate(name, span);
        }
        Ok(())
    }

    /// Whether a probe is one of these.
    pub fn matches(&self, probe: &Probe) -> bool {
        let names = [&probe.provider, &probe.module, &probe.function, &probe.name];
        let pairs = self.parts.iter().zip(names);
        pairs
            .into_iter()
            .all(|(part, name)| part.as_ref().is_none_or(|glob| glob.matches(name.as_bytes())))
    }

    /// The provider, empty where the description leaves it open.
    pub fn provider(&self) -> &str {
        match (&*self.text[0], &*self.text[3]) {
            ("", "BEGIN" | "END" | "ERROR") => "dtrace",
            ("", name) if name.starts_with("profile-") => "profile",
            ("", name) if name.starts_with("tick-") => "tick",
            (provider, _) => provider,
        }
    }

    /// The function as it is written, which may be a pattern.
    pub fn function(&self) -> &str {
        &self.text[2]
    }

    /// Its place in the program's text.
    pub fn place(&self) -> Span {
        self.place.clone()
    }

    /// The probe's name, empty where the description leaves it open.
    pub fn name(&self) -> &str {
        &self.text[3]
    }
}

impl fmt::Display for ProbePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.join(":").trim_start_matches(':'))
    }
}

/// `profile-97hz`, `tick-1s`, and without a unit times a second.
fn check_rate(name: &str, span: &Span) -> Result<(), Problem> {
    let rate = name.trim_start_matches("profile-").trim_start_matches("tick-");
    if rate.contains('*') || name.is_empty() {
        return Ok(());
    }
    let digits = rate.find(|one: char| !one.is_ascii_digit()).unwrap_or(rate.len());
    let (number, unit) = rate.split_at(digits);
    let at = span.end.saturating_sub(rate.len()).max(span.start)..span.end;
    let is_unit = matches!(
        unit.to_ascii_lowercase().as_str(),
        "" | "hz"
            | "ns"
            | "nsec"
            | "us"
            | "usec"
            | "ms"
            | "msec"
            | "s"
            | "sec"
            | "m"
            | "min"
            | "h"
            | "hour"
            | "d"
            | "day"
    );
    match number.parse::<u32>() {
        Ok(1..) if is_unit => Ok(()),
        Ok(1..) => {
            let advice = "the units are hz, ns, us, ms, s, m, h and d";
            Err(Problem::new(at, format!("unknown unit `{unit}`"), advice))
        }
        _ => Err(Problem::new(at, "expected a rate", "as in profile-97hz or tick-1s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, probe: &str) -> bool {
        let parts: Vec<&str> = probe.split(':').collect();
        let probe = Probe {
            provider: parts[0].to_owned(),
            module: parts[1].to_owned(),
            function: parts[2].to_owned(),
            name: parts[3].to_owned(),
            id: 0,
        };
        ProbePattern::read(pattern, &(0..pattern.len())).unwrap().matches(&probe)
    }

    #[test]
    fn omitted_parts_are_any_and_parts_are_patterns() {
        for (pattern, probe, expected) in [
            ("syscall::read:entry", "syscall::read:entry", true),
            ("syscall::read:entry", "syscall::read:return", false),
            ("syscall:::entry", "syscall::write:entry", true),
            ("syscall::r*:entry", "syscall::readv:entry", true),
            ("syscall::[rw]*:", "syscall::write:return", true),
            ("read:entry", "syscall::read:entry", true),
            ("entry", "syscall::read:entry", true),
            ("*", "dtrace:::BEGIN", true),
            ("BEGIN", "dtrace:::BEGIN", true),
            ("BEGIN", "dtrace:::END", false),
            ("tick-1s", "profile:::tick-1s", true),
            ("dtrace:::*", "dtrace:::ERROR", true),
            (":::", "io:::start", true),
        ] {
            assert_eq!(matches(pattern, probe), expected, "{pattern} {probe}");
        }
    }
}
