//! A program: its clauses, and where reading goes on behind a mistake.

use super::{Parser, left_open_brace};
use crate::ast::Expression;
use crate::error::{Problem, Span};
use crate::lexer::{Lexer, Macros, Token, word};
use crate::program::tree::{Clause, Item, OptionSetting, Tree};

/// The longest program.
const MOST_BYTES: usize = 1 << 20;

/// The most problems that are told.
pub(crate) const MOST_PROBLEMS: usize = 20;

/// The most clauses and declarations, and the most statements of a clause.
const MOST_ITEMS: usize = 4096;

/// Reads a program: its tree as far as it could be read, and what is wrong.
pub(crate) fn parse_program(text: &str, macros: &Macros) -> (Tree, Vec<Problem>) {
    let mut tree = Tree::default();
    if text.len() > MOST_BYTES {
        let problem = Problem::new(0..0, "a program has at most 1,048,576 bytes", "");
        return (tree, vec![problem]);
    }
    let lexer = Lexer::of_program(text, macros);
    let mut parser = Parser::<true> {
        lexer,
        token: Token::End,
        span: 0..0,
        types: Vec::new(),
        kept: Vec::new(),
    };
    let mut problems = Vec::new();
    loop {
        match parser.item() {
            Ok(None) => break,
            Ok(Some(item)) => {
                tree.items.push(item);
                problems.append(&mut parser.take_problems());
            }
            Err(problem) => {
                problems.append(&mut parser.take_problems());
                parser.lexer.go_to(problem.span.start);
                problems.push(problem);
                parser.skip_item();
            }
        }
        if problems.len() >= MOST_PROBLEMS {
            break;
        }
        if tree.items.len() > MOST_ITEMS {
            let at = parser.lexer.place();
            problems.push(Problem::new(at..at, "more than 4,096 clauses and declarations", ""));
            break;
        }
    }
    for line in std::mem::take(&mut parser.lexer.directives) {
        let words = parser.lexer.text_of(&line);
        match directive(words, &line) {
            Ok(mut options) => tree.options.append(&mut options),
            Err(problem) => problems.push(problem),
        }
    }
    problems.sort_by_key(|problem| problem.span.start);
    problems.truncate(MOST_PROBLEMS);
    (tree, problems)
}

/// The options that a line beginning with `#` sets.
fn directive(line: &str, span: &Span) -> Result<Vec<OptionSetting>, Problem> {
    let refused = |message: &str, advice: &str| Err(Problem::new(span.clone(), message, advice));
    let words: Vec<&str> =
        line.trim_start_matches('#').trim_end_matches(';').split_whitespace().collect();
    match words[..] {
        [] | ["ident" | "line", ..] => Ok(Vec::new()),
        ["pragma", "D", "option", ..] if words.len() > 3 => {
            let options =
                words[3..].iter().flat_map(|word| word.split(',')).filter(|one| !one.is_empty());
            let setting = |one: &str| {
                let (name, value) = match one.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (one, None),
                };
                OptionSetting { name: name.to_owned(), value, span: span.clone() }
            };
            Ok(options.map(setting).collect())
        }
        ["pragma", "D", "option"] => {
            refused("an option is missing", "as in #pragma D option quiet")
        }
        ["pragma", "D", "attributes" | "binding" | "depends_on" | "error" | "line", ..] => {
            refused("this pragma is for libraries of D", "programs have #pragma D option")
        }
        ["pragma", ..] => refused("unknown pragma", "as in #pragma D option quiet"),
        ["define", ..] => refused("there is no preprocessor", "write inline int NAME = VALUE;"),
        ["include", ..] => refused(
            "there is no preprocessor",
            "the names of errors and signals are known as they are",
        ),
        _ => refused("there is no preprocessor", "as in #pragma D option quiet"),
    }
}

impl<'a> Parser<'a, true> {
    /// The next clause or declaration.
    fn item(&mut self) -> Result<Option<Item>, Problem> {
        self.lexer.skip_blank()?;
        // Semicolons alone say nothing.
        while self.lexer.rest().starts_with(';') {
            self.lexer.go_to(self.lexer.place() + 1);
            self.lexer.skip_blank()?;
        }
        let rest = self.lexer.rest();
        if rest.is_empty() {
            return Ok(None);
        }
        let first = &rest[..word(rest)];
        let behind = rest[first.len()..].trim_start();
        let is_probe = first != "enum"
            && behind.starts_with([':', '*', '?', ',', '/', '{'])
            && !behind.starts_with("/*")
            && !(behind.starts_with('*') && self.begins_type(first));
        if !is_probe && self.begins_declaration(first) {
            self.prime()?;
            return self.declaration(first).map(Some);
        }
        self.clause().map(|clause| Some(Item::Clause(clause)))
    }

    /// Reads the token at the lexer's place, where none was read ahead.
    fn prime(&mut self) -> Result<(), Problem> {
        // No mistake in the text that follows is taken for the token before it.
        (self.token, self.span) = (Token::PredicateEnd, self.lexer.place()..self.lexer.place());
        (self.token, self.span) = self.lexer.next()?;
        Ok(())
    }

    fn clause(&mut self) -> Result<Clause, Problem> {
        let start = self.lexer.place();
        let mut probes = Vec::new();
        loop {
            self.lexer.skip_blank()?;
            match self.lexer.probe_word()? {
                Some(probe) => probes.push(probe),
                None => return Err(self.no_probe(probes.is_empty())),
            }
            self.lexer.skip_blank()?;
            if !self.lexer.rest().starts_with(',') {
                break;
            }
            self.lexer.go_to(self.lexer.place() + 1);
        }
        let mut clause =
            Clause { probes, predicate: None, statements: None, span: start..self.lexer.place() };
        if self.lexer.rest().starts_with('/') {
            let open = self.lexer.place();
            self.lexer.go_to(open + 1);
            self.prime()?;
            if self.token == Token::PredicateEnd || (self.is("/")) {
                let advice = "leave both / out, or write a condition between them";
                return Err(Problem::new(open..self.span.end, "an empty predicate", advice));
            }
            let mut predicate = self.expression(0)?;
            while self.is(",") {
                predicate = self.comma(predicate, 1)?;
            }
            match &self.token {
                Token::PredicateEnd => {}
                Token::End => {
                    let advice = "expected `/`";
                    return Err(Problem::new(
                        open..open + 1,
                        "this predicate is left open",
                        advice,
                    ));
                }
                _ => {
                    let message = "expected an operator, or the `/` that ends the predicate";
                    return Err(Problem::new(self.span.clone(), message, ""));
                }
            }
            clause.predicate = Some(predicate);
            self.lexer.go_to(self.span.end);
            self.lexer.skip_blank()?;
        }
        let place = self.lexer.place();
        match self.lexer.rest().chars().next() {
            Some('{') => clause.statements = Some(self.statements()?),
            None | Some(';') => {}
            // Another clause, if this one has a predicate: D ends it there.
            Some('/') => {
                return Err(Problem::new(place..place + 1, "a clause has one predicate", ""));
            }
            Some(one) if clause.predicate.is_some() => {
                let span = place..place + one.len_utf8();
                return Err(Problem::new(span, "expected `{`", "statements stand between { and }"));
            }
            Some(one) => {
                let end = place + one.len_utf8().max(word(self.lexer.rest()));
                let advice = "a clause is PROBES /PREDICATE/ { STATEMENTS }";
                return Err(Problem::new(place..end, "expected `,`, `/` or `{`", advice));
            }
        }
        clause.span.end = self.lexer.place();
        Ok(clause)
    }

    fn no_probe(&self, is_first: bool) -> Problem {
        let rest = self.lexer.rest();
        let place = self.lexer.place();
        let span = place..place + rest.chars().next().map_or(0, char::len_utf8);
        let message = if is_first { "expected a clause" } else { "expected a probe" };
        let advice = match rest.chars().next() {
            Some('{' | '/') if is_first => "name its probes first, as in syscall::read:entry",
            Some('}') => "there is no { that it closes",
            _ => "such as syscall::read:entry, BEGIN or tick-1s",
        };
        Problem::new(span, message, advice)
    }

    /// What stands between braces. A mistake is kept, and the next statement read.
    fn statements(&mut self) -> Result<Vec<Expression>, Problem> {
        let open = self.lexer.place();
        self.lexer.go_to(open + 1);
        let mut statements = Vec::new();
        loop {
            let statement = self.prime().and_then(|()| self.statement(open));
            match statement {
                Ok(Some(one)) => statements.push(one),
                Ok(None) => {}
                Err(problem) => {
                    self.kept.push(problem);
                    if self.kept.len() >= MOST_PROBLEMS || !self.skip_statement() {
                        return Ok(statements);
                    }
                    continue;
                }
            }
            if statements.len() > MOST_ITEMS {
                let at = self.span.clone();
                return Err(Problem::new(at, "more than 4,096 statements in a clause", ""));
            }
            // What follows the brace is not read ahead: it may be a probe description.
            self.lexer.go_to(self.span.end);
            if self.is("}") {
                return Ok(statements);
            }
        }
    }

    /// A statement up to its `;`, or up to the brace behind it.
    fn statement(&mut self, open: usize) -> Result<Option<Expression>, Problem> {
        match &self.token {
            Token::Sign(";" | "}") => return Ok(None),
            Token::End => return Err(left_open_brace(open)),
            Token::Name(name) => {
                if let Some(advice) = other_statement(name) {
                    let message = format!("D has no `{name}`");
                    let problem = Problem::new(self.span.clone(), message, advice);
                    self.skip_parenthesis();
                    return Err(problem);
                }
            }
            _ => {}
        }
        let mut statement = self.expression(0)?;
        while self.is(",") {
            statement = self.comma(statement, 1)?;
        }
        match &self.token {
            Token::Sign(";" | "}") => Ok(Some(statement)),
            Token::End => Err(left_open_brace(open)),
            _ => {
                let end = statement.span.end;
                let is_next_line = self.lexer.text_of(&(end..self.span.start)).contains('\n');
                let (at, message) = match is_next_line {
                    true => (end..end, "expected `;` behind the statement"),
                    false => (self.span.clone(), "expected an operator or `;`"),
                };
                Err(Problem::new(at, message, ""))
            }
        }
    }

    /// Goes on behind the statement that a mistake is in: whether the clause goes on there.
    fn skip_statement(&mut self) -> bool {
        loop {
            match &self.token {
                Token::End => return false,
                Token::Sign(";") => {
                    self.lexer.go_to(self.span.end);
                    return true;
                }
                Token::Sign("}") => {
                    self.lexer.go_to(self.span.end);
                    return false;
                }
                _ => self.skip_token(),
            }
        }
    }

    /// Goes on behind a parenthesis that follows, which may have semicolons in it.
    fn skip_parenthesis(&mut self) {
        self.skip_token();
        if !self.is("(") {
            return;
        }
        let mut open = 0usize;
        loop {
            match &self.token {
                Token::Sign("(") => open += 1,
                Token::Sign(")") => open -= 1,
                Token::Sign("{" | "}") | Token::End => return,
                _ => {}
            }
            if open == 0 {
                return;
            }
            self.skip_token();
        }
    }

    /// Goes on behind the clause or declaration that a mistake is in.
    fn skip_item(&mut self) {
        let mut braces = 0usize;
        self.skip_token();
        loop {
            let is_done = match &self.token {
                Token::End => true,
                Token::Sign("{") => {
                    braces += 1;
                    false
                }
                Token::Sign("}") => {
                    braces = braces.saturating_sub(1);
                    braces == 0
                }
                Token::Sign(";") => braces == 0,
                _ => false,
            };
            if is_done {
                self.lexer.go_to(self.span.end);
                return;
            }
            self.skip_token();
        }
    }

    /// Reads the next token, whatever is wrong with the text before it.
    fn skip_token(&mut self) {
        loop {
            let before = self.lexer.place();
            match self.lexer.next() {
                Ok((token, span)) => {
                    (self.token, self.span) = (token, span);
                    return;
                }
                Err(_) => {
                    // At least one character further.
                    let rest = self.lexer.rest();
                    if self.lexer.place() == before {
                        let one = rest.chars().next().map_or(0, char::len_utf8);
                        self.lexer.go_to(before + one);
                    }
                }
            }
        }
    }

    fn take_problems(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.kept)
    }
}

/// What D has instead of a statement of C.
fn other_statement(name: &str) -> Option<&'static str> {
    match name {
        "if" | "else" | "switch" | "case" | "default" => {
            Some("write a predicate, or condition ? value : value")
        }
        "for" | "while" | "do" | "goto" | "continue" | "break" => {
            Some("there are no loops; a clause is done once a firing")
        }
        "return" => Some("a clause ends at its brace"),
        _ => None,
    }
}
