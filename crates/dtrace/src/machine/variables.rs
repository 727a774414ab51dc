//! The program's variables, and the bound on those that come and go.

use std::collections::BTreeMap;

use super::Value;
use crate::ast::Scope;
use crate::form::Form;
use crate::program::Options;
use crate::types::Type;

/// A variable's number, its thread if it has one, and its keys.
type Key = (u16, Option<u64>, Vec<Value>);

/// What a variable takes besides its value and keys.
const HEAD: u64 = 64;

#[derive(Debug)]
pub(super) struct Variables {
    kinds: Vec<(Scope, Type, bool)>,
    /// Those of all threads without keys, and those of the firing.
    plain: Vec<Value>,
    dynamic: BTreeMap<Key, Value>,
    bytes: u64,
    most: u64,
    strsize: u32,
}

/// There is no room for another one.
pub(super) struct NoRoom;

impl Variables {
    pub(super) fn new(form: &Form, options: &Options) -> Self {
        let kinds: Vec<_> =
            form.variables.iter().map(|one| (one.scope, one.of, one.keys.is_some())).collect();
        Self {
            plain: kinds.iter().map(|(_, of, _)| unset(*of)).collect(),
            kinds,
            dynamic: BTreeMap::new(),
            bytes: 0,
            most: options.dynvarsize,
            strsize: options.strsize,
        }
    }

    /// The `this->` variables are of one firing.
    pub(super) fn begin_firing(&mut self) {
        for ((scope, of, _), value) in self.kinds.iter().zip(&mut self.plain) {
            if *scope == Scope::Clause {
                *value = unset(*of);
            }
        }
    }

    pub(super) fn load(&self, variable: u16, thread: u64, keys: &[Value]) -> Value {
        let Some(&(scope, of, is_array)) = self.kinds.get(usize::from(variable)) else {
            return Value::Integer(0);
        };
        if scope != Scope::Thread && !is_array {
            return self.plain[usize::from(variable)].clone();
        }
        let key = (variable, (scope == Scope::Thread).then_some(thread), keys.to_vec());
        self.dynamic.get(&key).cloned().unwrap_or_else(|| unset(of))
    }

    /// Gives a variable a value; without one it is free, as it is with 0.
    pub(super) fn store(
        &mut self,
        variable: u16,
        thread: u64,
        keys: Vec<Value>,
        value: Option<Value>,
    ) -> Result<(), NoRoom> {
        let Some(&(scope, of, is_array)) = self.kinds.get(usize::from(variable)) else {
            return Ok(());
        };
        if scope != Scope::Thread && !is_array {
            self.plain[usize::from(variable)] = value.unwrap_or_else(|| unset(of));
            return Ok(());
        }
        let mut size = HEAD + u64::from(of.bytes(self.strsize));
        for key in &keys {
            size += match key {
                Value::Text(_) => u64::from(self.strsize),
                _ => 8,
            };
        }
        let key = (variable, (scope == Scope::Thread).then_some(thread), keys);
        let value = value.filter(|value| *value != Value::Integer(0));
        match value {
            None => {
                if self.dynamic.remove(&key).is_some() {
                    self.bytes -= size;
                }
            }
            Some(value) => {
                if !self.dynamic.contains_key(&key) {
                    if self.bytes + size > self.most {
                        return Err(NoRoom);
                    }
                    self.bytes += size;
                }
                self.dynamic.insert(key, value);
            }
        }
        Ok(())
    }
}

fn unset(of: Type) -> Value {
    match of {
        Type::String => Value::Text(Vec::new()),
        _ => Value::Integer(0),
    }
}
