//! What a name stands for: the program's own first, then D's, then the caller's words.

use super::{Compiled, Compiler, MOST_EXPANSIONS, Operand, consequence, problem, shortened};
use crate::ast::{Expression, ProgramShape, Scope, Shape};
use crate::error::Span;
use crate::form::{Fact, Step};
use crate::names::nearest;
use crate::program::functions::{FUNCTIONS, MISSING as MISSING_FUNCTIONS};
use crate::program::variables::{MISSING, VARIABLES, argument, members};
use crate::program::{Holder, Variable};
use crate::types::{Integer, Object, Target, Type};

impl Compiler<'_> {
    pub(super) fn name(&mut self, name: &str, span: &Span) -> Compiled<Operand> {
        if let Some(variable) = self.own(Scope::Global, name) {
            return self.load(variable, Vec::new(), span);
        }
        if let Some(inline) = self.inlines.iter().find(|one| one.name == name) {
            let (of, value) = (inline.of, inline.value);
            return self.expanded(of, value, span);
        }
        if let Some((_, constant)) = self.constants.iter().find(|(one, _)| one == name) {
            let constant = *constant;
            return self.constant(constant.value, constant.integer, span);
        }
        if let Some(operand) = self.known(name, span)? {
            return Ok(operand);
        }
        if let Some(word) = self.word(name, span)? {
            return Ok(word);
        }
        self.unknown(name, span)
    }

    /// D's own variables.
    fn known(&mut self, name: &str, span: &Span) -> Compiled<Option<Operand>> {
        let structure = |object, holder| Ok(Some(Operand::structure(object, holder, None)));
        match name {
            "curpsinfo" => return structure(Object::Psinfo, Holder::Psinfo),
            "curlwpsinfo" => return structure(Object::Lwpsinfo, Holder::Lwpsinfo),
            "curcpu" => return structure(Object::Cpuinfo, Holder::Cpuinfo),
            "NULL" => {
                let zero = self.constant(0, Integer::U64, span)?;
                return Ok(Some(Operand { of: Type::Pointer(Target::Void, 1), ..zero }));
            }
            "args" => return problem(span, "`args` is an array", "as in args[0]"),
            "fds" => return problem(span, "`fds` is an array", "as in fds[arg0].fi_pathname"),
            "self" | "this" => {
                return problem(
                    span,
                    format!("`{name}` is not a variable"),
                    format!("as in {name}->x"),
                );
            }
            _ => {}
        }
        if let Some(number) = argument_number(name) {
            let of = Type::Integer(Integer::I64);
            return self.fact(Fact::Argument(number), of, None, span).map(Some);
        }
        match VARIABLES.iter().find(|one| one.name == name) {
            Some(variable) => {
                self.fact(Fact::Variable(variable), variable.of, None, span).map(Some)
            }
            None => Ok(None),
        }
    }

    fn unknown(&self, name: &str, span: &Span) -> Compiled<Operand> {
        if self.failed.iter().any(|(scope, one)| *scope == Scope::Global && one == name) {
            return consequence(span);
        }
        if let Some((_, instead)) = MISSING.iter().find(|(missing, _)| *missing == name) {
            return problem(span, format!("`{name}` is not supported"), *instead);
        }
        let own = self.form.variables.iter().filter(|one| one.scope == Scope::Global);
        let own = own.map(|one| one.name.as_str());
        let inlines = self.inlines.iter().map(|one| one.name);
        let words = self.scope.variables.iter().map(|one| one.name);
        let constants = self.scope.constants.iter().map(|(name, _)| *name);
        let enumerated = self.constants.iter().map(|(name, _)| name.as_str());
        let known = VARIABLES.iter().map(|one| one.name).chain(OTHERS);
        let all = own.chain(inlines).chain(known).chain(words).chain(enumerated).chain(constants);
        let scoped = self.form.variables.iter().find(|one| one.name == name);
        let advice = match (scoped, nearest(name, all)) {
            (Some(variable), _) if variable.scope == Scope::Thread => format!("write self->{name}"),
            (Some(variable), _) if variable.scope == Scope::Clause => format!("write this->{name}"),
            (_, Some(near)) => format!("did you mean `{near}`?"),
            _ if FUNCTIONS.iter().any(|one| one.name == name) => {
                format!("a function is called, as in {name}(…)")
            }
            _ => format!("assign to it first, or declare it: int {};", shortened(name)),
        };
        problem(span, format!("unknown variable `{}`", shortened(name)), advice)
    }

    pub(super) fn fact(
        &mut self,
        fact: Fact,
        of: Type,
        index: Option<u16>,
        span: &Span,
    ) -> Compiled<Operand> {
        let to = self.register(span)?;
        self.push(Step::Fact { to, fact, index }, span.clone())?;
        Ok(Operand::exact(to, of))
    }

    /// An inline's value, compiled where it is named.
    fn expanded(&mut self, of: Type, value: &Expression, span: &Span) -> Compiled<Operand> {
        if self.expansions >= MOST_EXPANSIONS {
            let advice = "at most 16 inlines may stand within one another";
            return problem(span, "too many inlines within one another", advice);
        }
        self.expansions += 1;
        let value = self.value(value);
        self.expansions -= 1;
        // The place is the one that names it: the inline itself was checked.
        let value = value.map_err(|error| crate::error::Problem { span: span.clone(), ..error })?;
        self.fitted(value, of, span)
    }

    /// The number of the program's own variable.
    pub(super) fn own(&self, scope: Scope, name: &str) -> Option<u16> {
        let mut own = self.form.variables.iter();
        own.position(|one| one.scope == scope && one.name == name).map(|at| at as u16)
    }

    pub(super) fn scoped(&mut self, scope: Scope, name: &str, span: &Span) -> Compiled<Operand> {
        match self.own(scope, name) {
            Some(variable) => self.load(variable, Vec::new(), span),
            None if self.failed.iter().any(|one| one.0 == scope && one.1 == name) => {
                consequence(span)
            }
            None if self.is_incomplete => consequence(span),
            None => {
                let prefix = prefix(scope);
                let own = self.form.variables.iter().filter(|one| one.scope == scope);
                let advice = match nearest(name, own.map(|one| one.name.as_str())) {
                    Some(near) => format!("did you mean `{prefix}{near}`?"),
                    None => {
                        let scope = prefix.trim_end_matches("->");
                        format!(
                            "assign to it further up, or declare it: {scope} int {};",
                            shortened(name)
                        )
                    }
                };
                let message = format!("unknown variable `{prefix}{}`", shortened(name));
                problem(span, message, advice)
            }
        }
    }

    pub(super) fn load(&mut self, variable: u16, keys: Vec<u16>, span: &Span) -> Compiled<Operand> {
        let own = &self.form.variables[usize::from(variable)];
        let of = own.of;
        if own.keys.is_some() && keys.is_empty() {
            let message = format!("`{}` is an array", own.name);
            let advice = format!("as in {}{}[key]", prefix(own.scope), own.name);
            return problem(span, message, advice);
        }
        let to = self.register(span)?;
        self.push(Step::Load { to, variable, keys }, span.clone())?;
        Ok(Operand::exact(to, of))
    }

    /// `array[keys]`, `args[n]`, `fds[n]` and `pointer[n]`.
    pub(super) fn index(
        &mut self,
        of: &Expression,
        keys: &[Expression],
        span: &Span,
    ) -> Compiled<Operand> {
        let own = match &of.shape {
            Shape::Name(name) => match &**name {
                "args" => return self.typed_argument(keys, span),
                "fds" => return self.file(keys, span),
                name => self.own(Scope::Global, name),
            },
            Shape::Program(ProgramShape::Scoped(scope, name)) => self.own(*scope, name),
            _ => None,
        };
        let is_array = own.is_some_and(|one| self.form.variables[usize::from(one)].keys.is_some());
        if let (Some(variable), true) = (own, is_array) {
            let keys = self.keys(variable, keys, span)?;
            return self.load(variable, keys, span);
        }
        if let (Shape::Name(name), None) = (&of.shape, own)
            && self.known(name, span)?.is_none()
        {
            if let Some((_, instead)) = MISSING.iter().find(|(missing, _)| missing == name) {
                return problem(&of.span, format!("`{name}` is not supported"), *instead);
            }
            let message = format!("unknown array `{}`", shortened(name));
            return problem(&of.span, message, "assign to one of its values first, or declare it");
        }
        let pointer = self.value(of)?;
        let [key] = keys else {
            return problem(span, "a pointer has one index", "");
        };
        if !matches!(pointer.of, Type::Pointer(..)) {
            return problem(
                &of.span,
                format!("{} has no [ ]", pointer.of.with_article()),
                "arrays and pointers have",
            );
        }
        let number = self.value(key)?;
        self.integer(&number, &key.span)?;
        let sides = [(pointer, &of.span), (number, &key.span)];
        let mark = self.mark();
        let address = self.operate(crate::ast::Binary::Add, sides, mark, span)?;
        self.read(address, &of.span)
    }

    /// `args[n]`, whose type the clause's probes tell.
    fn typed_argument(&mut self, keys: &[Expression], span: &Span) -> Compiled<Operand> {
        let [key] = keys else {
            return problem(span, "`args` has one index", "as in args[0]");
        };
        let mark = self.mark();
        let number = self.value(key)?.constant;
        self.take_back(mark);
        let Some(number @ 0..=9) = number else {
            return problem(&key.span, "expected a constant from 0 to 9", "as in args[0]");
        };
        let number = number as u8;
        let mut types =
            self.clause.probes.iter().map(|probe| argument(probe.provider(), probe.name(), number));
        let first = types.next().flatten();
        let is_same = types.all(|of| of == first);
        match first {
            Some(Type::Object(object)) if is_same => {
                Ok(Operand::structure(object, Holder::Argument(number), None))
            }
            Some(of) if is_same => self.fact(Fact::Typed(number, of), of, None, span),
            _ if !is_same => {
                let message = format!("args[{number}] has another type in each of these probes");
                problem(span, message, "write a clause for each")
            }
            _ => {
                let message = format!("these probes have no args[{number}]");
                problem(span, message, format!("arg{number} is the argument as a number"))
            }
        }
    }

    fn file(&mut self, keys: &[Expression], span: &Span) -> Compiled<Operand> {
        let [key] = keys else {
            return problem(span, "`fds` has one index", "as in fds[arg0].fi_pathname");
        };
        let number = self.value(key)?;
        self.integer(&number, &key.span)?;
        Ok(Operand::structure(Object::Fileinfo, Holder::File, Some(number.register)))
    }

    /// `structure->member`
    pub(super) fn member(&mut self, of: &Expression, name: &str, span: &Span) -> Compiled<Operand> {
        let holder = self.value(of)?;
        let (Type::Object(object), Some((held_by, index))) = (holder.of, holder.holder) else {
            let advice = "curpsinfo, curlwpsinfo, curcpu, fds[] and args[] have members";
            return problem(
                &of.span,
                format!("{} has no members", holder.of.with_article()),
                advice,
            );
        };
        let all = members(object);
        let Some(member) = all.iter().find(|one| one.name == name) else {
            let at = span.end - name.len()..span.end;
            let advice = match nearest(name, all.iter().map(|one| one.name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let names: Vec<&str> = all.iter().map(|one| one.name).collect();
                    format!("the members are {}", names.join(", "))
                }
            };
            let object = Type::Object(object).to_string();
            let message = format!("{} has no `{}`", object.trim_end_matches(" *"), shortened(name));
            return problem(&at, message, advice);
        };
        self.fact(Fact::Member(held_by, member), member.of, index, span)
    }

    /// What a function that is not there has instead.
    pub(super) fn missing_function(name: &str) -> Option<&'static str> {
        MISSING_FUNCTIONS.iter().find(|(one, _)| *one == name).map(|(_, instead)| *instead)
    }

    /// Whether D knows a variable of this name, which the program cannot have for itself.
    pub(super) fn is_reserved(name: &str) -> bool {
        argument_number(name).is_some()
            || OTHERS.contains(&name)
            || matches!(name, "self" | "this" | "sizeof" | "NULL")
            || VARIABLES.iter().any(|one: &Variable| one.name == name)
    }
}

/// Names that stand for more than a single fact.
const OTHERS: [&str; 5] = ["args", "fds", "curpsinfo", "curlwpsinfo", "curcpu"];

/// The number in `arg0` to `arg9`.
fn argument_number(name: &str) -> Option<u8> {
    match name.strip_prefix("arg")?.as_bytes() {
        [digit @ b'0'..=b'9'] => Some(digit - b'0'),
        _ => None,
    }
}

pub(in crate::compile) fn prefix(scope: Scope) -> &'static str {
    match scope {
        Scope::Global => "",
        Scope::Thread => "self->",
        Scope::Clause => "this->",
    }
}
