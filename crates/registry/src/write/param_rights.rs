//! authorize, of admission policies and their bindings: whoever has objects read by a policy may read them.
//!
//! In: a valid policy or binding that somebody writes. Out: nothing, or what is wrong with it in upstream's
//! words. Never: asked of the server itself, or of the masters.
//!
//! Source: kubernetes v1.36.3
//! `pkg/registry/admissionregistration/{validating,mutating}admissionpolicy{,binding}/authz.go`.

use std::sync::Arc;

use forebay_apimachinery::caller::MASTERS;
use forebay_apimachinery::{About, Attributes, Caller, Cause, CauseReason, ResourceAttributes, Status, Verb};
use forebay_catalog::{Catalog, Served};
use serde_json::Value;

use super::Write;
use crate::context::Context;
use crate::incoming::name_of;
use crate::policy_source;

/// Who writes a policy or a binding with parameters, unless that is nobody who is asked.
pub(super) fn asked(write: &Write<'_>) -> Option<Arc<Caller>> {
    if !policy_source::has(write.served()) || write.subresource().is_some() {
        return None;
    }
    let spec = &write.proposed["spec"];
    let has_params = spec["paramKind"].is_object() || spec["paramRef"].is_object();
    let caller = write.target.caller.as_ref().filter(|caller| !caller.is_in(MASTERS));
    caller.filter(|_| has_params && (write.is_new_object() || write.is_change())).cloned()
}

/// Whether `caller` may read them.
///
/// # Errors
/// 422.
pub(super) async fn check(write: &Write<'_>, context: &Context, caller: &Caller) -> Result<(), Status> {
    let spec = &write.proposed["spec"];
    let refusal = if spec["paramKind"].is_object() {
        let before = write.old.as_ref().map(|old| &old["spec"]["paramKind"]);
        if before == Some(&spec["paramKind"]) {
            return Ok(());
        }
        kind(context, caller, &spec["paramKind"]).await.map(|why| ("spec.paramKind", why))
    } else {
        reference(write, context, caller).await?.map(|why| ("spec.paramRef", why))
    };
    let Some((field, why)) = refusal else { return Ok(()) };
    let cause = Cause::new(CauseReason::FieldValueForbidden, field, format!("Forbidden: {why}"));
    Err(write.served().invalid(name_of(&write.proposed), vec![cause]))
}

/// What is wrong with a policy of that kind of parameters.
async fn kind(context: &Context, caller: &Caller, kind: &Value) -> Option<String> {
    let read = ReadOf::kind(&context.catalog(), kind);
    match read.is_allowed(context, caller, ["get", "*", "*"]).await {
        Ok(true) => None,
        Ok(false) => Some(format!(
            r#"user {} must have "get" permission on all objects of the referenced paramKind (kind={}, apiVersion={})"#,
            shown(caller),
            text(kind, "kind"),
            text(kind, "apiVersion")
        )),
        Err(why) => Some(why),
    }
}

/// What is wrong with a binding of that reference.
async fn reference(write: &Write<'_>, context: &Context, caller: &Caller) -> Result<Option<String>, Status> {
    let spec = &write.proposed["spec"];
    let policy = text(spec, "policyName");
    let is_validating = write.served().resource().starts_with("validating");
    let policies = if is_validating { "validatingadmissionpolicies" } else { "mutatingadmissionpolicies" };
    let kind = policy_of(context, policies, policy).await?;
    let catalog = context.catalog();
    let read = match &kind {
        Some(kind) if kind.is_object() => ReadOf::kind(&catalog, kind),
        _ => ReadOf::default(),
    };
    let (name, namespace) = (text(&spec["paramRef"], "name"), text(&spec["paramRef"], "namespace"));
    let verb = if name.is_empty() { "list" } else { "get" };
    match read.is_allowed(context, caller, [verb, namespace, name]).await {
        Ok(true) => return Ok(None),
        Ok(false) => {}
        Err(why) => return Ok(Some(format!("failed to authorize request: {why}"))),
    }
    let user = shown(caller);
    let none = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, \
         versions and resources"
    );
    Ok(Some(match &kind {
        None => format!("unable to get policy {policy} {none}"),
        Some(kind) if kind.is_object() && !read.is_resolved => {
            let kind = format!("&{{{} {}}}", text(kind, "apiVersion"), text(kind, "kind"));
            match read.is_parsed {
                true => format!("unable to resolve paramKind {kind} {none}"),
                false => format!("unable to parse paramKind {kind} {none}"),
            }
        }
        // Upstream has the two in this order.
        Some(_) if is_validating => {
            format!(r#"user {user} does not have "{verb}" permission on the object referenced by paramRef"#)
        }
        Some(_) => {
            format!(r#"user {verb} does not have "{user}" permission on the object referenced by paramRef"#)
        }
    }))
}

/// The kind of the parameters of a policy, null where it has none; none where it is not there.
async fn policy_of(context: &Context, resource: &str, name: &str) -> Result<Option<Value>, Status> {
    let served = context.catalog().resource("admissionregistration.k8s.io", "v1", resource).cloned();
    let Some(served) = served else { return Ok(None) };
    let store = served.stored()?;
    let Some(found) = store.live(&store.key("", name)).await? else { return Ok(None) };
    Ok(Some(served.to_value(&found.object)?["spec"]["paramKind"].take()))
}

/// What has to be readable: all of everything, unless it is known of what.
struct ReadOf<'k> {
    group: &'k str,
    version: &'k str,
    resource: String,
    is_parsed: bool,
    is_resolved: bool,
}

impl Default for ReadOf<'_> {
    fn default() -> Self {
        ReadOf { group: "*", version: "*", resource: "*".to_owned(), is_parsed: false, is_resolved: false }
    }
}

impl<'k> ReadOf<'k> {
    fn kind(catalog: &Catalog, kind: &'k Value) -> ReadOf<'k> {
        let version = text(kind, "apiVersion");
        let (group, version) = match version.split_once('/') {
            Some((_, rest)) if rest.contains('/') => return ReadOf::default(),
            Some((group, version)) => (group, version),
            None => ("", version),
        };
        let wanted = (group, version, text(kind, "kind"));
        let of = |served: &Served| (&*served.gvk.group, &*served.gvk.version, &*served.gvk.kind) == wanted;
        let found = catalog.iter().find(|served| of(served));
        ReadOf {
            group,
            version,
            resource: found.map_or("*", |served| served.resource()).to_owned(),
            is_parsed: true,
            is_resolved: found.is_some(),
        }
    }

    /// # Errors
    /// Why somebody who decides could not be asked.
    async fn is_allowed(
        &self,
        context: &Context,
        caller: &Caller,
        [verb, namespace, name]: [&str; 3],
    ) -> Result<bool, String> {
        let ReadOf { group, version, resource, .. } = self;
        let of = ResourceAttributes { group, version, namespace, resource, name, ..Default::default() };
        let asked = Attributes { caller, verb: &Verb::named(verb), about: About::Resource(of) };
        let decision = context.config.authorizer.authorize(&asked).wait().await;
        decision.error().map_or(Ok(decision.is_allowed()), |why| Err(why.to_owned()))
    }
}

/// As Go shows a user that nobody gave words to.
fn shown(caller: &Caller) -> String {
    let Caller { name, uid, groups, extra } = caller;
    let extra: Vec<String> =
        extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{name} {uid} [{}] map[{}]}}", groups.join(" "), extra.join(" "))
}

fn text<'v>(of: &'v Value, name: &str) -> &'v str {
    of[name].as_str().unwrap_or("")
}
