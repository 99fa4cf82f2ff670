//! The rules that strategy has for the objects of a resource.
//!
//! In: what is served. Out: its rules, and what they fill in and say together with its schema. Never: a rule.

use forebay_catalog::Served;
use forebay_strategy as strategy;
use serde_json::Value;

/// What the verbs ask strategy about a resource.
pub(crate) trait Ruled {
    /// Which strategy its objects are under.
    fn rules(&self) -> strategy::GroupKind<'_>;

    /// Fills in what a client may leave out. A custom resource's schema has done so when it was decoded.
    fn set_defaults(&self, value: &mut Value);

    /// What a client is told about an object that is accepted as it is.
    ///
    /// - `update`: the subresource and the stored object, if there is one.
    fn warnings(&self, value: &Value, update: Option<(Option<&str>, &Value)>) -> Vec<String>;
}

impl Ruled for Served {
    fn rules(&self) -> strategy::GroupKind<'_> {
        strategy::GroupKind { group: self.group(), kind: &self.gvk.kind, custom: self.kind.custom_rules() }
    }

    fn set_defaults(&self, value: &mut Value) {
        strategy::defaults(&self.rules(), value);
        self.kind.set_defaults(value);
    }

    fn warnings(&self, value: &Value, update: Option<(Option<&str>, &Value)>) -> Vec<String> {
        let mut warnings = strategy::warnings(&self.rules(), value, update);
        warnings.extend(self.kind.warnings(value, update.map(|(_, old)| old)));
        warnings
    }
}
