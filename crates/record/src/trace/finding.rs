//! What the numbers of a record say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A judgement on the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Registered id.
    pub id: String,
    /// How it is meant.
    pub verdict: Verdict,
    /// The finding in one sentence.
    pub text: String,
    /// The numbers it rests on.
    #[serde(deserialize_with = "crate::store::unique_keys")]
    pub evidence: BTreeMap<String, serde_json::Value>,
    /// The advice, where there is any.
    #[serde(rename = "try")]
    pub advice: Option<String>,
}

/// How a [`Finding`] is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The number cannot be true.
    Impossible,
    /// The number deserves doubt.
    Suspect,
    /// There is a better method.
    Advice,
    /// Worth knowing.
    Note,
}
