//! A program's declarations: variables, `inline`, `enum` and `typedef`.

use super::Parser;
use crate::ast::Scope;
use crate::error::Problem;
use crate::lexer::Token;
use crate::program::tree::{Item, VariableDeclaration};
use crate::types::Type;

impl Parser<'_, true> {
    /// Whether a declaration begins with this word.
    pub(super) fn begins_declaration(&self, word: &str) -> bool {
        matches!(word, "self" | "this" | "inline" | "typedef" | "translator" | "provider")
            || self.begins_type(word)
    }

    /// The declaration whose first token was read. What follows it is not read ahead.
    pub(super) fn declaration(&mut self, first: &str) -> Result<Item, Problem> {
        let refused = |at: &Self, message: &str, advice: &str| {
            Err(Problem::new(at.span.clone(), message, advice))
        };
        match first {
            "translator" => {
                refused(self, "translators are not supported", "take the members as they are")
            }
            "provider" => refused(
                self,
                "providers are not declared here",
                "the probes are those of syscall, proc, sched, io, profile and tick",
            ),
            "struct" | "union" => refused(
                self,
                "structures are not declared here",
                "use variables, or associative arrays such as a[key]",
            ),
            "enum" => self.constants(),
            "inline" => self.inline(),
            "typedef" => {
                self.advance()?;
                let of = self.type_name()?;
                let name = self.name("the name of the type")?;
                if self.begins_type(&name) {
                    let message = format!("`{name}` is a type already");
                    return refused(self, &message, "");
                }
                self.types.push((name.clone(), of));
                self.end()?;
                Ok(Item::Alias { of, name })
            }
            _ => self.variable(),
        }
    }

    fn variable(&mut self) -> Result<Item, Problem> {
        let start = self.span.start;
        let scope = match &self.token {
            Token::Name(name) if name == "self" => Scope::Thread,
            Token::Name(name) if name == "this" => Scope::Clause,
            _ => Scope::Global,
        };
        if scope != Scope::Global {
            self.advance()?;
        }
        let at = self.span.clone();
        let of = self.type_name()?;
        if of == Type::Void {
            return Err(Problem::new(at, "a variable cannot be void", "such as int or string"));
        }
        let at = self.span.clone();
        let name = self.name("the name of the variable")?;
        let keys = match self.is("[") {
            true => Some(self.key_types()?),
            false => None,
        };
        if self.is("=") {
            let advice = "assign in a clause such as BEGIN, or write inline";
            return Err(Problem::new(self.span.clone(), "a declaration has no value", advice));
        }
        if keys.is_some() && scope == Scope::Clause {
            let advice = "self-> and global variables may be arrays";
            return Err(Problem::new(start..at.end, "this-> has no associative arrays", advice));
        }
        let declaration = VariableDeclaration { scope, of, name, keys, span: at };
        self.end()?;
        Ok(Item::Variable(declaration))
    }

    fn key_types(&mut self) -> Result<Vec<Type>, Problem> {
        let (_, open) = self.advance()?;
        if let Token::Integer(_) = &self.token {
            let message = "arrays of a fixed size are not supported";
            let advice = "name the types of its keys, as in a[int]";
            return Err(Problem::new(open.start..self.span.end, message, advice));
        }
        let mut types = Vec::new();
        loop {
            let at = self.span.clone();
            match self.type_name()? {
                Type::Void => {
                    return Err(Problem::new(at, "a key cannot be void", "such as int or string"));
                }
                of => types.push(of),
            }
            match &self.token {
                Token::Sign(",") => _ = self.advance()?,
                Token::Sign("]") => {
                    self.advance()?;
                    return Ok(types);
                }
                _ => return Err(Problem::new(self.span.clone(), "expected `,` or `]`", "")),
            }
        }
    }

    fn inline(&mut self) -> Result<Item, Problem> {
        self.advance()?;
        let of = self.type_name()?;
        let span = self.span.clone();
        let name = self.name("the name of the inline")?;
        if self.is("[") {
            let message = "an inline with arguments is not supported";
            return Err(Problem::new(self.span.clone(), message, "write the expression out"));
        }
        if !self.is("=") {
            let advice = "as in inline int LIMIT = 5;";
            return Err(Problem::new(self.span.clone(), "expected `=`", advice));
        }
        self.advance()?;
        let value = self.expression(0)?;
        self.end()?;
        Ok(Item::Inline { of, name, value, span })
    }

    fn constants(&mut self) -> Result<Item, Problem> {
        self.advance()?;
        if let Token::Name(_) = &self.token {
            self.advance()?;
        }
        if !self.is("{") {
            let advice = "as in enum { RED, GREEN = 5 };";
            return Err(Problem::new(self.span.clone(), "expected `{`", advice));
        }
        self.advance()?;
        let mut names = Vec::new();
        while !self.is("}") {
            let span = self.span.clone();
            let name = self.name("a name")?;
            let mut value = None;
            if self.is("=") {
                self.advance()?;
                value = Some(self.expression(0)?);
            }
            names.push((name, span, value));
            match &self.token {
                Token::Sign(",") => _ = self.advance()?,
                Token::Sign("}") => {}
                _ => return Err(Problem::new(self.span.clone(), "expected `,` or `}`", "")),
            }
        }
        self.advance()?;
        self.end()?;
        Ok(Item::Constants(names))
    }

    fn name(&mut self, what: &str) -> Result<String, Problem> {
        let Token::Name(name) = &self.token else {
            return Err(Problem::new(self.span.clone(), format!("expected {what}"), ""));
        };
        let name = name.clone();
        self.advance()?;
        Ok(name)
    }

    /// The `;` behind a declaration.
    fn end(&mut self) -> Result<(), Problem> {
        if !self.is(";") {
            let message = "expected `;` behind the declaration";
            return Err(Problem::new(self.span.clone(), message, ""));
        }
        self.lexer.go_to(self.span.end);
        Ok(())
    }
}
