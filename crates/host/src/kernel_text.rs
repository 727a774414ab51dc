//! Texts in which names of others stand, such as the kernel's.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use iotomy_record::{bytes_of, lossless};

/// What a file of `/proc` or `/sys`, or of a program other than iotomy, says. Programs, directories and
/// control groups may have any bytes in their names: those that are no UTF-8 must not make the rest
/// unreadable. They are written as [`lossless`] does.
///
/// # Errors
/// Those of reading a file.
pub fn kernel_text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(match String::from_utf8(fs::read(path)?) {
        // Most are: without a copy.
        Ok(text) if !text.contains("\\x") => text,
        Ok(text) => lossless(text.as_bytes()),
        Err(error) => lossless(error.as_bytes()),
    })
}

/// The path that stands in such a text.
pub(crate) fn path_in_text(text: &str) -> PathBuf {
    OsString::from_vec(bytes_of(text)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_utf8_leaves_the_rest_readable() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"Name:\ta\xffb\nTgid:\t7\n").unwrap();
        assert_eq!(kernel_text(file.path()).unwrap(), "Name:\ta\\xffb\nTgid:\t7\n");
        assert!(kernel_text("/no/such/file").is_err());
    }

    #[test]
    fn names_that_differ_stay_apart_and_are_found_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for name in [&b"/a\xff"[..], b"/a\xfe", br"/a\xff", b"/a"] {
            fs::write(file.path(), name).unwrap();
            let path = path_in_text(&kernel_text(file.path()).unwrap());
            assert_eq!(path.as_os_str().as_encoded_bytes(), name);
        }
    }
}
