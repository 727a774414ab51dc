//! The tree of an expression, as it was written.

use crate::error::Span;
use crate::types::{Integer, Type};

/// A part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expression {
    pub(crate) shape: Shape,
    pub(crate) span: Span,
    /// Of the tree below it, itself included.
    pub(crate) depth: usize,
}

/// What kind of expression it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Integer(Number),
    Text(Text),
    Name(String),
    /// A function's name, and what stands between its parentheses.
    Call(String, Vec<Expression>),
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// `condition ? first : second`
    Conditional(Box<Expression>, Box<Expression>, Box<Expression>),
    /// What only a program has.
    Program(ProgramShape),
}

/// What only a program's expressions have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProgramShape {
    /// `self->name` and `this->name`
    Scoped(Scope, String),
    /// `@name[keys]`; the name is empty for `@` alone, and the keys for one without brackets.
    Aggregation(String, Vec<Expression>),
    /// `array[keys]`
    Index(Box<Expression>, Vec<Expression>),
    /// `object->member` and `object.member`
    Member(Box<Expression>, String),
    /// `target = value`, or with an operator `target += value`
    Assign(Option<Binary>, Box<Expression>, Box<Expression>),
    /// `++` and `--`
    Step {
        /// `--`
        down: bool,
        /// Before its target, whose new value it then has.
        before: bool,
        /// What is changed.
        target: Box<Expression>,
    },
    /// `(type)value`
    Cast(Type, Box<Expression>),
    /// `sizeof (type)`
    SizeOfType(Type),
    /// `sizeof value`
    SizeOf(Box<Expression>),
    /// `*pointer`
    Dereference(Box<Expression>),
    /// `first, second`
    Comma(Box<Expression>, Box<Expression>),
}

/// Which variable a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// One for all threads.
    Global,
    /// `self->`: one by thread.
    Thread,
    /// `this->`: one for the clauses of a firing.
    Clause,
}

/// An integer as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) value: u64,
    pub(crate) integer: Integer,
}

impl Number {
    /// An `int`, as of a character.
    pub(crate) fn int(value: u64) -> Self {
        Self { value, integer: Integer::INT }
    }
}

/// A string: its bytes, and of each whether a backslash made it stand for itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Text(pub(crate) Vec<(u8, bool)>);

impl Text {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.iter().map(|(byte, _)| *byte).collect()
    }

    /// As a pattern, in which a byte that stands for itself has a backslash before it.
    pub(crate) fn pattern(&self) -> Vec<u8> {
        let mut pattern = Vec::new();
        for (byte, stands_for_itself) in &self.0 {
            if *stands_for_itself && b"*?[]\\".contains(byte) {
                pattern.push(b'\\');
            }
            pattern.push(*byte);
        }
        pattern
    }
}

/// An operator before a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Negative,
    /// `+`
    Positive,
    /// `!`
    Not,
    /// `~`
    Complement,
}

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `&&`
    And,
    /// D's `^^`
    Xor,
    /// `||`
    Or,
}

impl Binary {
    /// C's precedences, and D's `^^` between `&&` and `||`; a larger one binds more.
    pub(crate) fn precedence(self) -> u8 {
        match self {
            Self::Multiply | Self::Divide | Self::Remainder => 11,
            Self::Add | Self::Subtract => 10,
            Self::ShiftLeft | Self::ShiftRight => 9,
            Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => 8,
            Self::Equal | Self::NotEqual => 7,
            Self::BitAnd => 6,
            Self::BitXor => 5,
            Self::BitOr => 4,
            Self::And => 3,
            Self::Xor => 2,
            Self::Or => 1,
        }
    }

    /// Whether it compares its sides, which may be strings.
    pub(crate) fn compares(self) -> bool {
        matches!(self.precedence(), 7 | 8)
    }

    /// As it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::BitAnd => "&",
            Self::BitXor => "^",
            Self::BitOr => "|",
            Self::And => "&&",
            Self::Xor => "^^",
            Self::Or => "||",
        }
    }
}
