//! What a server-side apply is asked with: what its client wants of an object.
//!
//! In: a body. Out: its tree, and what is to be told of it. Never: applies it.

use forebay_api::Body;
use forebay_apimachinery::Status;
use forebay_apimachinery::json;
use forebay_apimachinery::options::FieldValidation;
use forebay_catalog::Target;
use serde_json::Value;

use crate::incoming::told_of_yaml;

/// What is applied, read once and applied as often as it takes.
pub(crate) struct Configuration {
    pub(crate) config: Value,
    /// Whether it takes fields from other managers.
    pub(crate) force: bool,
    /// What is wrong with it to a strict reader of YAML.
    repeated: Option<String>,
}

impl Configuration {
    pub(crate) fn parse(target: &Target, body: &Body, force: bool) -> Result<Configuration, Status> {
        let bad = |why: &dyn std::fmt::Display| Status::bad_request(format!("error decoding YAML: {why}"));
        let read = |json: &[u8]| json::parse(json, &target.lease).map_err(|error| bad(&error));
        let (config, repeated) = match body {
            Body::Yaml { json, repeated } => (read(json)?.value, repeated.clone()),
            Body::Json(json) => (read(json)?.value, None),
            Body::Unreadable(why) => return Err(Status::clone(why)),
            Body::Value(value) => (json::copy(value, &target.lease)?, None),
        };
        let config = match config {
            config @ Value::Object(_) => config,
            Value::Null => Value::Object(serde_json::Map::new()),
            other => {
                let kind = json::kind_of(&other);
                let why = format!(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type \
                     map[string]interface {{}}"
                );
                return Err(bad(&why));
            }
        };
        Ok(Configuration { config, force, repeated })
    }

    /// What is to be told of the configuration, which is applied as it is.
    ///
    /// # Errors
    /// There is something, and `validation` is strict.
    pub(crate) fn problems(&self, validation: FieldValidation) -> Result<Vec<String>, Status> {
        let Some(repeated) = &self.repeated else { return Ok(Vec::new()) };
        match validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Warn | FieldValidation::Unsaid => Ok(told_of_yaml(repeated)),
            FieldValidation::Strict => {
                let why = format!("error strict decoding YAML: error converting YAML to JSON: {repeated}");
                Err(Status::bad_request(why))
            }
        }
    }
}
