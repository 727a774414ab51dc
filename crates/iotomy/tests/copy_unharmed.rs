//! What is refused leaves the target as it was, whatever it is: a device, a file that is mounted, or one that two file
//! systems show.

use crate::support;

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use iotomy_fault_fs::{Fault, FaultFs, Operation};
use rustix::io::Errno;
use support::copying::{Folder, content, refused};
use support::volume::Device;
use support::{Need, iotomy, skip};

/// Runs the copy of something over `old`, which holds that word; it is refused, and holds it still.
#[track_caller]
fn spared(folder: &Path, run: impl FnOnce() -> Output) -> String {
    fs::write(folder.join("old"), "old").unwrap();
    let stderr = refused(2, &run());
    assert_eq!(fs::read(folder.join("old")).unwrap(), b"old", "{stderr}");
    assert!(!stderr.contains("empty now") && !stderr.contains("partial"), "{stderr}");
    stderr
}

#[test]
fn nothing_is_appended_to_a_block_device_whose_start_it_would_overwrite() {
    let folder = Folder::new();
    folder.write("a", content(100_000));
    let image = folder.write("image", vec![7; 1 << 20]);
    let Some(device) = Device::attach(&image) else { return };
    let path = device.path();
    let refusals =
        [&["--append", "a", path][..], &["--append", "--verify", "a", path], &["a", "-"]];
    for words in refusals {
        let appending = OpenOptions::new().append(true).open(path).unwrap();
        let output = folder.command(words).stdout(appending).output().unwrap();
        let stderr = refused(2, &output);
        assert!(
            stderr.contains("cannot append to ") && stderr.contains("block device"),
            "{stderr}"
        );
        assert!(stderr.contains("--seek"), "{stderr}");
        assert!(fs::read(path).unwrap() == vec![7; 1 << 20], "{words:?}");
    }
    // In place it is written to, and read back.
    folder.copy(&["--verify", "--seek", "4096", "a", path]);
    let now = fs::read(path).unwrap();
    assert!(now[..4096] == [7; 4096] && now[4096..104_096] == content(100_000));
}

#[test]
fn what_no_trial_can_be_made_for_beside_the_target_is_refused() {
    if !support::root() || !support::has("setpriv") {
        return;
    }
    let folder = support::for_everyone();
    let ours = folder.path().join("ours");
    fs::create_dir(&ours).unwrap();
    fs::write(ours.join("old"), "").unwrap();
    fs::write(ours.join("source"), content(10_000)).unwrap();
    fs::set_permissions(ours.join("old"), Permissions::from_mode(0o666)).unwrap();
    for words in [
        &["--mover", "splice", "/proc/self/exe", "ours/old"][..],
        &["--mover", "copy-file-range", "ours/source", "ours/old"],
        &["--mover", "direct", "--skip", "3", "ours/source", "ours/old"],
    ] {
        let run = || support::as_nobody(folder.path()).arg("copy").args(words).output().unwrap();
        let said = spared(&ours, run);
        let why = "cannot create a file beside it: Permission denied; empty it first";
        assert!(said.contains(why), "{words:?}: {said}");
    }
}

#[test]
fn a_mover_that_gets_no_descriptor_empties_nothing() {
    let folder = Folder::new();
    folder.write("a", content(300_000));
    // Who runs the tests may have left descriptors open.
    for most in 5.. {
        fs::write(folder.path("old"), "old").unwrap();
        let script = format!("ulimit -n {most}; exec \"$@\"");
        let mut command = support::bare("sh", &["-c", &script, "sh", support::IOTOMY, "copy"]);
        command.args(["--mover", "splice", "a", "old"]).current_dir(folder.path(""));
        let output = command.output().unwrap();
        if output.status.success() {
            assert!((6..64).contains(&most) && folder.read("old") == content(300_000), "{most}");
            break;
        }
        let stderr = refused(2, &output);
        assert!(stderr.contains("Too many open files"), "{stderr}");
        assert_eq!(folder.read("old"), b"old", "{most}: {stderr}");
    }
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
    let stderr = refused(2, &output);
    assert!(
        stderr.contains("it is a mount point") && stderr.contains("leave out --atomic"),
        "{stderr}"
    );
    assert_eq!(folder.read("behind"), record.as_bytes());
}

#[test]
fn a_file_that_fuse_shows_under_a_second_path_is_the_same() {
    if !support::has("bindfs") {
        return;
    }
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.matches("they are the same file").count(), 8, "{stderr}");
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
    let mounted = match FaultFs::mount(&[("old", b"old")], &faults) {
        Ok(mounted) => mounted,
        Err(reason) => return skip(Need::Fuse, &reason),
    };
    let folder = Folder::new();
    folder.write("a", "new");
    for name in ["new.json", "old"] {
        let said = folder.refuse(2, &["--json", mounted.path(name).to_str().unwrap(), "a", "b"]);
        assert!(said.contains("cannot fsync ") && said.contains(name), "{said}");
    }
    assert_eq!(fs::read(mounted.path("old")).unwrap(), b"old");
}
