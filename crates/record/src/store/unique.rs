//! Maps in which a key may stand once: JSON leaves open which of two counts, so neither does.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

struct Unique<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Unique<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = from.next_key::<String>()? {
            match map.entry(key) {
                Entry::Occupied(twice) => {
                    return Err(A::Error::custom(format_args!("duplicate key {:?}", twice.key())));
                }
                Entry::Vacant(free) => _ = free.insert(from.next_value()?),
            }
        }
        Ok(map)
    }
}

/// A map of which no key stands twice.
pub(crate) fn unique_keys<'de, D, V>(from: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    from.deserialize_map(Unique(PhantomData))
}
