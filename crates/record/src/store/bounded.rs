//! A deserializer that bounds the memory built from a text: a short text (`["","",…`) can become
//! many times its size.
//!
//! It wraps another deserializer and passes everything on. Elements of arrays and entries of maps
//! are charged as they are read, with the size of their type, and texts with what they take. Fields
//! of a struct are part of the struct, which was charged as an element, and unknown fields cost
//! nothing.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

/// The bytes that may still be allocated.
#[derive(Debug)]
pub(super) struct Budget {
    left: Cell<u64>,
    whole: u64,
}

/// The memory of a map's entry besides its key and value.
const ENTRY: usize = 16;

/// What an allocation takes besides its content: the allocator's own, and up to the next size it has.
const ALLOCATION: usize = 16;

impl Budget {
    pub(super) fn new(bytes: u64) -> Self {
        Self { left: Cell::new(bytes), whole: bytes }
    }

    /// A text, which is an allocation of its own.
    fn charge_text<E: Error>(&self, text: &str) -> Result<(), E> {
        self.charge(if text.is_empty() { 0 } else { text.len() + ALLOCATION })
    }

    fn charge<E: Error>(&self, bytes: usize) -> Result<(), E> {
        match self.left.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(E::custom(format_args!(
                "its content would take more than {} MiB of memory; check that it is a record",
                self.whole >> 20
            ))),
        }
    }
}

/// A deserializer, or another part of one, and the budget it is held to.
pub(super) struct Bounded<'b, T> {
    inner: T,
    budget: &'b Budget,
    /// Whether entries of a map are built one by one, and are not fields of a struct.
    has_entries: bool,
}

impl<'b, T> Bounded<'b, T> {
    pub(super) fn new(inner: T, budget: &'b Budget) -> Self {
        Self { inner, budget, has_entries: true }
    }
}

macro_rules! pass_on {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(Bounded::new(visitor, self.budget))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    pass_on! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        // Nothing is built.
        self.inner.deserialize_ignored_any(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, Bounded::new(visitor, self.budget))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_newtype_struct(name, Bounded::new(visitor, self.budget))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple(len, Bounded::new(visitor, self.budget))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple_struct(name, len, Bounded::new(visitor, self.budget))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Bounded { inner: visitor, budget: self.budget, has_entries: false };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, Bounded::new(visitor, self.budget))
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Bounded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(to)
    }

    visit! {
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64,
        visit_i128: i128, visit_u8: u8, visit_u16: u16, visit_u32: u32, visit_u64: u64,
        visit_u128: u128, visit_f32: f32, visit_f64: f64, visit_char: char,
        visit_bytes: &[u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.budget.charge_text(text)?;
        self.inner.visit_str(text)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.budget.charge_text(text)?;
        self.inner.visit_borrowed_str(text)
    }

    fn visit_string<E: Error>(self, text: String) -> Result<V::Value, E> {
        self.budget.charge_text(&text)?;
        self.inner.visit_string(text)
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<V::Value, E> {
        self.inner.visit_borrowed_bytes(bytes)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Bounded::new(from, self.budget))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Bounded::new(from, self.budget))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(Bounded::new(from, self.budget))
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<V::Value, A::Error> {
        let (budget, has_entries) = (self.budget, self.has_entries);
        self.inner.visit_map(Bounded { inner: from, budget, has_entries })
    }

    // No variant of a record holds more than a number.
    fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(from)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Bounded<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Bounded::new(from, self.budget))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        let element = self.inner.next_element_seed(Bounded::new(seed, self.budget))?;
        if element.is_some() {
            self.budget.charge(size_of::<T::Value>())?;
        }
        Ok(element)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        if !self.has_entries {
            // Names of fields are compared, and not kept.
            return self.inner.next_key_seed(seed);
        }
        let key = self.inner.next_key_seed(Bounded::new(seed, self.budget))?;
        if key.is_some() {
            self.budget.charge(size_of::<K::Value>() + ENTRY)?;
        }
        Ok(key)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        if self.has_entries {
            self.budget.charge(size_of::<T::Value>())?;
        }
        self.inner.next_value_seed(Bounded::new(seed, self.budget))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, Default)]
    #[serde(default)]
    struct Row {
        name: String,
        counts: Vec<u64>,
        by_name: BTreeMap<String, u64>,
        wide: [u64; 4],
        nothing: Option<bool>,
    }

    fn read<T: DeserializeOwned>(text: &str, bytes: u64) -> Result<T, String> {
        let mut json = serde_json::Deserializer::from_str(text);
        T::deserialize(Bounded::new(&mut json, &Budget::new(bytes))).map_err(|e| e.to_string())
    }

    #[test]
    fn what_fits_is_read_as_without_a_bound() {
        let text = r#"[{"name": "a\n", "counts": [1, 2], "by_name": {"x": 3}, "wide": [1, 2, 3, 4],
                        "nothing": null, "unknown": [[], [], {"a": "b"}]}, {}]"#;
        let bound: Vec<Row> = read(text, 1 << 20).unwrap();
        assert_eq!(bound, serde_json::from_str::<Vec<Row>>(text).unwrap());
    }

    #[test]
    fn what_is_built_is_charged_and_not_the_text() {
        let many = |one: &str, n: usize| format!("[{}]", vec![one; n].join(","));
        let row = size_of::<Row>() as u64;
        assert!(read::<Vec<Row>>(&many("{}", 10), 10 * row).is_ok());
        let error = read::<Vec<Row>>(&many("{}", 11), 10 * row).unwrap_err();
        assert!(error.contains("more than 0 MiB of memory"), "{error}");
        let text = (size_of::<String>() + ALLOCATION) as u64;
        assert!(read::<Vec<String>>(&many("\"ab\"", 10), 10 * (text + 2)).is_ok());
        assert!(read::<Vec<String>>(&many("\"ab\"", 10), 10 * (text + 2) - 1).is_err());
        assert!(read::<BTreeMap<String, u64>>(r#"{"a": 1, "b": 2}"#, 60).is_err());
        // Unknown keys are not stored, however large they are.
        let unknown = format!(r#"{{"unknown": {}}}"#, many("[]", 10_000));
        assert!(read::<Row>(&unknown, 10).is_ok());
    }
}
