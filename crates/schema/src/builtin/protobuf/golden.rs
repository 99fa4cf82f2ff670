//! Kubernetes' golden objects, by the table's kinds.
//!
//! In: golden files. Out: those of which the table has the kind, as JSON and as a message. Never: reads a
//! file itself.

use forebay_apimachinery::Lease;
use forebay_golden::{API, EXTENSIONS};
use serde_json::Value;

use super::super::codec::{normalize, write_json};
use super::super::{Kind, table};
use super::*;

/// A kind's golden files.
pub(super) struct Golden {
    pub(super) name: String,
    pub(super) kind: &'static Kind,
    pub(super) json: Value, // without kind and apiVersion
    pub(super) body: Vec<u8>,
}

/// Returns the golden files of all kinds that the table has; `None` after a skip was announced.
pub(super) fn goldens() -> Option<Vec<Golden>> {
    let found = forebay_golden::goldens(&[API, EXTENSIONS])?;
    Some(found.into_iter().filter_map(of_table).collect())
}

fn of_table(golden: forebay_golden::Golden) -> Option<Golden> {
    let forebay_golden::Golden { name, json, protobuf: body } = golden;
    let mut json: Value = serde_json::from_str(&json).unwrap();
    let envelope = decode_envelope(&body).unwrap();
    let (group, version) = envelope.api_version.split_once('/').unwrap_or(("", &envelope.api_version));
    let kind = match &*envelope.kind {
        "" => table().kind("", "v1", name.strip_prefix("core.v1.")?), // WatchEvent does not say what it is
        kind => table().kind(group, version, kind),
    }?;
    let members = json.as_object_mut().unwrap();
    assert_eq!(members.remove("apiVersion").unwrap_or_default().as_str().unwrap_or(""), envelope.api_version);
    assert_eq!(members.remove("kind").unwrap_or_default().as_str().unwrap_or(""), envelope.kind, "{name}");
    Some(Golden { name, kind, json, body })
}

#[test]
fn every_golden_decodes_to_its_json() {
    let Some(goldens) = goldens() else { return };
    assert!(goldens.len() > 180, "{}", goldens.len());
    for golden in goldens {
        let ty = golden.kind.ty;
        let mut want = golden.json;
        assert_eq!(normalize(ty, &mut want).unwrap(), [], "{}", golden.name);
        let got = decode(ty, decode_envelope(&golden.body).unwrap().raw, &Lease::of_server()).unwrap();
        let known = decode_known(ty, decode_envelope(&golden.body).unwrap().raw, &Lease::of_server());
        assert_eq!(known.as_ref(), Ok(&got), "{}", golden.name);
        let mut again = got.clone();
        assert_eq!(normalize(ty, &mut again).unwrap(), [], "{}", golden.name);
        assert_eq!(again, got, "{}", golden.name);
        let written = |value| {
            let mut out = Vec::new();
            write_json(ty, value, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&got), written(&want), "{}", golden.name);
        assert_eq!(got, want, "{}", golden.name);
    }
}

#[test]
fn every_golden_is_written_from_its_json() {
    for golden in goldens().unwrap_or_default() {
        let Golden { name, kind, mut json, body } = golden;
        normalize(kind.ty, &mut json).unwrap();
        let want = decode_envelope(&body).unwrap();
        let (mut message, mut got) = (Vec::new(), Vec::new());
        encode(kind.ty, &json, &mut message).unwrap();
        Envelope::new(&want.api_version, &want.kind).write(&message, &mut got);
        assert!(got == body, "{name}: {:?}", decode_envelope(&got).unwrap().raw);
    }
}
