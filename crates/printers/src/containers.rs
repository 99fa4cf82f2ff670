//! The names and images of a pod template, as the wide view of its controllers shows them.
//!
//! In: a pod template. Out: two comma-separated texts. Never: init or ephemeral containers.

use crate::lists::joined;
use crate::member::Member;

pub(crate) struct Containers {
    pub(crate) names: String,
    pub(crate) images: String,
}

impl Containers {
    pub(crate) fn of(template: Member<'_>) -> Self {
        let each = |field: &str| {
            let containers = template.get("spec").get("containers").items();
            joined(containers.map(|container| container.get(field).text()), ",")
        };
        Self { names: each("name"), images: each("image") }
    }
}
