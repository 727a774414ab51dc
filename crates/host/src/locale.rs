//! The encoding of text for the user.

use std::ffi::OsString;

/// Whether the locale's encoding is UTF-8. Without a locale it is POSIX's, which is ASCII.
pub fn speaks_utf8() -> bool {
    let set = |name: &str| -> Option<OsString> {
        std::env::var_os(name).filter(|value| !value.is_empty())
    };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_some_and(|locale| is_of_utf8(&locale.to_string_lossy()))
}

/// Whether a locale, as `de_DE.UTF-8@euro`, has UTF-8.
fn is_of_utf8(locale: &str) -> bool {
    let encoding = locale.split_once('.').map_or("", |(_, encoding)| encoding);
    let encoding = encoding.split('@').next().unwrap_or_default();
    encoding.eq_ignore_ascii_case("UTF-8") || encoding.eq_ignore_ascii_case("utf8")
}

#[cfg(test)]
mod tests {
    use super::is_of_utf8;

    #[test]
    fn the_encoding_is_behind_the_dot() {
        for locale in ["C.UTF-8", "en_US.utf8", "de_DE.UTF-8@euro", "C.Utf-8"] {
            assert!(is_of_utf8(locale), "{locale}");
        }
        for locale in ["C", "POSIX", "en_US", "en_US.ISO-8859-1", "ja_JP.eucJP", "UTF-8x", "", "."]
        {
            assert!(!is_of_utf8(locale), "{locale}");
        }
    }
}
