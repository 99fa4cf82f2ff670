//! Role bindings. Roles themselves have no printer and get the default columns.
//!
//! In: v1 values. Out: their cells. Never: what a role allows.

use jiff::Timestamp;
use serde_json::Value;

use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static ROLE_BINDING: Printer = Printer::new(
    &[
        NAME,
        string("Role", "Role that is granted."),
        AGE,
        string("Users", "Users it is granted to.").wide(),
        string("Groups", "Groups it is granted to.").wide(),
        string("ServiceAccounts", "Service accounts it is granted to.").wide(),
    ],
    binding_cells,
);

fn binding_cells(binding: Member<'_>, now: Timestamp) -> Vec<Value> {
    let role = binding.get("roleRef");
    let subjects = |kind: &str| {
        let subjects = binding.get("subjects").items().filter(|subject| subject.get("kind").text() == kind);
        subjects.map(subject_name).collect::<Vec<_>>().join(", ")
    };
    cells![
        binding.name(),
        format!("{}/{}", role.get("kind").text(), role.get("name").text()),
        binding.age(now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn subject_name(subject: Member<'_>) -> String {
    let name = subject.get("name").text();
    match subject.get("kind").text() {
        "ServiceAccount" => format!("{}/{name}", subject.get("namespace").text()),
        _ => name.to_owned(),
    }
}
