//! PATCH: JSON patch, merge patch and strategic merge patch, applied to whatever is current.
//!
//! Source: RFC 6902, RFC 7386; kube-apiserver v1.36.3 `endpoints/handlers/patch.go`.

use forebay_apimachinery::options::PatchOptions;
use forebay_apimachinery::{Cause, CauseReason, Reason, Status, json};
use forebay_schema::builtin::TypeId;
use forebay_schema::strategic::{self, PatchFault};
use serde_json::Value;

use crate::catalog::{Served, Source};
use crate::create::name_of;
use crate::incoming;
use crate::registry::Registry;
use crate::request::{Answer, PatchKind, Target};
use crate::store::Mode;
use crate::update::{Unconditional, not_found};

/// Operations of one JSON patch (`maxJSONPatchOperations`).
const OPERATIONS_MAX: usize = 10_000;

/// A patch, parsed once and applied as often as it takes.
pub(crate) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

impl Registry {
    /// Patches an object, or one of its subresources. Retried inside the server until it commits, so that concurrent
    /// patches of one object all succeed, unless the patch names a resourceVersion.
    ///
    /// # Errors
    /// 400, 404, 409, 415 and 422 in kube-apiserver's words.
    pub async fn patch(
        &self,
        target: &Target,
        kind: PatchKind,
        body: &[u8],
        options: &PatchOptions,
    ) -> Result<Answer, Status> {
        let served = &target.served;
        let patch = Patch::parse(served, kind, body)?;
        if target.subresource.as_deref() == Some("scale") {
            return self.patch_scale(target, &patch, options).await;
        }
        let store = self.store_of(served)?;
        let key = store.key(target.namespace(), target.name());
        let mode = if options.dry_run { Mode::DryRun } else { Mode::Commit };
        let done = store
            .guarded_update(&key, mode, |current| {
                let current = current.ok_or_else(|| not_found(target))?;
                let mut patched = patch.apply(served.ty(), served.to_value(&current.object)?)?;
                served.check_type(&mut patched, &served.gvk)?;
                let incoming =
                    incoming::normalize(served, &served.gvk, patched, Vec::new(), options.field_validation)?;
                if name_of(&incoming.value) != target.name() {
                    return Err(Status::bad_request(format!(
                        "the name of the object ({}) does not match the name on the URL ({})",
                        name_of(&incoming.value),
                        target.name()
                    )));
                }
                let decision = self.decide(target, incoming.value, current, Unconditional::Always)?;
                Ok(decision.with_warnings(incoming.warnings))
            })
            .await?;
        self.answer(target, done, Vec::new()).await
    }
}

impl Patch {
    pub(crate) fn parse(served: &Served, kind: PatchKind, body: &[u8]) -> Result<Patch, Status> {
        let value = json::parse(body)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?
            .value;
        match kind {
            PatchKind::Json => {
                let operations = value.as_array().map_or(0, Vec::len);
                if operations > OPERATIONS_MAX {
                    let message = format!(
                        "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {operations}"
                    );
                    return Err(Status::new(Reason::RequestEntityTooLarge, message));
                }
                let patch = serde_json::from_value(value)
                    .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
                Ok(Patch::Json(patch))
            }
            PatchKind::Merge | PatchKind::StrategicMerge if !value.is_object() => Err(Status::bad_request(
                "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}",
            )),
            PatchKind::Merge => Ok(Patch::Merge(value)),
            PatchKind::StrategicMerge => match served.source {
                Source::BuiltIn { .. } => Ok(Patch::Strategic(value)),
                Source::Custom { .. } => Err(Status::new(
                    Reason::UnsupportedMediaType,
                    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json",
                )),
            },
        }
    }

    /// `document`, of the type `ty` where that is known, with the patch applied.
    pub(crate) fn apply(&self, ty: Option<TypeId>, mut document: Value) -> Result<Value, Status> {
        match self {
            Patch::Json(patch) => {
                json_patch::patch(&mut document, patch).map_err(|error| rejected(&error))?;
                Ok(document)
            }
            Patch::Merge(patch) => {
                json_patch::merge(&mut document, patch);
                Ok(document)
            }
            Patch::Strategic(patch) => {
                let ty =
                    ty.ok_or_else(|| Status::internal("a strategic merge patch of a custom resource"))?;
                strategic::merge(ty, document, patch.clone()).map_err(|error| match error.fault() {
                    PatchFault::BadRequest => Status::bad_request(error.to_string()),
                    PatchFault::Unprocessable => rejected(&error),
                    PatchFault::Internal => Status::internal(error),
                })
            }
        }
    }
}

/// A patch that does not fit the object: 422 with the reason as a cause, as kube-apiserver words it.
fn rejected(error: &dyn std::fmt::Display) -> Status {
    Status::new(Reason::Invalid, "the server rejected our request due to an error in our request")
        .because([Cause::new(CauseReason::UnexpectedServerResponse, "", error.to_string())])
}
