//! The cases: for each kind a sample that is fine, and edits of it.
//!
//! In: the files in `cases/`, embedded. A block is
//!
//! ```text
//! kind v1 configmaps ConfigMap namespaced
//! name conf                                  (optional)
//! settles Established=True                   (optional: a condition that a controller of kube-apiserver sets)
//! sample {"data":{"a":"b"}}
//! create data={"bad key":"x"}                POST of the edited sample
//! update immutable=true                      PUT of the edited stored sample
//! update ! immutable=true => data.a="c"      the same, over a sample that was edited before it was stored
//! status status.phase="X"                    PUT to `status`
//! put approval status.conditions=[]          PUT to another subresource
//! ```
//!
//! and the rows of `every.txt` go for every kind. Out: [`Fixture`]s. Never: a request.

use serde_json::{Value, json};

const FILES: [&str; 19] = [
    include_str!("../cases/core.txt"),
    include_str!("../cases/apps.txt"),
    include_str!("../cases/batch.txt"),
    include_str!("../cases/rbac.txt"),
    include_str!("../cases/coordination.txt"),
    include_str!("../cases/discovery.txt"),
    include_str!("../cases/events.txt"),
    include_str!("../cases/apiextensions.txt"),
    include_str!("../cases/networking.txt"),
    include_str!("../cases/policy.txt"),
    include_str!("../cases/scheduling.txt"),
    include_str!("../cases/storage.txt"),
    include_str!("../cases/node.txt"),
    include_str!("../cases/autoscaling.txt"),
    include_str!("../cases/apiregistration.txt"),
    include_str!("../cases/certificates.txt"),
    include_str!("../cases/flowcontrol.txt"),
    include_str!("../cases/admissionregistration.txt"),
    include_str!("../cases/resource.txt"),
];
const EVERY: &str = include_str!("../cases/every.txt");

/// Name of a sample that says no other.
const NAME: &str = "conf";
/// Namespace of the samples.
pub const NAMESPACE: &str = "conf";

/// A kind, a sample of it, and what is sent.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    pub plural: String,
    pub kind: String,
    pub namespaced: bool,
    pub name: String,
    /// A condition that a controller of kube-apiserver sets, at a time of its own: it is waited for, and the
    /// status is not compared.
    pub settles: Option<String>,
    /// Whole: with type, name and namespace.
    pub sample: Value,
    pub rows: Vec<Case>,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub operation: WriteVerb,
    /// Edits of the sample before it is stored; for updates.
    pub before: String,
    pub edits: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteVerb {
    Create,
    /// The subresource; none is the resource itself.
    Update(Option<String>),
}

/// Every kind of the files.
///
/// # Errors
/// The first line that is none.
pub fn all() -> Result<Vec<Fixture>, String> {
    let every = EVERY.lines().filter_map(|line| row(line).transpose()).collect::<Result<Vec<_>, _>>()?;
    let mut kinds = Vec::new();
    for file in FILES {
        for block in file.split("\n\n").filter(|block| !block.trim().is_empty()) {
            let mut kind = block_of(block)?;
            kind.rows.extend(every.iter().cloned());
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

impl Fixture {
    /// Path of the collection.
    pub fn collection(&self) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        let namespace = if self.namespaced { format!("/namespaces/{NAMESPACE}") } else { String::new() };
        format!("{root}/{}{namespace}/{}", self.api_version, self.plural)
    }

    /// `apps/v1 deployments`.
    pub fn title(&self) -> String {
        format!("{} {}", self.api_version, self.plural)
    }
}

impl Case {
    /// As it stands in a file.
    pub fn title(&self) -> String {
        let verb = match &self.operation {
            WriteVerb::Create => "create".to_owned(),
            WriteVerb::Update(None) => "update".to_owned(),
            WriteVerb::Update(Some(name)) if name == "status" => name.clone(),
            WriteVerb::Update(Some(name)) => format!("put {name}"),
        };
        match self.before.as_str() {
            "" => format!("{verb} {}", self.edits),
            before => format!("{verb} ! {before} => {}", self.edits),
        }
    }
}

fn block_of(block: &str) -> Result<Fixture, String> {
    let mut lines = block.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let ["kind", api_version, plural, kind, scope] = head[..] else {
        return Err(format!("no head: {block}"));
    };
    let namespaced = scope == "namespaced";
    let (mut name, mut sample, mut rows) = (NAME.to_owned(), json!({}), Vec::new());
    let mut settles = None;
    for line in lines {
        match line.split_once(' ') {
            Some(("settles", condition)) => settles = Some(condition.to_owned()),
            Some(("name", given)) => given.clone_into(&mut name),
            Some(("sample", json)) => {
                sample = serde_json::from_str(json).map_err(|e| format!("{kind}: {e}: {json}"))?;
            }
            _ => rows.extend(row(line)?),
        }
    }
    sample["apiVersion"] = api_version.into();
    sample["kind"] = kind.into();
    sample["metadata"]["name"] = name.as_str().into();
    if namespaced {
        sample["metadata"]["namespace"] = NAMESPACE.into();
    }
    let text = |text: &str| text.to_owned();
    Ok(Fixture {
        api_version: text(api_version),
        plural: text(plural),
        kind: text(kind),
        namespaced,
        name,
        settles,
        sample,
        rows,
    })
}

fn row(line: &str) -> Result<Option<Case>, String> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (verb, rest) = line.split_once(' ').ok_or_else(|| format!("no row: {line}"))?;
    let (operation, rest) = match verb {
        "create" => (WriteVerb::Create, rest),
        "update" => (WriteVerb::Update(None), rest),
        "status" => (WriteVerb::Update(Some("status".to_owned())), rest),
        "put" => {
            let (name, rest) = rest.split_once(' ').ok_or_else(|| format!("no subresource: {line}"))?;
            (WriteVerb::Update(Some(name.to_owned())), rest)
        }
        _ => return Err(format!("no verb: {line}")),
    };
    let (before, edits) = match rest.strip_prefix("! ").and_then(|rest| rest.split_once(" => ")) {
        Some((before, edits)) => (before, edits),
        None => ("", rest),
    };
    Ok(Some(Case { operation, before: before.to_owned(), edits: edits.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::edited;

    #[test]
    fn every_kind_has_its_ten_rows_and_each_can_be_applied() {
        for kind in all().expect("cases") {
            assert!(kind.rows.len() >= 10, "{}", kind.title());
            for row in &kind.rows {
                let before = edited(&kind.sample, &row.before);
                let before = before.unwrap_or_else(|why| panic!("{}: {why}", kind.title()));
                edited(&before, &row.edits).unwrap_or_else(|why| panic!("{}: {why}", kind.title()));
            }
        }
    }

    #[test]
    fn a_row_is_written_as_it_is_read() {
        for line in ["create a=1", "update ! a=1 => a=2", "status status.x=1", "put approval a=[]"] {
            assert_eq!(row(line).expect("a row").expect("a row").title(), line);
        }
    }
}
