//! Label selectors.
//!
//! In: the text of a `labelSelector`, or a `metav1.LabelSelector`. Out: requirements on labels, sorted by
//! key. Never: allocates while matching.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use super::parser;
use super::validation::{label_key_faults, label_value_faults};
use crate::FaultBytes;
use crate::json::{go_quote, to_go_text};

/// Requirements on labels, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Box<[LabelRequirement]>, // sorted by key
    matches_nothing: bool,
}

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelRequirement {
    key: Box<str>,
    operator: LabelOperator,
    values: Box<[Box<str>]>, // sorted, each once
    number: i64,             // the value of GreaterThan and LessThan
}

/// How a label stands to the values of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelOperator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl LabelSelector {
    /// Reads `app=web,tier in (a,b),!old`. The empty text selects everything. What is said again is kept
    /// once: whoever asks may say it thousands of times, and each time costs for each object.
    ///
    /// # Errors
    /// kube-apiserver's message, for a 400.
    pub fn parse(text: &str) -> Result<LabelSelector, String> {
        parser::parse(text).map(|found| LabelSelector::from_requirements(each_once(found)))
    }

    /// A selector that everything matches.
    pub fn everything() -> LabelSelector {
        LabelSelector::default()
    }

    /// A selector that nothing matches, not even an object without labels.
    pub fn nothing() -> LabelSelector {
        LabelSelector { requirements: Box::default(), matches_nothing: true }
    }

    fn from_requirements(mut requirements: Vec<LabelRequirement>) -> LabelSelector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelSelector { requirements: requirements.into(), matches_nothing: false }
    }

    /// Reads a `metav1.LabelSelector` (`matchLabels`, `matchExpressions`) out of an object. `null` selects
    /// nothing, an empty one everything.
    ///
    /// # Errors
    /// The message of upstream's conversion, or which member has the wrong type.
    pub fn from_value(value: &Value) -> Result<LabelSelector, String> {
        let selector = match value {
            Value::Null => return Ok(LabelSelector::nothing()),
            Value::Object(selector) => selector,
            _ => return Err("label selector must be an object".to_string()),
        };
        let mut requirements = Vec::new();
        for (key, value) in object_at(selector, "matchLabels")? {
            let value = text(value, "matchLabels")?;
            requirements.push(LabelRequirement::new(key, LabelOperator::Equals, vec![value.to_string()])?);
        }
        for expression in array_at(selector, "matchExpressions")? {
            requirements.push(LabelRequirement::from_value(expression)?);
        }
        Ok(LabelSelector::from_requirements(requirements))
    }

    /// Whether the labels that `get` looks up meet every requirement.
    #[inline]
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.matches_nothing
            && self.requirements.iter().all(|requirement| requirement.matches(get(&requirement.key)))
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.matches_nothing
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.requirements
    }

    /// The one value that the label `key` must have, if the selector pins it.
    pub fn exact(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|requirement| *requirement.key == *key)?;
        match (requirement.operator, &*requirement.values) {
            (LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

impl LabelRequirement {
    /// A requirement. The values are sorted, and each counts once.
    ///
    /// # Errors
    /// kube-apiserver's message when the key, a value or their number does not suit.
    pub fn new(
        key: &str,
        operator: LabelOperator,
        mut values: Vec<String>,
    ) -> Result<LabelRequirement, String> {
        values.sort();
        values.dedup();
        let mut faults: Vec<String> = Vec::new();
        faults.extend(invalid_key(key, "key"));
        faults.extend(operator.faults(&values));
        let mut told = FaultBytes::default();
        for (index, value) in values.iter().enumerate() {
            let found = label_value_faults(value);
            // Each says the key again, and there may be as many as values.
            if !found.is_empty() && !told.is_full() {
                let value = go_quote(value);
                let fault = format!("values[{index}][{key}]: Invalid value: {value}: {}", found.join("; "));
                told.add(fault.len());
                faults.push(fault);
            }
        }
        let number = values.first().and_then(|value| value.parse().ok()).unwrap_or_default();
        match faults.as_slice() {
            [] => Ok(LabelRequirement {
                key: key.into(),
                operator,
                values: values.into_iter().map(Box::from).collect(),
                number,
            }),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    /// One of `matchExpressions`.
    fn from_value(value: &Value) -> Result<LabelRequirement, String> {
        let expression = value.as_object().ok_or("matchExpressions must hold objects")?;
        let member = |name| expression.get(name).map_or(Ok(""), |value| text(value, name));
        let operator = match member("operator")? {
            "In" => LabelOperator::In,
            "NotIn" => LabelOperator::NotIn,
            "Exists" => LabelOperator::Exists,
            "DoesNotExist" => LabelOperator::DoesNotExist,
            other => return Err(format!("{} is not a valid label selector operator", go_quote(other))),
        };
        let values = array_at(expression, "values")?;
        let values: Result<_, _> =
            values.iter().map(|value| text(value, "values").map(str::to_string)).collect();
        LabelRequirement::new(member("key")?, operator, values?)
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> LabelOperator {
        self.operator
    }

    /// Sorted, each once.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(|value| &**value)
    }

    /// Whether a label with this value, or its absence, meets the requirement.
    #[inline]
    pub fn matches(&self, label: Option<&str>) -> bool {
        use LabelOperator::*;
        match (self.operator, label) {
            (In | Equals | DoubleEquals, Some(label)) => self.has(label),
            (NotIn | NotEquals, Some(label)) => !self.has(label),
            (Exists, Some(_)) | (NotIn | NotEquals | DoesNotExist, None) => true,
            (GreaterThan, Some(label)) => label.parse::<i64>().is_ok_and(|number| number > self.number),
            (LessThan, Some(label)) => label.parse::<i64>().is_ok_and(|number| number < self.number),
            (DoesNotExist, Some(_)) => false,
            (In | Equals | DoubleEquals | Exists | GreaterThan | LessThan, None) => false,
        }
    }

    fn has(&self, label: &str) -> bool {
        self.values.binary_search_by(|value| (**value).cmp(label)).is_ok()
    }
}

impl LabelOperator {
    /// What is wrong with the number and the kind of `values`.
    fn faults(self, values: &[String]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault =
            |detail: &str| faults.push(format!("values: Invalid value: {}: {detail}", list(values)));
        match self {
            LabelOperator::In | LabelOperator::NotIn if values.is_empty() => {
                fault("for 'in', 'notin' operators, values set can't be empty");
            }
            LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::NotEquals
                if values.len() != 1 =>
            {
                fault("exact-match compatibility requires one single value");
            }
            LabelOperator::Exists | LabelOperator::DoesNotExist if !values.is_empty() => {
                fault("values set must be empty for exists and does not exist");
            }
            LabelOperator::GreaterThan | LabelOperator::LessThan => {
                if values.len() != 1 {
                    fault("for 'Gt', 'Lt' operators, exactly one value is required");
                }
                let bad = values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err());
                faults.extend(bad.map(|(index, value)| {
                    let value = go_quote(value);
                    format!(
                        "values[{index}]: Invalid value: {value}: for 'Gt', 'Lt' operators, the value must be an integer"
                    )
                }));
            }
            _ => {}
        }
        faults
    }
}

/// The first of those that are equal, in the same order.
fn each_once(mut requirements: Vec<LabelRequirement>) -> Vec<LabelRequirement> {
    if requirements.len() < 2 {
        return requirements;
    }
    let mut seen = HashSet::with_capacity(requirements.len());
    let is_first: Vec<bool> = requirements.iter().map(|requirement| seen.insert(requirement)).collect();
    drop(seen);
    let mut is_first = is_first.into_iter();
    requirements.retain(|_| is_first.next().unwrap_or(true));
    requirements
}

/// kube-apiserver's message for a key that is none; `path` is the field it is blamed on.
pub(super) fn invalid_key(key: &str, path: &str) -> Option<String> {
    let faults = label_key_faults(key);
    let message = || format!("{path}: Invalid value: {}: {}", go_quote(key), faults.join("; "));
    (!faults.is_empty()).then(message)
}

/// `["a","b"]`, as it stands in a message.
fn list(values: &[String]) -> String {
    if values.is_empty() { "null".to_string() } else { to_go_text(&values.into()) }
}

fn object_at<'v>(object: &'v Map<String, Value>, name: &str) -> Result<Vec<(&'v String, &'v Value)>, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(members)) => Ok(members.iter().collect()),
        Some(_) => Err(format!("{name} must be an object")),
    }
}

fn array_at<'v>(object: &'v Map<String, Value>, name: &str) -> Result<&'v [Value], String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{name} must be an array")),
    }
}

fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| format!("{name} must hold strings"))
}

impl fmt::Display for LabelSelector {
    /// The text that [`LabelSelector::parse`] reads, requirements by key and values in order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            LabelOperator::In => write!(f, "{key} in ({values})"),
            LabelOperator::NotIn => write!(f, "{key} notin ({values})"),
            LabelOperator::Equals => write!(f, "{key}={values}"),
            LabelOperator::DoubleEquals => write!(f, "{key}=={values}"),
            LabelOperator::NotEquals => write!(f, "{key}!={values}"),
            LabelOperator::Exists => write!(f, "{key}"),
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
            LabelOperator::GreaterThan => write!(f, "{key}>{values}"),
            LabelOperator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}
