//! Anatomies: opening files stays in the file system or reaches the driver.

use super::*;

/// 100 calls of openat with 30 samples, in a layer with this time blocked on a device.
fn opening(layer: &str, asleep_ns: u64) -> Anatomy {
    let layer = Layer {
        layer: layer.into(),
        on_cpu_ns: MS,
        samples: 30,
        blocked_ns: asleep_ns,
        waits: BTreeMap::from([("device".to_owned(), asleep_ns)]),
        ..Layer::default()
    };
    let row = DissectedCall {
        pid: 1,
        exec: "prog".into(),
        image: 0,
        syscall: Some("openat".into()),
        on_cpu_ns: MS,
        blocked_ns: asleep_ns,
        samples: 30,
        layers: vec![layer],
        ..DissectedCall::default()
    };
    let call = Call { syscall: "openat".into(), calls: 100, ..Call::default() };
    Anatomy {
        schema: Anatomy::SCHEMA.into(),
        started: trace().started,
        trace: Trace { calls: vec![call], ..trace() },
        sampling: Sampling::default(),
        calls: vec![row],
        stacks: Vec::new(),
        block: None,
        timelines: None,
    }
}

fn of_anatomy(record: &Anatomy) -> Vec<String> {
    let found = crate::anatomy(record, Some(&limits())).findings;
    found.into_iter().map(|found| format!("{}: {}", found.id, found.text)).collect()
}

#[test]
fn opening_files_stays_in_the_file_system_or_reaches_the_driver() {
    let stayed = of_anatomy(&opening("VFS", 0));
    assert!(stayed.len() == 1 && stayed[0].starts_with("open-not-read: 100 calls"), "{stayed:?}");
    assert!(stayed[0].contains("stayed in the file system"), "{stayed:?}");
    for reached in [opening("driver", 0), opening("file system (ext4)", 5)] {
        assert!(of_anatomy(&reached)[0].contains("did not stay"));
    }
}

#[test]
fn few_calls_or_few_samples_of_opening_files_say_nothing() {
    let mut few = opening("driver", 0);
    few.trace.calls[0].calls = 99;
    assert_eq!(of_anatomy(&few), [""; 0]);
    let mut few = opening("VFS", 0);
    few.calls[0].samples = 29;
    assert_eq!(of_anatomy(&few), [""; 0]);
}
