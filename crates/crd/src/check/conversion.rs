//! Conversion between the versions of a CRD: none, or by a webhook. Only its form is judged.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::Seen;
use serde_json::Value;

use super::leniency::Leniency;
use super::printed;
use crate::field::{BadValue, Faults, FieldError, Path};
use crate::format::Url;
use crate::names;
use crate::props::Props;
use crate::spec::{self, Spec};

/// Versions of ConversionReview that are understood.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn validate(spec: &Spec<'_>, leniency: &Leniency<'_>, path: &Path<'_>) -> Faults {
    let mut errors = Faults::default();
    let Some(conversion) = spec.spec.object("conversion") else { return errors };
    let (strategy, at) = (conversion.str("strategy"), path.child("strategy"));
    if strategy != "None" && spec.preserve_unknown_fields() {
        let value = Value::from(strategy);
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&at, BadValue::Encoded(&value), detail));
    }
    match strategy {
        "" => errors.push(FieldError::required(&at, "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(&at, BadValue::Text(other), &["None", "Webhook"])),
    }
    let webhook = conversion.object("webhook").unwrap_or(Props::EMPTY);
    let client = webhook.object("clientConfig");
    let review_at = path.child("conversionReviewVersions");
    let client_at = path.child("webhookClientConfig");
    if strategy == "Webhook" {
        match client {
            None => errors.push(FieldError::required(&client_at, "required when strategy is set to Webhook")),
            Some(client) => errors.extend(client_config(client, leniency, &client_at)),
        }
        errors.extend(review_versions(webhook, leniency, &review_at));
    } else {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(&client_at, detail));
        }
        if webhook.strings("conversionReviewVersions").next().is_some() {
            errors.push(FieldError::forbidden(&review_at, detail));
        }
    }
    errors
}

/// How a webhook is called: exactly one of a URL and a service, and each as it should be.
pub(super) fn client(client: Props<'_>, path: &Path<'_>) -> Faults {
    match (client.opt_str("url"), client.object("service")) {
        (Some(url), None) => webhook_url(url, &path.child("url")),
        (None, Some(service)) => webhook_service(service, &path.child("service")),
        _ => Faults::from_iter([FieldError::required(path, "exactly one of url or service is required")]),
    }
}

fn client_config(config: Props<'_>, leniency: &Leniency<'_>, path: &Path<'_>) -> Faults {
    let mut errors = client(config, path);
    if !leniency.allow_bad_ca
        && let Some(error) = ca_error(config.str("caBundle"))
    {
        let value = config.get("caBundle").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(&path.child("caBundle"), BadValue::Encoded(value), error));
    }
    errors
}

fn webhook_url(text: &str, path: &Path<'_>) -> Faults {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            let detail = format!("url must be a valid URL: {error}{FORM}");
            return Faults::from_iter([FieldError::required(path, detail)]);
        }
    };
    let mut errors = Faults::default();
    let mut check = |wrong: bool, value: &str, detail: &str| {
        if wrong {
            errors.push(FieldError::invalid(path, BadValue::Text(value), detail));
        }
    };
    check(url.scheme != "https", &url.scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    check(url.host.is_empty(), &url.host, &format!("host must be specified{FORM}"));
    let user = url.user.as_deref();
    check(user.is_some(), user.unwrap_or(""), "user information is not permitted in the URL");
    check(!url.fragment.is_empty(), &url.fragment, "fragments are not permitted in the URL");
    check(!url.query.is_empty(), &url.query, "query parameters are not permitted in the URL");
    errors
}

fn webhook_service(service: Props<'_>, path: &Path<'_>) -> Faults {
    let mut errors = Faults::default();
    // Kubernetes confuses the two: a missing namespace is reported as a missing name and the other way
    // around.
    for (missing, reported) in [("namespace", "name"), ("name", "namespace")] {
        if service.str(missing).is_empty() {
            errors.push(FieldError::required(&path.child(reported), ""));
        }
    }
    let port = service.int("port").unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), BadValue::Int(port), detail));
    }
    errors.extend(service_path(service.str("path"), &path.child("path")));
    errors
}

fn service_path(text: &str, path: &Path<'_>) -> Faults {
    let mut errors = Faults::default();
    let invalid = |detail: &str| FieldError::invalid(path, BadValue::Text(text), detail);
    match text {
        "" | "/" => return errors,
        "//" => return Faults::from_iter([invalid("segment[0] may not be empty")]),
        _ => {}
    }
    if !text.starts_with('/') {
        errors.push(invalid("must start with a '/'"));
    }
    // The first character is passed over whatever it is.
    let mut chars = text.chars();
    chars.next();
    let rest = chars.as_str();
    for (i, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        // Each fault repeats the path.
        if errors.is_full() {
            break;
        }
        match step {
            "" => errors.push(invalid(&format!("segment[{i}] may not be empty"))),
            step => {
                let wrong = names::dns1123_subdomain(step);
                errors.extend(wrong.iter().map(|wrong| invalid(&format!("segment[{i}]: {wrong}"))));
            }
        }
    }
    errors
}

fn review_versions(webhook: Props<'_>, leniency: &Leniency<'_>, path: &Path<'_>) -> Faults {
    let versions: Vec<&str> = webhook.strings("conversionReviewVersions").collect();
    if versions.is_empty() {
        return Faults::from_iter([FieldError::required(path, "")]);
    }
    let (mut errors, mut seen) = (Faults::default(), Seen::default());
    for (i, version) in versions.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(i);
        if seen.again(version) {
            errors.push(FieldError::invalid(&path, BadValue::Text(version), "duplicate version"));
            continue;
        }
        let wrong = names::dns1035_label(version);
        errors.extend(
            wrong.into_iter().map(|wrong| FieldError::invalid(&path, BadValue::Text(version), wrong)),
        );
    }
    // Once: for the whole list.
    if leniency.require_recognized_review_version && !versions.iter().any(|v| REVIEW_VERSIONS.contains(v)) {
        let printed = printed::strings(webhook, "conversionReviewVersions");
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, BadValue::shown(&printed), detail));
    }
    errors
}

/// Whether a stored CRD names no review version, or one that is understood.
pub(super) fn has_recognized_version_or_none(spec: &Spec<'_>) -> bool {
    let Some(webhook) = spec.spec.object("conversion").and_then(|c| c.object("webhook")) else { return true };
    let mut versions = webhook.strings("conversionReviewVersions").peekable();
    versions.peek().is_none() || versions.any(|version| REVIEW_VERSIONS.contains(&version))
}

/// Whether an update of the CRD may name certificates that cannot be read.
pub(super) fn allows_bad_ca(old: &Value) -> bool {
    if !spec::is_true(old, "Established") {
        return true;
    }
    ca_error(ca_bundle(&Spec::of(old))).is_some()
}

fn ca_bundle<'a>(spec: &Spec<'a>) -> &'a str {
    let client = spec
        .spec
        .object("conversion")
        .and_then(|c| c.object("webhook"))
        .and_then(|w| w.object("clientConfig"));
    client.map_or("", |client| client.str("caBundle"))
}

/// Whether a CRD's conversion names certificates that cannot be read.
pub(crate) fn has_bad_ca(crd: &Value) -> bool {
    ca_error(ca_bundle(&Spec::of(crd))).is_some()
}

/// Why base64 of PEM certificates cannot be read. The certificates themselves are not opened.
fn ca_error(bundle: &str) -> Option<String> {
    if bundle.is_empty() {
        return None;
    }
    let bytes = STANDARD.decode(bundle).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let has = |label: &str| {
        // Few: a text is searched, four times.
        text.contains(&format!("-----BEGIN {label}-----")) && text.contains(&format!("-----END {label}-----"))
    };
    let reason = match (has("CERTIFICATE"), text.contains("-----BEGIN ")) {
        (true, _) => return None,
        (false, true) => "no valid certificate authority data seen",
        (false, false) => "unable to parse bytes as PEM block",
    };
    Some(format!("unable to load root certificates: {reason}"))
}
