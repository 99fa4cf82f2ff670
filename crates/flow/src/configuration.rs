//! What a machine is configured with.
//!
//! In: schemas and levels. Out: the same, and which schemas lead nowhere. Never: who decides what.

use std::collections::HashSet;

use crate::builtin;
use crate::condition::Condition;
use crate::config::{FlowSchema, PriorityLevel};

/// The objects that decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    pub schemas: Vec<FlowSchema>,
    pub levels: Vec<PriorityLevel>,
}

impl Configuration {
    /// As long as no store has told of any.
    pub fn built_in() -> Configuration {
        Configuration { schemas: builtin::schemas(), levels: builtin::levels() }
    }

    /// Of each schema, whether its level is there.
    pub fn conditions(&self) -> impl Iterator<Item = Condition> {
        let levels: HashSet<&str> = self.levels.iter().map(|level| &*level.name).collect();
        self.schemas.iter().map(move |schema| Condition {
            schema: schema.name.clone(),
            level: schema.level.clone(),
            dangling: !levels.contains(&*schema.level),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_whose_level_is_gone_dangles() {
        let mut configuration = Configuration::built_in();
        assert!(configuration.conditions().all(|condition| !condition.dangling));
        configuration.levels.retain(|level| &*level.name != "leader-election");
        let dangling: Vec<Condition> =
            configuration.conditions().filter(|condition| condition.dangling).collect();
        let schema = "system-leader-election".into();
        assert_eq!(dangling, [Condition { schema, level: "leader-election".into(), dangling: true }]);
    }
}
