//! Tokens to a tree, by precedence.

use crate::ast::{Binary, Expression, Shape, Unary};
use crate::error::{Problem, Span};
use crate::lexer::{Lexer, Token};

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
    let mut parser = Parser::new(text)?;
    let expression = parser.expression(0)?;
    match &parser.token {
        Token::End => Ok(expression),
        token => Err(unexpected(token, parser.span.clone())),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    span: Span,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, Problem> {
        let mut lexer = Lexer::new(text);
        let (token, span) = lexer.next()?;
        Ok(Self { lexer, token, span })
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

    /// With `?:`, which binds least; `nesting` is how many of these calls it stands in.
    fn expression(&mut self, nesting: usize) -> Result<Expression, Problem> {
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
        let second = self.expression(nested(nesting, &self.span)?)?;
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
            _ => return self.primary(nesting),
        };
        let (_, sign) = self.advance()?;
        let of = self.unary(nested(nesting, &sign)?)?;
        let (span, depth) = (sign.start..of.span.end, of.depth);
        node(Shape::Unary(operator, of.into()), span, depth)
    }

    fn primary(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let shape = match &self.token {
            Token::Integer(value) => Shape::Integer(*value),
            Token::Text(text) => Shape::Text(text.clone()),
            Token::Name(name) => Shape::Name(name.clone()),
            Token::Sign("(") => return self.parenthesis(nesting),
            Token::End => {
                return Err(Problem::new(
                    self.span.clone(),
                    "expected a value",
                    "a variable, a number, or a string in double quotes",
                ));
            }
            token => return Err(unexpected(token, self.span.clone())),
        };
        let (_, span) = self.advance()?;
        node(shape, span, 0)
    }

    fn parenthesis(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let (_, open) = self.advance()?;
        let within = self.expression(nested(nesting, &open)?)?;
        match self.is(")") {
            true => {
                let (_, close) = self.advance()?;
                Ok(Expression { span: open.start..close.end, ..within })
            }
            false if self.token == Token::End => {
                Err(Problem::new(open, "this parenthesis is left open", "expected `)`"))
            }
            false => Err(Problem::new(self.span.clone(), "expected an operator or `)`", "")),
        }
    }
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

fn unexpected(token: &Token, span: Span) -> Problem {
    let (what, advice) = match token {
        Token::Sign("," | "." | "->" | ":" | ")") => ("expected the end or an operator", ""),
        Token::Sign(_) => ("expected a value before it", ""),
        Token::Text(_) | Token::Integer(_) | Token::Name(_) | Token::End => {
            ("expected an operator", "as in ==, &&, <")
        }
    };
    Problem::new(span, what, advice)
}
