//! The requests to a process of a crew, and its answers: two words each, over a socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use iotomy_host::Skip;

/// Bytes of a request, and of an answer: two words.
const WORDS: usize = 16;

/// The first word of an answer if the round failed; the second word is the length of the reason,
/// which follows.
const FAILED: u64 = u64::MAX;

/// Requests a round; returns its CPU time and wall time.
pub(super) fn ask(mut line: &UnixStream, request: [u64; 2]) -> io::Result<(f64, f64)> {
    line.write_all(&words(request))?;
    match read(&mut line)? {
        [FAILED, length] => {
            let mut reason = String::new();
            line.take(length).read_to_string(&mut reason)?;
            Err(io::Error::other(reason))
        }
        [cpu, wall] => Ok((f64::from_bits(cpu), f64::from_bits(wall))),
    }
}

/// The process's side: sets up its state, and makes a round for each request, until one fails or
/// the line ends.
pub(super) fn answer<S>(
    line: &mut UnixStream,
    prepare: impl FnOnce() -> Result<S, Skip>,
    mut round: impl FnMut(&mut S, [u64; 2]) -> Result<(f64, f64), Skip>,
) -> io::Result<()> {
    let answered = |line: &mut UnixStream| -> Result<io::Result<()>, Skip> {
        let mut state = prepare()?;
        loop {
            let request = match read(line) {
                Ok(request) => request,
                Err(error) => return Ok(Err(error)),
            };
            let (cpu, wall) = round(&mut state, request)?;
            if let Err(error) = line.write_all(&words([cpu.to_bits(), wall.to_bits()])) {
                return Ok(Err(error));
            }
        }
    };
    match answered(line) {
        Ok(ended) => ended,
        Err(Skip(reason)) => {
            line.write_all(&words([FAILED, reason.len() as u64]))?;
            line.write_all(reason.as_bytes())
        }
    }
}

fn words(of: [u64; 2]) -> [u8; WORDS] {
    let mut bytes = [0; WORDS];
    bytes[..8].copy_from_slice(&of[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&of[1].to_ne_bytes());
    bytes
}

fn read(line: &mut impl Read) -> io::Result<[u64; 2]> {
    let mut bytes = [[0; 8]; 2];
    line.read_exact(bytes.as_flattened_mut())?;
    Ok(bytes.map(u64::from_ne_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_two_figures_or_the_reason_why_there_is_none() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let member = std::thread::spawn(move || {
            answer(
                &mut theirs,
                || Ok(0.5),
                |state, [one, other]| match other {
                    0 => Err(Skip("nothing to do".to_owned())),
                    _ => Ok((*state * one as f64, other as f64)),
                },
            )
        });
        assert_eq!(ask(&ours, [3, 4]).unwrap(), (1.5, 4.0));
        assert_eq!(ask(&ours, [3, 0]).unwrap_err().to_string(), "nothing to do");
        assert!(member.join().unwrap().is_ok());
    }
}
