use iotomy_record::store::Record;
use iotomy_record::{Limits, Machine};
use sha2::{Digest, Sha256};

use super::*;
use crate::looks;

fn limits() -> Record {
    Record::Limits(Box::new(Limits {
        schema: Limits::SCHEMA.into(),
        started: "2025-03-01T10:20:30Z".into(),
        machine: Machine::default(),
        limits: Vec::new(),
    }))
}

#[test]
fn the_policy_lets_our_script_run_and_nothing_else() {
    let hash = embed::base64(&Sha256::digest(SCRIPT));
    assert_eq!(hash, SCRIPT_HASH, "the script was changed: this is its hash now");
    let page = looks::page(&limits());
    assert!(page.contains("default-src 'none'") && page.contains(&format!("'sha256-{hash}'")));
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
}

#[test]
fn a_page_names_no_other_place() {
    let page = looks::page(&limits());
    let place = |lead: &str| page.matches(lead).count();
    assert_eq!([place("http://"), place("https://"), place("@import"), place("url(")], [0; 4]);
}

#[test]
fn several_records_have_a_way_to_each() {
    let (a, b) = (limits(), limits());
    let sources = [("a.json", &a), ("b.json", &b)];
    let sources = sources.map(|(name, record)| Source { name, record, bytes: b"{}" });
    let mut page = Vec::new();
    html(&sources, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    looks::is_only_ours(&page);
    for at in 1..=2 {
        assert!(
            page.contains(&format!("href=\"#r{at}\"")) && page.contains(&format!("id=\"r{at}\""))
        );
    }
    assert!(page.contains("download=\"a.json.gz\"") && page.contains("download=\"b.json.gz\""));
}

#[test]
fn a_packed_record_is_the_record() {
    use std::io::Read;
    let record: Vec<u8> = (0..200_000u32).flat_map(|n| (n % 977).to_le_bytes()).collect();
    let packed = embed::packed(&record);
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut bytes) = (0u32, 0, Vec::new());
    for letter in packed.bytes().filter(|letter| *letter != b'=') {
        bits = bits << 6 | letters.iter().position(|known| *known == letter).unwrap() as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == record && packed.len() < record.len() / 10);
}
