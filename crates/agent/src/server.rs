//! `GET /metrics`, and nothing else; pushes to a collector go on beside it.
//!
//! The one invariant: no client holds the server up. A connection has one request and a time for it ([`Patience`]);
//! there are at most [`MOST`], and one more is closed at once. What a client sends beyond the head of its request is not read.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

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

/// Serves from a thread of its own, to the end of the process, and pushes to a collector at such an interval.
///
/// # Errors
/// The kernel's error.
pub(crate) fn serve(
    listener: TcpListener,
    desk: Arc<Desk>,
    patience: Patience,
    pushed: Option<(Endpoint, Duration)>,
) -> io::Result<JoinHandle<()>> {
    let runtime: Runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let listener = {
        let _inside = runtime.enter();
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)?
    };
    if let Some((endpoint, every)) = pushed {
        runtime.spawn(keep_pushing(desk.clone(), endpoint, every));
    }
    let serve = move || runtime.block_on(accept(listener, desk, patience));
    std::thread::Builder::new().name(String::from("server")).spawn(serve)
}

async fn accept(listener: tokio::net::TcpListener, desk: Arc<Desk>, patience: Patience) {
    let places = Arc::new(Semaphore::new(MOST));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            refuse(stream, &desk);
            continue;
        };
        let desk = desk.clone();
        tokio::spawn(async move {
            connection(stream, &desk, patience).await;
            drop(place);
        });
    }
}

/// Closes a connection for which there is no place, with an answer where the socket takes it at once.
fn refuse(stream: TcpStream, desk: &Desk) {
    const ANSWER: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    Desk::count(&desk.refused);
    let _ = stream.try_write(ANSWER);
    // Dropped here, it is closed.
    if let Ok(stream) = stream.into_std() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

async fn connection(stream: TcpStream, desk: &Arc<Desk>, patience: Patience) {
    let service = service_fn(|request: Request<Incoming>| {
        let desk = desk.clone();
        async move { Ok::<_, Infallible>(answer(&request, &desk).await) }
    });
    let serving = http1::Builder::new()
        .keep_alive(false)
        // A client that has sent its request may close its side.
        .half_close(true)
        .max_buf_size(LONGEST)
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .serve_connection(TokioIo::new(stream), service);
    if !matches!(tokio::time::timeout(patience.whole, serving).await, Ok(Ok(()))) {
        Desk::count(&desk.cut);
    }
}

async fn answer(request: &Request<Incoming>, desk: &Desk) -> Response<Full<Bytes>> {
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
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use iotomy_test_requirements::wait::until;

    use super::*;

    /// However long it takes to make them: those that have a place keep it for an hour.
    #[test]
    fn a_connection_without_a_place_is_closed_at_once_and_counted() {
        const HOUR: Duration = Duration::from_secs(3600);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let desk = Arc::new(Desk::new().unwrap());
        serve(listener, desk.clone(), Patience { head: HOUR, whole: HOUR }, None).unwrap();
        let mut held: Vec<TcpStream> =
            (0..MOST).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut refused = TcpStream::connect(address).unwrap();
        let mut answer = Vec::new();
        refused.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 503"), "{}", String::from_utf8_lossy(&answer));
        assert_eq!((read(&desk.refused), read(&desk.cut)), (1, 0));
        // The first one has its place still: it is answered.
        held[0].write_all(b"GET /other HTTP/1.0\r\n\r\n").unwrap();
        answer.clear();
        held[0].read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.0 404"), "{}", String::from_utf8_lossy(&answer));
    }

    /// The answer is larger than what the kernel keeps of it: the first client has asked, and does not read.
    #[test]
    fn a_client_that_does_not_read_holds_nobody_up_and_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let desk = Arc::new(Desk::new().unwrap());
        let patience = Patience { whole: Duration::from_secs(10), ..Patience::USUAL };
        serve(listener, desk.clone(), patience, None).unwrap();
        let answers = desk.clone();
        std::thread::spawn(move || {
            let text = Bytes::from(vec![b'x'; 24 << 20]);
            loop {
                for (_, one) in answers.take() {
                    let _ = one.send(Ok(text.clone()));
                }
                std::thread::yield_now();
            }
        });
        let ask = || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            stream
        };
        let stalled = ask();
        let mut answer = Vec::new();
        ask().read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.0 200") && answer.len() > 24 << 20);
        until("it is cut off", || read(&desk.cut) == 1);
        drop(stalled);
    }
}
