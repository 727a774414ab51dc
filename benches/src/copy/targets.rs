//! The performance targets of iotomy's copy, and whether it met them on this machine.

use crate::copy::lanes::{Role, best_peer};
use crate::copy::races::{Kind, Race};
use crate::stats::Estimate;
use crate::targets::{Bound, Target, Verdict};

/// Limit of the ratio to the best peer's time on every route.
const EVERY: Bound = Bound::at_most(1.0, "×");
/// Limit of the ratio to GNU cp's time at start-up for a small file.
const STARTUP: Bound = Bound::at_most(0.65, "×");

/// A ratio to the best peer's time that is to be reached …
pub(crate) const FAR: f64 = 0.7;
/// … on this many routes.
pub(crate) const FAR_ROUTES: usize = 3;

/// Judges all races.
pub(crate) fn judge(races: &[Race]) -> Vec<Target> {
    let mut targets: Vec<Target> = races.iter().map(of_race).collect();
    let of_routes = races
        .iter()
        .filter(|race| race.kind == Kind::Route)
        .map(|race| (race.name.as_str(), against_best(race).ok().map(|(_, found)| found)));
    let of_routes: Vec<(&str, Option<Estimate>)> = of_routes.collect();
    let routes = of_routes.len();
    if routes > 0 {
        let (names, verdict) = far_ahead(&of_routes);
        let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        targets.push(Target {
            id: "far".to_owned(),
            text: format!("{FAR_ROUTES} routes or more at {FAR} × or less; they are: {list}"),
            bound: None,
            found: Err(format!("{} of {routes}", names.len())),
            verdict,
        });
    }
    targets
}

/// Returns the routes whose whole interval is at [`FAR`] or less, and whether there are enough of them. The verdict is
/// undecided when there could be enough within the intervals.
pub(crate) fn far_ahead<'a>(routes: &[(&'a str, Option<Estimate>)]) -> (Vec<&'a str>, Verdict) {
    let within = |end: fn(Estimate) -> f64| {
        let is_far = move |found: Estimate| end(found) <= FAR;
        routes.iter().filter(move |(_, found)| found.is_some_and(is_far)).map(|(name, _)| *name)
    };
    let names: Vec<&str> = within(|found| found.high).collect();
    let verdict = if names.len() >= FAR_ROUTES {
        Verdict::Met
    } else if within(|found| found.low).count() >= FAR_ROUTES {
        Verdict::Undecided
    } else {
        Verdict::Missed
    };
    (names, verdict)
}

fn of_race(race: &Race) -> Target {
    let name = &race.name;
    if race.kind == Kind::Startup {
        let cp = race.lanes.iter().find(|lane| lane.name == "cp");
        let ours = race.lanes.iter().find(|lane| lane.role == Role::Ours);
        let found = cp.zip(ours).and_then(|(cp, ours)| ours.ratio(cp, |run| run.wall_ns));
        let found = found.ok_or_else(|| "not measured".to_owned());
        return Target::new(name, format!("{name}: iotomy copy ÷ cp"), STARTUP, found);
    }
    match against_best(race) {
        Ok((peer, found)) => {
            Target::new(name, format!("{name}: iotomy copy ÷ {peer}"), EVERY, Ok(found))
        }
        Err(reason) => {
            Target::new(name, format!("{name}: iotomy copy ÷ the best peer"), EVERY, Err(reason))
        }
    }
}

/// Returns the best peer's name and the ratio of iotomy's time to that peer's.
pub(crate) fn against_best(race: &Race) -> Result<(String, Estimate), String> {
    let ours =
        race.lanes.iter().find(|lane| lane.role == Role::Ours).ok_or("iotomy was not measured")?;
    if let Some(reason) = &ours.skipped {
        return Err(reason.clone());
    }
    let peer = best_peer(&race.lanes).ok_or("no peer was measured")?;
    let found = ours.ratio(peer, |run| run.wall_ns).ok_or("too few runs")?;
    Ok((peer.name.clone(), found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::lanes::{Lane, Run};

    fn race(name: &str, kind: Kind, lanes: &[(&str, &[f64])]) -> Race {
        let lane = |(name, walls): &(&str, &[f64])| Lane {
            name: (*name).to_owned(),
            role: if *name == "iotomy copy" { Role::Ours } else { Role::Peer },
            runs: walls.iter().map(|ns| Some(Run { wall_ns: *ns, cpu_ns: 0.0 })).collect(),
            skipped: None,
        };
        Race {
            name: name.to_owned(),
            kind,
            bytes: 1,
            remark: "",
            choice: String::new(),
            lanes: lanes.iter().map(lane).collect(),
        }
    }

    #[test]
    fn a_route_is_judged_against_its_best_peer() {
        let lanes: [(&str, &[f64]); 3] = [
            ("iotomy copy", &[1.0, 1.0, 1.0]),
            ("cat", &[4.0, 4.0, 4.0]),
            ("uutils cat", &[2.0, 2.0, 2.0]),
        ];
        let targets = judge(&[race("pipe-pipe", Kind::Route, &lanes)]);
        assert_eq!(targets[0].found.as_ref().unwrap().median, 0.5);
        assert!(targets[0].text.ends_with("uutils cat"));
        assert_eq!(targets[0].verdict, Verdict::Met);
        assert_eq!(targets[1].verdict, Verdict::Missed);
        assert!(targets[1].text.ends_with("they are: pipe-pipe"));
    }

    #[test]
    fn start_up_is_judged_against_cp_alone() {
        let lanes: [(&str, &[f64]); 3] =
            [("iotomy copy", &[1.5; 8]), ("cp", &[2.5; 8]), ("uutils cp", &[1.0; 8])];
        let targets = judge(&[race("start-up", Kind::Startup, &lanes)]);
        assert_eq!(targets.len(), 1);
        assert_eq!(targets[0].verdict, Verdict::Met);
    }

    #[test]
    fn without_a_peer_nothing_is_judged() {
        let targets = judge(&[race("pipe-pipe", Kind::Route, &[("iotomy copy", &[1.0])])]);
        assert_eq!(targets[0].verdict, Verdict::NotJudged);
    }
}
