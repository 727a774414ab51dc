//! What stands between operators in a program only: casts, `++`, members, arrays, aggregations.

use super::{Parser, left_open, nested, node};
use crate::ast::{Binary, Expression, ProgramShape, Scope, Shape};
use crate::error::{Problem, Span};
use crate::lexer::Token;

impl<const PROGRAM: bool> Parser<'_, PROGRAM> {
    /// The operator before the `=` of an assignment that the token is, if it is one.
    pub(super) fn assignment(&self) -> Option<Option<Binary>> {
        let Token::Sign(sign) = &self.token else {
            return None;
        };
        Some(match *sign {
            "=" => None,
            "+=" => Some(Binary::Add),
            "-=" => Some(Binary::Subtract),
            "*=" => Some(Binary::Multiply),
            "/=" => Some(Binary::Divide),
            "%=" => Some(Binary::Remainder),
            "&=" => Some(Binary::BitAnd),
            "|=" => Some(Binary::BitOr),
            "^=" => Some(Binary::BitXor),
            "<<=" => Some(Binary::ShiftLeft),
            ">>=" => Some(Binary::ShiftRight),
            _ => return None,
        })
    }

    /// Whether the token assigns, which no operator between values does.
    pub(super) fn changes(&self) -> bool {
        self.assignment().is_some() || self.is("++") || self.is("--")
    }

    /// A value and what stands behind it, or a sign before it that only programs have.
    pub(super) fn program_unary(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let sign = self.span.clone();
        match &self.token {
            Token::Sign(step @ ("++" | "--")) => {
                let down = *step == "--";
                self.advance()?;
                let target = self.unary(nested(nesting, &sign)?)?;
                let (end, depth) = (target.span.end, target.depth);
                let step = ProgramShape::Step { down, before: true, target: target.into() };
                node(Shape::Program(step), sign.start..end, depth)
            }
            Token::Sign("*") => {
                self.advance()?;
                let pointer = self.unary(nested(nesting, &sign)?)?;
                let (end, depth) = (pointer.span.end, pointer.depth);
                let shape = ProgramShape::Dereference(pointer.into());
                node(Shape::Program(shape), sign.start..end, depth)
            }
            Token::Sign("&") => Err(Problem::new(
                sign,
                "variables have no addresses here",
                "copyin() and arguments such as arg1 are addresses",
            )),
            Token::Name(name) if name == "sizeof" => self.size_of(nesting),
            Token::Sign("(") if self.type_follows() => self.cast(nesting),
            _ => self.postfix(nesting),
        }
    }

    fn cast(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let (_, open) = self.advance()?;
        let to = self.type_name()?;
        self.close(&open)?;
        let value = self.unary(nested(nesting, &open)?)?;
        let (end, depth) = (value.span.end, value.depth);
        node(Shape::Program(ProgramShape::Cast(to, value.into())), open.start..end, depth)
    }

    fn size_of(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let (_, word) = self.advance()?;
        if self.is("(") && self.type_follows() {
            let (_, open) = self.advance()?;
            let of = self.type_name()?;
            let close = self.close(&open)?;
            return node(Shape::Program(ProgramShape::SizeOfType(of)), word.start..close.end, 0);
        }
        let value = self.unary(nested(nesting, &word)?)?;
        let (end, depth) = (value.span.end, value.depth);
        node(Shape::Program(ProgramShape::SizeOf(value.into())), word.start..end, depth)
    }

    /// Takes the `)` of a parenthesis.
    fn close(&mut self, open: &Span) -> Result<Span, Problem> {
        match &self.token {
            Token::Sign(")") => Ok(self.advance()?.1),
            Token::End => Err(left_open(open.clone())),
            _ => Err(Problem::new(self.span.clone(), "expected `)`", "")),
        }
    }

    fn postfix(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let mut value = match self.is("@") {
            true => return self.aggregation(nesting),
            false => self.primary(nesting)?,
        };
        loop {
            let (start, depth) = (value.span.start, value.depth);
            let (shape, end) = match &self.token {
                Token::Sign("[") => {
                    let (keys, end) = self.keys(nesting)?;
                    let depth = keys.iter().map(|key| key.depth).fold(depth, usize::max);
                    let shape = Shape::Program(ProgramShape::Index(value.into(), keys));
                    value = node(shape, start..end, depth)?;
                    continue;
                }
                Token::Sign("->" | ".") => {
                    self.advance()?;
                    let Token::Name(name) = &self.token else {
                        let advice = "as in self->start or curpsinfo->pr_fname";
                        return Err(Problem::new(self.span.clone(), "expected a name", advice));
                    };
                    let name = name.clone();
                    let (_, span) = self.advance()?;
                    let scope = match &value.shape {
                        Shape::Name(scope) if scope == "self" => Some(Scope::Thread),
                        Shape::Name(scope) if scope == "this" => Some(Scope::Clause),
                        _ => None,
                    };
                    let shape = match scope {
                        Some(scope) => ProgramShape::Scoped(scope, name),
                        None => ProgramShape::Member(value.into(), name),
                    };
                    (shape, span.end)
                }
                Token::Sign(step @ ("++" | "--")) => {
                    let down = *step == "--";
                    let (_, span) = self.advance()?;
                    (ProgramShape::Step { down, before: false, target: value.into() }, span.end)
                }
                _ => return Ok(value),
            };
            value = node(Shape::Program(shape), start..end, depth)?;
        }
    }

    /// `@`, `@name` or either with keys.
    fn aggregation(&mut self, nesting: usize) -> Result<Expression, Problem> {
        let (_, sign) = self.advance()?;
        let mut end = sign.end;
        let mut name = String::new();
        if let Token::Name(own) = &self.token {
            name.clone_from(own);
            end = self.advance()?.1.end;
        }
        let mut keys = Vec::new();
        if self.is("[") {
            (keys, end) = self.keys(nesting)?;
        }
        let depth = keys.iter().map(|key| key.depth).max().unwrap_or(0);
        let shape = ProgramShape::Aggregation(name, keys);
        node(Shape::Program(shape), sign.start..end, depth)
    }

    /// What stands between brackets, and their end.
    fn keys(&mut self, nesting: usize) -> Result<(Vec<Expression>, usize), Problem> {
        let (_, open) = self.advance()?;
        let mut keys = Vec::new();
        loop {
            keys.push(self.expression(nested(nesting, &open)?)?);
            match &self.token {
                Token::Sign(",") => _ = self.advance()?,
                Token::Sign("]") => return Ok((keys, self.advance()?.1.end)),
                Token::End => {
                    return Err(Problem::new(open, "this bracket is left open", "expected `]`"));
                }
                _ => {
                    let message = "expected an operator, `,` or `]`";
                    return Err(Problem::new(self.span.clone(), message, ""));
                }
            }
        }
    }

    /// The second value of a comma.
    pub(super) fn comma(
        &mut self,
        first: Expression,
        nesting: usize,
    ) -> Result<Expression, Problem> {
        self.advance()?;
        let second = self.expression(nesting)?;
        let span = first.span.start..second.span.end;
        let depth = first.depth.max(second.depth);
        node(Shape::Program(ProgramShape::Comma(first.into(), second.into())), span, depth)
    }
}
