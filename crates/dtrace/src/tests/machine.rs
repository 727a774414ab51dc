//! A machine for the emitted instructions, strict as the kernel's verifier is: no register is read
//! before it is written, no load leaves the facts, no jump goes back, and none is out of reach.

use crate::{Instruction, Outcome};

pub(crate) fn run(code: &[Instruction], facts: &[u64]) -> Outcome {
    assert_all_can_be_reached(code);
    // A register without a value is `None`; the facts are at 0 in their own address space.
    let mut registers: [Option<u64>; 11] = [None; 11];
    let mut at = 0;
    loop {
        let one = code[at];
        at += 1;
        let (operation, to) = (one as u8, usize::from((one >> 8) as u8 & 0xf));
        let from = usize::from((one >> 12) as u8 & 0xf);
        let offset = (one >> 16) as i16;
        let number = (one >> 32) as i32;
        let by_register = operation & 0x08 != 0;
        match operation & 0x07 {
            0x07 => {
                let with = match by_register {
                    true => registers[from].expect("a register that was written"),
                    false => i64::from(number).cast_unsigned(),
                };
                registers[to] = Some(match operation & 0xf0 {
                    0xb0 => with,
                    operation => {
                        let value = registers[to].expect("a register that was written");
                        calculated(operation, value, with)
                    }
                });
            }
            0x01 => {
                assert_eq!((operation, from), (0x79, 1), "a load of a fact");
                assert_eq!(offset % 8, 0);
                registers[to] = Some(facts[usize::try_from(offset).unwrap() / 8]);
            }
            0x05 if operation == 0x95 => {
                return match registers[0].expect("a result") {
                    0 => Outcome::False,
                    1 => Outcome::True,
                    2 => Outcome::DividedByZero,
                    other => panic!("{other} is no outcome"),
                };
            }
            0x05 => {
                assert!(offset >= 0, "a jump back");
                if operation == 0x05 || jumps(operation, to, from, number, &registers) {
                    at += usize::try_from(offset).unwrap();
                }
            }
            _ => panic!("{operation:#x} is no operation"),
        }
    }
}

fn jumps(operation: u8, to: usize, from: usize, number: i32, registers: &[Option<u64>]) -> bool {
    if to == 1 {
        assert_eq!((operation, number), (0x15, 0), "the facts are compared with 0 only");
        return false;
    }
    let left = registers[to].expect("a register that was written").cast_signed();
    let right = match operation & 0x08 != 0 {
        true => registers[from].expect("a register that was written").cast_signed(),
        false => i64::from(number),
    };
    match operation & 0xf0 {
        0x10 => left == right,
        0x50 => left != right,
        0x60 => left > right,
        0x70 => left >= right,
        0xc0 => left < right,
        0xd0 => left <= right,
        _ => panic!("{operation:#x} is no jump"),
    }
}

fn calculated(operation: u8, value: u64, with: u64) -> u64 {
    match operation {
        0x00 => value.wrapping_add(with),
        0x10 => value.wrapping_sub(with),
        0x20 => value.wrapping_mul(with),
        // As the kernel has them.
        0x30 => value.checked_div(with).unwrap_or(0),
        0x90 => value.checked_rem(with).unwrap_or(value),
        0x40 => value | with,
        0x50 => value & with,
        0xa0 => value ^ with,
        0x60 | 0x70 | 0xc0 => {
            assert!(with < 64, "a shift that is undefined");
            match operation {
                0x60 => value << with,
                0x70 => value >> with,
                _ => (value.cast_signed() >> with).cast_unsigned(),
            }
        }
        0x80 => value.wrapping_neg(),
        _ => panic!("{operation:#x} is no operation"),
    }
}

fn assert_all_can_be_reached(code: &[Instruction]) {
    let mut reached = vec![false; code.len()];
    reached[0] = true;
    for at in 0..code.len() {
        assert!(reached[at], "instruction {at} cannot be reached");
        let operation = code[at] as u8;
        if operation & 0x07 == 0x05 && operation != 0x95 {
            reached[at + 1 + usize::try_from((code[at] >> 16) as i16).unwrap()] = true;
        }
        if operation != 0x05 && operation != 0x95 {
            reached[at + 1] = true;
        }
    }
}
