//! A race for spreadsheets and for pages.

use std::fmt::Write as _;

use iotomy_record::{Race, RaceVerdict, printable};

/// A line a timed run, in the order they were made.
pub fn race_csv(race: &Race) -> String {
    let mut text = String::from(
        "run,label,command,round,counts,wall_ns,user_ns,system_ns,startup_ns,max_rss_bytes,minor_faults,\
         major_faults,involuntary_switches,output_bytes,status\n",
    );
    let mut next = vec![0usize; race.commands.len()];
    for (number, label) in race.order.iter().enumerate() {
        let Some(at) = race.commands.iter().position(|one| one.label == *label) else { continue };
        let command = &race.commands[at];
        let Some(run) = command.runs.get(next[at]) else { continue };
        next[at] += 1;
        let round = usize::try_from(run.round).ok().and_then(|round| race.rounds.get(round));
        let counts = !round.is_some_and(|round| round.redone);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            number + 1,
            field(label),
            field(&command.command),
            run.round,
            u8::from(counts),
            run.wall_ns,
            run.user_ns,
            run.system_ns,
            run.startup_ns,
            run.max_rss_bytes,
            run.minor_faults,
            run.major_faults,
            run.involuntary_switches,
            run.output_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
            run.exit.status(),
        );
    }
    text
}

/// A field of RFC 4180: in quotes where it has to be.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A row a command.
pub fn race_markdown(race: &Race) -> String {
    let mut text = String::from(
        "| | command | wall ms | 95 % CI | min | max | CPU ms | × the base | 95 % CI | |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
    );
    for one in &race.commands {
        let ms = |ns: f64| format!("{:.3}", ns / 1e6);
        let ends = one
            .wall
            .ci95
            .map_or_else(String::new, |[low, high]| format!("{} … {}", ms(low), ms(high)));
        let found = race
            .comparisons
            .iter()
            .find(|found| found.other == one.label && found.metric == iotomy_record::Metric::Wall);
        let (ratio, interval, verdict) = found.map_or_else(Default::default, |found| {
            let [low, high] = found.ci95;
            let interval = match found.ci95 {
                [0.0, 0.0] => String::new(),
                _ => format!("{low:.3} … {high:.3}"),
            };
            let verdict = match found.verdict {
                RaceVerdict::Faster => format!("faster than {}", found.base),
                RaceVerdict::Slower => format!("slower than {}", found.base),
                RaceVerdict::NoDifference => format!("no difference from {}", found.base),
                RaceVerdict::Undecided => "undecided".to_owned(),
            };
            (format!("{:.3}", found.ratio), interval, verdict)
        });
        let _ = writeln!(
            text,
            "| {} | {} | {} | {ends} | {} | {} | {} | {ratio} | {interval} | {verdict} |",
            one.label,
            code(&one.command),
            ms(one.wall.median_ns),
            ms(one.wall.min_ns),
            ms(one.wall.max_ns),
            ms(one.cpu.median_ns),
        );
    }
    text
}

/// A command as code in a cell of a table.
fn code(text: &str) -> String {
    let text = printable(text, true).replace('|', "\\|");
    let fence = if text.contains('`') { "``" } else { "`" };
    format!("{fence}{text}{fence}")
}
