//! Which members of an object its cells are made of.
//!
//! In: an object as JSON text. Out: a value with the members that somebody asks for. Never: a value where the
//! text is no JSON.

use forebay_apimachinery::json::{self, Part};
use serde_json::Value;

/// What is read of a value; of an array, the same of each item.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reads {
    All,
    /// These members and no others.
    Only(&'static [(&'static str, Reads)]),
    /// All but these members; `None` is nothing of one.
    AllBut(&'static [(&'static str, Option<Reads>)]),
}

/// What is read of a kind that does not say it: no cell shows who manages which field.
pub(crate) const UNMANAGED: Reads =
    Reads::AllBut(&[("metadata", Some(Reads::AllBut(&[("managedFields", None)])))]);

impl Reads {
    /// Reads `json`.
    pub(crate) fn read(self, json: &[u8]) -> serde_json::Result<Value> {
        json::read_part(self, json)
    }
}

impl Part for Reads {
    fn member(self, name: &str) -> Option<Reads> {
        match self {
            Reads::All => Some(Reads::All),
            Reads::Only(named) => named.iter().find(|(known, _)| *known == name).map(|(_, reads)| *reads),
            Reads::AllBut(named) => {
                named.iter().find(|(known, _)| *known == name).map_or(Some(Reads::All), |(_, reads)| *reads)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_asks_for_is_left_out() {
        let text = r#"{"metadata":{"name":"a","managedFields":[{"x":1}]},"list":[{"a":1,"b":2},null,[{"b":3}]],"n":-1.5}"#;
        let all: Value = serde_json::from_str(text).unwrap();
        for (reads, want) in [
            (Reads::All, all),
            (UNMANAGED, json!({"metadata":{"name":"a"},"list":[{"a":1,"b":2},null,[{"b":3}]],"n":-1.5})),
            (
                Reads::Only(&[("list", Reads::Only(&[("a", Reads::All)]))]),
                json!({"list":[{"a":1},null,[{}]]}),
            ),
            (Reads::Only(&[]), json!({})),
        ] {
            assert_eq!(reads.read(text.as_bytes()).unwrap(), want, "{reads:?}");
        }
    }
}
