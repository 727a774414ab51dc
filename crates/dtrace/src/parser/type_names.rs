//! The names of types.

use super::Parser;
use crate::error::Problem;
use crate::lexer::Token;
use crate::types::{Object, Target, Type};

/// Words that a type's name consists of, or that stand before it and say nothing here.
const WORDS: [&str; 6] = ["unsigned", "signed", "long", "short", "int", "char"];
const WITHOUT_MEANING: [&str; 4] = ["const", "volatile", "static", "extern"];

impl<const PROGRAM: bool> Parser<'_, PROGRAM> {
    /// Whether the name of a type begins with this word.
    pub(crate) fn begins_type(&self, word: &str) -> bool {
        WORDS.contains(&word)
            || WITHOUT_MEANING.contains(&word)
            || matches!(word, "struct" | "union" | "enum" | "float" | "double")
            || object(word).is_some()
            || self.types.iter().any(|(name, _)| name == word)
            || Type::named(word).is_some()
    }

    /// Whether a type's name stands behind the parenthesis that the token is.
    pub(super) fn type_follows(&self) -> bool {
        let rest = self.lexer.rest().trim_start();
        let word = &rest[..super::word(rest)];
        // `string` and `void` are no values, but a variable may have the name of a type.
        !word.is_empty() && self.begins_type(word)
    }

    /// A type's name with its stars.
    pub(super) fn type_name(&mut self) -> Result<Type, Problem> {
        let start = self.span.clone();
        let mut words: Vec<String> = Vec::new();
        let mut end = start.end;
        while let Token::Name(name) = &self.token {
            let is_word = WORDS.contains(&&**name);
            let has_room = words.is_empty() || (is_word && words.len() < 4);
            if WITHOUT_MEANING.contains(&&**name) {
                end = self.advance()?.1.end;
                continue;
            }
            if !has_room || (!words.is_empty() && !WORDS.contains(&&*words[0])) {
                break;
            }
            words.push(name.clone());
            end = self.advance()?.1.end;
        }
        let span = start.start..end;
        let name = words.join(" ");
        let refused =
            |message: String, advice: &str| Err(Problem::new(span.clone(), message, advice));
        let base = match &*name {
            "" => {
                return refused("expected the name of a type".to_owned(), "such as int or string");
            }
            "struct" | "union" | "enum" => {
                return refused(
                    format!("there is no `{name}` by name here"),
                    "the kernel's types are not known; read by copyin(), or take curpsinfo, fds[] or args[]",
                );
            }
            "float" | "double" => {
                return refused(format!("D calculates with integers, not with `{name}`"), "");
            }
            _ => self.types.iter().find(|(own, _)| *own == name).map(|(_, one)| *one),
        };
        let Some(mut base) = base.or_else(|| Type::named(&name)).or_else(|| object(&name)) else {
            return refused(format!("unknown type `{name}`"), "such as int, uint64_t or string");
        };
        while self.is("*") {
            let (_, star) = self.advance()?;
            base = match base {
                Type::Void => Type::Pointer(Target::Void, 1),
                Type::Integer(integer) => Type::Pointer(Target::Integer(integer), 1),
                Type::Pointer(target, depth) if depth < 8 => Type::Pointer(target, depth + 1),
                // `psinfo_t *` is what the variables of these types are.
                Type::Object(_) => base,
                _ => {
                    return Err(Problem::new(
                        star,
                        format!("no pointer leads to {}", base.with_article()),
                        "",
                    ));
                }
            };
        }
        Ok(base)
    }
}

/// The structures that D's providers have.
fn object(name: &str) -> Option<Type> {
    Some(Type::Object(match name {
        "psinfo_t" => Object::Psinfo,
        "lwpsinfo_t" => Object::Lwpsinfo,
        "cpuinfo_t" => Object::Cpuinfo,
        "fileinfo_t" => Object::Fileinfo,
        "bufinfo_t" => Object::Bufinfo,
        "devinfo_t" => Object::Devinfo,
        _ => return None,
    }))
}
