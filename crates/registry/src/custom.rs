//! Custom resources: what a CRD's version says of its objects. (in work)

use forebay_apimachinery::Cause;
use jiff::Timestamp;
use serde_json::Value;

use crate::strategy::CustomRules;

/// One version of a CRD.
pub enum Custom {}

impl Custom {
    pub fn storage_version(&self) -> &str {
        match *self {}
    }

    pub fn rules(&self) -> &CustomRules {
        match *self {}
    }

    pub fn normalize(&self, _value: &mut Value) -> Result<Vec<String>, String> {
        match *self {}
    }

    pub fn validate(&self, _value: &Value) -> Vec<Cause> {
        match *self {}
    }

    pub fn cells(&self, _value: &Value, _now: Timestamp) -> Vec<Value> {
        match *self {}
    }

    pub fn column_definitions(&self) -> Value {
        match *self {}
    }
}
