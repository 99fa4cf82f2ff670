//! Probes and lifecycle hooks.
//!
//! In: a container's probes and hooks. Out: causes. Never: runs them.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use crate::core::service_rules::port_or_name;
use crate::counts::not_negative;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::value::{Members, child, int, list, objects, text};

/// Liveness, readiness and startup probes.
pub fn probes(container: &Members, grace: i64, at: &Path<'_>, causes: &mut Causes) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = child(container, name) else { continue };
        let at = at.child(name);
        handler(probe, grace, &at, causes);
        for number in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            not_negative(probe, number, &at, causes);
        }
        let own_grace = int(probe, "terminationGracePeriodSeconds");
        if let Some(seconds) = own_grace.filter(|seconds| *seconds <= 0) {
            causes.invalid(&at.child("terminationGracePeriodSeconds"), seconds, "must be greater than 0");
        }
        let threshold = int(probe, "successThreshold").unwrap_or(0);
        if name != "readinessProbe" && threshold != 1 {
            causes.invalid(&at.child("successThreshold"), threshold, "must be 1");
        }
        if let (Some(seconds), "readinessProbe") = (own_grace, name) {
            let detail = "must not be set for readinessProbes";
            causes.invalid(&at.child("terminationGracePeriodSeconds"), seconds, detail);
        }
    }
}

/// What runs after a container starts and before it stops.
pub fn hooks(container: &Members, grace: i64, at: &Path<'_>, causes: &mut Causes) {
    let Some(lifecycle) = child(container, "lifecycle") else { return };
    let at = at.child("lifecycle");
    for name in ["postStart", "preStop"] {
        if let Some(hook) = child(lifecycle, name) {
            handler(hook, grace, &at.child(name), causes);
        }
    }
}

/// Exactly one way to ask.
fn handler(handler: &Members, grace: i64, at: &Path<'_>, causes: &mut Causes) {
    let mut found = false;
    for name in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = child(handler, name) else { continue };
        let at = at.child(name);
        if found {
            causes.forbidden(&at, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match name {
            "exec" if list(action, "command").is_empty() => causes.required(&at.child("command"), ""),
            "exec" => {}
            "httpGet" => http_get(action, &at, causes),
            "sleep" => sleep(action, grace, &at, causes),
            _ => port_or_name(action.get("port"), &at.child("port"), causes),
        }
    }
    if !found {
        causes.required(at, "must specify a handler type");
    }
}

fn http_get(get: &Members, at: &Path<'_>, causes: &mut Causes) {
    const SCHEMES: [&str; 2] = ["HTTP", "HTTPS"];
    if text(get, "path").is_empty() {
        causes.required(&at.child("path"), "");
    }
    port_or_name(get.get("port"), &at.child("port"), causes);
    let scheme = text(get, "scheme");
    if !SCHEMES.contains(&scheme) {
        causes.not_supported(&at.child("scheme"), scheme, &SCHEMES);
    }
    for header in objects(get, "httpHeaders") {
        let name = text(header, "name");
        if let Some(fault) = format::header_name(name) {
            causes.invalid(&at.child("httpHeaders"), name, fault);
        }
    }
}

fn sleep(sleep: &Members, grace: i64, at: &Path<'_>, causes: &mut Causes) {
    let seconds = int(sleep, "seconds").unwrap_or(0);
    if seconds < 0 || seconds > grace {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        causes.invalid(at, BadValue::Int(seconds), &detail);
    }
}
