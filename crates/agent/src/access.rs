//! Who may ask for the metrics, and how: TLS with a certificate, and a token.
//!
//! What files had is kept until they are read again. The one invariant: a connection has the access of when it was accepted,
//! whole; files that are wrong change none of it.

mod certificate;
mod token;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use hyper::HeaderMap;
use tokio_rustls::TlsAcceptor;

use self::certificate::Certificate;
use self::token::Token;
use crate::settings::Settings;

/// How clients get in.
#[derive(Default)]
pub(crate) struct Access {
    certificate: Option<Certificate>,
    token: Option<Token>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It has no token.
    NoToken,
    /// It has another one.
    WrongToken,
}

impl Access {
    /// That of the files that the settings name.
    ///
    /// # Errors
    /// A file cannot be read or is not valid, a certificate does not hold now, or the key is another one's.
    pub(crate) fn read(settings: &Settings) -> Result<Self> {
        Ok(Self {
            certificate: settings.tls.as_ref().map(Certificate::read).transpose()?,
            token: settings.token_file.as_deref().map(Token::read).transpose()?,
        })
    }

    /// What accepts connections of TLS, where that is wanted.
    pub(crate) fn tls(&self) -> Option<&TlsAcceptor> {
        self.certificate.as_ref().map(Certificate::acceptor)
    }

    /// When the certificate expires, since the epoch.
    pub(crate) fn expiry(&self) -> Option<Duration> {
        self.certificate.as_ref().map(Certificate::expiry)
    }

    /// Whether files are to be read again.
    pub(crate) fn has_files(&self) -> bool {
        self.certificate.is_some() || self.token.is_some()
    }

    /// # Errors
    /// A request with these headers is not to be answered.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        self.token.as_ref().map_or(Ok(()), |token| token.check(headers))
    }
}

/// The access as it is now, for the thread that serves and the one that reads files again.
pub(crate) struct Door(Mutex<Arc<Access>>);

impl Door {
    pub(crate) fn new(access: Access) -> Self {
        Self(Mutex::new(Arc::new(access)))
    }

    pub(crate) fn access(&self) -> Arc<Access> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on, connections have another one.
    pub(crate) fn set(&self, access: Access) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(access);
    }
}
