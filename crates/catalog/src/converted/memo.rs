//! Conversions that a computation asked for which cannot wait.
//!
//! In: an object and a version that somebody wants who computes and does not wait. Out: the object in it, if
//! it is known; else a note that it is wanted. Whoever drives the computation has it converted, and computes
//! again. Never: more than [`CONVERSIONS_MAX`] of them.

use std::sync::{Mutex, PoisonError};

use forebay_fieldmanager::ConvertError;
use serde_json::Value;

use crate::limits::CONVERSIONS_MAX;

/// See the module's doc. Locked for a few lines.
#[derive(Default)]
pub struct Conversions(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    // An object, a version, and the object in it. <= CONVERSIONS_MAX
    known: Vec<(Value, String, Value)>,
    // <= CONVERSIONS_MAX
    wanted: Vec<(Value, String)>,
}

impl Conversions {
    /// `object` in a version.
    ///
    /// # Errors
    /// It is not known yet; then it is wanted.
    pub fn of(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(of, version, _): &&(Value, String, Value)| version == api_version && of == object;
        // Few: there are as many as a definition has versions, and a write has objects.
        if let Some((_, _, made)) = noted.known.iter().find(is_it) {
            return Ok(made.clone());
        }
        if noted.known.len() + noted.wanted.len() >= CONVERSIONS_MAX {
            return Err(ConvertError::Failed("its fields are owned in too many versions".to_owned()));
        }
        noted.wanted.push((object.clone(), api_version.to_owned()));
        Err(ConvertError::Failed("it is not converted yet".to_owned()))
    }

    /// What is wanted, which is wanted no more.
    pub fn take_wanted(&self) -> Vec<(Value, String)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).wanted)
    }

    /// Says what was wanted.
    pub fn know(&self, object: Value, api_version: String, made: Value) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.known.len() < CONVERSIONS_MAX {
            noted.known.push((object, api_version, made));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wanted_is_known_the_next_time() {
        let (conversions, object) = (Conversions::default(), json!({ "a": 1 }));
        assert!(conversions.of(&object, "g/v2").is_err());
        let wanted = conversions.take_wanted();
        assert_eq!(wanted, [(object.clone(), "g/v2".to_owned())]);
        conversions.know(object.clone(), "g/v2".to_owned(), json!({ "b": 1 }));
        assert!(matches!(conversions.of(&object, "g/v2"), Ok(made) if made == json!({ "b": 1 })));
        assert!(conversions.take_wanted().is_empty());
        for number in 0..2 * CONVERSIONS_MAX {
            assert!(conversions.of(&json!({ "a": number }), "g/v3").is_err());
        }
        assert_eq!(conversions.take_wanted().len(), CONVERSIONS_MAX - 1);
    }
}
