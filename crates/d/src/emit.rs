//! A condition to BPF instructions: the body of a function that is passed the facts.
//!
//! `int f(const u64 *facts)`: 0 where the condition does not hold, 1 where it does, 2 where it
//! divided by zero. A fact is the word of its number, the word of matches is one more. There is no
//! loop, no call and no stack: `r1` is the facts, `r0` is scratch, and values under way are in `r2`
//! to `r9`. Of the two sides of an operator the one that needs more registers comes first, so eight
//! are enough for every tree but a contrived one.

use crate::ast::{Binary, Unary};
use crate::check::{Condition, Node};

/// A `struct bpf_insn`, as the kernel has it in memory on a little-endian machine.
pub type Instruction = u64;

/// Why a condition cannot be made into instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// More than there is room for.
    #[error(
        "the condition takes {0} instructions, of at most {1}; divide it among several runs, or use \
         patterns in place of lists"
    )]
    TooLong(usize, usize),
    /// More values under way than registers.
    #[error("the condition has too many values at a time; calculate fewer of them in parentheses")]
    TooDeep,
}

const FALSE: i32 = 0;
const TRUE: i32 = 1;
const DIVIDED_BY_ZERO: i32 = 2;

const FACTS: u8 = 1;
const SCRATCH: u8 = 0;
/// The registers of values.
const FIRST: u8 = 2;
const REGISTERS: usize = 8;

/// Operation codes of the kernel's `bpf.h`, of 64 bits.
mod code {
    pub(super) const ADD: u8 = 0x00;
    pub(super) const SUB: u8 = 0x10;
    pub(super) const MUL: u8 = 0x20;
    pub(super) const DIV: u8 = 0x30;
    pub(super) const OR: u8 = 0x40;
    pub(super) const AND: u8 = 0x50;
    pub(super) const LSH: u8 = 0x60;
    pub(super) const RSH: u8 = 0x70;
    pub(super) const NEG: u8 = 0x80;
    pub(super) const MOD: u8 = 0x90;
    pub(super) const XOR: u8 = 0xa0;
    pub(super) const MOV: u8 = 0xb0;
    pub(super) const ARSH: u8 = 0xc0;

    pub(super) const JA: u8 = 0x00;
    pub(super) const JEQ: u8 = 0x10;
    pub(super) const JNE: u8 = 0x50;
    pub(super) const JSGT: u8 = 0x60;
    pub(super) const JSGE: u8 = 0x70;
    pub(super) const JSLT: u8 = 0xc0;
    pub(super) const JSLE: u8 = 0xd0;

    pub(super) const ALU: u8 = 0x07;
    pub(super) const ALU_32: u8 = 0x04;
    pub(super) const JUMP: u8 = 0x05;
    pub(super) const BY_REGISTER: u8 = 0x08;
    pub(super) const EXIT: u8 = 0x95;
    pub(super) const LOAD: u8 = 0x79;
}

impl Condition {
    /// The instructions of the function; its facts are `words` words, the last of them that of
    /// matches.
    ///
    /// # Errors
    /// There are more than `most`, or the tree is too contrived.
    pub fn emit(&self, words: u16, most: usize) -> Result<Vec<Instruction>, EmitError> {
        let mut emitter = Emitter {
            matches: words.saturating_sub(1),
            code: Vec::new(),
            labels: vec![None],
            error: Label(0),
            divides: false,
        };
        let [no, end] = [emitter.label(), emitter.label()];
        // The verifier has a pointer that is passed to a function be checked.
        emitter.jump(code::JEQ, FACTS, 0, no);
        emitter.branch(&self.node, 0, false, no)?;
        emitter.number(SCRATCH, i64::from(TRUE));
        emitter.jump(code::JA, 0, 0, end);
        emitter.place(no);
        emitter.number(SCRATCH, i64::from(FALSE));
        if emitter.divides {
            emitter.jump(code::JA, 0, 0, end);
            emitter.place(emitter.error);
            emitter.number(SCRATCH, i64::from(DIVIDED_BY_ZERO));
        }
        emitter.place(end);
        emitter.push(code::EXIT, 0, 0, 0, 0);
        emitter.finished(most)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Label(usize);

#[derive(Clone, Copy)]
enum Step {
    Done(Instruction),
    /// To be given the distance to a label.
    Jump(Instruction, Label),
}

struct Emitter {
    matches: u16,
    code: Vec<Step>,
    /// Where each label is.
    labels: Vec<Option<usize>>,
    error: Label,
    divides: bool,
}

/// How many registers a value needs.
fn needs(node: &Node) -> usize {
    match node {
        Node::Constant(_) | Node::Fact(_) | Node::Matches(_) => 1,
        Node::Unary(_, of) => needs(of),
        Node::Binary(Binary::And | Binary::Or, left, right) => needs(left).max(needs(right)),
        Node::Binary(_, left, right) => match (needs(left), needs(right)) {
            (left, right) if left == right => left + 1,
            (left, right) => left.max(right),
        },
        Node::Conditional(condition, first, second) => {
            needs(condition).max(needs(first)).max(needs(second))
        }
    }
}

fn instruction(operation: u8, to: u8, from: u8, offset: i16, number: i32) -> Instruction {
    u64::from(operation)
        | u64::from(to | from << 4) << 8
        | u64::from(offset as u16) << 16
        | u64::from(number as u32) << 32
}

fn register(at: usize) -> Result<u8, EmitError> {
    if at < REGISTERS { Ok(FIRST + at as u8) } else { Err(EmitError::TooDeep) }
}

impl Emitter {
    fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    fn push(&mut self, operation: u8, to: u8, from: u8, offset: i16, number: i32) {
        self.code.push(Step::Done(instruction(operation, to, from, offset, number)));
    }

    fn jump(&mut self, operation: u8, register: u8, number: i32, to: Label) {
        let operation = operation | code::JUMP;
        self.code.push(Step::Jump(instruction(operation, register, 0, 0, number), to));
    }

    fn jump_by(&mut self, operation: u8, left: u8, right: u8, to: Label) {
        let operation = operation | code::JUMP | code::BY_REGISTER;
        self.code.push(Step::Jump(instruction(operation, left, right, 0, 0), to));
    }

    fn operate(&mut self, operation: u8, to: u8, from: u8) {
        self.push(operation | code::ALU | code::BY_REGISTER, to, from, 0, 0);
    }

    fn operate_on(&mut self, operation: u8, to: u8, number: i32) {
        self.push(operation | code::ALU, to, 0, 0, number);
    }

    /// A number of 64 bits by its halves: the one instruction for it takes two places, of which
    /// the second is none to the kernel's line numbers.
    fn number(&mut self, to: u8, number: i64) {
        if let Ok(short) = i32::try_from(number) {
            return self.operate_on(code::MOV, to, short);
        }
        self.operate_on(code::MOV, to, (number >> 32) as i32);
        self.operate_on(code::LSH, to, 32);
        if number as u32 != 0 {
            let half = number as u32 as i32;
            self.push(code::MOV | code::ALU_32, SCRATCH, 0, 0, half);
            self.operate(code::OR, to, SCRATCH);
        }
    }

    fn load(&mut self, to: u8, word: u16) {
        self.push(code::LOAD, to, FACTS, (word * 8) as i16, 0);
    }

    /// Has the value of a part in the register `at`, where those behind it are free.
    fn value(&mut self, node: &Node, at: usize) -> Result<(), EmitError> {
        let to = register(at)?;
        match node {
            Node::Constant(value) => self.number(to, *value),
            Node::Fact(fact) => self.load(to, *fact),
            Node::Matches(bit) => {
                self.load(to, self.matches);
                self.operate_on(code::RSH, to, i32::from(*bit));
                self.operate_on(code::AND, to, 1);
            }
            Node::Unary(Unary::Positive, of) => self.value(of, at)?,
            Node::Unary(Unary::Negative, of) => {
                self.value(of, at)?;
                self.operate_on(code::NEG, to, 0);
            }
            Node::Unary(Unary::Complement, of) => {
                self.value(of, at)?;
                self.operate_on(code::XOR, to, -1);
            }
            Node::Conditional(condition, first, second) => {
                let [otherwise, end] = [self.label(), self.label()];
                self.branch(condition, at, false, otherwise)?;
                self.value(first, at)?;
                self.jump(code::JA, 0, 0, end);
                self.place(otherwise);
                self.value(second, at)?;
                self.place(end);
            }
            Node::Binary(operator, left, right) if alu(*operator).is_some() => {
                self.arithmetic(*operator, left, right, at)?;
            }
            // Those of truth.
            Node::Unary(Unary::Not, _) | Node::Binary(..) => {
                let [no, end] = [self.label(), self.label()];
                self.branch(node, at, false, no)?;
                self.number(to, 1);
                self.jump(code::JA, 0, 0, end);
                self.place(no);
                self.number(to, 0);
                self.place(end);
            }
        }
        Ok(())
    }

    /// Has both sides in two registers from `at` on; which of them the left one is in, and the right.
    fn sides(&mut self, left: &Node, right: &Node, at: usize) -> Result<(u8, u8), EmitError> {
        let (low, high) = (register(at)?, register(at + 1)?);
        if needs(left) >= needs(right) {
            self.value(left, at)?;
            self.value(right, at + 1)?;
            return Ok((low, high));
        }
        self.value(right, at)?;
        self.value(left, at + 1)?;
        Ok((high, low))
    }

    fn arithmetic(
        &mut self,
        operator: Binary,
        left: &Node,
        right: &Node,
        at: usize,
    ) -> Result<(), EmitError> {
        let (l, r) = self.sides(left, right, at)?;
        match operator {
            Binary::Divide | Binary::Remainder => self.divide(operator, l, r),
            Binary::ShiftLeft | Binary::ShiftRight => {
                self.operate_on(code::AND, r, 63);
                self.operate(alu(operator).unwrap_or(code::LSH), l, r);
            }
            _ => self.operate(alu(operator).unwrap_or(code::ADD), l, r),
        }
        if l != register(at)? {
            self.operate(code::MOV, register(at)?, l);
        }
        Ok(())
    }

    /// The kernel's division knows no sign: of the values without theirs, and then the sign.
    fn divide(&mut self, operator: Binary, left: u8, right: u8) {
        self.divides = true;
        self.jump(code::JEQ, right, 0, self.error);
        self.operate(code::MOV, SCRATCH, left);
        if operator == Binary::Divide {
            self.operate(code::XOR, SCRATCH, right);
        }
        self.negate_unless_positive(left, left);
        self.negate_unless_positive(right, right);
        self.operate(alu(operator).unwrap_or(code::DIV), left, right);
        self.negate_unless_positive(SCRATCH, left);
    }

    fn negate_unless_positive(&mut self, sign: u8, value: u8) {
        let end = self.label();
        self.jump(code::JSGE, sign, 0, end);
        self.operate_on(code::NEG, value, 0);
        self.place(end);
    }

    /// Goes to a label if the truth of a part is `is_true`, else on.
    fn branch(
        &mut self,
        node: &Node,
        at: usize,
        is_true: bool,
        to: Label,
    ) -> Result<(), EmitError> {
        match node {
            Node::Constant(value) => {
                if (*value != 0) == is_true {
                    self.jump(code::JA, 0, 0, to);
                }
            }
            Node::Unary(Unary::Not, of) => self.branch(of, at, !is_true, to)?,
            Node::Binary(operator @ (Binary::And | Binary::Or), left, right) => {
                // Whether the left side alone can lead there.
                if (*operator == Binary::Or) == is_true {
                    self.branch(left, at, is_true, to)?;
                    self.branch(right, at, is_true, to)?;
                } else {
                    let end = self.label();
                    self.branch(left, at, !is_true, end)?;
                    self.branch(right, at, is_true, to)?;
                    self.place(end);
                }
            }
            Node::Binary(Binary::Xor, left, right) => {
                let (l, r) = self.sides(&truth(left), &truth(right), at)?;
                self.jump_by(if is_true { code::JNE } else { code::JEQ }, l, r, to);
            }
            Node::Binary(operator, left, right) if comparison(*operator).is_some() => {
                let (yes, no) = comparison(*operator).unwrap_or((code::JNE, code::JEQ));
                let jump = if is_true { yes } else { no };
                if let Node::Constant(value) = **right
                    && let Ok(short) = i32::try_from(value)
                {
                    self.value(left, at)?;
                    self.jump(jump, register(at)?, short, to);
                } else {
                    let (l, r) = self.sides(left, right, at)?;
                    self.jump_by(jump, l, r, to);
                }
            }
            _ => {
                self.value(node, at)?;
                self.jump(if is_true { code::JNE } else { code::JEQ }, register(at)?, 0, to);
            }
        }
        Ok(())
    }

    /// The place a jump goes to; labels are all ahead of it.
    fn target(&self, label: Label) -> usize {
        self.labels[label.0].unwrap_or(self.code.len())
    }

    /// Which instructions can be come to: the verifier refuses others, as constants leave them.
    fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.code.len() + 1];
        reached[0] = true;
        for (at, step) in self.code.iter().enumerate() {
            if !reached[at] {
                continue;
            }
            let goes_on = match step {
                Step::Done(instruction) => *instruction as u8 != code::EXIT,
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

    fn finished(self, most: usize) -> Result<Vec<Instruction>, EmitError> {
        let reached = self.reached();
        let mut places = Vec::with_capacity(reached.len());
        let mut length = 0;
        for is_reached in &reached {
            places.push(length);
            length += usize::from(*is_reached);
        }
        length = places[self.code.len()];
        if length > most.min(1 << 15) {
            return Err(EmitError::TooLong(length, most));
        }
        let steps = self.code.iter().enumerate().filter(|(at, _)| reached[*at]);
        let place = |(at, step): (usize, &Step)| match step {
            Step::Done(instruction) => *instruction,
            Step::Jump(instruction, to) => {
                // From the one behind the jump.
                let distance = places[self.target(*to)] - places[at] - 1;
                instruction | u64::from(distance as u16) << 16
            }
        };
        Ok(steps.map(place).collect())
    }
}

/// A value to 0 or 1.
fn truth(node: &Node) -> Node {
    Node::Binary(Binary::NotEqual, node.clone().into(), Node::Constant(0).into())
}

fn alu(operator: Binary) -> Option<u8> {
    Some(match operator {
        Binary::Multiply => code::MUL,
        Binary::Divide => code::DIV,
        Binary::Remainder => code::MOD,
        Binary::Add => code::ADD,
        Binary::Subtract => code::SUB,
        Binary::ShiftLeft => code::LSH,
        Binary::ShiftRight => code::ARSH,
        Binary::BitAnd => code::AND,
        Binary::BitXor => code::XOR,
        Binary::BitOr => code::OR,
        _ => return None,
    })
}

/// The jump for a comparison, and for its contrary.
fn comparison(operator: Binary) -> Option<(u8, u8)> {
    Some(match operator {
        Binary::Less => (code::JSLT, code::JSGE),
        Binary::LessOrEqual => (code::JSLE, code::JSGT),
        Binary::Greater => (code::JSGT, code::JSLE),
        Binary::GreaterOrEqual => (code::JSGE, code::JSLT),
        Binary::Equal => (code::JEQ, code::JNE),
        Binary::NotEqual => (code::JNE, code::JEQ),
        _ => return None,
    })
}
