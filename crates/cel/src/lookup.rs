//! What is there at an index, and what is said where nothing is.
//!
//! In: a container, an index. Out: a value of it, or an error in upstream's words. Never: a cost.

use std::borrow::Cow;

use crate::error::Error;
use crate::program::{Step, StepKind};
use crate::value::{MapKey, Value};

/// What a container has at an index, if it has.
pub(crate) fn index<'a>(at: &Value<'a>, wanted: &Value<'a>) -> Result<Option<Value<'a>>, Error> {
    match at {
        Value::Map(map) => match wanted.key() {
            Some(key) => map.get(&key),
            None => Ok(None),
        },
        Value::List(list) => {
            let at = match wanted {
                Value::Int(at) => i128::from(*at),
                Value::Uint(at) => i128::from(*at),
                Value::Double(at) if at.fract() == 0.0 => *at as i128,
                Value::Double(at) => return Err(Error::new(format!("unsupported index value {at} in list"))),
                other => {
                    return Err(Error::new(format!(
                        "unsupported index type '{}' in list",
                        other.type_name()
                    )));
                }
            };
            usize::try_from(at).map_or(Ok(None), |at| list.get(at))
        }
        _ => Ok(None),
    }
}

/// Why something is not there.
///
/// - `key`: what a computed index was.
pub(crate) fn missing(at: &Value<'_>, step: &Step, key: Option<&Value<'_>>) -> Error {
    let shown: Cow<'_, str> = match &step.kind {
        StepKind::Field(name) => Cow::Borrowed(&**name),
        StepKind::Index(value) => shown(value).into(),
        StepKind::Computed(_) => key.map(shown).unwrap_or_default().into(),
    };
    if matches!(at, Value::List(_)) {
        Error::new(format!("index out of bounds: {shown}"))
    } else {
        Error::new(format!("no such key: {shown}"))
    }
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Double(it) => it.to_string(),
        _ => value.key().map(|key: MapKey<'_>| key.shown().into_owned()).unwrap_or_default(),
    }
}
