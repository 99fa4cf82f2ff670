//! What a webhook is asked, and what its answer says.
//!
//! In: a question. Out: the spec of a SubjectAccessReview, as it is sent, kept answers are known by, and
//! conditions see it; the status of an answer, or what is wrong with it. Never: sends one; takes what is no
//! answer for one that says nothing.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/authorizer/webhook/webhook.go`; apimachinery v0.36.3
//! `pkg/api/errors` (`NewGenericServerResponse`).

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::selector::{FieldOperator, FieldRequirement, LabelOperator, LabelRequirement};
use forebay_apimachinery::{About, Attributes};
use serde_json::{Map, Value, json};

use crate::answers::ReviewStatus;
use crate::configuration::ReviewVersion;
use crate::limits::{CHOSEN_BYTES_MAX, REASON_BYTES_MAX};
use crate::strict::{Strict, Wrong, mistyped};

/// A question as a webhook is asked it.
#[derive(Clone, Debug)]
pub struct SubjectReview {
    /// Of version v1, without what is empty.
    spec: Map<String, Value>,
    // Bytes of what whoever asks can choose.
    chosen: usize,
}

impl SubjectReview {
    pub fn of(asked: &Attributes<'_>) -> SubjectReview {
        let (caller, verb) = (asked.caller, asked.verb.as_str());
        let mut spec = Map::new();
        let chosen = match asked.about {
            About::Path(path) => {
                let mut attributes = Map::new();
                said(&mut attributes, "path", path);
                said(&mut attributes, "verb", verb);
                spec.insert("nonResourceAttributes".into(), Value::Object(attributes));
                path.len() + verb.len()
            }
            About::Resource(of) => {
                let texts = [
                    ("namespace", of.namespace),
                    ("verb", verb),
                    ("group", of.group),
                    ("version", of.version),
                    ("resource", of.resource),
                    ("subresource", of.subresource),
                    ("name", of.name),
                ];
                let mut attributes = Map::new();
                texts.iter().for_each(|(name, text)| said(&mut attributes, name, text));
                let fields: Vec<Value> = of.fields.iter().map(field).collect();
                let labels: Vec<Value> = of.labels.iter().filter_map(label).collect();
                for (name, requirements) in [("fieldSelector", fields), ("labelSelector", labels)] {
                    if !requirements.is_empty() {
                        attributes.insert(name.into(), json!({ "requirements": requirements }));
                    }
                }
                spec.insert("resourceAttributes".into(), Value::Object(attributes));
                texts.iter().map(|(_, text)| text.len()).sum()
            }
        };
        said(&mut spec, "user", &caller.name);
        if !caller.groups.is_empty() {
            spec.insert("groups".into(), json!(caller.groups));
        }
        if !caller.extra.is_empty() {
            spec.insert("extra".into(), json!(caller.extra));
        }
        said(&mut spec, "uid", &caller.uid);
        SubjectReview { spec, chosen }
    }

    /// What a kept answer is known by: all of it.
    pub fn key(&self) -> String {
        Value::Object(self.spec.clone()).to_string()
    }

    /// Whether its answer may be kept: not where who asks fills the room for it with texts of their choice.
    pub fn is_kept(&self) -> bool {
        self.chosen < CHOSEN_BYTES_MAX
    }

    /// The spec as conditions see it: with every text, be it empty.
    pub fn seen(&self) -> Value {
        let mut spec = self.spec.clone();
        for (name, empty) in
            [("user", json!("")), ("uid", json!("")), ("groups", json!([])), ("extra", json!({}))]
        {
            spec.entry(name).or_insert(empty);
        }
        let texts: [(&str, &[&str]); 2] = [
            (
                "resourceAttributes",
                &["namespace", "verb", "group", "version", "resource", "subresource", "name"],
            ),
            ("nonResourceAttributes", &["path", "verb"]),
        ];
        for (of, names) in texts {
            if let Some(attributes) = spec.get_mut(of).and_then(Value::as_object_mut) {
                for name in names {
                    attributes.entry(*name).or_insert_with(|| json!(""));
                }
            }
        }
        Value::Object(spec)
    }

    /// The review as it is sent.
    pub fn body(&self, version: ReviewVersion) -> String {
        let mut spec = self.spec.clone();
        // The older version has another name for them.
        if version == ReviewVersion::V1beta1
            && let Some(groups) = spec.remove("groups")
        {
            spec.insert("group".into(), groups);
        }
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": version.api_version(), "metadata": {},
            "spec": spec, "status": { "allowed": false },
        });
        review.to_string()
    }
}

fn said(all: &mut Map<String, Value>, name: &str, text: &str) {
    if !text.is_empty() {
        all.insert(name.into(), json!(text));
    }
}

fn field(requirement: &FieldRequirement) -> Value {
    let operator = match requirement.operator {
        FieldOperator::Equals => "In",
        FieldOperator::NotEquals => "NotIn",
    };
    json!({ "key": requirement.path, "operator": operator, "values": [requirement.value] })
}

/// None for what reviews have no word for: one requirement less asks for more.
fn label(requirement: &LabelRequirement) -> Option<Value> {
    let operator = match requirement.operator() {
        LabelOperator::In | LabelOperator::Equals | LabelOperator::DoubleEquals => "In",
        LabelOperator::NotIn | LabelOperator::NotEquals => "NotIn",
        LabelOperator::Exists => "Exists",
        LabelOperator::DoesNotExist => "DoesNotExist",
        LabelOperator::GreaterThan | LabelOperator::LessThan => return None,
    };
    let mut shown = json!({ "key": requirement.key(), "operator": operator });
    let values: Vec<&str> = requirement.values().collect();
    if !values.is_empty() {
        shown["values"] = json!(values);
    }
    Some(shown)
}

/// What an answer says.
///
/// - `number`: its code.
///
/// # Errors
/// What is wrong with it, and whether it may be otherwise in a moment.
pub fn status_of_answer(
    number: u16,
    body: &[u8],
    version: ReviewVersion,
) -> Result<ReviewStatus, (String, bool)> {
    if !(200..300).contains(&number) {
        return Err(refused(number, body));
    }
    let fixed = |why: String| (why, false);
    let review: Value = serde_json::from_slice(body)
        .map_err(|why| fixed(format!("couldn't get version/kind; json parse error: {why}")))?;
    let text = |name: &str| match &review[name] {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text.as_str()),
        other => {
            let why = mistyped(other, "string", &format!(".{name}"));
            Err(fixed(format!("couldn't get version/kind; json parse error: {why}")))
        }
    };
    let (found, kind) = (text("apiVersion")?, text("kind")?);
    let is_it = (kind.is_empty() || kind == "SubjectAccessReview")
        && (found.is_empty() || found == version.api_version());
    if !review.is_object() || !is_it {
        let why =
            format!("no SubjectAccessReview of version {:?}: {found:?}, {kind:?}", version.api_version());
        return Err(fixed(why));
    }
    let package = version.api_version().rsplit('/').next().unwrap_or_default();
    for (name, package, kind) in [
        ("metadata", "v1", "ObjectMeta"),
        ("spec", package, "SubjectAccessReviewSpec"),
        ("status", package, "SubjectAccessReviewStatus"),
    ] {
        if !matches!(review[name], Value::Null | Value::Object(_)) {
            let (wanted, way) = (format!("{package}.{kind}"), format!("SubjectAccessReview.{name}"));
            return Err(fixed(mistyped(&review[name], &wanted, &way)));
        }
    }
    let nothing = Value::Object(Map::new());
    let status = if review["status"].is_null() { &nothing } else { &review["status"] };
    read_status(status).map_err(fixed)
}

/// # Errors
/// Go's words for a member of another type.
fn read_status(status: &Value) -> Result<ReviewStatus, String> {
    const KNOWN: [&str; 4] = ["allowed", "denied", "reason", "evaluationError"];
    let mut wrong = Wrong::default();
    let members = Strict::of(status, "SubjectAccessReviewStatus.status".to_owned(), &KNOWN, &mut wrong);
    let Some(members) = members else { return Err("it is no object".to_owned()) };
    let mut is = |name: &str| members.boolean(name, &mut wrong).unwrap_or_default();
    let (allowed, denied) = (is("allowed"), is("denied"));
    let mut reason = members.text("reason", &mut wrong);
    let _unheard = members.text("evaluationError", &mut wrong);
    // What nobody knows is let be.
    if let Some(first) = wrong.types.into_iter().next() {
        return Err(first);
    }
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    Ok(ReviewStatus { allowed, denied, reason: reason.into() })
}

/// The words for a code that is none of success.
fn refused(number: u16, body: &[u8]) -> (String, bool) {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    if status["kind"] == "Status"
        && let Some(message) = status["message"].as_str()
    {
        return (message.to_owned(), matches!(number, 429 | 500 | 504));
    }
    let said = String::from_utf8_lossy(&body[..body.len().min(2_048)]);
    let said = said.trim();
    let why = match number {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => "the server does not allow access to the requested resource".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        500.. => {
            let said = if said.is_empty() { "unknown" } else { said };
            format!("an error on the server ({}) has prevented the request from succeeding", go_quote(said))
        }
        _ => {
            format!("the server responded with the status code {number} but did not return more information")
        }
    };
    (why, matches!(number, 429 | 500..) && number != 503)
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::selector::{FieldSelector, LabelSelector};
    use forebay_apimachinery::{Caller, ResourceAttributes, Verb};

    use super::*;

    fn review(verb: &Verb, about: About<'_>) -> SubjectReview {
        let extra = [("k".to_owned(), vec!["v".to_owned()])].into();
        let caller = Caller { name: "bob".into(), uid: "1".into(), groups: vec!["dev".into()], extra };
        SubjectReview::of(&Attributes { caller: &caller, verb, about })
    }

    #[test]
    fn a_question_is_asked_as_upstream_asks_it() {
        let fields = FieldSelector::parse("spec.nodeName=n,a!=b").expect("a selector");
        let labels = LabelSelector::parse("x in (2,1),!y,z,w>3").expect("a selector");
        let of = ResourceAttributes {
            version: "v1",
            resource: "pods",
            fields: fields.requirements(),
            labels: labels.requirements(),
            ..ResourceAttributes::default()
        };
        let listed = review(&Verb::List, About::Resource(of));
        let sent: Value = serde_json::from_str(&listed.body(ReviewVersion::V1)).expect("JSON");
        let want = json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
            "status": { "allowed": false },
            "spec": {
                "user": "bob", "uid": "1", "groups": ["dev"], "extra": { "k": ["v"] },
                "resourceAttributes": {
                    "verb": "list", "version": "v1", "resource": "pods",
                    "fieldSelector": { "requirements": [
                        { "key": "a", "operator": "NotIn", "values": ["b"] },
                        { "key": "spec.nodeName", "operator": "In", "values": ["n"] },
                    ] },
                    "labelSelector": { "requirements": [
                        { "key": "x", "operator": "In", "values": ["1", "2"] },
                        { "key": "y", "operator": "DoesNotExist" },
                        { "key": "z", "operator": "Exists" },
                    ] },
                },
            },
        });
        assert_eq!(sent, want);
        let older: Value = serde_json::from_str(&listed.body(ReviewVersion::V1beta1)).expect("JSON");
        assert_eq!(older["spec"]["group"], json!(["dev"]));
        assert_eq!(older["apiVersion"], "authorization.k8s.io/v1beta1");
        let path = review(&Verb::Get, About::Path("/x"));
        let seen = path.seen();
        assert_eq!(seen["nonResourceAttributes"], json!({ "path": "/x", "verb": "get" }));
        assert!(path.key() != listed.key() && path.is_kept());
        let long = "x".repeat(CHOSEN_BYTES_MAX);
        assert!(!review(&Verb::Get, About::Path(&long)).is_kept());
    }

    #[test]
    fn an_answer_says_yes_no_or_nothing_and_what_is_none_says_why() {
        let read =
            |number: u16, body: &str| match status_of_answer(number, body.as_bytes(), ReviewVersion::V1) {
                Ok(status) => format!("{} {} {}", status.allowed, status.denied, status.reason),
                Err((why, again)) => format!("{}{why}", if again { "again: " } else { "" }),
            };
        let of = |status: &str| {
            format!(
                r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{status}}}"#
            )
        };
        for (number, body, want) in [
            (200, of(r#"{"allowed":true,"reason":"r"}"#), "true false r"),
            (201, of(r#"{"denied":true}"#), "false true "),
            (200, of("{}"), "false false "),
            (200, r#"{"status":{"allowed":true}}"#.to_owned(), "true false "),
            (200, r#"{"spec":{"user":"bob"},"status":null}"#.to_owned(), "false false "),
            (200, of(r#"{"allowed":null,"denied":true,"reason":null,"more":1}"#), "false true "),
            (
                200,
                of("{}").replace("/v1", "/v2"),
                r#"no SubjectAccessReview of version "authorization.k8s.io/v1": "authorization.k8s.io/v2", "SubjectAccessReview""#,
            ),
            (
                500,
                "boom\n".to_owned(),
                r#"again: an error on the server ("boom") has prevented the request from succeeding"#,
            ),
            (
                429,
                String::new(),
                "again: the server has received too many requests and has asked us to try again later",
            ),
            (404, "x".to_owned(), "the server could not find the requested resource"),
            (403, r#"{"kind":"Status","message":"no"}"#.to_owned(), "no"),
        ] {
            assert_eq!(read(number, &body), want, "{number} {body}");
        }
        assert!(read(200, "[").starts_with("couldn't get version/kind; json parse error"));
    }

    #[test]
    fn an_answer_with_a_member_of_another_type_is_none_in_gos_words() {
        const CANNOT: &str = "json: cannot unmarshal";
        let of = |member: &str| format!("Go struct field SubjectAccessReviewStatus.status.{member}");
        for (body, want) in [
            (json!({ "status": { "denied": "true" } }), format!("string into {} of type bool", of("denied"))),
            (json!({ "status": { "allowed": 1 } }), format!("number into {} of type bool", of("allowed"))),
            (json!({ "status": { "reason": {} } }), format!("object into {} of type string", of("reason"))),
            (
                json!({ "status": { "allowed": true, "evaluationError": [] } }),
                format!("array into {} of type string", of("evaluationError")),
            ),
        ] {
            let told = status_of_answer(200, body.to_string().as_bytes(), ReviewVersion::V1);
            assert_eq!(told, Err((format!("{CANNOT} {want}"), false)), "{body}");
        }
        for (member, value, wanted) in [
            ("status", json!("denied"), "v1beta1.SubjectAccessReviewStatus"),
            ("status", json!([]), "v1beta1.SubjectAccessReviewStatus"),
            ("spec", json!(true), "v1beta1.SubjectAccessReviewSpec"),
            ("metadata", json!(5), "v1.ObjectMeta"),
        ] {
            let body = json!({ member: value }).to_string();
            let (why, again) =
                status_of_answer(200, body.as_bytes(), ReviewVersion::V1beta1).expect_err("none");
            let want = format!("into Go struct field SubjectAccessReview.{member} of type {wanted}");
            assert!(why.starts_with(CANNOT) && why.ends_with(&want) && !again, "{why}");
        }
        for name in ["apiVersion", "kind"] {
            let body = json!({ name: 1, "status": { "allowed": true } }).to_string();
            let (why, _) = status_of_answer(200, body.as_bytes(), ReviewVersion::V1).expect_err("none");
            let want = format!("number into Go struct field .{name} of type string");
            assert_eq!(why, format!("couldn't get version/kind; json parse error: {CANNOT} {want}"));
        }
    }
}
