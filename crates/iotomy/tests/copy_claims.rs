//! What a size, a name or a kind claims is not believed: files that hold more or less than their size says, one file
//! under two kinds of names, FIFOs that nobody reads, and files that are mounted.

use crate::support;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};

use iotomy_fault_fs::{Fault, FaultFs, Operation};
use iotomy_movers::MOVERS;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::io::Errno;
use support::copying::{Folder, content, refused};
use support::{Need, iotomy, skip};

fn mount(files: &[(&str, &[u8])], faults: &[Fault]) -> Option<FaultFs> {
    FaultFs::mount(files, faults).map_err(|reason| skip(Need::Fuse, &reason)).ok()
}

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
        let a = a.to_str().unwrap();
        let movers = MOVERS.iter().map(|mover| mover.declaration());
        let moving = movers.filter(|of| !of.calls.is_empty()).map(|of| Some(of.name));
        for mover in [None].into_iter().chain(moving) {
            let by: Vec<_> = mover.into_iter().flat_map(|name| ["--mover", name]).collect();
            for more in [&[][..], &["--verify"], &["--atomic", "--verify"], &["--append"]] {
                let _ = fs::remove_file(folder.path("o"));
                let output = folder.run(&[&by[..], more, &[a, "o"]].concat());
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                // It does not serve, or the kernel refused its only call.
                if mover.is_some() && output.status.code() == Some(2) {
                    let is_refused = [" by ", ": copy_file_range: ", ": ioctl: ", ": mmap: "];
                    assert!(is_refused.iter().any(|why| said.contains(why)), "{mover:?}: {said}");
                    continue;
                }
                let label = format!("{mover:?} {more:?} {there} for {claimed}: {said}");
                assert!(output.status.success(), "{label}");
                assert!(folder.read("o") == all, "{label}");
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
        let skip = skip.to_string();
        folder.copy(&["--verify", "--skip", &skip, a.to_str().unwrap(), "o"]);
        assert!(folder.read("o") == left, "{claimed} {skip}");
    }
    // What the first does not have is skipped in the second.
    let Some(mounted) = claiming(&all, 20_000, false) else { return };
    let (folder, a) = (Folder::new(), mounted.path("a"));
    folder.write("second", content(3000));
    folder.copy(&["--concat", "--skip", "6000", a.to_str().unwrap(), "second", "o"]);
    assert!(folder.read("o") == content(3000)[1000..]);
}

#[test]
fn a_target_that_claims_to_be_empty_is_emptied() {
    let Some(mounted) = claiming(&content(5000), 0, false) else { return };
    let folder = Folder::new();
    folder.write("new", "new");
    let a = mounted.path("a");
    folder.copy(&["new", a.to_str().unwrap()]);
    assert_eq!(fs::read(a).unwrap(), b"new");
}

#[test]
fn holes_that_only_the_blocks_show_stay_holes() {
    use std::os::unix::fs::MetadataExt;
    let mut all = content(65_536);
    all.resize(4 << 20, 0);
    all.extend(content(100));
    let faults =
        [Fault::silent("a", Operation::Blocks(136)), Fault::on("a", Operation::Seek, Errno::NOSYS)];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let (folder, a) = (Folder::new(), mounted.path("a"));
    let output = folder.run(&["--explain", a.to_str().unwrap(), "o"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("holes of the source stay holes"), "{said}");
    assert!(said.contains("plan      read-write"), "{said}");
    assert!(folder.read("o") == all);
    assert!(fs::metadata(folder.path("o")).unwrap().blocks() < 1000, "{said}");
}

#[test]
fn only_a_target_that_was_emptied_is_called_empty_now() {
    let faults = [Fault::on("b", Operation::Write(0), Errno::IO)];
    for (old, is_said) in [(&b""[..], false), (b"old", true)] {
        let Some(mounted) = mount(&[("b", old)], &faults) else { return };
        let folder = Folder::new();
        folder.write("a", "new");
        let said = folder.refuse(2, &["a", mounted.path("b").to_str().unwrap()]);
        assert_eq!(said.contains("is empty now"), is_said, "{said}");
    }
}

#[test]
fn a_fifo_that_the_options_do_not_allow_is_refused_without_waiting_for_its_other_end() {
    let folder = Folder::new();
    folder.write("a", "new");
    mkfifoat(CWD, folder.path("p"), Mode::from_raw_mode(0o600)).unwrap();
    for (words, why) in [
        (&["--verify", "a", "p"][..], "cannot verify p: it is a pipe"),
        (&["--verify", "p", "b"], "cannot verify p: it is a pipe"),
        (&["--fsync", "a", "p"], "cannot sync p: it is a pipe"),
        (&["--seek", "1", "a", "p"], "cannot seek in p: it is a pipe"),
        (&["--preserve", "a", "p"], "cannot preserve attributes: p is a pipe"),
        (&["--preserve", "p", "b"], "cannot preserve attributes: p is a pipe"),
    ] {
        let said = folder.refuse(2, words);
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(folder.names(), ["a", "p"]);
}

#[test]
fn names_that_are_not_utf_8_are_told_byte_by_byte() {
    let folder = Folder::new();
    let name = std::ffi::OsStr::from_bytes(b"d\xff\xd0");
    let output = folder.command(&[name, "b".as_ref()]).output().unwrap();
    let said = refused(2, &output);
    assert!(said.contains(r"cannot read d\xff\xd0: No such file"), "{said}");
    folder.write("a", "new");
    let target = std::ffi::OsStr::from_bytes(b"n\xff/b");
    let said = refused(2, &folder.command(&["a".as_ref(), target]).output().unwrap());
    assert!(said.contains(r"cannot write n\xff/b: "), "{said}");
}

/// Runs a script where mounts are nobody else's; `None`, skipped, where that is not possible.
fn where_mounts_are_private(folder: &Folder, script: &str) -> Option<Output> {
    let copy = iotomy(&["copy"]).get_program().to_owned();
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", script]).current_dir(folder.path(""));
    let output = command.env("IOTOMY", copy).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("unshare failed")
        || output.status.code() == Some(32)
    {
        skip(Need::Root, "no mounts for this user");
        return None;
    }
    Some(output)
}

#[test]
fn an_output_onto_a_mounted_file_is_written_in_place_and_atomic_is_refused_with_advice() {
    let folder = Folder::new();
    folder.write("a", "new");
    folder.write("behind", "a longer text that was there before".repeat(1000));
    folder.write("on", "");
    let script = "mount --bind behind on\n\"$IOTOMY\" copy --json on a b";
    let Some(output) = where_mounts_are_private(&folder, script) else { return };
    assert!(output.status.success(), "{output:?}");
    let record = String::from_utf8(folder.read("behind")).unwrap();
    assert!(record.starts_with('{') && record.trim_end().ends_with('}'), "{record}");
    assert_eq!(folder.names(), ["a", "b", "behind", "on"]);
    let script = "mount --bind behind on\n\"$IOTOMY\" copy --atomic a on";
    let Some(output) = where_mounts_are_private(&folder, script) else { return };
    let said = refused(2, &output);
    assert!(said.contains("it is a mount point") && said.contains("leave out --atomic"), "{said}");
    assert_eq!(folder.read("behind"), record.as_bytes());
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
    let runs = [[device, "image"], ["image", device]].map(|words| folder.run(&words));
    let atomic = folder.run(&["--atomic", device, "image"]);
    assert!(Command::new("losetup").arg("-d").arg(device).status().unwrap().success());
    for output in runs.iter().chain([&atomic]) {
        let said = refused(2, output);
        assert!(said.contains("they are the same "), "{said}");
    }
    assert!(folder.read("image") == content(1 << 20));
}

#[test]
fn a_file_that_fuse_shows_under_a_second_path_is_the_same() {
    let folder = Folder::new();
    for name in ["real", "shown"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    folder.write("real/a", "not to be lost");
    // Another file of the same size and time is copied over.
    let other = "cp -p real/a other; \"$IOTOMY\" copy other shown/a";
    let copies = COPIES_TO_ITSELF.replace("ONE", "real/a").replace("OTHER", "shown/a");
    let script = format!("bindfs real shown || exit 32\n{copies}\n{other}\numount shown");
    let Some(output) = where_mounts_are_private(&folder, &script) else { return };
    refused_eight_times(&output);
    assert_eq!(folder.read("real/a"), b"not to be lost");
}

/// A file onto itself, by two names: emptied, or read as it grows.
const COPIES_TO_ITSELF: &str = "
for names in 'ONE OTHER' 'OTHER ONE'; do
	set -- $names
	timeout 20 \"$IOTOMY\" copy $1 $2 || echo $?
	timeout 20 \"$IOTOMY\" copy --append $1 $2 || echo $?
	timeout 20 \"$IOTOMY\" copy --seek 7 $1 $2 || echo $?
	timeout 20 \"$IOTOMY\" copy $1 - >>$2 || echo $?
done";

fn refused_eight_times(output: &Output) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n".repeat(8), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("they are the same file").count(), 8, "{said}");
}

#[test]
fn a_file_of_a_layer_is_the_one_that_an_overlay_shows() {
    let folder = Folder::new();
    fs::create_dir(folder.path("all")).unwrap();
    let copies = COPIES_TO_ITSELF.replace("ONE", "upper/a").replace("OTHER", "shown/a");
    let script = format!(
        "mount -t tmpfs layers all && cd all && mkdir lower upper work shown && \
         printf 'not to be lost' >upper/a && \
         mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work shown shown || exit 32\n\
         {copies}\ncp -p upper/a other; \"$IOTOMY\" copy other shown/a; cat upper/a >../kept\n\
         umount shown; cd ..; umount all"
    );
    let Some(output) = where_mounts_are_private(&folder, &script) else { return };
    refused_eight_times(&output);
    assert_eq!(folder.read("kept"), b"not to be lost");
}

#[test]
fn a_new_output_is_synced_like_one_that_replaces_another() {
    let faults = [Fault::everywhere(Operation::Fsync, Errno::IO)];
    let Some(mounted) = mount(&[("old", b"old")], &faults) else { return };
    let folder = Folder::new();
    folder.write("a", "new");
    for name in ["new.json", "old"] {
        let said = folder.refuse(2, &["--json", mounted.path(name).to_str().unwrap(), "a", "b"]);
        assert!(said.contains("cannot fsync ") && said.contains(name), "{said}");
    }
    assert_eq!(fs::read(mounted.path("old")).unwrap(), b"old");
}

#[test]
fn a_file_made_from_one_with_an_access_list_gives_its_group_no_more() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new();
    let a = folder.write("a", "text");
    let set = Command::new("setfacl").args(["-m", "u::rw,g::r,o::-,u:2:rw"]).arg(&a).status();
    if !set.is_ok_and(|status| status.success()) {
        return skip(Need::Programs, "no setfacl, or no access lists here");
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&a), 0o660);
    for words in [&["a", "b"][..], &["--atomic", "a", "c"]] {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(iotomy(&[]).get_program());
        let output = command.arg("copy").args(words).current_dir(folder.path("")).output();
        assert!(output.unwrap().status.success());
        assert_eq!(mode(&folder.path(words[words.len() - 1])), 0o640, "{words:?}");
    }
}
