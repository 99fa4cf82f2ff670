//! Where in a variable a node looks: its name, then fields and what stands for the items of a container.
//!
//! A path shares what is before its last step, so that a chain of selections takes no more than it has of
//! them.

use std::sync::Arc;

use crate::limits::PATH_STEPS_MAX;

#[derive(Clone, Default)]
pub(crate) struct Path(Option<Arc<Step>>);

struct Step {
    name: Arc<str>,
    before: Path,
    /// How many there are.
    count: u32,
}

/// What no schema has: a way that is longer than one leads nowhere, whatever is behind it.
const BEYOND: &str = "@beyond";

impl Path {
    pub fn of(variable: &str) -> Path {
        Path::default().with(variable.into())
    }

    /// One step further.
    pub fn with(&self, name: Arc<str>) -> Path {
        let count = self.0.as_ref().map_or(0, |step| step.count) + 1;
        // Variables of comprehensions make it longer than an expression is high, and its end recurses by it.
        let variable = if count > PATH_STEPS_MAX { self.variable() } else { None };
        match variable {
            Some(variable) => Path::of(&variable).with(BEYOND.into()),
            None => Path(Some(Arc::new(Step { name, before: self.clone(), count }))),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The steps, the variable first.
    pub fn steps(&self) -> Vec<Arc<str>> {
        let mut steps: Vec<_> = std::iter::successors(self.0.as_ref(), |step| step.before.0.as_ref())
            .map(|step| step.name.clone())
            .collect();
        steps.reverse();
        steps
    }

    /// The variable.
    pub fn variable(&self) -> Option<Arc<str>> {
        std::iter::successors(self.0.as_ref(), |step| step.before.0.as_ref())
            .last()
            .map(|step| step.name.clone())
    }
}
