//! The certificate of the agent, with its key, as two files in PEM form.
//!
//! Files that would make every client fail are refused when they are read: those of which the key is another one's, or
//! that do not hold now.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use iotomy_host::rfc3339;
use iotomy_record::path_text;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, ServerConfig};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode;

use crate::settings::TlsFiles;
use crate::trusted;

/// The protocol that is spoken inside.
const PROTOCOL: &[u8] = b"http/1.1";

/// A certificate that holds.
pub(super) struct Certificate {
    acceptor: TlsAcceptor,
    expiry: Duration,
}

impl Certificate {
    /// That of these files.
    ///
    /// # Errors
    /// One of them cannot be read or has no such thing, the key is of another certificate, or that does not hold now.
    pub(super) fn read(files: &TlsFiles) -> Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let chain = chain(&files.certificate)?;
        let shown = path_text(&files.certificate);
        let expiry = expiry(&chain[0], now)
            .with_context(|| format!("cannot use the certificate {shown}"))?;
        let key = key(&files.key)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("cannot set TLS up")?
            .with_no_client_auth()
            .with_single_cert(chain, key);
        let mut config = config.map_err(|error| match error {
            Error::InconsistentKeys(_) => anyhow!(
                "the key {} is not that of the certificate {shown}, or the agent's own certificate is not the first one \
                 there",
                path_text(&files.key)
            ),
            error => anyhow!("cannot use the certificate {shown} with its key: {error}"),
        })?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), expiry })
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// When it expires, since the epoch.
    pub(super) fn expiry(&self) -> Duration {
        self.expiry
    }
}

/// The certificates of a file: one at least.
fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let shown = path_text(path);
    let text = trusted::read(path).map_err(|error| unreadable(error, "certificate", &shown))?;
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| anyhow!("invalid certificate {shown}: {error}"))?;
    if chain.is_empty() {
        bail!(
            "there is no certificate in {shown}: expected PEM, which begins with -----BEGIN CERTIFICATE-----"
        );
    }
    Ok(chain)
}

/// The first private key of a file.
fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let shown = path_text(path);
    let text = trusted::read_secret(path).map_err(|error| unreadable(error, "key", &shown))?;
    let has = |part: &str| text.windows(part.len()).any(|at| at == part.as_bytes());
    if has("ENCRYPTED") {
        bail!(
            "the key {shown} is encrypted, and nobody could be asked for its password; decrypt it by: openssl pkey -in \
             FILE -out FILE"
        );
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => anyhow!(
            "there is no private key in {shown}: expected PEM, which begins with -----BEGIN PRIVATE KEY-----"
        ),
        error => anyhow!("invalid key {shown}: {error}"),
    })
}

fn unreadable(error: std::io::Error, what: &str, shown: &str) -> anyhow::Error {
    match trusted::distrust(&error) {
        Some(reason) => anyhow!("cannot use the {what} {shown}: {reason}"),
        None => anyhow::Error::new(error).context(format!("cannot read the {what} {shown}")),
    }
}

/// When a certificate that holds now expires.
fn expiry(certificate: &CertificateDer<'_>, now: Duration) -> Result<Duration> {
    // As lenient as clients: how its names are encoded is theirs to judge.
    let parsed = CertificateInner::<Raw>::from_der(certificate)
        .map_err(|error| anyhow!("it is not valid: {error}"))?;
    let validity = parsed.tbs_certificate().validity();
    let [begin, end] =
        [validity.not_before, validity.not_after].map(|time| time.to_unix_duration());
    let text = |time: Duration| rfc3339(SystemTime::UNIX_EPOCH + time);
    if now > end {
        bail!("it expired at {}", text(end));
    }
    if now < begin {
        bail!("it is valid from {} on", text(begin));
    }
    Ok(end)
}

#[cfg(test)]
#[path = "certificate_tests.rs"]
mod tests;
