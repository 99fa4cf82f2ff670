//! What several plugins do: an item appended, the name of a class, the namespace of what is written.

use forebay_apimachinery::Status;
use forebay_strategy::value::{Members, set};
use serde_json::Value;

use crate::plugin::{ReadFrom, Tools, WriteAttributes};

const NAMESPACES: ReadFrom = ("", "namespaces");

/// Key of the taint of a node that is not ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub fn push(object: &mut Members, name: &str, item: Value) {
    match object.get_mut(name) {
        Some(Value::Array(items)) => items.push(item),
        _ => set(object, name, Some(Value::Array(vec![item]))),
    }
}

pub fn name_of(class: &Value) -> Option<&str> {
    class["metadata"]["name"].as_str()
}

/// The namespace that something is written into, as it is cached, or as it is if it is not.
///
/// # Errors
/// There is none of that name.
pub async fn namespace(write: &WriteAttributes<'_>, tools: &Tools<'_>) -> Result<Value, Status> {
    let name = write.of.namespace;
    let found = match tools.lookup.cached(NAMESPACES, "", name) {
        Some(found) => Some(found),
        None => tools.lookup.live(NAMESPACES, "", name).wait().await?,
    };
    let found = found.ok_or_else(|| Status::not_found("", "namespaces", name))?;
    serde_json::from_slice(&found.untyped_json()).map_err(Status::internal)
}
