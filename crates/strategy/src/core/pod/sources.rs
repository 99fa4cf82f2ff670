//! What one source of a volume must say, in a pod and in a persistent volume.
//!
//! In: a source and its name. Out: causes. Never: how many sources there are, what only pods have.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use forebay_apimachinery::json::to_go_text;

use super::iscsi_name::{self, IscsiName};
use super::mounts::no_backsteps;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::value::{Members, child, child_or_empty, int, is_true, list, text, text_opt};

/// Where upstream has a source under another name than the client.
pub fn path_name(name: &str) -> &str {
    if name == "gcePersistentDisk" { "persistentDisk" } else { name }
}

/// Texts that a source must have, by its name.
const REQUIRED: [(&str, &[&str]); 13] = [
    ("glusterfs", &["endpoints", "path"]),
    ("cinder", &["volumeID"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("vsphereVolume", &["volumePath"]),
    ("portworxVolume", &["volumeID"]),
    ("photonPersistentDisk", &["pdID"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("storageos", &["volumeName"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("nfs", &["server", "path"]),
];

/// A source that pods and persistent volumes share.
pub fn one_source(name: &str, source: &Members, at: &Path<'_>, causes: &mut Causes) {
    let of_name = REQUIRED.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, required)| required);
    of_name.iter().for_each(|member| required(source, member, at, causes));
    match name {
        "hostPath" => host_path(source, at, causes),
        "local" => {
            required(source, "path", at, causes);
            no_backsteps(text(source, "path"), &at.child("path"), causes);
        }
        "nfs" if !text(source, "path").starts_with('/') => {
            causes.invalid(&at.child("path"), text(source, "path"), "must be an absolute path");
        }
        "gcePersistentDisk" | "awsElasticBlockStore" => partition(source, at, causes),
        "csi" => csi_driver_name(text(source, "driver"), &at.child("driver"), causes),
        "iscsi" => iscsi(source, at, causes),
        "fc" => fibre_channel(source, at, causes),
        "rbd" | "cephfs" => {
            if list(source, "monitors").is_empty() {
                causes.required(&at.child("monitors"), "");
            }
            if name == "rbd" {
                required(source, "image", at, causes);
            }
        }
        "flexVolume" => flex_options(source, at, causes),
        "quobyte" => {
            quobyte(source, at, causes);
            required(source, "volume", at, causes);
        }
        "storageos" => labels(source, &["volumeName", "volumeNamespace"], at, causes),
        "flocker" => flocker(source, at, causes),
        "azureDisk" => azure_disk(source, at, causes),
        _ => {}
    }
    if matches!(name, "cinder" | "storageos")
        && let Some(secret) = child(source, "secretRef")
    {
        required(secret, "name", &at.child("secretRef"), causes);
    }
}

fn quobyte(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    const TENANT_BYTES_MAX: usize = 64;
    let registry = text(source, "registry");
    if registry.is_empty() {
        causes.required(&at.child("registry"), PAIRS);
    } else if text(source, "tenant").len() > TENANT_BYTES_MAX {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        causes.required(&at.child("tenant"), detail);
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            if causes.is_full() {
                break;
            }
            causes.invalid(&at.child("registry"), registry, PAIRS);
        }
    }
}

/// Whether Go's `net.SplitHostPort` takes it apart: either part may be empty, and a host with colons is in
/// brackets.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(host) => match host.strip_suffix(']') {
            Some(host) => host,
            None => return false,
        },
        None if host.contains(':') => return false,
        None => host,
    };
    !host.contains(['[', ']']) && !port.contains(['[', ']'])
}

fn labels(source: &Members, names: &[&str], at: &Path<'_>, causes: &mut Causes) {
    for name in names {
        let value = text(source, name);
        if !value.is_empty() {
            causes.faults(&at.child(name), value, format::dns1123_label(value));
        }
    }
}

fn required(source: &Members, name: &str, at: &Path<'_>, causes: &mut Causes) {
    if text(source, name).is_empty() {
        causes.required(&at.child(name), "");
    }
}

fn host_path(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    if text(source, "path").is_empty() {
        return causes.required(&at.child("path"), "");
    }
    no_backsteps(text(source, "path"), &at.child("path"), causes);
    if let Some(kind) = text_opt(source, "type").filter(|kind| !TYPES.contains(kind)) {
        causes.not_supported(&at.child("type"), BadValue::shown(to_go_text(&kind.into())), &TYPES);
    }
}

fn partition(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    let partition = int(source, "partition").unwrap_or(0);
    if !(0..=255).contains(&partition) {
        causes.invalid(&at.child("partition"), partition, "must be between 1 and 255, inclusive");
    }
}

/// The name of a CSI driver, in any case.
pub fn csi_driver_name(name: &str, at: &Path<'_>, causes: &mut Causes) {
    const BYTES_MAX: usize = 63;
    if name.is_empty() {
        return causes.required(at, "");
    }
    if name.len() > BYTES_MAX {
        causes.too_long(at, BYTES_MAX);
    }
    causes.faults(at, name, format::dns1123_subdomain(&name.to_lowercase()));
}

fn iscsi(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    iscsi_of(source, "must be valid format starting with iqn, eui, or naa", at, causes);
}

/// - `no_scheme`: what is said of a name that is of none.
fn iscsi_of(source: &Members, no_scheme: &str, at: &Path<'_>, causes: &mut Causes) {
    required(source, "targetPortal", at, causes);
    required(source, "iqn", at, causes);
    for (name, path) in [("iqn", "iqn"), ("initiatorName", "initiatorname")] {
        let Some(iqn) = text_opt(source, name).filter(|iqn| name != "iqn" || !iqn.is_empty()) else {
            continue;
        };
        match iscsi_name::of(iqn) {
            IscsiName::Well => {}
            IscsiName::Malformed => causes.invalid(&at.child(path), iqn, "must be valid format"),
            IscsiName::OfNoScheme => causes.invalid(&at.child(path), iqn, no_scheme),
        }
    }
    lun(int(source, "lun").unwrap_or(0), at, causes);
    let asks = is_true(source, "chapAuthDiscovery") || is_true(source, "chapAuthSession");
    if asks && !source.contains_key("secretRef") {
        causes.required(&at.child("secretRef"), "");
    }
}

/// What is wrong with the portal of an initiator that is named after its volume: with the volume's name and a
/// colon it is too long.
pub fn long_portal(source: &Members, volume: &str) -> Option<&'static str> {
    const BYTES_MAX: usize = 64;
    const DETAIL: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                          iscsi.initiatorName is specified.";
    let bytes = volume.len() + 1 + text(source, "targetPortal").len();
    (source.contains_key("initiatorName") && bytes > BYTES_MAX).then_some(DETAIL)
}

/// A source of a persistent volume, whose secrets are in namespaces.
///
/// - `volume`: the volume's name.
pub fn persistent_source(name: &str, source: &Members, volume: &str, at: &Path<'_>, causes: &mut Causes) {
    match name {
        "iscsi" => {
            if let Some(detail) = long_portal(source, volume) {
                causes.invalid(&at.child("targetportal"), text(source, "targetPortal"), detail);
            }
            iscsi_of(source, "must be valid format", at, causes);
            if let Some(secret) = child(source, "secretRef") {
                required(secret, "name", &at.child("secretRef"), causes);
            }
        }
        _ => one_source(name, source, at, causes),
    }
    match name {
        "azureFile" if text_opt(source, "secretNamespace") == Some("") => {
            causes.required(&at.child("secretNamespace"), "");
        }
        "cinder" | "storageos" => {
            if let Some(secret) = child(source, "secretRef") {
                required(secret, "namespace", &at.child("secretRef"), causes);
            }
        }
        "glusterfs" => match text_opt(source, "endpointsNamespace") {
            Some("") => {
                let detail = "if the endpointnamespace is set, it must be a valid namespace name";
                causes.invalid(&at.child("endpointsNamespace"), "", detail);
            }
            _ => labels(source, &["endpointsNamespace"], at, causes),
        },
        "csi" => {
            required(source, "volumeHandle", at, causes);
            const SECRETS: [&str; 4] = [
                "controllerPublishSecretRef",
                "controllerExpandSecretRef",
                "nodePublishSecretRef",
                "nodeExpandSecretRef",
            ];
            for name in SECRETS {
                if let Some(secret) = child(source, name) {
                    let at = at.child(name);
                    required(secret, "name", &at, causes);
                    let name = text(secret, "name");
                    if !name.is_empty() {
                        causes.faults(&at.child("name"), name, format::dns1123_subdomain(name));
                    }
                    required(secret, "namespace", &at, causes);
                    labels(secret, &["namespace"], &at, causes);
                }
            }
        }
        _ => {}
    }
}

fn lun(lun: i64, at: &Path<'_>, causes: &mut Causes) {
    if !(0..=255).contains(&lun) {
        causes.invalid(&at.child("lun"), lun, "must be between 0 and 255, inclusive");
    }
}

fn fibre_channel(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    let names_at = at.child("targetWWNs");
    match (list(source, "targetWWNs").is_empty(), list(source, "wwids").is_empty()) {
        (true, true) => causes.required(&names_at, "must specify either targetWWNs or wwids, but not both"),
        (false, false) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            causes.invalid(&names_at, source.get("targetWWNs"), detail);
        }
        _ => {}
    }
    if !list(source, "targetWWNs").is_empty() {
        match int(source, "lun") {
            None => causes.required(&at.child("lun"), "lun is required if targetWWNs is specified"),
            Some(number) => lun(number, at, causes),
        }
    }
}

fn flex_options(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child("options");
    for key in child_or_empty(source, "options").keys() {
        let namespace = key.split_once('/').map_or(key.as_str(), |(namespace, _)| namespace);
        let normalized = format!(".{}", namespace.to_lowercase());
        if normalized.ends_with(".kubernetes.io") || normalized.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            causes.invalid(&at.key(key), key.as_str(), detail);
        }
    }
}

fn flocker(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    let (name, uuid) = (text(source, "datasetName"), text(source, "datasetUUID"));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => causes.required(at, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            causes.invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously");
        }
        _ => {}
    }
    if name.contains('/') {
        causes.invalid(&at.child("datasetName"), name, "must not contain '/'");
    }
}

fn azure_disk(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    for (name, values) in
        [("cachingMode", ["None", "ReadOnly", "ReadWrite"]), ("kind", ["Dedicated", "Managed", "Shared"])]
    {
        if let Some(value) = text_opt(source, name).filter(|value| !values.contains(value)) {
            causes.not_supported(&at.child(name), value, &values);
        }
    }
    let (uri, uri_at) = (text(source, "diskURI"), at.child("diskURI"));
    match text_opt(source, "kind") {
        Some("Managed") if !uri.starts_with("/subscriptions/") => {
            causes.not_supported(&uri_at, uri, &[MANAGED]);
        }
        Some(kind) if kind != "Managed" && !uri.starts_with("https://") => {
            causes.not_supported(&uri_at, uri, &[BLOB]);
        }
        _ => {}
    }
}
