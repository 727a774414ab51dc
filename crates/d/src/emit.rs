//! A condition to BPF instructions: the body of a function that is passed the facts.
//!
//! `int f(const u64 *facts)`: 0 where the condition does not hold, 1 where it does, 2 where it
//! divided by zero. A fact is the word of its number, the word of matches is one more. There is no
//! loop, no call and no stack: `r1` is the facts, `r0` is scratch, and values under way are in `r2`
//! to `r9`. Of the two sides of an operator the one that needs more registers comes first, so eight
//! are enough for every tree but a contrived one.

use crate::assembler::{Code, Instruction, Label, SCRATCH, code};
use crate::ast::{Binary, Unary};
use crate::check::{Condition, Node};

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
/// The registers of values.
const FIRST: u8 = 2;
const REGISTERS: usize = 8;

impl Condition {
    /// The instructions of the function; its facts are `words` words, the last of them that of
    /// matches.
    ///
    /// # Errors
    /// There are more than `most`, or the tree is too contrived.
    pub fn emit(&self, words: u16, most: usize) -> Result<Vec<Instruction>, EmitError> {
        let mut code = Code::default();
        let [error, no, end] = [code.label(), code.label(), code.label()];
        let mut emitter = Emitter { matches: words.saturating_sub(1), code, error, divides: false };
        // The verifier has a pointer that is passed to a function be checked.
        emitter.code.jump(code::JEQ, FACTS, 0, no);
        emitter.branch(&self.node, 0, false, no)?;
        emitter.code.number(SCRATCH, i64::from(TRUE));
        emitter.code.jump(code::JA, 0, 0, end);
        emitter.code.place(no);
        emitter.code.number(SCRATCH, i64::from(FALSE));
        if emitter.divides {
            emitter.code.jump(code::JA, 0, 0, end);
            emitter.code.place(emitter.error);
            emitter.code.number(SCRATCH, i64::from(DIVIDED_BY_ZERO));
        }
        emitter.code.place(end);
        emitter.code.push(code::EXIT, 0, 0, 0, 0);
        emitter.code.finished(0, most).map_err(|length| EmitError::TooLong(length, most))
    }
}

struct Emitter {
    matches: u16,
    code: Code,
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

fn register(at: usize) -> Result<u8, EmitError> {
    if at < REGISTERS { Ok(FIRST + at as u8) } else { Err(EmitError::TooDeep) }
}

impl Emitter {
    fn load(&mut self, to: u8, word: u16) {
        self.code.push(code::LOAD, to, FACTS, (word * 8) as i16, 0);
    }

    /// Has the value of a part in the register `at`, where those behind it are free.
    fn value(&mut self, node: &Node, at: usize) -> Result<(), EmitError> {
        let to = register(at)?;
        match node {
            Node::Constant(value) => self.code.number(to, *value),
            Node::Fact(fact) => self.load(to, *fact),
            Node::Matches(bit) => {
                self.load(to, self.matches);
                self.code.operate_on(code::RSH, to, i32::from(*bit));
                self.code.operate_on(code::AND, to, 1);
            }
            Node::Unary(Unary::Positive, of) => self.value(of, at)?,
            Node::Unary(Unary::Negative, of) => {
                self.value(of, at)?;
                self.code.operate_on(code::NEG, to, 0);
            }
            Node::Unary(Unary::Complement, of) => {
                self.value(of, at)?;
                self.code.operate_on(code::XOR, to, -1);
            }
            Node::Conditional(condition, first, second) => {
                let [otherwise, end] = [self.code.label(), self.code.label()];
                self.branch(condition, at, false, otherwise)?;
                self.value(first, at)?;
                self.code.jump(code::JA, 0, 0, end);
                self.code.place(otherwise);
                self.value(second, at)?;
                self.code.place(end);
            }
            Node::Binary(operator, left, right) if alu(*operator).is_some() => {
                self.arithmetic(*operator, left, right, at)?;
            }
            // Those of truth.
            Node::Unary(Unary::Not, _) | Node::Binary(..) => {
                let [no, end] = [self.code.label(), self.code.label()];
                self.branch(node, at, false, no)?;
                self.code.number(to, 1);
                self.code.jump(code::JA, 0, 0, end);
                self.code.place(no);
                self.code.number(to, 0);
                self.code.place(end);
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
                self.code.operate_on(code::AND, r, 63);
                self.code.operate(alu(operator).unwrap_or(code::LSH), l, r);
            }
            _ => self.code.operate(alu(operator).unwrap_or(code::ADD), l, r),
        }
        if l != register(at)? {
            self.code.operate(code::MOV, register(at)?, l);
        }
        Ok(())
    }

    /// The kernel's division knows no sign: of the values without theirs, and then the sign.
    fn divide(&mut self, operator: Binary, left: u8, right: u8) {
        self.divides = true;
        self.code.jump(code::JEQ, right, 0, self.error);
        self.code.operate(code::MOV, SCRATCH, left);
        if operator == Binary::Divide {
            self.code.operate(code::XOR, SCRATCH, right);
        }
        self.negate_unless_positive(left, left);
        self.negate_unless_positive(right, right);
        self.code.operate(alu(operator).unwrap_or(code::DIV), left, right);
        self.negate_unless_positive(SCRATCH, left);
    }

    fn negate_unless_positive(&mut self, sign: u8, value: u8) {
        let end = self.code.label();
        self.code.jump(code::JSGE, sign, 0, end);
        self.code.operate_on(code::NEG, value, 0);
        self.code.place(end);
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
                    self.code.jump(code::JA, 0, 0, to);
                }
            }
            Node::Unary(Unary::Not, of) => self.branch(of, at, !is_true, to)?,
            Node::Binary(operator @ (Binary::And | Binary::Or), left, right) => {
                // Whether the left side alone can lead there.
                if (*operator == Binary::Or) == is_true {
                    self.branch(left, at, is_true, to)?;
                    self.branch(right, at, is_true, to)?;
                } else {
                    let end = self.code.label();
                    self.branch(left, at, !is_true, end)?;
                    self.branch(right, at, is_true, to)?;
                    self.code.place(end);
                }
            }
            Node::Binary(Binary::Xor, left, right) => {
                let (l, r) = self.sides(&truth(left), &truth(right), at)?;
                self.code.jump_by(if is_true { code::JNE } else { code::JEQ }, l, r, to);
            }
            Node::Binary(operator, left, right) if comparison(*operator).is_some() => {
                let (yes, no) = comparison(*operator).unwrap_or((code::JNE, code::JEQ));
                let jump = if is_true { yes } else { no };
                if let Node::Constant(value) = **right
                    && let Ok(short) = i32::try_from(value)
                {
                    self.value(left, at)?;
                    self.code.jump(jump, register(at)?, short, to);
                } else {
                    let (l, r) = self.sides(left, right, at)?;
                    self.code.jump_by(jump, l, r, to);
                }
            }
            _ => {
                self.value(node, at)?;
                self.code.jump(if is_true { code::JNE } else { code::JEQ }, register(at)?, 0, to);
            }
        }
        Ok(())
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
