//! A kind in all versions that it is served in, as a merge needs it.
//!
//! In: an object and the name of a version. Out: its type, the object in it. Never: keeps either.

use std::borrow::Cow;

use forebay_merge::{ConvertError, Converter, Duplicates, TypedValue};
use forebay_schema::builtin::to_go_form;
use serde_json::Value;

use crate::field_type::FieldType;

/// A kind in its versions. Who implements it is the kind.
pub trait Versions<'s> {
    /// The type of its objects in a version, `apps/v1`.
    ///
    /// # Errors
    /// The kind has no such version: a built-in one says [`ConvertError::MissingVersion`], of which upstream
    /// forgets who owned what; with a custom resource, its conversion fails.
    fn type_in(&self, api_version: &str) -> Result<FieldType<'s>, ConvertError>;

    /// An object in another version that the kind has.
    ///
    /// # Errors
    /// The conversion went wrong.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;

    /// Puts in what an object of the type has and, as it is canonical, does not say.
    fn complete(&self, object: &mut Value, ty: FieldType<'s>) {
        if let FieldType::BuiltIn(ty, _) = ty {
            to_go_form(ty, object);
        }
    }
}

/// A kind, as the merge asks it.
pub struct Conversion<'m, 's>(pub &'m dyn Versions<'s>);

impl<'s> Converter<FieldType<'s>> for Conversion<'_, 's> {
    fn convert<'v>(
        &self,
        object: &'v TypedValue<'_, FieldType<'s>>,
        version: &str,
    ) -> Result<TypedValue<'v, FieldType<'s>>, ConvertError> {
        if object.value["apiVersion"] == version {
            return Ok(TypedValue { value: Cow::Borrowed(&object.value), ty: object.ty });
        }
        let ty = self.0.type_in(version)?;
        let mut converted = self.0.convert(&object.value, version)?;
        self.0.complete(&mut converted, ty);
        TypedValue::new(&converted, ty, Duplicates::Refused)
            .map_err(|faults| ConvertError::Failed(faults.to_string()))?;
        Ok(TypedValue { value: Cow::Owned(converted), ty })
    }
}

/// A group and version as objects name them; the core group has no name.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
