//! The storage group. CSIStorageCapacity has no printer and gets the default columns.
//!
//! In: v1 values. Out: their cells. Never: a look at other objects.

use jiff::Timestamp;
use serde_json::Value;

use crate::lists::joined;
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, boolean, cells, integer, string};

pub(crate) static STORAGE_CLASS: Printer = Printer::new(
    &[
        NAME,
        string("Provisioner", "Who makes the volumes."),
        string("ReclaimPolicy", "What happens to a volume when its claim goes."),
        string("VolumeBindingMode", "When volumes are made and bound."),
        string("AllowVolumeExpansion", "Whether volumes can grow."),
        AGE,
    ],
    storage_class_cells,
);

pub(crate) static VOLUME_ATTRIBUTES_CLASS: Printer =
    Printer::new(&[NAME, string("DriverName", "CSI driver of the class."), AGE], |class, now| {
        cells![class.name(), class.get("driverName").text(), class.age(now)]
    });

pub(crate) static VOLUME_ATTACHMENT: Printer = Printer::new(
    &[
        NAME,
        string("Attacher", "CSI driver that attaches the volume.").format("name"),
        string("PV", "Volume to attach."),
        string("Node", "Node to attach it to."),
        boolean("Attached", "Whether it is attached."),
        AGE,
    ],
    volume_attachment_cells,
);

pub(crate) static CSI_NODE: Printer =
    Printer::new(&[NAME, integer("Drivers", "Number of CSI drivers on the node."), AGE], |node, now| {
        cells![node.name(), node.get("spec").get("drivers").count(), node.age(now)]
    });

pub(crate) static CSI_DRIVER: Printer = Printer::new(
    &[
        NAME,
        boolean("AttachRequired", "Whether volumes must be attached."),
        boolean("PodInfoOnMount", "Whether mounting needs to know the pod."),
        boolean("StorageCapacity", "Whether scheduling looks at free capacity."),
        string("TokenRequests", "Audiences of the tokens it needs."),
        boolean("RequiresRepublish", "Whether volumes are published again and again."),
        string("Modes", "Lifecycles of volumes it supports."),
        AGE,
    ],
    csi_driver_cells,
);

fn storage_class_cells(class: Member<'_>, now: Timestamp) -> Vec<Value> {
    let is_marked = |key: &str| class.annotation(key).text() == "true";
    let is_default = is_marked("storageclass.kubernetes.io/is-default-class")
        || is_marked("storageclass.beta.kubernetes.io/is-default-class");
    let suffix = if is_default { " (default)" } else { "" };
    cells![
        format!("{}{suffix}", class.name()),
        class.get("provisioner").text(),
        class.get("reclaimPolicy").text_if_set().unwrap_or("Delete"),
        class.get("volumeBindingMode").text_if_set().unwrap_or("Immediate"),
        class.get("allowVolumeExpansion").flag(),
        class.age(now),
    ]
}

fn volume_attachment_cells(attachment: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = attachment.get("spec");
    cells![
        attachment.name(),
        spec.get("attacher").text(),
        spec.get("source").get("persistentVolumeName").text(),
        spec.get("nodeName").text(),
        attachment.get("status").get("attached").flag(),
        attachment.age(now),
    ]
}

fn csi_driver_cells(driver: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = driver.get("spec");
    let audiences = spec.get("tokenRequests").items().map(|request| request.get("audience").text());
    let token_requests = match audiences.len() {
        0 => "<unset>".to_owned(),
        _ => joined(audiences, ","),
    };
    let modes = match spec.get("volumeLifecycleModes").items() {
        modes if modes.len() == 0 => "Persistent".to_owned(),
        modes => joined(modes.map(Member::text), ","),
    };
    cells![
        driver.name(),
        spec.get("attachRequired").flag_if_set().unwrap_or(true),
        spec.get("podInfoOnMount").flag(),
        spec.get("storageCapacity").flag(),
        token_requests,
        spec.get("requiresRepublish").flag(),
        if modes.is_empty() { "<none>".to_owned() } else { modes },
        driver.age(now),
    ]
}
