//! A program's tree to its compiled form: what each name is, and whether types fit.
//!
//! A mistake ends its statement; the next one is compiled, so that several are told at once. The bound
//! on steps is the one on time and memory, for `inline` makes short texts long.

mod actions;
mod aggregations;
mod branches;
mod calls;
mod code;
mod declarations;
mod expressions;
mod names;
mod operators;
mod places;
mod printing;
mod words;

use crate::ast::{self, Expression, ProgramShape, Shape};
use crate::error::{Problem, Span};
use crate::form::{Action, Clause, Form, Register};
use crate::lexer::Macros;
use crate::parser::clauses::{MOST_PROBLEMS, parse_program};
use crate::pattern::Tests;
use crate::program::tree::{self, Item, Tree};
use crate::program::{Holder, ProbePattern};
use crate::scope::Scope;
use crate::types::{Integer, Type};

/// Reads a program and checks it. The words of `scope` are variables besides D's own.
///
/// # Errors
/// What is wrong with it, by place: at most twenty.
pub fn compile_program(
    text: &str,
    scope: Scope<'_>,
    macros: &Macros,
) -> Result<Form, Vec<Problem>> {
    compile_with_options(text, scope, macros, &[])
}

/// As [`compile_program`]: options of the command line, by name, prevail over those of the text.
///
/// # Errors
/// As [`compile_program`]; an option that there is not is one at the beginning of the text.
pub fn compile_with_options(
    text: &str,
    scope: Scope<'_>,
    macros: &Macros,
    options: &[(String, Option<String>)],
) -> Result<Form, Vec<Problem>> {
    let (tree, mut problems) = parse_program(text, macros);
    let is_incomplete = !problems.is_empty();
    let mut compiler = Compiler { scope, is_incomplete, ..Compiler::default() };
    compiler.options(&tree, options);
    compiler.program(&tree);
    compiler.problems.retain(|problem| !problem.message.is_empty());
    problems.append(&mut compiler.problems);
    if problems.is_empty() && compiler.form.clauses.is_empty() {
        let advice = "as in BEGIN { trace(1); }";
        problems.push(Problem::new(text.len()..text.len(), "a program has a clause", advice));
    }
    if problems.is_empty() {
        return Ok(compiler.form);
    }
    problems.sort_by_key(|problem| problem.span.start);
    problems.truncate(MOST_PROBLEMS);
    Err(problems)
}

/// A condition's text as the predicate of a form's only clause, which has the default action: a
/// record. The tests begin with those that there are already.
pub(crate) fn compile_predicate(
    predicate: Expression,
    scope: Scope<'_>,
    tests: Tests,
) -> Result<(Form, Tests), Problem> {
    let mut compiler = Compiler { scope, tests: Some(tests), ..Compiler::default() };
    let span = predicate.span.clone();
    let predicate = Some(predicate);
    compiler.clause(&tree::Clause { probes: Vec::new(), predicate, statements: None, span });
    match compiler.problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok((compiler.form, compiler.tests.unwrap_or_default())),
    }
}

/// The most steps of a program.
const MOST_STEPS: usize = 1 << 16;

/// The deepest `inline` within another.
const MOST_EXPANSIONS: usize = 16;

#[derive(Default)]
struct Compiler<'a> {
    scope: Scope<'a>,
    /// Of a condition.
    tests: Option<Tests>,
    form: Form,
    inlines: Vec<Inline<'a>>,
    constants: Vec<(String, Constant)>,
    /// The one that is compiled.
    clause: Clause,
    /// The step of it where jumps last met.
    landed: usize,
    /// Of the program so far.
    steps: usize,
    /// How many inlines the expression is in.
    expansions: usize,
    problems: Vec<Problem>,
    /// Parts of the text could not be read.
    is_incomplete: bool,
    /// The variables whose first assignment is wrong: they are not reported as unknown once more.
    failed: Vec<(ast::Scope, String)>,
}

struct Inline<'a> {
    name: &'a str,
    of: Type,
    value: &'a Expression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Constant {
    value: u64,
    integer: Integer,
}

/// A value in a register.
#[derive(Debug, Clone, Copy)]
struct Operand {
    register: Register,
    of: Type,
    constant: Option<u64>,
    /// Whether it is within its type; what is calculated may be larger.
    is_exact: bool,
    /// Of a structure: what holds its members, and the descriptor of `fds[]`.
    holder: Option<(Holder, Option<Register>)>,
}

type Compiled<T> = Result<T, Problem>;

impl<'a> Compiler<'a> {
    fn options(&mut self, tree: &Tree, of_command: &[(String, Option<String>)]) {
        for setting in &tree.options {
            if let Err(problem) = self.form.options.set(setting) {
                self.problems.push(problem);
            }
        }
        for (name, value) in of_command {
            if let Err((message, advice)) = self.form.options.set_by_name(name, value.as_deref()) {
                self.problems.push(Problem::new(0..0, message, advice));
            }
        }
    }

    fn program(&mut self, tree: &'a Tree) {
        for item in &tree.items {
            if self.problems.len() >= MOST_PROBLEMS || self.steps > MOST_STEPS {
                return;
            }
            let compiled = match item {
                Item::Clause(clause) => {
                    self.clause(clause);
                    Ok(())
                }
                Item::Variable(declaration) => self.declare(declaration),
                Item::Inline { of, name, value, span } => self.inline(*of, name, value, span),
                Item::Constants(names) => self.enumeration(names),
                Item::Alias { .. } => Ok(()),
            };
            if let Err(problem) = compiled {
                self.problems.push(problem);
            }
        }
    }

    fn clause(&mut self, clause: &tree::Clause) {
        let mut probes = Vec::new();
        for (text, span) in &clause.probes {
            match ProbePattern::read(text, span) {
                Ok(pattern) => probes.push(pattern),
                Err(problem) => self.problems.push(problem),
            }
        }
        self.clause = Clause { probes, ..Clause::default() };
        // Where the predicate does not hold.
        let mut ends = Vec::new();
        if let Some(predicate) = &clause.predicate {
            let branch = self.branch(predicate, false, &mut ends);
            self.problems.extend(branch.err());
        }
        for statement in clause.statements.iter().flatten() {
            let steps = self.clause.steps.len();
            if let Err(problem) = self.statement(statement) {
                self.problems.push(problem);
                self.failed.extend(assigned(statement));
                self.clause.steps.truncate(steps);
                self.clause.places.truncate(steps);
            }
            if self.problems.len() >= MOST_PROBLEMS || self.steps > MOST_STEPS {
                return;
            }
        }
        if clause.statements.as_ref().is_none_or(Vec::is_empty) {
            let event = self.record(Action::Event, Vec::new(), Vec::new(), &clause.span);
            self.problems.extend(event.err());
        }
        self.land_all(ends);
        self.form.clauses.push(std::mem::take(&mut self.clause));
    }

    fn statement(&mut self, statement: &Expression) -> Compiled<()> {
        if let Shape::Call(name, arguments) = &statement.shape
            && self.action(name, arguments, &statement.span)?
        {
            return Ok(());
        }
        if !changes(statement) {
            let advice = match &statement.shape {
                Shape::Program(ProgramShape::Aggregation(..)) => {
                    "an aggregation is assigned to, as in @ = count(), or printed by printa()"
                }
                _ => "assign it, or print it by trace() or printf()",
            };
            let span = statement.span.clone();
            return Err(Problem::new(span, "this statement does nothing", advice));
        }
        self.value(statement).map(|_| ())
    }
}

/// Whether an expression changes something, or calls what may.
fn changes(expression: &Expression) -> bool {
    use ProgramShape::{Assign, Cast, Comma, Dereference, Index, Member, SizeOf, Step};
    match &expression.shape {
        Shape::Call(..) | Shape::Program(Assign(..) | Step { .. }) => true,
        Shape::Integer(_) | Shape::Text(_) | Shape::Name(_) => false,
        Shape::Unary(_, of) => changes(of),
        Shape::Binary(_, left, right) => changes(left) || changes(right),
        Shape::Conditional(condition, first, second) => {
            [condition, first, second].into_iter().any(|one| changes(one))
        }
        Shape::Program(Comma(left, right)) => changes(left) || changes(right),
        Shape::Program(Cast(_, of) | Dereference(of) | Member(of, _)) => changes(of),
        Shape::Program(Index(of, keys)) => changes(of) || keys.iter().any(changes),
        Shape::Program(SizeOf(_)) => false,
        Shape::Program(_) => false,
    }
}

/// The variable that a statement assigns to.
fn assigned(statement: &Expression) -> Option<(ast::Scope, String)> {
    let Shape::Program(ProgramShape::Assign(_, target, _)) = &statement.shape else {
        return None;
    };
    let of = match &target.shape {
        Shape::Program(ProgramShape::Index(of, _)) => of,
        _ => target,
    };
    match &of.shape {
        Shape::Name(name) => Some((ast::Scope::Global, name.clone())),
        Shape::Program(ProgramShape::Scoped(scope, name)) => Some((*scope, name.clone())),
        _ => None,
    }
}

/// What follows from a problem that was told; it is left out.
fn consequence<T>(span: &Span) -> Compiled<T> {
    problem(span, "", "")
}

fn problem<T>(span: &Span, message: impl Into<String>, advice: impl Into<String>) -> Compiled<T> {
    Err(Problem::new(span.clone(), message, advice))
}

/// A name that fits into a line.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
