//! Tokens to a tree, by precedence.
//!
//! [`Parser`] reads the expressions of conditions and of programs. What only a program has (assignments,
//! casts, arrays, aggregations) is in the files of the folder, behind a constant, so that a command
//! that only has conditions contains none of it.

pub(crate) mod clauses;
mod declarations;
mod operands;
mod type_names;

use crate::ast::{Binary, Expression, ProgramShape, Shape, Unary};
use crate::error::{Problem, Span};
use crate::lexer::{Lexer, Token, word};
use crate::types::Type;

/// The deepest tree: every walk over one is a recursion.
const MOST_DEPTH: usize = 256;

/// The most parentheses, signs and conditions within one another: the parser's own recursion, which
/// takes more of the stack.
const MOST_NESTING: usize = 64;

/// The longest text.
const MOST_BYTES: usize = 64 << 10;

/// An expression that is the whole text.
///
/// # Errors
/// What was expected, and where.
pub(crate) fn parse(text: &str) -> Result<Expression, Problem> {
    if text.len() > MOST_BYTES {
        return Err(Problem::new(0..0, "an expression has at most 65,536 bytes", ""));
    }
    let mut parser = Parser::<false>::new(Lexer::new(text))?;
    let expression = parser.expression(0)?;
    match &parser.token {
        Token::End => Ok(expression),
        token => Err(unexpected(token, parser.span.clone())),
    }
}

/// Reads expressions: those of a program, or those of a condition.
pub(crate) struct Parser<'a, const PROGRAM: bool> {
    lexer: Lexer<'a, PROGRAM>,
    token: Token,
    span: Span,
    /// The names that `typedef` gave to types.
    types: Vec<(String, Type)>,
    /// The mistakes behind which reading went on.
    kept: Vec<Problem>,
}

impl<'a, const PROGRAM: bool> Parser<'a, PROGRAM> {
    fn new(mut lexer: Lexer<'a, PROGRAM>) -> Result<Self, Problem> {
        let (token, span) = lexer.next()?;
        Ok(Self { lexer, token, span, types: Vec::new(), kept: Vec::new() })
    }

    /// Takes the token, and reads the next one.
    fn advance(&mut self) -> Result<(Token, Span), Problem> {
        let (token, span) = self.lexer.next()?;
        let taken = std::mem::replace(&mut self.token, token);
        Ok((taken, std::mem::replace(&mut self.span, span)))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(&self.token, Token::Sign(own) if *own == sign)
    }

    /// With a program's assignments, which bind less than all but the comma.
    fn expression(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let target = self.conditional(nesting)?;
        if !PROGRAM {
            return Ok(target);
        }
        let Some(operator) = self.assignment() else {
            return Ok(target);
        };
        self.advance()?;
        let value = self.expression(nested(nesting, &self.span)?)?;
        let span = target.span.start..value.span.end;
        let depth = target.depth.max(value.depth);
        let assign = ProgramShape::Assign(operator, target.into(), value.into());
        node(Shape::Program(assign), span, depth)
    }

    /// With `?:`; `nesting` is how many of these calls it stands in.
    fn conditional(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let condition = self.binary(0, nesting)?;
        if !self.is("?") {
            return Ok(condition);
        }
        self.advance()?;
        let first = self.expression(nested(nesting, &self.span)?)?;
        if !self.is(":") {
            let advice = "as in condition ? value : value";
            return Err(Problem::new(self.span.clone(), "expected `:`", advice));
        }
        self.advance()?;
        let second = self.conditional(nested(nesting, &self.span)?)?;
        let span = condition.span.start..second.span.end;
        let depth = condition.depth.max(first.depth).max(second.depth);
        let shape = Shape::Conditional(condition.into(), first.into(), second.into());
        node(shape, span, depth)
    }

    /// Operators that bind more than `least` does.
    fn binary(&mut self, least: u8, nesting: usize) -> Result<Expression, Problem> {
        let mut left = self.unary(nesting)?;
        while let Some(operator) = self.operator()? {
            let precedence = operator.precedence();
            if precedence <= least {
                break;
            }
            self.advance()?;
            let right = self.binary(precedence, nested(nesting, &self.span)?)?;
            let span = left.span.start..right.span.end;
            let depth = left.depth.max(right.depth);
            left = node(Shape::Binary(operator, left.into(), right.into()), span, depth)?;
        }
        Ok(left)
    }

    /// The operator between two values that the token is.
    fn operator(&self) -> Result<Option<Binary>, Problem> {
        use Binary::*;
        const ALL: [Binary; 19] = [
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
            Xor,
            Or,
        ];
        if PROGRAM && self.changes() {
            return Ok(None);
        }
        let advice = match &self.token {
            Token::Sign("=") => "compare by ==",
            Token::Sign(
                "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "|=" | "^=" | "<<=" | ">>=" | "++" | "--",
            ) => "an expression changes nothing",
            Token::Sign(sign) => return Ok(ALL.into_iter().find(|one| one.sign() == *sign)),
            _ => return Ok(None),
        };
        Err(Problem::new(self.span.clone(), "there is nothing to assign to", advice))
    }

    fn unary(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let operator = match &self.token {
            Token::Sign("-") => Unary::Negative,
            Token::Sign("+") => Unary::Positive,
            Token::Sign("!") => Unary::Not,
            Token::Sign("~") => Unary::Complement,
            _ if PROGRAM => return self.program_unary(nesting),
            _ => return self.primary(nesting),
        };
        let (_, sign) = self.advance()?;
        let of = self.unary(nested(nesting, &sign)?)?;
        let (span, depth) = (sign.start..of.span.end, of.depth);
        node(Shape::Unary(operator, of.into()), span, depth)
    }

    fn primary(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let shape = match &self.token {
            Token::Integer(number) => Shape::Integer(*number),
            Token::Text(text) => Shape::Text(text.clone()),
            Token::Name(name) => {
                let name = name.clone();
                let (_, span) = self.advance()?;
                return match self.is("(") {
                    true => self.call(name, span, nesting),
                    false => node(Shape::Name(name), span, 0),
                };
            }
            Token::Sign("(") => return self.parenthesis(nesting),
            Token::End => {
                return Err(Problem::new(
                    self.span.clone(),
                    "expected a value",
                    "a variable, a number, or a string in double quotes",
                ));
            }
            token => return Err(no_value(token, self.span.clone(), PROGRAM)),
        };
        let (_, span) = self.advance()?;
        node(shape, span, 0)
    }

    /// What a function is of, from its opening parenthesis on.
    fn call(&mut self, name: String, at: Span, nesting: usize) -> Result<Expression, Problem> {
        let (_, open) = self.advance()?;
        let mut of = Vec::new();
        while !self.is(")") {
            of.push(self.expression(nested(nesting, &open)?)?);
            match &self.token {
                Token::Sign(",") => _ = self.advance()?,
                Token::Sign(")") => {}
                Token::End => return Err(left_open(open)),
                _ => {
                    let message = "expected an operator, `,` or `)`";
                    return Err(Problem::new(self.span.clone(), message, ""));
                }
            }
        }
        let (_, close) = self.advance()?;
        let depth = of.iter().map(|one| one.depth).max().unwrap_or(0);
        node(Shape::Call(name, of), at.start..close.end, depth)
    }

    fn parenthesis(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let (_, open) = self.advance()?;
        let mut within = self.expression(nested(nesting, &open)?)?;
        while PROGRAM && self.is(",") {
            within = self.comma(within, nested(nesting, &open)?)?;
        }
        match self.is(")") {
            true => {
                let (_, close) = self.advance()?;
                Ok(Expression { span: open.start..close.end, ..within })
            }
            false if self.token == Token::End => Err(left_open(open)),
            false => Err(Problem::new(self.span.clone(), "expected an operator or `)`", "")),
        }
    }
}

fn left_open(parenthesis: Span) -> Problem {
    Problem::new(parenthesis, "this parenthesis is left open", "expected `)`")
}

fn left_open_brace(at: usize) -> Problem {
    Problem::new(at..at + 1, "this brace is left open", "expected `}`")
}

/// A node above a tree of this depth.
fn node(shape: Shape, span: Span, below: usize) -> Result<Expression, Problem> {
    let depth = deeper(below, &span)?;
    Ok(Expression { shape, span, depth })
}

fn deeper(depth: usize, at: &Span) -> Result<usize, Problem> {
    if depth >= MOST_DEPTH {
        let advice = "at most 256 may follow from one another";
        return Err(Problem::new(at.end..at.end, "too many operators", advice));
    }
    Ok(depth + 1)
}

fn nested(nesting: usize, at: &Span) -> Result<usize, Problem> {
    if nesting >= MOST_NESTING {
        let advice = "at most 64 parentheses and signs may stand within one another";
        return Err(Problem::new(at.clone(), "too deep from here on", advice));
    }
    Ok(nesting + 1)
}

/// Where a value has to be, and is none.
fn no_value(token: &Token, span: Span, is_program: bool) -> Problem {
    match token {
        Token::Sign("{" | "}" | ";" | "]" | ")" | "," | ":") | Token::PredicateEnd
            if is_program =>
        {
            let advice = "a variable, a number, or a string in double quotes";
            Problem::new(span, "expected a value before it", advice)
        }
        token => unexpected(token, span),
    }
}

fn unexpected(token: &Token, span: Span) -> Problem {
    let (what, advice) = match token {
        Token::Sign("," | "." | "->" | ":" | ")") => ("expected the end or an operator", ""),
        Token::Sign(_) => ("expected a value before it", ""),
        Token::Text(_) | Token::Integer(_) | Token::Name(_) | Token::End => {
            ("expected an operator", "as in ==, &&, <")
        }
        Token::PredicateEnd => ("expected an operator", ""),
    };
    Problem::new(span, what, advice)
}
