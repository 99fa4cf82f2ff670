//! Secrets.
//!
//! In: a Secret. Out: `stringData` taken into `data`, its type; causes. Never: shows what is in it.
//!
//! Source: kubernetes v1.36.3 `apis/core/{v1,validation}`, `registry/core/secret`.

use forebay_apimachinery::{Lease, json};
use serde_json::Value;

use super::base64;
use super::config_map::{DATA_BYTES_MAX, unchanged_once_immutable};
use super::key_pair;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::meta::{IMMUTABLE, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::rule::{Context, Update};
use crate::value::{
    Members, child_made, child_or_empty, default_text, entries, same_member, take_over, text,
};

pub fn defaults(secret: &mut Members) {
    if let Some(Value::Object(plain)) = secret.remove("stringData")
        && !plain.is_empty()
    {
        let data = child_made(secret, "data");
        for (key, value) in plain {
            data.insert(key, base64::encode(value.as_str().unwrap_or("").as_bytes()).into());
        }
    }
    default_text(secret, "type", "Opaque");
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    if text(new, "type").is_empty() {
        take_over(new, update.old, "type");
    }
}

pub fn validate_create(secret: &Members, causes: &mut Causes) {
    let at = Path::root("data");
    let mut bytes = 0;
    for (key, value) in entries(secret, "data") {
        causes.faults(&at.key(key), key, format::config_key(key));
        bytes += base64::decoded_len(value);
    }
    if bytes > DATA_BYTES_MAX {
        causes.too_long(&at, DATA_BYTES_MAX);
    }
    what_its_type_needs(secret, &at, causes);
}

fn what_its_type_needs(secret: &Members, at: &Path<'_>, causes: &mut Causes) {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let data = child_or_empty(secret, "data");
    let has = |key| data.contains_key(key);
    match text(secret, "type") {
        "kubernetes.io/service-account-token" => {
            let annotations = child_or_empty(child_or_empty(secret, "metadata"), "annotations");
            if text(annotations, ACCOUNT).is_empty() {
                causes.required(&Path::root("metadata").child("annotations").key(ACCOUNT), "");
            }
        }
        "kubernetes.io/dockercfg" => json_object(data, ".dockercfg", at, causes),
        "kubernetes.io/dockerconfigjson" => json_object(data, ".dockerconfigjson", at, causes),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            causes.required(&at.key("username"), "");
            causes.required(&at.key("password"), "");
        }
        "kubernetes.io/ssh-auth" if text(data, "ssh-privatekey").is_empty() => {
            causes.required(&at.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)) {
                causes.required(&at.key(key), "");
            }
        }
        _ => {}
    }
}

fn json_object(data: &Members, key: &str, at: &Path<'_>, causes: &mut Causes) {
    if !data.contains_key(key) {
        return causes.required(&at.key(key), "");
    }
    let content = base64::decode(text(data, key));
    if let Some(fault) = not_an_object(&content) {
        causes.invalid(&at.key(key), "<secret contents redacted>", &fault);
    }
}

/// What Go's decoder says of JSON that it cannot read into a map.
fn not_an_object(content: &[u8]) -> Option<String> {
    let parsed = match json::parse(content, &Lease::of_one_tree()) {
        Err(error) => return Some(error.to_string()),
        Ok(parsed) => parsed.value,
    };
    if matches!(parsed, Value::Object(_) | Value::Null) {
        return None;
    }
    let what = json::kind_of(&parsed);
    Some(format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"))
}

/// What is wrong with the certificate and the key of one for TLS: it is taken nevertheless.
pub fn warning(secret: &Members) -> Option<String> {
    let data = child_or_empty(secret, "data");
    let part = |key| base64::decode(text(data, key));
    (text(secret, "type") == "kubernetes.io/tls")
        .then(|| key_pair::fault(&part("tls.crt"), &part("tls.key")))?
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    if !same_member(new, old, "type") {
        causes.invalid(&Path::root("type"), BadValue::Text(text(new, "type")), IMMUTABLE);
    }
    unchanged_once_immutable(new, old, &["data"], causes);
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate_create(new, causes);
}
