//! Tests of the server: places, and clients that do not read.

use std::io::{Read, Write};
use std::net::TcpStream;

use iotomy_test_requirements::wait::until;

use super::*;

fn start(listener: TcpListener, desk: &Arc<Desk>, patience: Patience) {
    let door = Arc::new(Door::new(Access::default()));
    let server = Server { listener, desk: desk.clone(), door, patience, pushed: None };
    server.start().unwrap();
}

/// However long it takes to make them: those that have a place keep it for an hour.
#[test]
fn a_connection_without_a_place_is_closed_at_once_and_counted() {
    const HOUR: Duration = Duration::from_secs(3600);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let desk = Arc::new(Desk::new().unwrap());
    start(listener, &desk, Patience { head: HOUR, whole: HOUR });
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
    start(listener, &desk, patience);
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
