//! PodSecurity: pods keep to the level of their namespace, and who makes something that makes pods, or raises
//! a level, is told what will not.
//!
//! A miss in the cache of namespaces is judged on the live one: another server may have made it a moment ago.
//!
//! Source: pod-security-admission v0.36.3 `admission/admission.go`; kubernetes v1.36.3
//! `plugin/pkg/admission/security/podsecurity`.

use forebay_api::{Eventual, told_together};
use forebay_apimachinery::{Cause, Status};
use forebay_pod_security::{
    JudgedWrite, LevelVersion, SecurityConfiguration, SecurityLevel, SecurityMetrics, SecurityMode,
    Standards, Violations, changes_images, faults, spec_and_meta,
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
        if write.of.resource == "namespaces" {
            return Eventual::Now(labels_say_something(write, object, tools.security));
        }
        if let Some(whom) = lets_be_whom(write, tools.security) {
            return Eventual::Now(Judgement::Exempt(whom).told(write, object, tools));
        }
        let judged = move |of: Result<Standards, String>| judge(write, object, (tools.security, of));
        match of_namespace(write, tools) {
            Some(known) => Eventual::Now(judged(Ok(known)).told(write, object, tools)),
            None => Eventual::later(async move {
                judged(of_live_namespace(write, tools).await).told(write, object, tools)
            }),
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
            _ if lets_be_whom(write, tools.security).is_some() => Eventual::Now(Vec::new()),
            _ => match of_namespace(write, tools) {
                Some(known) => Eventual::Now(would_not_run(write, object, (known.warn, tools))),
                None => Eventual::later(async move {
                    let known = of_live_namespace(write, tools).await;
                    known.map(|known| would_not_run(write, object, (known.warn, tools))).unwrap_or_default()
                }),
            },
        }
    }
}

/// What comes of a pod, or of what makes pods.
enum Judgement {
    /// It brings nothing that a level looks at.
    LetBe,
    /// An administrator lets it be, by this.
    Exempt(&'static str),
    /// What its namespace asks for is not known, which is why.
    Unknown(String),
    /// A pod of a namespace that lets everything be.
    Free(LevelVersion),
    /// What stands against it.
    Found {
        standards: Standards,
        /// Of a pod.
        enforced: Option<Violations>,
        audited: Violations,
    },
}

/// - `of`: what its namespace asks for; or why that is not known.
fn judge(
    write: &WriteAttributes<'_>,
    object: &Members,
    (security, of): (&SecurityConfiguration, Result<Standards, String>),
) -> Judgement {
    let standards = match of {
        Ok(standards) => standards,
        Err(why) => return Judgement::Unknown(why),
    };
    let is_pod = write.of.resource == "pods";
    let is_free = |at: LevelVersion| standards.causes.is_empty() && at.level == SecurityLevel::Privileged;
    if is_free(standards.audit) && is_free(standards.warn) && (!is_pod || is_free(standards.enforce)) {
        return if is_pod { Judgement::Free(standards.enforce) } else { Judgement::LetBe };
    }
    if runs_what_it_ran(write, object) {
        return Judgement::LetBe;
    }
    let Some((meta, spec)) = spec_and_meta(write.of.group, write.of.resource, object) else {
        return Judgement::LetBe;
    };
    if security.exempts_runtime_class(text(spec, "runtimeClassName")) {
        return Judgement::Exempt("runtimeClass");
    }
    let enforced = is_pod.then(|| faults(standards.enforce, meta, spec));
    let audited = faults(standards.audit, meta, spec);
    Judgement::Found { standards, enforced, audited }
}

impl Judgement {
    /// Counts it, notes of it what an audit log has, and refuses a pod that may not run.
    fn told(&self, write: &WriteAttributes<'_>, object: &Members, tools: &Tools<'_>) -> Result<(), Status> {
        self.count(write, tools.security_metrics);
        if let Some(note) = tools.audit {
            self.note(write, note);
        }
        match self {
            Judgement::Unknown(_) if write.of.resource == "pods" => Err(Status::internal(not_found(write))),
            Judgement::Found { standards, enforced: Some(found), .. } if !found.is_empty() => {
                let why = format!("violates PodSecurity \"{}\": {}", standards.enforce, found.details());
                Err(write.forbidden_as(text(child_or_empty(object, "metadata"), "name"), &why))
            }
            _ => Ok(()),
        }
    }

    fn count(&self, write: &WriteAttributes<'_>, metrics: &SecurityMetrics) {
        let of = counted_as(write);
        match self {
            Judgement::LetBe => {}
            Judgement::Exempt(_) => metrics.exempted(of),
            Judgement::Unknown(_) => metrics.failed(true, of),
            Judgement::Free(at) => metrics.evaluated(true, *at, SecurityMode::Enforce, of),
            Judgement::Found { standards, enforced, audited } => {
                if !standards.causes.is_empty() {
                    metrics.failed(false, of);
                }
                if let Some(found) = enforced {
                    metrics.evaluated(found.is_empty(), standards.enforce, SecurityMode::Enforce, of);
                }
                if !audited.is_empty() {
                    metrics.evaluated(false, standards.audit, SecurityMode::Audit, of);
                }
            }
        }
    }

    /// By which level it is judged, why it is not, and what stands against the level that is only noted of.
    fn note(&self, write: &WriteAttributes<'_>, note: Note<'_>) {
        let say = |name: &str, value: String| note(format!("pod-security.kubernetes.io/{name}"), value);
        match self {
            Judgement::LetBe => {}
            Judgement::Exempt(by) => say("exempt", (*by).to_owned()),
            Judgement::Unknown(why) if write.of.resource == "pods" => {
                say("error", format!("{}: {why}", Status::internal(not_found(write)).message));
            }
            Judgement::Unknown(why) => say("error", format!("{}: {why}", not_found(write))),
            Judgement::Free(_) => say("enforce-policy", "privileged:latest".into()),
            Judgement::Found { standards, enforced, audited } => {
                if !standards.causes.is_empty() {
                    let said = |cause: &Cause| format!("{}: {}", cause.field, cause.message);
                    let causes: Vec<String> = standards.causes.iter().map(said).collect();
                    say("error", format!("Failed to parse policy: {}", told_together(&causes)));
                }
                if enforced.is_some() {
                    say("enforce-policy", standards.enforce.to_string());
                }
                if !audited.is_empty() {
                    let audit = standards.audit;
                    let details = audited.details();
                    say("audit-violations", format!("would violate PodSecurity \"{audit}\": {details}"));
                }
            }
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

fn would_not_run(
    write: &WriteAttributes<'_>,
    object: &Members,
    (warn, tools): (LevelVersion, &Tools<'_>),
) -> Vec<String> {
    if warn.level == SecurityLevel::Privileged || runs_what_it_ran(write, object) {
        return Vec::new();
    }
    let Some((meta, spec)) = spec_and_meta(write.of.group, write.of.resource, object) else {
        return Vec::new();
    };
    if tools.security.exempts_runtime_class(text(spec, "runtimeClassName")) {
        return Vec::new();
    }
    let found = faults(warn, meta, spec);
    if found.is_empty() {
        return Vec::new();
    }
    tools.security_metrics.evaluated(false, warn, SecurityMode::Warn, counted_as(write));
    vec![format!("would violate PodSecurity \"{warn}\": {}", found.details())]
}

/// By what an administrator lets a write be, whatever is written.
fn lets_be_whom(write: &WriteAttributes<'_>, security: &SecurityConfiguration) -> Option<&'static str> {
    if security.exempts_namespace(write.of.namespace) {
        return Some("namespace");
    }
    write.caller.is_some_and(|caller| security.exempts_user(&caller.name)).then_some("user")
}

/// Whether it is a pod that runs what it ran before.
fn runs_what_it_ran(write: &WriteAttributes<'_>, object: &Members) -> bool {
    let old = write.old.and_then(Value::as_object).filter(|_| write.of.resource == "pods" && write.updates());
    old.is_some_and(|old| !changes_images(object, old))
}

fn counted_as(write: &WriteAttributes<'_>) -> JudgedWrite {
    JudgedWrite {
        operation: if write.creates() { "create" } else { "update" },
        resource: if write.of.resource == "pods" { "pod" } else { "controller" },
        subresource: match write.of.subresource {
            "" => "",
            "ephemeralcontainers" => "ephemeralcontainers",
            "resize" => "resize",
            _ => "other",
        },
    }
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
