//! Objects about the API server itself: APIServices, storage versions and their migration.
//!
//! In: apiregistration.k8s.io/v1, storagemigration.k8s.io/v1beta1, internal.apiserver.k8s.io/v1alpha1 values.
//! Out: their cells. Never: a request to the service.

use jiff::Timestamp;
use serde_json::Value;

use crate::lists::shortened;
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static API_SERVICE: Printer = Printer::new(
    &[
        NAME,
        string("Service", "Service that serves the group, or Local."),
        string("Available", "Whether the service answers."),
        AGE,
    ],
    api_service_cells,
);

pub(crate) static STORAGE_VERSION: Printer = Printer::new(
    &[
        NAME,
        string("CommonEncodingVersion", "Version that all servers write."),
        string("StorageVersions", "Version that each server writes."),
        AGE,
    ],
    storage_version_cells,
);

pub(crate) static STORAGE_VERSION_MIGRATION: Printer = Printer::new(
    &[
        NAME.format(""),
        string("Resource", "Resource that is migrated."),
        string("Status", "How far the migration is."),
    ],
    storage_version_migration_cells,
);

fn api_service_cells(service: Member<'_>, now: Timestamp) -> Vec<Value> {
    let backend = service.get("spec").get("service");
    let backend = match backend.is_set() {
        true => format!("{}/{}", backend.get("namespace").text(), backend.get("name").text()),
        false => "Local".to_owned(),
    };
    cells![service.name(), backend, availability(service.condition("Available")), service.age(now)]
}

/// `False (MissingEndpoints)`
fn availability(condition: Member<'_>) -> String {
    let (status, reason) = (condition.get("status").text(), condition.get("reason").text());
    match (status, reason) {
        _ if !condition.is_set() => "Unknown".to_owned(),
        ("True", _) | (_, "") => status.to_owned(),
        _ => format!("{status} ({reason})"),
    }
}

fn storage_version_cells(version: Member<'_>, now: Timestamp) -> Vec<Value> {
    let status = version.get("status");
    let servers = status.get("storageVersions").items().map(|server| {
        format!("{}={}", server.get("apiServerID").text(), server.get("encodingVersion").text())
    });
    cells![
        version.name(),
        status.get("commonEncodingVersion").text_if_set().unwrap_or("<unset>"),
        shortened(servers),
        version.age(now),
    ]
}

/// The last true condition that names a state is the state.
fn storage_version_migration_cells(migration: Member<'_>, _now: Timestamp) -> Vec<Value> {
    let resource = migration.get("spec").get("resource");
    let resource = match (resource.get("resource").text(), resource.get("group").text()) {
        (resource, "") => resource.to_owned(),
        (resource, group) => format!("{resource}.{group}"),
    };
    let conditions = migration.get("status").get("conditions").items().rev();
    let mut states = conditions.filter(|condition| condition.get("status").text() == "True");
    let state = states.find_map(|condition| {
        let type_ = condition.get("type").text();
        ["Running", "Failed", "Succeeded"].contains(&type_).then_some(type_)
    });
    cells![migration.name(), resource, state.unwrap_or("Unknown")]
}
