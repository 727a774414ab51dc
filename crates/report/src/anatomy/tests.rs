use iotomy_record::store::{self, Record};
use iotomy_record::{Dissected, arbitrary};
use proptest::prelude::*;

use super::*;
use crate::looks;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_record_renders(record in arbitrary::anatomy(), unicode: bool, width in 20usize..120) {
        looks::keeps_to(width, unicode, |style| anatomy(&record, style));
        looks::is_only_coloured(|style| anatomy(&record, style));
        let _ = (folded(&record), flame(&record), difference(&record, &record));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_record_is_inert_in_every_form(record in arbitrary::anatomy()) {
        looks::is_inert(&Record::Anatomy(Box::new(record)));
    }
}

/// The record of the guide's example.
fn example() -> Anatomy {
    store::parse_anatomy(include_bytes!("../../../../docs/examples/dd-to-disk.json")).unwrap()
}

#[test]
fn names_of_layers_and_functions_are_whole_on_a_usual_terminal() {
    let record = example();
    let names = record.calls.iter().flat_map(|call| &call.layers).flat_map(|layer| {
        let waits = layer.waits.keys().map(|what| format!("{}, asleep: {what}", layer.layer));
        waits.chain(layer.functions.iter().map(|function| function.name.clone()))
    });
    let names: Vec<String> = names.collect();
    for width in [80, 90, 100, 120] {
        let text = anatomy(&record, &Style { width, ..Style::default() });
        let table = text.split("where the time went").nth(1).unwrap();
        let table = table.split("thread time").next().unwrap();
        assert!(!table.contains('…'), "{text}");
        assert!(table.contains("page cache and copying, asleep: device"), "{text}");
        let shown = names.iter().filter(|name| table.contains(name.as_str())).count();
        assert!(shown > 10, "{shown} at {width}");
    }
}

#[test]
fn a_call_with_too_few_samples_says_so_in_its_own_row() {
    let mut record = example();
    let call = |name: &str, samples| Dissected {
        exec: "dd".into(),
        syscall: Some(name.into()),
        on_cpu_ns: 40_000_000,
        samples,
        ..Dissected::default()
    };
    record.calls = vec![call("execve", 0), call("exit_group", 4)];
    record.calls.push(Dissected { blocked_ns: 50_000_000, ..call("openat", 9) });
    let text = anatomy(&record, &Style::default());
    let line = |name: &str| text.lines().find(|line| line.trim().starts_with(name)).unwrap();
    assert!(line("execve").ends_with("   no sample"), "{text}");
    assert!(line("exit_group").ends_with("   too few samples (4)"), "{text}");
    assert!(line("openat").ends_with('%'), "{text}");
    assert_eq!(text.matches("on a CPU  ").count(), 1, "{text}");
}

#[test]
fn a_price_that_could_not_be_measured_is_not_nothing() {
    let mut record = example();
    record.sampling.price_ns_per_sample = 0.0;
    let text = anatomy(&record, &Style::default());
    assert!(text.contains("at 997 Hz; what one costs could not be measured"), "{text}");
}
