//! The token that a request has to have, as RFC 6750 has it.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use iotomy_record::path_text;
use subtle::ConstantTimeEq;

use super::Refusal;
use crate::trusted::{distrust, read_secret};

/// One that is shorter could be found by trying.
const SHORTEST: usize = 16;

/// A longer one would find no room in the head of a request.
const LONGEST: usize = 4_096;

const EXAMPLE: &str = "make one by: openssl rand -hex 32";

/// A secret of the agent and those that may ask.
pub(super) struct Token(Vec<u8>);

impl Token {
    /// That of a file, which has nothing else but the end of its line.
    ///
    /// # Errors
    /// The file cannot be read, others could have written it or may read it, or it has no such token.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = path_text(path);
        let bytes = read_secret(path).map_err(|error| match distrust(&error) {
            Some(reason) => anyhow!("cannot use the token in {shown}: {reason}"),
            None => anyhow::Error::new(error).context(format!("cannot read the token in {shown}")),
        })?;
        Self::parse(&bytes).with_context(|| format!("cannot use the token in {shown}"))
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let token = bytes.trim_ascii();
        if !token.iter().all(u8::is_ascii_graphic) {
            bail!("it is not one line of ASCII characters without spaces; {EXAMPLE}");
        }
        if token.len() < SHORTEST {
            bail!("it has fewer than {SHORTEST} characters; {EXAMPLE}");
        }
        if token.len() > LONGEST {
            bail!("it has more than {LONGEST} characters; {EXAMPLE}");
        }
        Ok(Self(token.to_vec()))
    }

    /// # Errors
    /// The headers of a request do not have it.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(credentials), None) = (given.next(), given.next()) else {
            return Err(Refusal::NoToken);
        };
        let token = bearer(credentials.as_bytes()).ok_or(Refusal::NoToken)?;
        // It takes as long wherever they differ. The length is no secret.
        match self.0.as_slice().ct_eq(token).into() {
            true => Ok(()),
            false => Err(Refusal::WrongToken),
        }
    }
}

/// The token in the value of a header.
fn bearer(credentials: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"Bearer ";
    let (scheme, token) = credentials.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use hyper::header::HeaderValue;
    use iotomy_record::one_line;

    use super::*;

    #[test]
    fn a_request_has_the_whole_token_or_is_refused() {
        let token = Token::parse(b"0123456789abcdef\r\n").unwrap();
        let check = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            token.check(&headers)
        };
        for taken in ["Bearer 0123456789abcdef", "bearer  0123456789abcdef"] {
            assert_eq!(check(&[taken]), Ok(()), "{taken}");
        }
        for wrong in [
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789abcdef 0123456789abcdef",
            "Bearer ",
        ] {
            assert_eq!(check(&[wrong]), Err(Refusal::WrongToken), "{wrong}");
        }
        let right = "Bearer 0123456789abcdef";
        for none in [
            &[][..],
            &["0123456789abcdef"],
            &["Basic 0123456789abcdef"],
            &["Bearer"],
            &["Bearer0123456789abcdef"],
            &[right, right],
        ] {
            assert_eq!(check(none), Err(Refusal::NoToken), "{none:?}");
        }
    }

    #[test]
    fn what_is_no_secret_is_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let refused = |text: &[u8], mode: u32| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            match Token::read(&file) {
                Ok(_) => panic!("{}", text.escape_ascii()),
                Err(error) => one_line(error.as_ref()),
            }
        };
        for (text, mode, reason) in [
            (&b"0123456789abcde\n"[..], 0o600, "it has fewer than 16 characters; make one by:"),
            (b"", 0o600, "it has fewer than 16 characters"),
            (b"0123456789abcdef\n0123456789abcdef", 0o600, "it is not one line of ASCII"),
            (b"0123456789 abcdef", 0o600, "without spaces"),
            (b"0123456789abcdef\xff", 0o600, "it is not one line of ASCII"),
            (&[b'a'; LONGEST + 1], 0o600, "it has more than 4096 characters"),
            (b"0123456789abcdef", 0o644, "everyone may read it; try chmod o-r"),
            (b"0123456789abcdef", 0o602, "everyone may write it; try chmod o-w"),
        ] {
            let error = refused(text, mode);
            assert!(error.contains(reason) && error.contains(file.to_str().unwrap()), "{error}");
            assert!(!error.contains("0123"), "{error}");
        }
        fs::write(&file, "0123456789abcdef\n").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(Token::read(&file).is_ok());
        fs::remove_file(&file).unwrap();
        let error = one_line(Token::read(&file).err().unwrap().as_ref());
        assert!(error.ends_with("No such file or directory (os error 2)"), "{error}");
    }
}
