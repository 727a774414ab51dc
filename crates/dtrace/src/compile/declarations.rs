//! Declared variables, `inline` and `enum`.

use super::{Compiled, Compiler, Constant, Inline, problem, shortened};
use crate::ast::{Expression, Scope};
use crate::error::Span;
use crate::form::OwnVariable;
use crate::program::tree::VariableDeclaration;
use crate::types::{Integer, Type};

/// The most names by `enum` and `inline`.
const MOST_CONSTANTS: usize = 4096;

impl<'a> Compiler<'a> {
    pub(super) fn declare(&mut self, declaration: &VariableDeclaration) -> Compiled<()> {
        let VariableDeclaration { scope, of, name, keys, span } = declaration;
        if *scope == Scope::Global {
            self.free_name(name, span)?;
        }
        if let Some(known) = self.own(*scope, name) {
            let known = &self.form.variables[usize::from(known)];
            if known.of == *of && known.keys == *keys {
                return Ok(());
            }
            let message = format!("`{}` has another type already", shortened(name));
            return problem(span, message, format!("it is {}", known.of.with_article()));
        }
        if matches!(of, Type::Object(_)) {
            let advice = "keep the members that you need";
            return problem(span, "a structure cannot be kept", advice);
        }
        let own = OwnVariable { name: name.clone(), scope: *scope, of: *of, keys: keys.clone() };
        self.add(own, span).map(|_| ())
    }

    pub(super) fn inline(
        &mut self,
        of: Type,
        name: &'a str,
        value: &'a Expression,
        span: &Span,
    ) -> Compiled<()> {
        self.free_name(name, span)?;
        if self.own(Scope::Global, name).is_some() {
            return problem(span, format!("`{}` is a variable already", shortened(name)), "");
        }
        // It is checked once here; what it names has to be known.
        let mark = self.mark();
        let checked = self.value(value).and_then(|one| self.fitted(one, of, &value.span));
        self.take_back(mark);
        self.clause.registers = 0;
        checked?;
        self.inlines.push(Inline { name, of, value });
        Ok(())
    }

    pub(super) fn enumeration(
        &mut self,
        names: &'a [(String, Span, Option<Expression>)],
    ) -> Compiled<()> {
        let mut next = 0u64;
        for (name, span, value) in names {
            self.free_name(name, span)?;
            if let Some(value) = value {
                let mark = self.mark();
                let constant = self.value(value);
                self.take_back(mark);
                self.clause.registers = 0;
                match constant?.constant {
                    Some(constant) => next = constant,
                    None => {
                        let advice = "as in enum { RED, GREEN = 5 }";
                        return problem(&value.span, "expected a constant", advice);
                    }
                }
            }
            let constant = Constant { value: Integer::INT.held(next), integer: Integer::INT };
            self.constants.push((name.clone(), constant));
            next = next.wrapping_add(1);
        }
        Ok(())
    }

    /// A name that nothing has yet.
    fn free_name(&self, name: &str, span: &Span) -> Compiled<()> {
        if Self::is_reserved(name) {
            return problem(span, format!("`{name}` is D's own"), "take another name");
        }
        if self.constants.len() + self.inlines.len() >= MOST_CONSTANTS {
            return problem(span, "more than 4,096 constants", "");
        }
        let is_taken = self.inlines.iter().any(|one| one.name == name)
            || self.constants.iter().any(|(one, _)| one == name);
        if is_taken {
            return problem(span, format!("`{}` is a constant already", shortened(name)), "");
        }
        Ok(())
    }
}
