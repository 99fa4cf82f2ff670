//! A kind in all its versions, as who keeps the owners of fields asks for it.
//!
//! In: a [`Kind`] and the lease of a request. Out: the [`Versions`] of it. Never: an object in another
//! version that is not charged.

use forebay_apimachinery::Lease;
use forebay_apimachinery::json::weight;
use forebay_fieldmanager::{ConvertError, FieldType, Versions};
use serde_json::Value;

use crate::converted::Conversions;
use crate::kind::Kind;

/// See the module's doc.
pub struct Versioned<'s> {
    pub kind: &'s dyn Kind,
    pub lease: &'s Lease,
    /// What a webhook has made so far, where one converts.
    pub made: Option<&'s Conversions>,
}

impl<'s> Versions<'s> for Versioned<'s> {
    fn type_in(&self, api_version: &str) -> Result<FieldType<'s>, ConvertError> {
        self.kind.field_type(api_version)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        // Twice: what is canonical says less than the same with all that Go has of it.
        let cost = weight::of(object).saturating_mul(2);
        self.lease.charge(cost).map_err(|why| ConvertError::Failed(why.to_string()))?;
        match self.made {
            // Whether there is such a version the kind says.
            Some(made) => self.kind.field_type(api_version).and_then(|_| made.of(object, api_version)),
            None => self.kind.convert(object, api_version),
        }
    }
}
