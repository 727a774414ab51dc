//! `GET /metrics`, and nothing else, to those that may ask (`access`); pushes to a collector go on beside it.
//!
//! The one invariant: no client holds the server up. A connection has one request and a time for it ([`Patience`]), its
//! handshake of TLS included; there are at most [`MOST`], and one more is closed at once. What a client sends beyond the head of
//! its request is not read.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::access::{Access, Door, Refusal};
use crate::desk::{Desk, Form};
use crate::exposition;
use crate::otlp::{Endpoint, keep_pushing};

/// Connections at a time.
pub const MOST: usize = 64;

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For the head of its request.
    head: Duration,
    /// For all, with the answer.
    whole: Duration,
}

impl Patience {
    pub(crate) const USUAL: Self =
        Self { head: Duration::from_secs(5), whole: Duration::from_secs(30) };
}

/// The longest head of a request, in bytes: the least that the HTTP crate takes.
const LONGEST: usize = 8 << 10;

/// How long it waits after an error of `accept`, as when there is no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// Where metrics are.
pub const PATH: &str = "/metrics";

/// What serves.
pub(crate) struct Server {
    pub(crate) listener: TcpListener,
    pub(crate) desk: Arc<Desk>,
    pub(crate) door: Arc<Door>,
    pub(crate) patience: Patience,
    /// Where pushes go, and how often.
    pub(crate) pushed: Option<(Endpoint, Duration)>,
}

impl Server {
    /// Serves from a thread of its own, to the end of the process.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn start(self) -> io::Result<JoinHandle<()>> {
        let Self { listener, desk, door, patience, pushed } = self;
        let runtime: Runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = {
            let _inside = runtime.enter();
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)?
        };
        if let Some((endpoint, every)) = pushed {
            runtime.spawn(keep_pushing(desk.clone(), endpoint, every));
        }
        let serve = move || runtime.block_on(accept(listener, desk, door, patience));
        std::thread::Builder::new().name(String::from("server")).spawn(serve)
    }
}

async fn accept(
    listener: tokio::net::TcpListener,
    desk: Arc<Desk>,
    door: Arc<Door>,
    patience: Patience,
) {
    let places = Arc::new(Semaphore::new(MOST));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let access = door.access();
        let Ok(place) = places.clone().try_acquire_owned() else {
            Desk::count(&desk.refused);
            // Before a handshake, TLS has no answer.
            close(stream, if access.tls().is_some() { b"" } else { FULL });
            continue;
        };
        let desk = desk.clone();
        tokio::spawn(async move {
            let served = connection(stream, &access, &desk, patience);
            if !matches!(timeout(patience.whole, served).await, Ok(Ok(()))) {
                Desk::count(&desk.cut);
            }
            drop(place);
        });
    }
}

const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

const NO_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 40\r\nconnection: close\r\n\r\nthis port speaks TLS: ask by https://...\n";

/// Closes a connection, with an answer where the socket takes it at once.
fn close(stream: TcpStream, answer: &[u8]) {
    let _ = stream.try_write(answer);
    // Dropped here, it is closed.
    if let Ok(stream) = stream.into_std() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

type Failure = Box<dyn Error + Send + Sync>;

/// # Errors
/// The client was too slow, or sent what is not valid.
async fn connection(
    stream: TcpStream,
    access: &Access,
    desk: &Arc<Desk>,
    patience: Patience,
) -> Result<(), Failure> {
    let Some(tls) = access.tls() else {
        return exchange(stream, access, desk, patience).await;
    };
    let stream = timeout(patience.head, handshake(stream, tls)).await??;
    exchange(stream, access, desk, patience).await
}

/// The type of the first record of TLS.
const HANDSHAKE: u8 = 22;

/// Begins TLS. A client that speaks HTTP without it is told so, in its own language.
async fn handshake(stream: TcpStream, tls: &TlsAcceptor) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    if stream.peek(&mut first).await? > 0 && first != [HANDSHAKE] {
        // With bytes that are unread, the kernel would reset the connection, and the answer be lost.
        let _ = stream.try_read(&mut [0; LONGEST]);
        close(stream, NO_TLS);
        return Err(io::ErrorKind::InvalidData.into());
    }
    tls.accept(stream).await
}

/// A request and its answer.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    access: &Access,
    desk: &Arc<Desk>,
    patience: Patience,
) -> Result<(), Failure> {
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(answer(&request, access, desk).await)
    });
    let serving = http1::Builder::new()
        .keep_alive(false)
        // A client that has sent its request may close its side.
        .half_close(true)
        .max_buf_size(LONGEST)
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .serve_connection(TokioIo::new(stream), service);
    Ok(serving.await?)
}

async fn answer(
    request: &Request<Incoming>,
    access: &Access,
    desk: &Desk,
) -> Response<Full<Bytes>> {
    if let Err(refusal) = access.check(request.headers()) {
        Desk::count(&desk.unauthorized);
        return unauthorized(refusal);
    }
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, format!("not found: metrics are at {PATH}\n"));
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, String::from("use GET\n"));
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match desk.ask(Form::Text).await {
        Ok(Ok(text)) => {
            let mut metrics = Response::new(Full::new(text));
            let kind = HeaderValue::from_static(exposition::CONTENT_TYPE);
            metrics.headers_mut().insert(CONTENT_TYPE, kind);
            metrics
        }
        Ok(Err(reason)) => plain(StatusCode::INTERNAL_SERVER_ERROR, reason + "\n"),
        Err(_) => plain(StatusCode::SERVICE_UNAVAILABLE, String::from("the agent is ending\n")),
    }
}

/// The answer to a request without the token, whatever it is for: as RFC 6750 has it.
fn unauthorized(refusal: Refusal) -> Response<Full<Bytes>> {
    let (challenge, text) = match refusal {
        Refusal::NoToken => {
            (r#"Bearer realm="iotomy-agent""#, "send the token: Authorization: Bearer TOKEN\n")
        }
        Refusal::WrongToken => (
            r#"Bearer realm="iotomy-agent", error="invalid_token""#,
            "this is not the token of the agent\n",
        ),
    };
    let mut refused = plain(StatusCode::UNAUTHORIZED, String::from(text));
    refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    refused
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// What a counter of the server has.
pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
