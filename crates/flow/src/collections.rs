//! The FlowSchemas and PriorityLevelCollectionss of a store, as far as somebody was told of them.
//!
//! In: objects as an informer hands them over, one after another. Out: what a machine is configured with, and
//! the schema to be written where its condition is not what it should be. Never: IO. Keeps these objects:
//! there are some dozens.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::condition::Condition;
use crate::config::{ConfigError, FlowSchema, PriorityLevel};
use crate::configuration::Configuration;

/// Both collections.
#[derive(Debug)]
pub struct Collections {
    pub schemas: ObjectSet<FlowSchema>,
    pub levels: ObjectSet<PriorityLevel>,
}

/// One of them.
#[derive(Debug)]
pub struct ObjectSet<T> {
    read: fn(&Value) -> Result<T, ConfigError>,
    is_synced: bool,
    // name -> what it says, and the object
    known: BTreeMap<String, (T, Value)>,
}

impl Default for Collections {
    fn default() -> Self {
        Collections { schemas: ObjectSet::new(FlowSchema::read), levels: ObjectSet::new(PriorityLevel::read) }
    }
}

impl Collections {
    /// What a machine is configured with; nothing before both collections were told whole.
    pub fn configuration(&self) -> Option<Configuration> {
        let (schemas, levels) = (&self.schemas, &self.levels);
        let is_whole = schemas.is_synced && levels.is_synced;
        is_whole.then(|| Configuration { schemas: schemas.all(), levels: levels.all() })
    }

    /// The schema with that condition, to be written; nothing if it has it, or is gone.
    pub fn with_condition(&self, condition: &Condition, now: &str) -> Option<Value> {
        let (_, object) = self.schemas.known.get(&*condition.schema)?;
        condition.on(object, now)
    }
}

impl<T: Clone> ObjectSet<T> {
    fn new(read: fn(&Value) -> Result<T, ConfigError>) -> ObjectSet<T> {
        ObjectSet { read, is_synced: false, known: BTreeMap::new() }
    }

    /// An object is like this now.
    ///
    /// # Errors
    /// Why it cannot be used; then it counts as one that is not there.
    pub fn put(&mut self, name: &str, object: Value) -> Result<(), ConfigError> {
        match (self.read)(&object) {
            Ok(read) => drop(self.known.insert(name.to_string(), (read, object))),
            Err(error) => {
                self.known.remove(name);
                return Err(error);
            }
        }
        Ok(())
    }

    /// An object is not there any more.
    pub fn remove(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// All that there were at first have been told.
    pub fn synced(&mut self) {
        self.is_synced = true;
    }

    fn all(&self) -> Vec<T> {
        self.known.values().map(|(read, _)| read.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin;

    #[test]
    fn a_machine_is_configured_once_both_are_whole_and_without_what_cannot_be_used() {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_string();
        let mut objects = Collections::default();
        for (_, level) in builtin::level_objects() {
            objects.levels.put(&name(&level), level).unwrap();
        }
        objects.levels.synced();
        assert_eq!(objects.configuration(), None, "there may be schemas");
        for (_, schema) in builtin::schema_objects() {
            objects.schemas.put(&name(&schema), schema).unwrap();
        }
        objects.schemas.synced();
        let told = |objects: &Collections| {
            let Configuration { schemas, levels } = objects.configuration().unwrap();
            (schemas.len(), levels.len())
        };
        assert_eq!(told(&objects), (11, 8));
        objects.levels.put("system", json!({"metadata": {"name": "system"}})).unwrap_err();
        objects.schemas.remove("probes");
        assert_eq!(told(&objects), (10, 7));
    }

    #[test]
    fn a_condition_is_of_a_schema_that_is_there() {
        let mut objects = Collections::default();
        let (_, schema) = builtin::schema_objects().last().unwrap();
        let condition = Condition { schema: "catch-all".into(), level: "catch-all".into(), dangling: false };
        assert_eq!(objects.with_condition(&condition, "t"), None);
        objects.schemas.put("catch-all", schema).unwrap();
        let told = objects.with_condition(&condition, "t").unwrap();
        assert_eq!(told["status"]["conditions"][0]["status"], "False");
    }
}
