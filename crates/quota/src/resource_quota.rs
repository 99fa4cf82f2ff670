//! A ResourceQuota, as far as it is counted with: its limits, what is used of them, and which objects it is
//! about.
//!
//! In: a ResourceQuota. Out: whether an object is within its scopes. Never: changes one.

use forebay_apimachinery::json::weight::{self, ITEM_BYTES};
use forebay_strategy::value::{Members, child_or_empty, objects, text, texts};

use crate::amounts::Amounts;

/// See the module's doc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceQuota {
    pub name: String,
    /// What may be used, as the status has it.
    pub hard: Amounts,
    /// What is used.
    pub used: Amounts,
    pub scopes: Vec<QuotaScope>,
}

/// What an object has to be for a quota to be about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaScope {
    pub name: String,
    pub is: Selects,
}

/// How a scope looks at the value that an object has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selects {
    Exists,
    DoesNotExist,
    In(Vec<String>),
    NotIn(Vec<String>),
}

impl ResourceQuota {
    pub fn of(quota: &Members) -> ResourceQuota {
        let (spec, status) = (child_or_empty(quota, "spec"), child_or_empty(quota, "status"));
        let plain =
            texts(spec, "scopes").map(|name| QuotaScope { name: name.to_string(), is: Selects::Exists });
        let selected = objects(child_or_empty(spec, "scopeSelector"), "matchExpressions").map(QuotaScope::of);
        ResourceQuota {
            name: text(child_or_empty(quota, "metadata"), "name").to_string(),
            hard: Amounts::of(child_or_empty(status, "hard")),
            used: Amounts::of(child_or_empty(status, "used")),
            scopes: plain.chain(selected).collect(),
        }
    }
}

impl QuotaScope {
    /// What it takes.
    pub fn bytes(&self) -> usize {
        let text = |text: &String| ITEM_BYTES + weight::text(text.len());
        let values = match &self.is {
            Selects::In(values) | Selects::NotIn(values) => values.iter().map(text).sum(),
            Selects::Exists | Selects::DoesNotExist => 0,
        };
        text(&self.name) + values
    }

    pub fn of(requirement: &Members) -> QuotaScope {
        let values = || texts(requirement, "values").map(String::from).collect();
        let is = match text(requirement, "operator") {
            "In" => Selects::In(values()),
            "NotIn" => Selects::NotIn(values()),
            "DoesNotExist" => Selects::DoesNotExist,
            _ => Selects::Exists,
        };
        QuotaScope { name: text(requirement, "scopeName").to_string(), is }
    }
}

impl Selects {
    /// Whether an object is meant that has this value, or none.
    pub fn takes(&self, value: Option<&str>) -> bool {
        // Few: a quota's validated values, as many as its writer paid for.
        let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|known| known == value));
        match self {
            Selects::Exists => value.is_some(),
            Selects::DoesNotExist => value.is_none(),
            Selects::In(values) => among(values),
            Selects::NotIn(values) => !among(values),
        }
    }
}
