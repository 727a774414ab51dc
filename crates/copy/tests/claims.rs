//! What a size, a name or a mode claims is not believed: files that hold more or less than their size says, one file
//! under two kinds of names, and rights that an access list takes back.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use iotomy_copy::{Detail, Options, Placement};
use iotomy_fault_fs::{Fault, FaultFs, Operation};
use iotomy_test_requirements::{Need, skip};
use rustix::io::Errno;

use crate::support::{
    Folder, any, atomic, by, by_any, content, is_refused, joined, mount, movers, verified,
};

/// A file that claims a size, read past the page cache or through it.
fn claiming(all: &[u8], size: u64, is_cached: bool) -> Option<FaultFs> {
    let size = Fault::silent("a", Operation::Size(size));
    let cache = Fault::silent("a", Operation::Cache);
    let faults = if is_cached { vec![size] } else { vec![size, cache] };
    mount(&[("a", all), ("b", b"")], &faults)
}

#[test]
fn a_copy_is_what_reading_gives_by_every_mover_and_verify_agrees() {
    for (there, claimed, is_cached) in [
        (2446, 0, false),
        (300_000, 1000, false),
        (1000, 8192, false),
        (1000, 300_000, true),
        (200_000, 300_000, true),
    ] {
        let all = content(there);
        let Some(mounted) = claiming(&all, claimed, is_cached) else { return };
        let (folder, a) = (Folder::new(), mounted.path("a"));
        for mover in movers() {
            for (placement, verify) in [
                (Placement::Truncate, false),
                (Placement::Truncate, true),
                (Placement::Atomic, true),
                (Placement::Append, false),
            ] {
                let _ = fs::remove_file(folder.path("o"));
                let options = Options { placement, verify, ..by_any(mover) };
                let account = folder.try_copy(&options, &[a.to_str().unwrap()], "o");
                let label = format!("{mover:?} {placement:?} {there} for {claimed}: {account:?}");
                if !is_refused(mover, &account) {
                    assert!(account.errors.is_empty() && folder.read("o") == all, "{label}");
                }
            }
        }
    }
}

#[test]
fn what_is_skipped_is_what_is_there() {
    let all = content(5000);
    for (claimed, skip, left) in
        [(0, 1000, &all[1000..]), (2000, 3000, &all[3000..]), (2000, 9000, &[][..])]
    {
        let Some(mounted) = claiming(&all, claimed, false) else { return };
        let (folder, a) = (Folder::new(), mounted.path("a"));
        folder.copy(&Options { skip, ..verified() }, &[a.to_str().unwrap()], "o");
        assert!(folder.read("o") == left, "{claimed} {skip}");
    }
    // What the first does not have is skipped in the second.
    let Some(mounted) = claiming(&all, 20_000, false) else { return };
    let (folder, a) = (Folder::new(), mounted.path("a"));
    folder.write("second", content(3000));
    let options = Options { skip: 6000, ..joined() };
    folder.copy(&options, &[a.to_str().unwrap(), "second"], "o");
    assert!(folder.read("o") == content(3000)[1000..]);
}

#[test]
fn a_target_that_claims_to_be_empty_is_emptied() {
    let Some(mounted) = claiming(&content(5000), 0, false) else { return };
    let (folder, a) = (Folder::new(), mounted.path("a"));
    folder.write("new", "new");
    folder.copy(&any(), &["new"], a.to_str().unwrap());
    assert_eq!(fs::read(a).unwrap(), b"new");
}

#[test]
fn holes_that_only_the_blocks_show_stay_holes() {
    let mut all = content(65_536);
    all.resize(4 << 20, 0);
    all.extend(content(100));
    let faults =
        [Fault::silent("a", Operation::Blocks(136)), Fault::on("a", Operation::Seek, Errno::NOSYS)];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let (folder, a) = (Folder::new(), mounted.path("a"));
    let options = Options { detail: Detail::Reasons, ..any() };
    let account = folder.try_copy(&options, &[a.to_str().unwrap()], "o");
    assert!(account.contract.contains("holes of the source stay holes"), "{account:?}");
    assert_eq!(account.parts[0].mover.as_deref(), Some("read-write"), "{account:?}");
    assert!(folder.read("o") == all);
    assert!(fs::metadata(folder.path("o")).unwrap().blocks() < 1000, "{account:?}");
}

#[test]
fn only_a_target_that_was_emptied_is_called_empty_now() {
    let faults = [Fault::on("b", Operation::Write(0), Errno::IO)];
    for (old, is_said) in [(&b""[..], false), (b"old", true)] {
        let Some(mounted) = mount(&[("b", old)], &faults) else { return };
        let folder = Folder::new();
        folder.write("a", "new");
        let b = mounted.path("b");
        let said = folder.refuse(&any(), &["a"], b.to_str().unwrap());
        assert_eq!(said.contains("is empty now"), is_said, "{said}");
    }
}

#[test]
fn a_loop_device_and_its_file_are_the_same() {
    let folder = Folder::new();
    let image = folder.write("image", content(1 << 20));
    let attached = Command::new("losetup").args(["-f", "--show"]).arg(&image).output();
    let device = match attached {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        _ => return skip(Need::Devices, "no loop device"),
    };
    let device = device.trim();
    let accounts =
        [(any(), device, "image"), (any(), "image", device), (atomic(), device, "image")]
            .map(|(options, source, target)| folder.try_copy(&options, &[source], target));
    assert!(Command::new("losetup").arg("-d").arg(device).status().unwrap().success());
    for account in &accounts {
        let message = folder.error(account);
        assert!(message.contains("they are the same "), "{message}");
    }
    assert!(folder.read("image") == content(1 << 20));
}

#[test]
fn a_file_made_from_one_with_an_access_list_gives_its_group_no_more() {
    let folder = Folder::new();
    let a = folder.write("a", "text");
    let set = Command::new("setfacl").args(["-m", "u::rw,g::-,o::-,u:2:r"]).arg(&a).status();
    if !set.is_ok_and(|status| status.success()) {
        return skip(Need::Programs, "no setfacl, or no access lists here");
    }
    let mode = |name| fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("a"), 0o640);
    for (options, target) in [(any(), "b"), (atomic(), "c")] {
        folder.copy(&options, &["a"], target);
        assert_eq!(mode(target), 0o600, "{target}");
    }
}

#[test]
fn a_device_that_is_read_only_is_refused_before_anything_is_moved() {
    let folder = Folder::new();
    let image = folder.write("image", content(1 << 20));
    folder.write("a", "new");
    let attached = Command::new("losetup").args(["-r", "-f", "--show"]).arg(&image).output();
    let device = match attached {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        _ => return skip(Need::Devices, "no loop device"),
    };
    let device = device.trim();
    let options = [any(), by("io-uring"), by("read-write")];
    let runs = options.map(|options| folder.try_copy(&options, &["a"], device));
    assert!(Command::new("losetup").arg("-d").arg(device).status().unwrap().success());
    for account in &runs {
        let [error] = &account.errors[..] else { panic!("{account:?}") };
        let expected = format!(
            "cannot write {device}: the device is read-only; {device} is unchanged; see `blockdev --setrw`"
        );
        assert_eq!(error.to_string(), expected);
    }
    assert!(folder.read("image") == content(1 << 20));
}
