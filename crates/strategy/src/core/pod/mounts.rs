//! Where a container finds its volumes.
//!
//! In: a container, and the volumes that its pod has. Out: causes. Never: the volumes themselves.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use std::collections::HashMap;

use forebay_apimachinery::Seen;

use crate::field::{Causes, Path};
use crate::value::{Members, child_or_empty, is_true, objects, text, text_opt};

/// A pod's volumes that are well made: by name, and whether one can be a device.
pub type Known<'o> = HashMap<&'o str, bool>;

/// Volumes that a container names, and where it has them.
struct Places<'o> {
    names: Seen<&'o str>,
    paths: Seen<&'o str>,
}

impl<'o> Places<'o> {
    fn of(container: &'o Members, list: &str, path: &str) -> Places<'o> {
        Places {
            names: objects(container, list).map(|of| text(of, "name")).collect(),
            paths: objects(container, list).map(|of| text(of, path)).collect(),
        }
    }
}

/// `volumeMounts` and `volumeDevices`.
pub fn validate(container: &Members, known: &Known<'_>, at: &Path<'_>, causes: &mut Causes) {
    let mounts = Places::of(container, "volumeMounts", "mountPath");
    let devices = Places::of(container, "volumeDevices", "devicePath");
    let mut before = Seen::default();
    for (index, mount) in objects(container, "volumeMounts").enumerate() {
        let is_first = !before.again(text(mount, "mountPath"));
        one_mount(container, mount, is_first, &devices, known, (&at.child("volumeMounts"), index), causes);
    }
    let mut before = Places { names: Seen::default(), paths: Seen::default() };
    for (index, device) in objects(container, "volumeDevices").enumerate() {
        one_device(device, &mut before, &mounts, known, &at.child("volumeDevices").index(index), causes);
    }
}

/// - `is_first`: nothing before it is mounted at its path.
/// - `place`: where the list is, and the mount in it.
fn one_mount(
    container: &Members,
    mount: &Members,
    is_first: bool,
    devices: &Places<'_>,
    known: &Known<'_>,
    (list_at, index): (&Path<'_>, usize),
    causes: &mut Causes,
) {
    let at = list_at.index(index);
    let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
    if name.is_empty() {
        causes.required(&at.child("name"), "");
    }
    if !known.contains_key(name) {
        causes.not_found(&at.child("name"), name);
    }
    if path.is_empty() {
        causes.required(&at.child("mountPath"), "");
    }
    if !is_first {
        causes.invalid(&at.child("mountPath"), path, "must be unique");
    }
    if devices.names.has(name) {
        causes.invalid(&at.child("name"), name, "must not already exist in volumeDevices");
    }
    if devices.paths.has(path) {
        causes.invalid(&at.child("mountPath"), path, "must not already exist as a path in volumeDevices");
    }
    sub_paths(mount, list_at, &at, causes);
    propagation(container, mount, &list_at.child("mountPropagation"), causes);
    read_only(mount, &list_at.child("recursiveReadOnly"), causes);
}

fn sub_paths(mount: &Members, list_at: &Path<'_>, at: &Path<'_>, causes: &mut Causes) {
    let (path, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    if !path.is_empty() {
        descending_path(path, &list_at.child("subPath"), causes);
    }
    if expression.is_empty() {
        return;
    }
    if !path.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        causes.invalid(&at.child("subPathExpr"), expression, detail);
    }
    descending_path(expression, &list_at.child("subPathExpr"), causes);
}

/// A path that stays below where it starts.
pub fn descending_path(path: &str, at: &Path<'_>, causes: &mut Causes) {
    if path.starts_with('/') {
        causes.invalid(at, path, "must be a relative path");
    }
    no_backsteps(path, at, causes);
}

/// A path without `..`.
pub fn no_backsteps(path: &str, at: &Path<'_>, causes: &mut Causes) {
    if path.split('/').any(|part| part == "..") {
        causes.invalid(at, path, "must not contain '..'");
    }
}

fn propagation(container: &Members, mount: &Members, at: &Path<'_>, causes: &mut Causes) {
    const MODES: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
    let Some(mode) = text_opt(mount, "mountPropagation") else { return };
    if !MODES.contains(&mode) {
        causes.not_supported(at, mode, &MODES);
    }
    if mode == "Bidirectional" && !is_true(child_or_empty(container, "securityContext"), "privileged") {
        causes.forbidden(at, "Bidirectional mount propagation is available only to privileged containers");
    }
}

fn read_only(mount: &Members, at: &Path<'_>, causes: &mut Causes) {
    const MODES: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];
    match text_opt(mount, "recursiveReadOnly") {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !is_true(mount, "readOnly") {
                causes.forbidden(at, "may only be specified when readOnly is true");
            }
            if !matches!(text(mount, "mountPropagation"), "" | "None") {
                causes.forbidden(at, "may only be specified when mountPropagation is None or not specified");
            }
        }
        Some(other) => causes.not_supported(at, other, &MODES),
    }
}

fn one_device<'o>(
    device: &'o Members,
    before: &mut Places<'o>,
    mounts: &Places<'_>,
    known: &Known<'_>,
    at: &Path<'_>,
    causes: &mut Causes,
) {
    let (name, path) = (text(device, "name"), text(device, "devicePath"));
    if name.is_empty() {
        causes.required(&at.child("name"), "");
    }
    if before.names.again(name) && !name.is_empty() {
        causes.invalid(&at.child("name"), name, "must be unique");
    }
    match known.get(name) {
        None => causes.not_found(&at.child("name"), name),
        Some(true) => {}
        Some(false) => {
            let detail =
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            causes.invalid(&at.child("name"), name, detail);
        }
    }
    if path.is_empty() {
        causes.required(&at.child("devicePath"), "");
    }
    if before.paths.again(path) {
        causes.invalid(&at.child("devicePath"), path, "must be unique");
    }
    if path.split('/').any(|part| part == "..") {
        causes.invalid(&at.child("devicePath"), path, "can not contain backsteps ('..')");
    }
    if mounts.names.has(name) {
        causes.invalid(&at.child("name"), name, "must not already exist in volumeMounts");
    }
    if mounts.paths.has(path) {
        causes.invalid(&at.child("devicePath"), path, "must not already exist as a path in volumeMounts");
    }
}
