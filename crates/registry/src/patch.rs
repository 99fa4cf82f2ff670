//! PATCH: JSON patch, merge patch and strategic merge patch, applied to whatever is current.
//!
//! Source: RFC 6902, RFC 7386; kube-apiserver v1.36.3 `endpoints/handlers/patch.go`.

mod unstructured;

use forebay_apimachinery::json::weight;
use forebay_apimachinery::options::FieldValidation;
use forebay_apimachinery::{Cause, CauseReason, GroupVersionKind, Lease, Reason, Status, json};
use forebay_catalog::compact;
use forebay_crd::depth_within;
use forebay_schema::builtin::TypeId;
use forebay_schema::strategic::{self, PatchFault};
use json_patch::PatchOperation;
use serde_json::Value;

use crate::consumed::Consumed;
use crate::incoming::{self, Incoming};
use crate::limits::{PATCH_COPIED_BYTES_MAX, PATCH_MOVED_MAX, PATCH_OPERATIONS_MAX};
use forebay_api::PatchKind;
use forebay_catalog::Target;

/// A patch, parsed once and applied as often as it takes.
pub(crate) struct Patch<'b> {
    change: Change<'b>,
    /// Members that come twice in it: `duplicate field "data.x"`.
    duplicates: Vec<String>,
}

enum Change<'b> {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Consumed<'b>),
}

impl<'b> Patch<'b> {
    pub(crate) fn parse(target: &Target, kind: PatchKind, body: &'b [u8]) -> Result<Patch<'b>, Status> {
        let bad = |why: &dyn std::fmt::Display| match kind {
            PatchKind::StrategicMerge => Status::bad_request(why.to_string()),
            PatchKind::Json | PatchKind::Merge => Status::bad_request(format!("error decoding patch: {why}")),
        };
        if kind == PatchKind::StrategicMerge && target.served.is_custom() {
            return Err(Status::new(
                Reason::UnsupportedMediaType,
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ));
        }
        let parsed = json::parse(body, &target.lease).map_err(|error| bad(&error))?;
        // The members of a JSON patch are those of its operations, not of the object.
        let duplicates =
            if kind == PatchKind::Json { Vec::new() } else { parsed.duplicate_fields().collect() };
        let change = match (kind, parsed.value) {
            (PatchKind::Json, value) => operations(value).map_err(|why| match why {
                Malformed::Type(why) => bad(&why),
                Malformed::TooMany(count) => Status::new(
                    Reason::RequestEntityTooLarge,
                    format!(
                        "The allowed maximum operations in a JSON patch is {PATCH_OPERATIONS_MAX}, got {count}"
                    ),
                ),
                Malformed::Operation => rejected(),
            }),
            (PatchKind::Merge, value @ Value::Object(_)) => Ok(Change::Merge(value)),
            (PatchKind::StrategicMerge, value @ (Value::Object(_) | Value::Null)) => {
                Ok(Change::Strategic(Consumed::new(value, body)))
            }
            (PatchKind::Merge, Value::Null) => Err(Status::bad_request("Invalid JSON Patch")),
            (PatchKind::Merge | PatchKind::StrategicMerge, value) => {
                Err(bad(&cannot_unmarshal(&value, "value of type map[string]interface {}")))
            }
        }?;
        Ok(Patch { change, duplicates })
    }

    /// The object of the kind `expected` that `current` becomes.
    ///
    /// - `ty`: its type where that is known.
    pub(crate) fn applied(
        &self,
        target: &Target,
        expected: &GroupVersionKind,
        ty: Option<TypeId>,
        current: impl Fn() -> Result<Value, Status>,
        validation: FieldValidation,
    ) -> Result<Incoming, Status> {
        let (served, lease) = (&*target.served, &target.lease);
        let before = lease.used();
        let patched = || self.apply(ty, current()?, lease);
        let mut value = patched()?;
        if let (Change::Strategic(_), Value::Object(members)) = (&self.change, &mut value) {
            // Upstream merges into a struct, whose kind is known and not looked up.
            for (member, text) in
                [("kind", expected.kind.to_string()), ("apiVersion", expected.api_version())]
            {
                if members.get(member).is_none_or(|given| given.is_string() || given.is_null()) {
                    members.insert(member.into(), text.into());
                }
            }
        }
        let wrong = match &self.change {
            Change::Strategic(_) if !value["kind"].is_string() || !value["apiVersion"].is_string() => {
                let why = unstructured::not_a_string(&value["kind"]);
                why.or_else(|| unstructured::not_a_string(&value["apiVersion"])).unwrap_or_default()
            }
            _ => match served.check_type(&mut value, expected) {
                Err(status) => status.message,
                Ok(()) => {
                    match incoming::normalized(
                        target,
                        expected,
                        value,
                        self.duplicates.clone(),
                        None,
                        validation,
                    ) {
                        Ok(incoming) => return Ok(incoming),
                        Err(why) => why,
                    }
                }
            },
        };
        // Decoding has consumed the value, and to make it again is cheaper than a copy of each that is right.
        lease.give_back(lease.used().saturating_sub(before));
        Err(self.refused(ty, &patched()?, wrong, lease))
    }

    /// 422 for an object that is not one of its kind: upstream names the document, or the patch when it is
    /// strategic.
    fn refused(&self, ty: Option<TypeId>, patched: &Value, why: String, lease: &Lease) -> Status {
        let (shown, why) = match &self.change {
            Change::Strategic(patch) => {
                let why = ty
                    .and_then(|ty| unstructured::mismatch(ty, patched))
                    .unwrap_or_else(|| unstructured::decoder(why));
                (patch.take(lease).map(|patch| strategic::go_format(&patch)).unwrap_or_default(), why)
            }
            Change::Json(_) | Change::Merge(_) => (compact(patched), why),
        };
        let message = format!("Invalid value: {}: {why}", json::go_quote(&shown));
        Status::invalid("", "", "", vec![Cause::new(CauseReason::FieldValueInvalid, "patch", message)])
    }

    /// `document`, of the type `ty` where that is known, with the patch applied.
    ///
    /// - `lease`: what the patch adds to the document is charged to it before it is there.
    fn apply(&self, ty: Option<TypeId>, mut document: Value, lease: &Lease) -> Result<Value, Status> {
        let mut meter = lease.meter();
        match &self.change {
            Change::Json(patch) => {
                let mut spent = Spent::default();
                for operation in &patch.0 {
                    if is_of_whole(operation) {
                        return Err(rejected());
                    }
                    meter.charge(added(&document, operation))?;
                    spent.spend(&document, operation).map_err(|_| rejected())?;
                    operate(&mut document, operation).map_err(|_| rejected())?;
                }
                Ok(document)
            }
            Change::Merge(patch) => {
                meter.charge(weight::of(patch))?;
                json_patch::merge(&mut document, patch);
                Ok(document)
            }
            Change::Strategic(patch) => {
                let ty =
                    ty.ok_or_else(|| Status::internal("a strategic merge patch of a custom resource"))?;
                strategic::merge(ty, document, patch.take(lease)?).map_err(|error| match error.fault() {
                    PatchFault::BadRequest => Status::bad_request(error.to_string()),
                    PatchFault::Unprocessable => rejected(),
                    PatchFault::Internal => Status::new(Reason::Unknown, error.to_string()),
                })
            }
        }
    }
}

/// Why a patch that a policy or a webhook made is not applied.
pub(crate) enum Unapplied {
    /// It says what the object has to be for it, and the object is not; by path.
    TestFailed(String),
    Why(String),
    /// It takes more than a patch may here; upstream might apply it.
    TooMuch(String),
    Refused(Status),
}

/// `document` with the operations that a policy or a webhook made. They are as many as its answer has room
/// for, as upstream has no bound.
///
/// # Errors
/// [`Unapplied`].
pub(crate) fn apply_made(mut document: Value, made: Vec<Value>, lease: &Lease) -> Result<Value, Unapplied> {
    let why = Unapplied::Why;
    let (mut meter, mut spent) = (lease.meter(), Spent::default());
    for mut operation in made {
        let op = operation["op"].as_str().unwrap_or("unknown").to_owned();
        if let Some(members) = operation.as_object_mut() {
            members.entry("value").or_insert(Value::Null);
        }
        let Ok(operation) = serde_json::from_value::<PatchOperation>(operation) else {
            return Err(why(format!("Unexpected kind: {op}")));
        };
        if is_of_whole(&operation) {
            return Err(why(does_not_apply(&document, &operation)));
        }
        meter.charge(added(&document, &operation)).map_err(|full| Unapplied::Refused(full.into()))?;
        spent.spend(&document, &operation).map_err(|excess| match excess {
            Excess::Copies(bytes) => why(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {bytes}, exceeding the limit \
                 {PATCH_COPIED_BYTES_MAX}"
            )),
            Excess::Moves => Unapplied::TooMuch("its patch moves too much".to_owned()),
            Excess::Depth => Unapplied::TooMuch("its patch makes the object too deep".to_owned()),
        })?;
        if let Err(error) = operate(&mut document, &operation) {
            return Err(match error.kind {
                json_patch::PatchErrorKind::TestFailed => Unapplied::TestFailed(error.path.to_string()),
                _ => why(does_not_apply(&document, &operation)),
            });
        }
    }
    Ok(document)
}

/// As upstream's library says it.
fn does_not_apply(document: &Value, operation: &PatchOperation) -> String {
    let parent_of =
        |path: &str| path.rsplit_once('/').map(|(parent, key)| (parent.to_owned(), key.to_owned()));
    let has_parent = |path: &str| {
        parent_of(path).is_some_and(|(parent, _)| {
            document.pointer(&parent).is_some_and(|found| found.is_object() || found.is_array())
        })
    };
    let unremovable = |path: &str| {
        let (_, key) = parent_of(path).unwrap_or_default();
        format!("Unable to remove nonexistent key: {key}: missing value")
    };
    match operation {
        PatchOperation::Add(add) => {
            format!(
                "add operation does not apply: doc is missing path: {:?}: missing value",
                add.path.as_str()
            )
        }
        PatchOperation::Replace(replace) => {
            format!("replace operation does not apply: doc is missing path: {}: missing value", replace.path)
        }
        PatchOperation::Remove(remove) if has_parent(remove.path.as_str()) => {
            format!("error in remove for path: '{}': {}", remove.path, unremovable(remove.path.as_str()))
        }
        PatchOperation::Remove(remove) => {
            format!(
                "remove operation does not apply: doc is missing path: {:?}: missing value",
                remove.path.as_str()
            )
        }
        PatchOperation::Move(one) if has_parent(one.from.as_str()) => {
            let from = one.from.as_str();
            format!(
                "error in move for path: '{}': {}",
                parent_of(from).unwrap_or_default().1,
                unremovable(from)
            )
        }
        PatchOperation::Move(one) => {
            format!("move operation does not apply: doc is missing from path: {}: missing value", one.from)
        }
        PatchOperation::Copy(copy) => {
            format!("copy operation does not apply: doc is missing from path: {}: missing value", copy.from)
        }
        PatchOperation::Test(test) => {
            format!("test operation does not apply: is missing path: {}: missing value", test.path)
        }
    }
}

/// What `operation` adds to what `document` takes in memory.
fn added(document: &Value, operation: &PatchOperation) -> usize {
    let value = match operation {
        PatchOperation::Add(add) => Some(&add.value),
        PatchOperation::Replace(replace) => Some(&replace.value),
        PatchOperation::Copy(copy) => document.pointer(copy.from.as_str()),
        PatchOperation::Move(_) | PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
    };
    value.map_or(0, |value| weight::MEMBER_BYTES + weight::of(value))
}

/// Items of arrays that `operation` moves: those behind the places that it fills or empties.
fn moved(document: &Value, operation: &PatchOperation) -> usize {
    let behind = |place: &str| {
        let (parent, last) = place.rsplit_once('/').unwrap_or_default();
        let items = document.pointer(parent).and_then(Value::as_array).map_or(0, Vec::len);
        // What is no number is the place behind the last one.
        last.parse::<usize>().map_or(0, |at| items.saturating_sub(at))
    };
    match operation {
        PatchOperation::Add(add) => behind(add.path.as_str()),
        PatchOperation::Remove(remove) => behind(remove.path.as_str()),
        PatchOperation::Copy(copy) => behind(copy.path.as_str()),
        PatchOperation::Move(one) => behind(one.from.as_str()) + behind(one.path.as_str()),
        PatchOperation::Replace(_) | PatchOperation::Test(_) => 0,
    }
}

/// Why a body is no JSON patch.
enum Malformed {
    /// In the words of Go's decoder.
    Type(String),
    TooMany(usize),
    /// An operation that there is not, or without what it needs.
    Operation,
}

fn operations(value: Value) -> Result<Change<'static>, Malformed> {
    let mut operations = match value {
        Value::Null => Vec::new(),
        Value::Array(operations) => operations,
        other => {
            return Err(Malformed::Type(cannot_unmarshal(&other, "value of type []handlers.jsonPatchOp")));
        }
    };
    if operations.len() > PATCH_OPERATIONS_MAX {
        return Err(Malformed::TooMany(operations.len()));
    }
    for operation in &mut operations {
        match operation {
            Value::Null => return Err(Malformed::Operation),
            Value::Object(members) => {
                for member in ["op", "path"] {
                    if let Some(value) =
                        members.get(member).filter(|value| !value.is_string() && !value.is_null())
                    {
                        let place = format!("struct field jsonPatchOp.{member} of type string");
                        return Err(Malformed::Type(cannot_unmarshal(value, &place)));
                    }
                }
                members.entry("value").or_insert(Value::Null);
            }
            other => {
                return Err(Malformed::Type(cannot_unmarshal(other, "value of type handlers.jsonPatchOp")));
            }
        }
    }
    serde_json::from_value(Value::Array(operations)).map(Change::Json).map_err(|_| Malformed::Operation)
}

/// What the operations of one patch have taken so far: what it takes does not grow as their number times the
/// length of the document.
#[derive(Default)]
struct Spent {
    /// Bytes that were copied.
    copied: usize,
    /// Bytes of what was moved further down.
    lowered: usize,
    /// Items of arrays that were moved.
    items: usize,
}

/// What a patch has too much of.
enum Excess {
    /// So many bytes were copied, which upstream refuses, too.
    Copies(usize),
    Moves,
    Depth,
}

impl Spent {
    /// Counts what `operation` takes, and looks whether it makes the document too deep: a copy into itself
    /// doubles it.
    fn spend(&mut self, document: &Value, operation: &PatchOperation) -> Result<(), Excess> {
        self.items += moved(document, operation);
        if self.items > PATCH_MOVED_MAX {
            return Err(Excess::Moves);
        }
        let bytes_of = |value: &Value| serde_json::to_vec(value).map_or(0, |json| json.len());
        let (path, value) = match operation {
            PatchOperation::Add(add) => (&add.path, &add.value),
            PatchOperation::Replace(replace) => (&replace.path, &replace.value),
            PatchOperation::Copy(json_patch::CopyOperation { from, path }) => {
                // One that is not there is told by whoever applies it.
                let Some(value) = document.pointer(from.as_str()) else { return Ok(()) };
                self.copied += bytes_of(value);
                if self.copied > PATCH_COPIED_BYTES_MAX {
                    return Err(Excess::Copies(self.copied));
                }
                (path, value)
            }
            PatchOperation::Move(json_patch::MoveOperation { from, path }) => {
                let Some(value) = document.pointer(from.as_str()) else { return Ok(()) };
                // It makes nothing larger, and only one that goes down makes it deeper.
                if path.tokens().count() <= from.tokens().count() {
                    return Ok(());
                }
                self.lowered += bytes_of(value);
                if self.lowered > PATCH_COPIED_BYTES_MAX {
                    return Err(Excess::Moves);
                }
                (path, value)
            }
            PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
        };
        let left = json::DEPTH_MAX.checked_sub(path.tokens().count()).ok_or(Excess::Depth)?;
        if depth_within(value, left) { Ok(()) } else { Err(Excess::Depth) }
    }
}

/// Whether it is about the whole document, of which upstream knows only how to replace it.
fn is_of_whole(operation: &PatchOperation) -> bool {
    match operation {
        PatchOperation::Replace(_) => false,
        PatchOperation::Move(one) => one.from.is_root() || one.path.is_root(),
        PatchOperation::Copy(one) => one.from.is_root() || one.path.is_root(),
        other => other.path().is_root(),
    }
}

/// Applies one operation as upstream's library does: more leniently than RFC 6902 where an object lacks the
/// member.
fn operate(document: &mut Value, operation: &PatchOperation) -> Result<(), json_patch::PatchError> {
    let absent = |path: &str| {
        let parent = path.rfind('/').and_then(|end| document.pointer(&path[..end]));
        parent.is_some_and(Value::is_object) && document.pointer(path).is_none()
    };
    let lenient = match operation {
        PatchOperation::Replace(replace) if absent(replace.path.as_str()) => {
            let add = json_patch::AddOperation { path: replace.path.clone(), value: replace.value.clone() };
            Some(PatchOperation::Add(add))
        }
        PatchOperation::Test(test) if test.value.is_null() && absent(test.path.as_str()) => return Ok(()),
        _ => None,
    };
    json_patch::patch(document, std::slice::from_ref(lenient.as_ref().unwrap_or(operation)))
}

/// As Go's decoder says it.
fn cannot_unmarshal(value: &Value, place: &str) -> String {
    let kind = json::kind_of(value);
    format!("json: cannot unmarshal {kind} into Go {place}")
}

/// A patch that does not fit the object: upstream's generic words for 422, which keep the reason to
/// themselves.
fn rejected() -> Status {
    Status::new(Reason::Invalid, "the server rejected our request due to an error in our request")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(document: Value, made: Vec<Value>) -> Result<Value, String> {
        apply_made(document, made, &Lease::of_one_tree()).map_err(|unapplied| match unapplied {
            Unapplied::TestFailed(path) => format!("test failed: {path}"),
            Unapplied::Why(why) => format!("why: {why}"),
            Unapplied::TooMuch(why) => format!("too much: {why}"),
            Unapplied::Refused(status) => format!("refused: {}", status.message),
        })
    }

    #[test]
    fn what_was_made_may_have_as_many_operations_as_its_answer_has_room_for() {
        const COUNT: usize = 3 * PATCH_OPERATIONS_MAX;
        let members =
            (0..COUNT).map(|at| json!({ "op": "add", "path": format!("/data/k{at}"), "value": at }));
        let made = applied(json!({ "data": {} }), members.collect()).expect("applies");
        assert_eq!(made["data"].as_object().map(serde_json::Map::len), Some(COUNT));
        // What is put behind the last item moves nothing.
        let items = (0..COUNT).map(|at| json!({ "op": "add", "path": "/items/-", "value": at }));
        let made = applied(json!({ "items": [] }), items.collect()).expect("applies");
        assert_eq!(made["items"].as_array().map(Vec::len), Some(COUNT));
        let last = (0..COUNT).rev().map(|at| json!({ "op": "remove", "path": format!("/items/{at}") }));
        assert_eq!(applied(made, last.collect()), Ok(json!({ "items": [] })));
    }

    #[test]
    fn of_the_whole_document_only_its_replacement_is_known() {
        let whole = |operation: Value| applied(json!({ "a": 1 }), vec![operation]);
        let replaced = whole(json!({ "op": "replace", "path": "", "value": { "b": 2 } }));
        assert_eq!(replaced, Ok(json!({ "b": 2 })));
        let missing = "why: add operation does not apply: doc is missing path: \"\": missing value";
        assert_eq!(whole(json!({ "op": "add", "path": "", "value": {} })), Err(missing.to_owned()));
        for operation in [
            json!({ "op": "remove", "path": "" }),
            json!({ "op": "test", "path": "", "value": { "a": 1 } }),
            json!({ "op": "copy", "from": "", "path": "/b" }),
            json!({ "op": "move", "from": "/a", "path": "" }),
        ] {
            let refused = whole(operation.clone()).expect_err("of the whole document");
            assert!(refused.starts_with("why: "), "{operation}: {refused}");
        }
        assert_eq!(whole(json!({ "path": "/a" })), Err("why: Unexpected kind: unknown".to_owned()));
    }

    #[test]
    fn what_grows_as_operations_times_items_is_too_much() {
        let items = vec![0; 20_000];
        let front = vec![json!({ "op": "add", "path": "/items/0", "value": 0 }); 5_000];
        let too_much = Err("too much: its patch moves too much".to_owned());
        assert_eq!(applied(json!({ "items": items }), front), too_much);
        let around = vec![json!({ "op": "move", "from": "/items/0", "path": "/items/-" }); 5_000];
        assert_eq!(applied(json!({ "items": items }), around), too_much);
        // Down and up again, each time walked to see how deep it is.
        let text = "x".repeat(PATCH_COPIED_BYTES_MAX / 8);
        let down_and_up = [("/a", "/b/c"), ("/b/c", "/a")];
        let moves = down_and_up.map(|(from, path)| json!({ "op": "move", "from": from, "path": path }));
        let many = moves.iter().cycle().take(20).cloned().collect();
        assert_eq!(applied(json!({ "a": text, "b": {} }), many), too_much);
    }

    #[test]
    fn what_upstream_refuses_is_refused_in_its_words() {
        let text = "x".repeat(PATCH_COPIED_BYTES_MAX / 2);
        let copies = (0..3).map(|at| json!({ "op": "copy", "from": "/a", "path": format!("/b{at}") }));
        let refused = applied(json!({ "a": text }), copies.collect()).expect_err("3 copies of half of it");
        let length = 2 * (text.len() + 2);
        assert_eq!(
            refused,
            format!(
                "why: Unable to complete the copy, the accumulated size increase of copy is {length}, exceeding the limit \
                 {PATCH_COPIED_BYTES_MAX}"
            )
        );
        let mut deep = json!(0);
        for _ in 0..json::DEPTH_MAX - 1 {
            deep = json!([deep]);
        }
        let add = |path: &str| vec![json!({ "op": "add", "path": path, "value": deep })];
        assert!(applied(json!({ "a": {} }), add("/a")).is_ok());
        let too_deep = Err("too much: its patch makes the object too deep".to_owned());
        assert_eq!(applied(json!({ "a": {} }), add("/a/b")), too_deep);
    }
}
