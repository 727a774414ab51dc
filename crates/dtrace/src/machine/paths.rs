//! Parts of paths, as the functions of programs have them.

/// What stands behind the last slash; of a path of slashes alone, `/`.
pub(super) fn base(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    if end == 0 {
        return if path.is_empty() { b".".to_vec() } else { b"/".to_vec() };
    }
    let start = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    path[start..end].to_vec()
}

/// What stands before the last slash; `.` without one.
pub(super) fn directory(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    if end == 0 {
        return if path.is_empty() { b".".to_vec() } else { b"/".to_vec() };
    }
    let Some(slash) = path[..end].iter().rposition(|byte| *byte == b'/') else {
        return b".".to_vec();
    };
    let end = path[..slash].iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    if end == 0 { b"/".to_vec() } else { path[..end].to_vec() }
}

/// Without `//`, `/./` and `/../`; nothing is looked up.
pub(super) fn clean(path: &[u8]) -> Vec<u8> {
    let is_absolute = path.first() == Some(&b'/');
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => _ = parts.pop(),
            b".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    let mut clean = if is_absolute { b"/".to_vec() } else { Vec::new() };
    clean.extend(parts.join(&b'/'));
    // What ended with a slash still does.
    if path.ends_with(b"/") && clean.last().is_some_and(|last| *last != b'/') {
        clean.push(b'/');
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_their_parts() {
        for (path, name, folder, tidy) in [
            ("/usr/bin/cat", "cat", "/usr/bin", "/usr/bin/cat"),
            ("/usr/", "usr", "/", "/usr/"),
            ("usr", "usr", ".", "usr"),
            ("/", "/", "/", "/"),
            ("//", "/", "/", "/"),
            ("", ".", ".", ""),
            ("/a//b/./c/../d", "d", "/a//b/./c/..", "/a/b/d"),
            ("/../a", "a", "/..", "/a"),
            ("../a", "a", "..", "../a"),
        ] {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            assert_eq!(text(base(path.as_bytes())), name, "{path}");
            assert_eq!(text(directory(path.as_bytes())), folder, "{path}");
            assert_eq!(text(clean(path.as_bytes())), tidy, "{path}");
        }
    }
}
