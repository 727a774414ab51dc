//! One push: a POST to the collector, and what its answer means.
//!
//! The one invariant: an attempt ends. All of it, from the look-up of the host to the end of the answer, has one time
//! limit, and of an answer no more than [`LONGEST`] bytes are read.

use std::error::Error;
use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Endpoint;

/// The longest answer that is read, in bytes.
const LONGEST: usize = 64 << 10;

/// What came of it.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// The collector has it, but for so many points.
    Taken { rejected: u64, reason: String },
    /// It may be taken later: not before such a time, if the collector says so.
    Failed { reason: String, after: Option<Duration> },
    /// The same would not be taken later.
    Refused { reason: String },
}

/// How a collector says why: `google.rpc.Status`, as the specification has it.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

type Failure = Box<dyn Error + Send + Sync>;

/// Sends a message.
pub(super) async fn attempt(endpoint: &Endpoint, body: Bytes, patience: Duration) -> Outcome {
    match timeout(patience, post(endpoint, body)).await {
        Ok(Ok((answer, text))) => outcome(&answer, &text),
        Ok(Err(error)) => Outcome::Failed { reason: whole(&*error), after: None },
        Err(_) => {
            let reason = format!("no answer within {} s", patience.as_secs());
            Outcome::Failed { reason, after: None }
        }
    }
}

async fn post(endpoint: &Endpoint, body: Bytes) -> Result<(Response<()>, Bytes), Failure> {
    let stream = TcpStream::connect((&*endpoint.host, endpoint.port)).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with this attempt, whatever the other side does.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let request = Request::post(&endpoint.path)
        .header(HOST, &endpoint.authority)
        .header(CONTENT_TYPE, "application/x-protobuf")
        .header(USER_AGENT, concat!("iotomy-agent/", env!("CARGO_PKG_VERSION")))
        .header(CONNECTION, "close")
        .body(Full::new(body))?;
    let answer: Response<Incoming> = sender.send_request(request).await?;
    let (head, body) = answer.into_parts();
    let text = Limited::new(body, LONGEST).collect().await?.to_bytes();
    Ok((Response::from_parts(head, ()), text))
}

fn outcome(answer: &Response<()>, text: &[u8]) -> Outcome {
    let status = answer.status();
    if status.is_success() {
        let Ok(response) = ExportMetricsServiceResponse::decode(text) else {
            let reason =
                format!("the answer is {status}, but none of OTLP: is it a collector's URL?");
            return Outcome::Refused { reason };
        };
        let part = response.partial_success.unwrap_or_default();
        let rejected = part.rejected_data_points.unsigned_abs();
        return Outcome::Taken { rejected, reason: part.error_message };
    }
    let why = Status::decode(text).map(|status| status.message).unwrap_or_default();
    let why: String = why.chars().take(200).collect();
    let reason = if why.is_empty() { status.to_string() } else { format!("{status}: {why}") };
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => {
            let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            // One that is a date says less than the waits here do.
            let after = after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
            Outcome::Failed { reason, after }
        }
        _ => Outcome::Refused { reason },
    }
}

/// An error with what caused it; those of the kernel say it all.
fn whole(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source().filter(|_| !error.is::<io::Error>());
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsPartialSuccess;

    use super::*;

    fn of(status: u16, after: Option<&str>, text: &[u8]) -> Outcome {
        let mut answer = Response::builder().status(status);
        if let Some(after) = after {
            answer = answer.header(RETRY_AFTER, after);
        }
        outcome(&answer.body(()).unwrap(), text)
    }

    #[test]
    fn what_may_be_taken_later_is_what_the_specification_says() {
        for status in 300..600 {
            let is_failed = matches!(of(status, None, b""), Outcome::Failed { after: None, .. });
            assert_eq!(is_failed, [429, 502, 503, 504].contains(&status), "{status}");
            let is_refused = matches!(of(status, Some("7"), b""), Outcome::Refused { .. });
            assert_eq!(is_refused, !is_failed, "{status}");
        }
        for (text, seconds) in [
            ("7", Some(7)),
            ("0", Some(0)),
            ("-1", None),
            ("soon", None),
            ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ] {
            let Outcome::Failed { after, .. } = of(503, Some(text), b"") else { panic!("{text}") };
            assert_eq!(after, seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn an_answer_says_why_and_how_much() {
        let why = Status { message: String::from("no such tenant") }.encode_to_vec();
        let reason = String::from("400 Bad Request: no such tenant");
        assert_eq!(of(400, None, &why), Outcome::Refused { reason });
        let reason = String::from("400 Bad Request");
        assert_eq!(of(400, None, b"<html>"), Outcome::Refused { reason });
        let none = Outcome::Taken { rejected: 0, reason: String::new() };
        assert_eq!(of(200, None, b""), none);
        assert_eq!(of(204, None, b""), none);
        let reason = String::from("too old");
        let part =
            ExportMetricsPartialSuccess { rejected_data_points: 3, error_message: reason.clone() };
        let part = ExportMetricsServiceResponse { partial_success: Some(part) }.encode_to_vec();
        assert_eq!(of(200, None, &part), Outcome::Taken { rejected: 3, reason });
        let Outcome::Refused { reason } = of(200, None, b"<html>hello</html>") else { panic!() };
        assert!(reason.ends_with("is it a collector's URL?"), "{reason}");
    }
}
