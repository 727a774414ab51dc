//! The tree of an expression, as it was written.

use crate::error::Span;

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
    Integer(i64),
    Text(Text),
    Name(String),
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// `condition ? first : second`
    Conditional(Box<Expression>, Box<Expression>, Box<Expression>),
}

/// A string: its bytes, and of each whether a backslash made it stand for itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Text(pub(crate) Vec<(u8, bool)>);

impl Text {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    /// `-`
    Negative,
    /// `+`
    Positive,
    /// `!`
    Not,
    /// `~`
    Complement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    BitAnd,
    BitXor,
    BitOr,
    And,
    /// D's `^^`
    Xor,
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

    pub(crate) fn sign(self) -> &'static str {
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
