//! PersistentVolumes and PersistentVolumeClaims.
//!
//! In: v1 values. Out: their cells. Never: a look at other objects.

use forebay_apimachinery::quantity::Precision;
use jiff::Timestamp;
use serde_json::Value;

use crate::lists::joined;
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static PERSISTENT_VOLUME: Printer = Printer::new(
    &[
        NAME,
        string("Capacity", "Size of the volume."),
        string("Access Modes", "Ways the volume can be mounted."),
        string("Reclaim Policy", "What happens to the volume when its claim goes."),
        string("Status", "Whether the volume is free, bound or released."),
        string("Claim", "Claim the volume is bound to."),
        string("StorageClass", "Storage class of the volume."),
        string("VolumeAttributesClass", "Volume attributes class of the volume."),
        string("Reason", "Why the volume is in this state."),
        AGE,
        string("VolumeMode", "Filesystem or block device.").wide(),
    ],
    volume_cells,
);

pub(crate) static PERSISTENT_VOLUME_CLAIM: Printer = Printer::new(
    &[
        NAME,
        string("Status", "Whether the claim is bound."),
        string("Volume", "Volume the claim is bound to."),
        string("Capacity", "Size of the bound volume."),
        string("Access Modes", "Ways the bound volume can be mounted."),
        string("StorageClass", "Storage class of the claim."),
        string("VolumeAttributesClass", "Volume attributes class of the claim."),
        AGE,
        string("VolumeMode", "Filesystem or block device.").wide(),
    ],
    claim_cells,
);

fn volume_cells(volume: Member<'_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (volume.get("spec"), volume.get("status"));
    let claim = spec.get("claimRef");
    let claim = match claim.is_set() {
        true => format!("{}/{}", claim.get("namespace").text(), claim.get("name").text()),
        false => String::new(),
    };
    cells![
        volume.name(),
        storage(spec.get("capacity")),
        access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy").text_or("Retain"),
        phase(volume),
        claim,
        storage_class(volume),
        spec.get("volumeAttributesClassName").text_if_set().unwrap_or("<unset>"),
        status.get("reason").text(),
        volume.age(now),
        spec.get("volumeMode").text_if_set().unwrap_or("Filesystem"),
    ]
}

fn claim_cells(claim: Member<'_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (claim.get("spec"), claim.get("status"));
    let volume = spec.get("volumeName").text();
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (storage(status.get("capacity")), access_modes(status.get("accessModes"))),
    };
    cells![
        claim.name(),
        phase(claim),
        volume,
        capacity,
        modes,
        storage_class(claim),
        spec.get("volumeAttributesClassName").text_if_set().unwrap_or("<unset>"),
        claim.age(now),
        spec.get("volumeMode").text_if_set().unwrap_or("Filesystem"),
    ]
}

fn phase(object: Member<'_>) -> &str {
    match object.is_deleting() {
        true => "Terminating",
        false => object.get("status").get("phase").text_or("Pending"),
    }
}

fn storage(resources: Member<'_>) -> String {
    resources.get("storage").quantity(Precision::Milli).unwrap_or_else(|| "0".to_owned())
}

/// The beta annotation goes before the field, even when it is empty.
fn storage_class(object: Member<'_>) -> &str {
    let annotation = object.annotation("volume.beta.kubernetes.io/storage-class");
    annotation.text_if_set().unwrap_or_else(|| object.get("spec").get("storageClassName").text())
}

/// Short names in a fixed order, unknown modes left out.
fn access_modes(modes: Member<'_>) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| modes.items().any(|item| item.text() == mode);
    joined(SHORT.iter().filter(|(mode, _)| has(mode)).map(|&(_, short)| short), ",")
}
