//! VolumeAttachments.
//!
//! In: a VolumeAttachment. Out: defaults, what it is stored as, causes. Never: attaches anything.

use crate::core::pod::csi_driver_name;
use crate::core::pod::defaults::{network_source, round_up};
use crate::core::volume;
use crate::field::{Causes, Path};
use crate::format;
use crate::internal;
use crate::lifecycle::{reset_meta, status_apart_without_generation};
use crate::meta::{IMMUTABLE, validate_built_in_create};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::value::{Members, child, child_mut, child_or_empty, entries, int, same_member, text, text_opt};

const METADATA_BYTES_MAX: usize = 256 << 10;
const MESSAGE_BYTES_MAX: usize = 1024;
const SPEC: Path<'static> = Path::root("spec");

pub fn defaults(attachment: &mut Members) {
    let source = child_mut(attachment, "spec").and_then(|spec| child_mut(spec, "source"));
    let Some(volume) = source.and_then(|source| child_mut(source, "inlineVolumeSpec")) else { return };
    network_source(volume);
    if let Some(capacity) = child_mut(volume, "capacity") {
        round_up(capacity);
    }
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, context: &Context<'_>) {
    status_apart_without_generation(new, update, context);
    if update.is_status() {
        reset_meta(new, update.old);
    }
}

pub fn validate(attachment: &Members, causes: &mut Causes) {
    let spec = child_or_empty(attachment, "spec");
    csi_driver_name(text(spec, "attacher"), &SPEC.child("attacher"), causes);
    let (source, at) = (child_or_empty(spec, "source"), SPEC.child("source"));
    source_rules(source, &at, causes);
    let node = text(spec, "nodeName");
    causes.faults(&SPEC.child("nodeName"), node, format::dns1123_subdomain(node));
    status(child_or_empty(attachment, "status"), causes);
    if let Some(name) = text_opt(source, "persistentVolumeName") {
        causes.faults(&at.child("persistentVolumeName"), name, format::dns1123_subdomain(name));
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::Subdomain, causes);
    validate(new, causes);
    if !same_member(new, update.old, "spec") {
        let bad = internal::shown("VolumeAttachmentSpec", child_or_empty(new, "spec"));
        causes.invalid(&SPEC, bad, IMMUTABLE);
    }
}

fn source_rules(source: &Members, at: &Path<'_>, causes: &mut Causes) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (child(source, "inlineVolumeSpec"), text_opt(source, "persistentVolumeName")) {
        (None, None) => causes.required(at, ONE),
        (Some(_), Some(_)) => causes.forbidden(at, ONE),
        (None, Some("")) => {
            causes.required(&at.child("persistentVolumeName"), "must specify non empty persistentVolumeName");
        }
        (None, Some(_)) => {}
        (Some(spec), None) => volume::validate_inline(spec, &at.child("inlineVolumeSpec"), causes),
    }
}

fn status(status: &Members, causes: &mut Causes) {
    let at = Path::root("status");
    let bytes: usize =
        entries(status, "attachmentMetadata").map(|(key, value)| key.len() + value.len()).sum();
    if bytes > METADATA_BYTES_MAX {
        causes.too_long(&at.child("attachmentMetadata"), METADATA_BYTES_MAX);
    }
    for name in ["attachError", "detachError"] {
        let Some(error) = child(status, name) else { continue };
        let at = at.child(name);
        if text(error, "message").len() > MESSAGE_BYTES_MAX {
            // Upstream names the other limit.
            causes.too_long(&at.child("message"), METADATA_BYTES_MAX);
        }
        if let Some(code) = int(error, "errorCode").filter(|code| *code < 0) {
            causes.invalid(&at.child("errorCode"), code, "must be between 0 and 2147483647, inclusive");
        }
    }
}
