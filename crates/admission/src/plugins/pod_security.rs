//! PodSecurity: pods keep to the level of their namespace, and who makes something that makes pods, or raises
//! a level, is told what will not.
//!
//! A miss in the cache of namespaces is judged on the live one: another server may have made it a moment ago.
//!
//! Source: pod-security-admission v0.36.3 `admission/admission.go`; kubernetes v1.36.3
//! `plugin/pkg/admission/security/podsecurity`.

use forebay_api::{Eventual, told_together};
use forebay_apimachinery::Status;
use forebay_pod_security::{
    LevelVersion, SecurityConfiguration, SecurityLevel, Standards, Violations, changes_images, faults,
    spec_and_meta,
};
use forebay_strategy::value::{Members, child_or_empty, text};
use serde_json::Value;

use super::{existing_pods, fill};
use crate::plugin::{Admitted, Note, Plugin, ReadFrom, Tools, WriteAttributes};

const NAMESPACES: ReadFrom = ("", "namespaces");

/// Subresources of pods that bring nothing that a level looks at.
const IGNORED: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

pub struct PodSecurity;

impl Plugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        let subresource = write.of.subresource;
        let is_of = match (write.of.group, write.of.resource) {
            ("", "pods") => !IGNORED.contains(&subresource),
            ("", "namespaces" | "replicationcontrollers" | "podtemplates")
            | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
            | ("batch", "jobs" | "cronjobs") => subresource.is_empty(),
            _ => false,
        };
        is_of && (write.creates() || write.updates())
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let Some(object) = object.as_object() else { return Eventual::Now(Ok(())) };
        let is_pod = match write.of.resource {
            "namespaces" => return Eventual::Now(labels_say_something(write, object, tools.security)),
            resource => resource == "pods",
        };
        if !is_pod && tools.audit.is_none() {
            return Eventual::Now(Ok(()));
        }
        let judged = move |of: Result<Standards, String>| {
            if let Some(note) = tools.audit {
                note_what_is_found(write, object, (tools.security, of.as_ref()), note);
            }
            if is_pod { may_run(write, object, (tools.security, of.ok())) } else { Ok(()) }
        };
        match of_namespace(write, tools) {
            Some(known) => Eventual::Now(judged(Ok(known))),
            None => Eventual::later(async move { judged(of_live_namespace(write, tools).await) }),
        }
    }

    fn warnings<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Eventual<'a, Vec<String>> {
        let (old, Some(object)) = (write.old.and_then(Value::as_object), object.as_object()) else {
            return Eventual::Now(Vec::new());
        };
        match (write.of.resource, old) {
            ("namespaces", old) => Eventual::later(of_a_higher_level(object, old, tools)),
            _ if is_exempt(write, object, tools.security) => Eventual::Now(Vec::new()),
            _ => match of_namespace(write, tools) {
                Some(known) => Eventual::Now(would_not_run(write, object, known.warn)),
                None => Eventual::later(async move {
                    let known = of_live_namespace(write, tools).await;
                    known.map(|known| would_not_run(write, object, known.warn)).unwrap_or_default()
                }),
            },
        }
    }
}

/// Refuses labels that say nothing; those that said nothing before are let be.
fn labels_say_something(
    write: &WriteAttributes<'_>,
    namespace: &Members,
    security: &SecurityConfiguration,
) -> Result<(), Status> {
    let causes = standards(namespace, security).causes;
    let old = write.old.and_then(Value::as_object).map(|old| standards(old, security).causes);
    if causes.is_empty() || old.as_ref() == Some(&causes) {
        return Ok(());
    }
    let name = text(child_or_empty(namespace, "metadata"), "name");
    Err(Status::invalid("", "Namespace", name, causes))
}

/// - `of`: what is asked for, if that is known.
fn may_run(
    write: &WriteAttributes<'_>,
    pod: &Members,
    (security, of): (&SecurityConfiguration, Option<Standards>),
) -> Result<(), Status> {
    if is_exempt(write, pod, security) {
        return Ok(());
    }
    let Some(standards) = of else { return Err(Status::internal(not_found(write))) };
    if standards.enforce.level == SecurityLevel::Privileged || is_let_be(write, pod) {
        return Ok(());
    }
    let found = found(standards.enforce, write, pod);
    if found.is_empty() {
        return Ok(());
    }
    let why = format!("violates PodSecurity \"{}\": {}", standards.enforce, found.details());
    Err(write.forbidden_as(name_asked(pod), &why))
}

/// Notes what an audit log has of it: by which level it is judged, why it is not, and what it has against the
/// level that is only noted of.
///
/// - `of`: what is asked for; or why that is not known.
fn note_what_is_found(
    write: &WriteAttributes<'_>,
    object: &Members,
    (security, of): (&SecurityConfiguration, Result<&Standards, &String>),
    note: Note<'_>,
) {
    let say = |name: &str, value: String| note(format!("pod-security.kubernetes.io/{name}"), value);
    if security.exempts_namespace(write.of.namespace) {
        return say("exempt", "namespace".into());
    }
    if write.caller.is_some_and(|caller| security.exempts_user(&caller.name)) {
        return say("exempt", "user".into());
    }
    let is_pod = write.of.resource == "pods";
    let standards = match of {
        Ok(standards) => standards,
        Err(why) if is_pod => {
            return say("error", format!("{}: {why}", Status::internal(not_found(write)).message));
        }
        Err(why) => return say("error", format!("{}: {why}", not_found(write))),
    };
    let is_free = |levels: &[LevelVersion]| {
        standards.causes.is_empty() && levels.iter().all(|at| at.level == SecurityLevel::Privileged)
    };
    if is_pod && is_free(&[standards.enforce, standards.audit, standards.warn]) {
        return say("enforce-policy", "privileged:latest".into());
    }
    if is_let_be(write, object) || !is_pod && is_free(&[standards.audit, standards.warn]) {
        return;
    }
    let Some((meta, spec)) = spec_and_meta(write.of.group, write.of.resource, object) else { return };
    if security.exempts_runtime_class(text(spec, "runtimeClassName")) {
        return say("exempt", "runtimeClass".into());
    }
    if !standards.causes.is_empty() {
        let causes: Vec<String> =
            standards.causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        say("error", format!("Failed to parse policy: {}", told_together(&causes)));
    }
    if is_pod {
        say("enforce-policy", standards.enforce.to_string());
    }
    let found = faults(standards.audit, meta, spec);
    if !found.is_empty() {
        let audit = standards.audit;
        say("audit-violations", format!("would violate PodSecurity \"{audit}\": {}", found.details()));
    }
}

fn would_not_run(write: &WriteAttributes<'_>, object: &Members, warn: LevelVersion) -> Vec<String> {
    if warn.level == SecurityLevel::Privileged || is_let_be(write, object) {
        return Vec::new();
    }
    let found = found(warn, write, object);
    if found.is_empty() {
        return Vec::new();
    }
    vec![format!("would violate PodSecurity \"{warn}\": {}", found.details())]
}

/// Whether an administrator lets this be: by its namespace, who writes it, or its runtime class.
fn is_exempt(write: &WriteAttributes<'_>, object: &Members, security: &SecurityConfiguration) -> bool {
    if *security == SecurityConfiguration::default() {
        return false;
    }
    let class = || {
        let (_, spec) = spec_and_meta(write.of.group, write.of.resource, object)?;
        Some(text(spec, "runtimeClassName"))
    };
    security.exempts_namespace(write.of.namespace)
        || write.caller.is_some_and(|caller| security.exempts_user(&caller.name))
        || class().is_some_and(|class| security.exempts_runtime_class(class))
}

/// Whether it is a pod that runs what it ran before.
fn is_let_be(write: &WriteAttributes<'_>, object: &Members) -> bool {
    let old = write.old.and_then(Value::as_object).filter(|_| write.of.resource == "pods" && write.updates());
    old.is_some_and(|old| !changes_images(object, old))
}

fn found(at: LevelVersion, write: &WriteAttributes<'_>, object: &Members) -> Violations {
    let pod = spec_and_meta(write.of.group, write.of.resource, object);
    pod.map(|(meta, spec)| faults(at, meta, spec)).unwrap_or_default()
}

/// What the namespace asks for, as it is cached.
fn of_namespace(write: &WriteAttributes<'_>, tools: &Tools<'_>) -> Option<Standards> {
    let namespace = tools.class(NAMESPACES, write.of.namespace)?;
    namespace.as_object().map(|namespace| standards(namespace, tools.security))
}

/// The same as it is in the store; or why that is not known.
async fn of_live_namespace(write: &WriteAttributes<'_>, tools: &Tools<'_>) -> Result<Standards, String> {
    let namespace = fill::namespace(write, tools).await.map_err(|status| status.message)?;
    Ok(standards(namespace.as_object().unwrap_or(&Members::new()), tools.security))
}

fn not_found(write: &WriteAttributes<'_>) -> String {
    format!("failed to lookup namespace {:?}", write.of.namespace)
}

fn standards(namespace: &Members, security: &SecurityConfiguration) -> Standards {
    Standards::of(labels(namespace), &security.defaults)
}

fn labels(namespace: &Members) -> &Members {
    child_or_empty(child_or_empty(namespace, "metadata"), "labels")
}

/// The name that the client gave; none for one that was made for it.
fn name_asked(pod: &Members) -> &str {
    const MADE: usize = 5;
    let meta = child_or_empty(pod, "metadata");
    let (name, base) = (text(meta, "name"), text(meta, "generateName"));
    let is_made = !base.is_empty() && name.len() == base.len() + MADE && name.starts_with(base);
    if is_made { "" } else { name }
}

/// What pods of a namespace have against the level that it is given; that a level is given in vain.
async fn of_a_higher_level(namespace: &Members, old: Option<&Members>, tools: &Tools<'_>) -> Vec<String> {
    let asked = standards(namespace, tools.security);
    let new = asked.enforce;
    if let Some(old) = old.map(|old| standards(old, tools.security).enforce) {
        let is_higher = new.minor != old.minor || new.level > old.level;
        if new.level == SecurityLevel::Privileged || !is_higher {
            return Vec::new();
        }
    }
    let name = text(child_or_empty(namespace, "metadata"), "name");
    if tools.security.exempts_namespace(name) {
        let vain = asked.in_vain(labels(namespace), &tools.security.defaults, name);
        return vain.into_iter().collect();
    }
    if old.is_none() {
        return Vec::new();
    }
    existing_pods::judged(name.to_owned(), new, tools).await
}
