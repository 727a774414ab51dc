//! A tree as text again: every operator in parentheses, so that reading it gives the same tree.

use std::fmt::Write;

use super::tree::{Clause, Item, Tree};
use crate::ast::{Expression, ProgramShape, Scope, Shape, Text, Unary};

/// The text of a program.
pub(crate) fn printed(tree: &Tree) -> String {
    let mut text = String::new();
    for option in &tree.options {
        text.push_str("#pragma D option ");
        text.push_str(&option.name);
        if let Some(value) = &option.value {
            text.push('=');
            text.push_str(value);
        }
        text.push('\n');
    }
    for item in &tree.items {
        match item {
            Item::Clause(one) => clause(&mut text, one),
            Item::Variable(one) => {
                text.push_str(match one.scope {
                    Scope::Global => "",
                    Scope::Thread => "self ",
                    Scope::Clause => "this ",
                });
                _ = write!(text, "{} {}", one.of, one.name);
                if let Some(keys) = &one.keys {
                    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                    _ = write!(text, "[{}]", keys.join(", "));
                }
                text.push_str(";\n");
            }
            Item::Inline { of, name, value, .. } => {
                _ = writeln!(text, "inline {of} {name} = {};", expression(value));
            }
            Item::Constants(names) => {
                text.push_str("enum { ");
                for (name, _, value) in names {
                    text.push_str(name);
                    if let Some(value) = value {
                        _ = write!(text, " = {}", expression(value));
                    }
                    text.push_str(", ");
                }
                text.push_str("};\n");
            }
            Item::Alias { of, name } => _ = writeln!(text, "typedef {of} {name};"),
        }
    }
    text
}

fn clause(text: &mut String, clause: &Clause) {
    let probes: Vec<&str> = clause.probes.iter().map(|(probe, _)| probe.as_str()).collect();
    text.push_str(&probes.join(",\n"));
    text.push('\n');
    if let Some(predicate) = &clause.predicate {
        _ = writeln!(text, "/ {} /", expression(predicate));
    }
    match &clause.statements {
        Some(statements) => {
            text.push_str("{\n");
            for statement in statements {
                _ = writeln!(text, "\t{};", expression(statement));
            }
            text.push_str("}\n");
        }
        // Behind a predicate without braces nothing may follow but the end or a `;`.
        None => text.push_str(";\n"),
    }
}

/// The walk is as deep as the tree, which the parser bounds.
fn expression(one: &Expression) -> String {
    match &one.shape {
        Shape::Integer(number) => {
            let mark = match (number.integer.bytes, number.integer.signed) {
                (4, true) => "",
                (4, false) => "u",
                (_, true) => "l",
                (_, false) => "ul",
            };
            format!("{}{mark}", number.value)
        }
        Shape::Text(one) => text(one),
        Shape::Name(name) => name.clone(),
        Shape::Call(name, arguments) => format!("{name}({})", list(arguments)),
        Shape::Unary(operator, of) => {
            let sign = match operator {
                Unary::Negative => "-",
                Unary::Positive => "+",
                Unary::Not => "!",
                Unary::Complement => "~",
            };
            format!("({sign}{})", expression(of))
        }
        Shape::Binary(operator, left, right) => {
            format!("({} {} {})", expression(left), operator.sign(), expression(right))
        }
        Shape::Conditional(condition, first, second) => {
            format!("({} ? {} : {})", expression(condition), expression(first), expression(second))
        }
        Shape::Program(shape) => program(shape),
    }
}

fn program(shape: &ProgramShape) -> String {
    match shape {
        ProgramShape::Scoped(Scope::Thread, name) => format!("self->{name}"),
        ProgramShape::Scoped(_, name) => format!("this->{name}"),
        ProgramShape::Aggregation(name, keys) if keys.is_empty() => format!("@{name}"),
        ProgramShape::Aggregation(name, keys) => format!("@{name}[{}]", list(keys)),
        ProgramShape::Index(of, keys) => format!("{}[{}]", expression(of), list(keys)),
        ProgramShape::Member(of, name) => format!("{}->{name}", expression(of)),
        ProgramShape::Assign(operator, target, value) => {
            let sign = operator.map_or("", |operator| operator.sign());
            // An aggregation is assigned to by a statement only.
            match target.shape {
                Shape::Program(ProgramShape::Aggregation(..)) => {
                    format!("{} {sign}= {}", expression(target), expression(value))
                }
                _ => format!("({} {sign}= {})", expression(target), expression(value)),
            }
        }
        ProgramShape::Step { down, before, target } => {
            let sign = if *down { "--" } else { "++" };
            match before {
                true => format!("({sign}{})", expression(target)),
                false => format!("({}{sign})", expression(target)),
            }
        }
        ProgramShape::Cast(to, value) => format!("(({to}){})", expression(value)),
        ProgramShape::SizeOfType(of) => format!("sizeof ({of})"),
        ProgramShape::SizeOf(value) => format!("(sizeof {})", expression(value)),
        ProgramShape::Dereference(pointer) => format!("(*{})", expression(pointer)),
        ProgramShape::Comma(first, second) => {
            format!("({}, {})", expression(first), expression(second))
        }
    }
}

fn list(all: &[Expression]) -> String {
    all.iter().map(expression).collect::<Vec<_>>().join(", ")
}

fn text(one: &Text) -> String {
    let mut text = String::from("\"");
    for byte in one.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            byte => _ = write!(text, "\\{byte:03o}"),
        }
    }
    text + "\""
}
