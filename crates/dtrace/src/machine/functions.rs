//! The functions of programs.

use super::clause::Running;
use super::memory::{bytes_at, text_at};
use super::{Machine, Value, paths};
use crate::form::{Fault, Register};
use crate::program::functions::Function;

impl Machine<'_> {
    pub(super) fn call(
        &mut self,
        function: Function,
        arguments: &[Register],
        running: &mut Running<'_>,
    ) -> Result<Value, Fault> {
        let most = self.options.strsize as usize - 1;
        let text = |at: usize| -> Vec<u8> {
            arguments.get(at).map_or(Vec::new(), |one| running.value(*one).text().to_vec())
        };
        let number = |at: usize| arguments.get(at).map(|one| running.integer(*one));
        let first = number(0).unwrap_or(0);
        let integer = |value: u64| Ok(Value::Integer(value));
        let fits = |text: Vec<u8>| match text.len() <= most {
            true => Ok(Value::Text(text)),
            false => Err(Fault::StringTooLong),
        };
        let user = &running.world.user;
        match function {
            Function::Strlen => integer(text(0).len() as u64),
            Function::Strjoin => fits([text(0), text(1)].concat()),
            Function::Basename => fits(paths::base(&text(0))),
            Function::Dirname => fits(paths::directory(&text(0))),
            Function::Cleanpath => fits(paths::clean(&text(0))),
            Function::Tolower => fits(text(0).to_ascii_lowercase()),
            Function::Toupper => fits(text(0).to_ascii_uppercase()),
            Function::Substr => {
                let length = number(2).map(u64::cast_signed);
                let from = number(1).unwrap_or(0).cast_signed();
                fits(part(&text(0), from, length))
            }
            Function::Index => {
                let from = number(2).map_or(0, u64::cast_signed);
                integer(first_place(&text(0), &text(1), from).cast_unsigned())
            }
            Function::Rindex => {
                let from = number(2).map(u64::cast_signed);
                integer(last_place(&text(0), &text(1), from).cast_unsigned())
            }
            Function::Strchr | Function::Strrchr => {
                let byte = number(1).unwrap_or(0) as u8;
                let text = text(0);
                let at = match function {
                    Function::Strchr => text.iter().position(|one| *one == byte),
                    _ => text.iter().rposition(|one| *one == byte),
                };
                fits(at.map_or(Vec::new(), |at| text[at..].to_vec()))
            }
            Function::Strstr => {
                let (text, sought) = (text(0), text(1));
                let at = first_place(&text, &sought, 0);
                fits(usize::try_from(at).map_or(Vec::new(), |at| text[at..].to_vec()))
            }
            Function::Strtok => {
                let separators = text(1);
                if let Some(Value::Text(text)) = arguments.first().map(|one| running.value(*one)) {
                    running.tokens = text.clone();
                }
                fits(token(&mut running.tokens, &separators))
            }
            Function::Strtoll => {
                let base = number(1).unwrap_or(10);
                if !(2..=36).contains(&base) {
                    return Err(Fault::IllegalOperation);
                }
                integer(read_number(&text(0), base as u32).cast_unsigned())
            }
            Function::Lltostr => {
                let value = first.cast_signed();
                match number(1).unwrap_or(10) {
                    10 => fits(value.to_string().into_bytes()),
                    16 => fits(format!("{:#x}", first).into_bytes()),
                    8 if first == 0 => fits(b"0".to_vec()),
                    8 => fits(format!("0{first:o}").into_bytes()),
                    2 => fits(format!("{first:b}").into_bytes()),
                    _ => Err(Fault::IllegalOperation),
                }
            }
            Function::Progenyof => {
                let is = running.world.descends(running.firing, first.cast_signed());
                integer(u64::from(is))
            }
            Function::Rand => {
                // Marsaglia's xorshift, so that runs are alike.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                integer(self.random & 0x7fff_ffff)
            }
            Function::Copyinstr => {
                let most = number(1).map_or(most, |bytes| most.min(bytes as usize));
                Ok(Value::Text(text_at(user, first, most)?))
            }
            Function::Copyin => {
                let bytes = bytes_at(user, first, length(number(1))?)?;
                running.allocate(bytes).map(Value::Integer)
            }
            Function::Copyinto => {
                let bytes = bytes_at(user, first, length(number(1))?)?;
                let place = number(2).unwrap_or(0);
                let at = running.scratch_at(place).ok_or(Fault::BadAddress(place))?;
                let to = running.scratch.get_mut(at..at + bytes.len());
                to.ok_or(Fault::BadAddress(place))?.copy_from_slice(&bytes);
                integer(0)
            }
            Function::Alloca => {
                let bytes = length(number(0))?;
                running.allocate(vec![0; bytes]).map(Value::Integer)
            }
            Function::InetNtoa => {
                let bytes = running.memory(first, 4)?;
                let parts: Vec<String> = bytes.iter().map(u8::to_string).collect();
                fits(parts.join(".").into_bytes())
            }
            Function::Htons | Function::Ntohs => integer(u64::from((first as u16).swap_bytes())),
            Function::Htonl | Function::Ntohl => integer(u64::from((first as u32).swap_bytes())),
            Function::Htonll | Function::Ntohll => integer(first.swap_bytes()),
        }
    }
}

/// A size in memory, which is bounded by the scratch memory anyway.
fn length(bytes: Option<u64>) -> Result<usize, Fault> {
    match bytes.unwrap_or(0) {
        bytes @ 0..=65_536 => Ok(bytes as usize),
        _ => Err(Fault::NoScratch),
    }
}

/// `substr`: a negative place counts from the end, a negative length leaves out what is behind.
fn part(text: &[u8], from: i64, length: Option<i64>) -> Vec<u8> {
    let whole = text.len() as i64;
    let mut remaining = length.unwrap_or(whole);
    let mut from = from;
    if from < 0 {
        from = from.saturating_add(whole);
        if from < 0 && from.saturating_add(remaining) > 0 {
            remaining += from;
            from = 0;
        }
    }
    if from < 0 || from >= whole {
        return Vec::new();
    }
    if remaining < 0 {
        remaining = remaining.saturating_add(whole - from).max(0);
    }
    let end = from.saturating_add(remaining).min(whole);
    text[from as usize..end as usize].to_vec()
}

/// `index`: the first place from one on, -1 without.
fn first_place(text: &[u8], sought: &[u8], from: i64) -> i64 {
    let from = usize::try_from(from.max(0)).unwrap_or(usize::MAX).min(text.len());
    if sought.is_empty() {
        return from as i64;
    }
    let found = text[from..].windows(sought.len()).position(|part| part == sought);
    found.map_or(-1, |at| (from + at) as i64)
}

/// `rindex`: the last place that is not behind one.
fn last_place(text: &[u8], sought: &[u8], from: Option<i64>) -> i64 {
    let last = text.len() as i64;
    let from = from.unwrap_or(last).min(last);
    if sought.is_empty() {
        return from.max(0);
    }
    if from < 0 || sought.len() > text.len() {
        return -1;
    }
    let starts = (0..=(from as usize).min(text.len() - sought.len())).rev();
    let found = starts.into_iter().find(|at| text[*at..].starts_with(sought));
    found.map_or(-1, |at| at as i64)
}

/// `strtok`: the next part without separators; empty where there is none.
fn token(rest: &mut Vec<u8>, separators: &[u8]) -> Vec<u8> {
    let start = rest.iter().position(|byte| !separators.contains(byte)).unwrap_or(rest.len());
    rest.drain(..start);
    let end = rest.iter().position(|byte| separators.contains(byte)).unwrap_or(rest.len());
    let token = rest.drain(..end).collect();
    if !rest.is_empty() {
        rest.remove(0);
    }
    token
}

/// `strtoll`: as far as there are digits.
fn read_number(text: &[u8], base: u32) -> i64 {
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    };
    let digits = match digits {
        [b'0', b'x' | b'X', rest @ ..] if base == 16 => rest,
        digits => digits,
    };
    let mut value = 0i64;
    for byte in digits {
        let Some(digit) = char::from(*byte).to_digit(base) else {
            break;
        };
        value = value.wrapping_mul(i64::from(base)).wrapping_add(i64::from(digit));
    }
    if is_negative { value.wrapping_neg() } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_strings_are_counted_from_either_end() {
        let text = |from, length| String::from_utf8(part(b"abcdef", from, length)).unwrap();
        assert_eq!(text(2, None), "cdef");
        assert_eq!(text(2, Some(2)), "cd");
        assert_eq!(text(-2, None), "ef");
        assert_eq!(text(-8, Some(4)), "ab");
        assert_eq!(text(1, Some(-2)), "bcd");
        assert_eq!(text(6, None), "");
        assert_eq!(text(0, Some(0)), "");
        assert_eq!(text(i64::MIN, Some(i64::MAX)), "abcde");
        assert_eq!(text(0, Some(i64::MIN)), "");
    }

    #[test]
    fn places_are_found_from_either_end() {
        assert_eq!(first_place(b"abcabc", b"bc", 0), 1);
        assert_eq!(first_place(b"abcabc", b"bc", 2), 4);
        assert_eq!(first_place(b"abcabc", b"x", 0), -1);
        assert_eq!(first_place(b"abc", b"", 9), 3);
        assert_eq!(last_place(b"abcabc", b"bc", None), 4);
        assert_eq!(last_place(b"abcabc", b"bc", Some(3)), 1);
        assert_eq!(last_place(b"abcabc", b"bc", Some(-1)), -1);
        assert_eq!(last_place(b"abc", b"abcd", None), -1);
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        assert_eq!(read_number(b"  -42x", 10), -42);
        assert_eq!(read_number(b"0x1f", 16), 31);
        assert_eq!(read_number(b"", 10), 0);
    }
}
