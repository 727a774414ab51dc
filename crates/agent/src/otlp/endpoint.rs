//! Where pushes go.

use std::fmt;

use hyper::Uri;

/// Behind the URL of a collector, where it takes metrics.
const SIGNAL: &str = "/v1/metrics";

/// The URL of a collector, which takes metrics over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// As a name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// As the header `Host` has it.
    pub(crate) authority: String,
    /// With [`SIGNAL`].
    pub(crate) path: String,
}

impl Endpoint {
    /// The endpoint of a URL.
    ///
    /// # Errors
    /// It is no URL of HTTP, or has what is not supported.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a URL, as in http://127.0.0.1:4318";
        let invalid = |_| format!("invalid URL: {EXPECTED}");
        let url: Uri = text.parse().map_err(invalid)?;
        match url.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(String::from(
                    "https is not supported: the agent has no TLS; push to a collector on this machine by http, which \
                     forwards the metrics",
                ));
            }
            _ => return Err(format!("invalid URL: {EXPECTED}")),
        }
        let authority = url.authority().ok_or_else(|| format!("invalid URL: {EXPECTED}"))?;
        if authority.as_str().contains('@') {
            return Err(String::from(
                "a URL with a user is not supported: leave out what is before @",
            ));
        }
        if url.query().is_some() || text.contains('#') {
            return Err(String::from("a URL with ? or # is not supported"));
        }
        let base = url.path().trim_end_matches('/');
        if base.ends_with(SIGNAL) {
            return Err(format!("leave out {SIGNAL}: the agent adds it"));
        }
        let name = authority.host();
        // `Authority::port` has none for a port beyond the range, as for a missing one.
        let port = match authority.as_str()[name.len()..].strip_prefix(':') {
            None => Some(80),
            Some(port) => port.parse().ok().filter(|port| *port != 0),
        };
        let host = name.trim_start_matches('[').trim_end_matches(']');
        let Some(port) = port.filter(|_| !host.is_empty()) else {
            return Err(format!("invalid URL: {EXPECTED}"));
        };
        Ok(Self {
            host: host.to_owned(),
            port,
            authority: authority.as_str().to_owned(),
            path: format!("{base}{SIGNAL}"),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "http://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_taken_below_the_url() {
        for (text, host, port, path) in [
            ("http://127.0.0.1:4318", "127.0.0.1", 4318, "/v1/metrics"),
            ("http://localhost/", "localhost", 80, "/v1/metrics"),
            ("http://[::1]:4318", "::1", 4318, "/v1/metrics"),
            ("HTTP://collector:9090/api/v1/otlp/", "collector", 9090, "/api/v1/otlp/v1/metrics"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!((&*endpoint.host, endpoint.port, &*endpoint.path), (host, port, path));
            assert!(endpoint.to_string().ends_with(path), "{endpoint}");
        }
    }

    #[test]
    fn what_is_no_such_url_is_refused_with_what_to_do() {
        for (text, what) in [
            ("https://127.0.0.1:4318", "the agent has no TLS; push to a collector on this machine"),
            ("127.0.0.1:4318", "as in http://127.0.0.1:4318"),
            ("grpc://127.0.0.1:4317", "as in http://127.0.0.1:4318"),
            ("/v1/metrics", "as in http://127.0.0.1:4318"),
            ("", "as in http://127.0.0.1:4318"),
            ("http://", "as in http://127.0.0.1:4318"),
            ("http://:4318", "as in http://127.0.0.1:4318"),
            ("http://a:0", "as in http://127.0.0.1:4318"),
            ("http://a:70000", "as in http://127.0.0.1:4318"),
            ("http://a b", "as in http://127.0.0.1:4318"),
            ("http://a\u{1b}[31m", "as in http://127.0.0.1:4318"),
            ("http://me:secret@a", "leave out what is before @"),
            ("http://a?b", "with ? or #"),
            ("http://a/v1/metrics", "leave out /v1/metrics: the agent adds it"),
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
            assert!(!error.contains("secret") && !error.contains('\u{1b}'), "{error}");
        }
    }
}
