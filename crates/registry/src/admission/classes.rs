//! What plugins fill in of claims and Ingresses: their class. And that only one class of priority is the default.
//!
//! In: an object, and the classes that there are. Out: the same filled in, or why it is refused. Never: IO.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/{storage/storageclass/setdefault,network/defaultingressclass,priority}`.

use serde_json::Value;

use super::plugins::{ClassKind, Classes, INGRESS, PRIORITY, STORAGE};
use forebay_strategy::value::{Members, child_made, child_or_empty, is_true, set, text};

/// A claim that says nothing of its class gets the default one.
pub fn storage_class(claim: &mut Members, classes: &Classes) -> Result<(), String> {
    const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
    const MARKS: [&str; 2] =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    if !has_annotation(claim, BETA_CLASS) {
        fill_in(claim, "storageClassName", default_of(classes, STORAGE, &MARKS));
    }
    Ok(())
}

/// An Ingress that says nothing of its class gets the default one.
pub fn ingress_class(ingress: &mut Members, classes: &Classes) -> Result<(), String> {
    const OLD_CLASS: &str = "kubernetes.io/ingress.class";
    const MARKS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];
    if !has_annotation(ingress, OLD_CLASS) {
        fill_in(ingress, "ingressClassName", default_of(classes, INGRESS, &MARKS));
    }
    Ok(())
}

/// A second default is refused.
pub fn only_one_default(class: &Members, classes: &Classes) -> Result<(), String> {
    if !is_true(class, "globalDefault") {
        return Ok(());
    }
    let own = text(child_or_empty(class, "metadata"), "name");
    let others = classes.marked(PRIORITY, "\"globalDefault\":true").into_iter();
    let others = others.filter(|other| other["globalDefault"] == true);
    match others
        .min_by_key(|other| other["value"].as_i64())
        .as_ref()
        .and_then(name_of)
        .filter(|name| *name != own)
    {
        Some(name) => {
            Err(format!("PriorityClass {name} is already marked as default. Only one default can exist"))
        }
        None => Ok(()),
    }
}

fn has_annotation(object: &Members, name: &str) -> bool {
    child_or_empty(child_or_empty(object, "metadata"), "annotations").contains_key(name)
}

fn fill_in(object: &mut Members, name: &str, class: Option<String>) {
    let spec = child_made(object, "spec");
    if let Some(class) = class.filter(|_| !spec.contains_key(name)) {
        set(spec, name, Some(class.into()));
    }
}

fn name_of(class: &Value) -> Option<&str> {
    class["metadata"]["name"].as_str()
}

/// The newest class that one of the annotations marks as the default; of equally new ones the first by name.
fn default_of(classes: &Classes, kind: ClassKind, marks: &[&str]) -> Option<String> {
    let mut marked: Vec<Value> = classes.marked(kind, "/is-default-class\":\"true\"");
    // Few: the annotations that mark a default.
    marked.retain(|class| marks.iter().any(|mark| class["metadata"]["annotations"][*mark] == "true"));
    let newest = marked
        .iter()
        .filter_map(|class| Some((class["metadata"]["creationTimestamp"].as_str()?, name_of(class)?)));
    // RFC 3339 in UTC sorts as time does.
    newest.min_by(|a, b| b.0.cmp(a.0).then(a.1.cmp(b.1))).map(|(_, name)| name.to_string())
}
