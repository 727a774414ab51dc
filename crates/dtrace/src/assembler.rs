//! BPF instructions under way: jumps to labels ahead, and what of it can be reached.

/// A `struct bpf_insn`, as the kernel has it in memory on a little-endian machine.
pub type Instruction = u64;

/// The register that is scratch, and has a function's result.
pub(crate) const SCRATCH: u8 = 0;

/// The most instructions, by the reach of a jump.
pub(crate) const MOST_INSTRUCTIONS: usize = 1 << 15;

/// Operation codes of the kernel's `bpf.h`, of 64 bits.
pub(crate) mod code {
    pub(crate) const ADD: u8 = 0x00;
    pub(crate) const SUB: u8 = 0x10;
    pub(crate) const MUL: u8 = 0x20;
    pub(crate) const DIV: u8 = 0x30;
    pub(crate) const OR: u8 = 0x40;
    pub(crate) const AND: u8 = 0x50;
    pub(crate) const LSH: u8 = 0x60;
    pub(crate) const RSH: u8 = 0x70;
    pub(crate) const NEG: u8 = 0x80;
    pub(crate) const MOD: u8 = 0x90;
    pub(crate) const XOR: u8 = 0xa0;
    pub(crate) const MOV: u8 = 0xb0;
    pub(crate) const ARSH: u8 = 0xc0;

    pub(crate) const JA: u8 = 0x00;
    pub(crate) const JEQ: u8 = 0x10;
    pub(crate) const JGT: u8 = 0x20;
    pub(crate) const JGE: u8 = 0x30;
    pub(crate) const JNE: u8 = 0x50;
    pub(crate) const JSGT: u8 = 0x60;
    pub(crate) const JSGE: u8 = 0x70;
    pub(crate) const JLT: u8 = 0xa0;
    pub(crate) const JLE: u8 = 0xb0;
    pub(crate) const JSLT: u8 = 0xc0;
    pub(crate) const JSLE: u8 = 0xd0;

    pub(crate) const ALU: u8 = 0x07;
    pub(crate) const JUMP: u8 = 0x05;
    pub(crate) const BY_REGISTER: u8 = 0x08;
    pub(crate) const EXIT: u8 = 0x95;
    pub(crate) const LOAD: u8 = 0x79;
    pub(crate) const LOAD_BYTE: u8 = 0x71;
    pub(crate) const LOAD_32: u8 = 0x61;
    pub(crate) const STORE: u8 = 0x7b;
    pub(crate) const STORE_NUMBER_32: u8 = 0x62;
    pub(crate) const CALL: u8 = 0x85;
    pub(crate) const TO_BIG_ENDIAN: u8 = 0xdc;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Label(usize);

#[derive(Debug, Clone, Copy)]
enum Step {
    Done(Instruction),
    /// To be given the distance to a label.
    Jump(Instruction, Label),
    /// To be given the distance to a function, whose first instruction has this number.
    Call(usize),
}

/// Instructions with labels.
#[derive(Debug, Default)]
pub(crate) struct Code {
    steps: Vec<Step>,
    /// Where each label is.
    labels: Vec<Option<usize>>,
}

pub(crate) fn instruction(
    operation: u8,
    to: u8,
    from: u8,
    offset: i16,
    number: i32,
) -> Instruction {
    u64::from(operation)
        | u64::from(to | from << 4) << 8
        | u64::from(offset as u16) << 16
        | u64::from(number as u32) << 32
}

impl Code {
    /// How many instructions there are so far.
    pub(crate) fn length(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub(crate) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.steps.len());
    }

    pub(crate) fn push(&mut self, operation: u8, to: u8, from: u8, offset: i16, number: i32) {
        self.steps.push(Step::Done(instruction(operation, to, from, offset, number)));
    }

    pub(crate) fn jump(&mut self, operation: u8, register: u8, number: i32, to: Label) {
        let operation = operation | code::JUMP;
        self.steps.push(Step::Jump(instruction(operation, register, 0, 0, number), to));
    }

    pub(crate) fn jump_by(&mut self, operation: u8, left: u8, right: u8, to: Label) {
        let operation = operation | code::JUMP | code::BY_REGISTER;
        self.steps.push(Step::Jump(instruction(operation, left, right, 0, 0), to));
    }

    pub(crate) fn operate(&mut self, operation: u8, to: u8, from: u8) {
        self.push(operation | code::ALU | code::BY_REGISTER, to, from, 0, 0);
    }

    pub(crate) fn operate_on(&mut self, operation: u8, to: u8, number: i32) {
        self.push(operation | code::ALU, to, 0, 0, number);
    }

    /// A number of 64 bits by its halves: the one instruction for it takes two places, of which
    /// the second is none to the kernel's line numbers.
    pub(crate) fn number(&mut self, to: u8, number: i64) {
        if let Ok(short) = i32::try_from(number) {
            return self.operate_on(code::MOV, to, short);
        }
        // The lower half is added with its sign.
        let low = number as i32;
        self.operate_on(code::MOV, to, (number.wrapping_sub(i64::from(low)) >> 32) as i32);
        self.operate_on(code::LSH, to, 32);
        if low != 0 {
            self.operate_on(code::ADD, to, low);
        }
    }

    /// Calls the function whose first instruction has this number in the section.
    pub(crate) fn call(&mut self, function: usize) {
        self.steps.push(Step::Call(function));
    }

    /// The place a jump goes to; labels are all ahead of it.
    fn target(&self, label: Label) -> usize {
        self.labels[label.0].unwrap_or(self.steps.len())
    }

    /// Which instructions can be come to: the verifier refuses others, as constants leave them.
    fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.steps.len() + 1];
        reached[0] = true;
        for (at, step) in self.steps.iter().enumerate() {
            if !reached[at] {
                continue;
            }
            let goes_on = match step {
                Step::Done(instruction) => *instruction as u8 != code::EXIT,
                Step::Call(_) => true,
                Step::Jump(instruction, to) => {
                    let to = self.target(*to);
                    reached[to] = true;
                    *instruction as u8 != code::JA | code::JUMP
                }
            };
            reached[at + 1] |= goes_on;
        }
        reached
    }

    /// The instructions, of which the first has this number in its section; the error is their
    /// number, if there are more than `most`.
    pub(crate) fn finished(self, start: usize, most: usize) -> Result<Vec<Instruction>, usize> {
        let reached = self.reached();
        let mut places = Vec::with_capacity(reached.len());
        let mut length = 0;
        for is_reached in &reached {
            places.push(length);
            length += usize::from(*is_reached);
        }
        length = places[self.steps.len()];
        if length > most.min(MOST_INSTRUCTIONS) {
            return Err(length);
        }
        let steps = self.steps.iter().enumerate().filter(|(at, _)| reached[*at]);
        let place = |(at, step): (usize, &Step)| match step {
            Step::Done(instruction) => *instruction,
            Step::Jump(instruction, to) => {
                // From the one behind the jump.
                let distance = places[self.target(*to)] - places[at] - 1;
                instruction | u64::from(distance as u16) << 16
            }
            Step::Call(function) => {
                // The kernel counts from the one behind the call, too.
                let distance = *function as i64 - (start + places[at] + 1) as i64;
                instruction(code::CALL, 0, 1, 0, distance as i32)
            }
        };
        Ok(steps.map(place).collect())
    }
}
