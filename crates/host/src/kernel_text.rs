//! Texts of the kernel in which names of others stand.

use std::fs;
use std::io;
use std::path::Path;

/// What a file of `/proc` says. Programs, directories and control groups may have any bytes in their
/// names: those that are no UTF-8 must not make the rest unreadable.
///
/// # Errors
/// Those of reading a file.
pub fn kernel_text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_utf8_leaves_the_rest_readable() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"Name:\ta\xffb\nTgid:\t7\n").unwrap();
        assert_eq!(kernel_text(file.path()).unwrap().lines().last(), Some("Tgid:\t7"));
        assert!(kernel_text("/no/such/file").is_err());
    }
}
