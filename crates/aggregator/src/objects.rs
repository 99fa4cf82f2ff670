//! Single objects of other servers, for who follows owner references: looked at, deleted and changed, each in
//! one request.
//!
//! In: what they say that they serve; where an object is, and in whose name it is asked for. Out: requests of
//! bounded length and time. Never: takes anything for the word that an object is not there but its own
//! server's 404 that names it: not a server that cannot be asked, nor one that does not know the path.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use forebay_api::{
    BoxFuture, FollowElsewhere, KindElsewhere, KnownElsewhere, ObjectsElsewhere, PlaceElsewhere,
};
use forebay_apimachinery::json::{Reader, weight};
use forebay_apimachinery::options::DeleteOptions;
use forebay_apimachinery::{Caller, Reason, Status};
use forebay_documents::discovery::Extension;
use forebay_documents::discovery::extensions::ExtensionResource;
use forebay_rt::{Clock, Random};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::aggregator::Aggregator;
use crate::asking::{AskingOther, SentBody, refused, segment};
use crate::followed::{FollowedObjects, HeldBytes, OverProxy};
use crate::limits::{FOLLOWED_MAX, OBJECT_BYTES_MAX, OBJECT_TREE_BYTES_MAX, OBJECT_WAIT};

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// See the module's doc.
pub struct ObjectsOfOthers {
    aggregator: Aggregator,
    clock: Clock,
    random: Arc<Random>,
    held: HeldBytes,
}

impl ObjectsOfOthers {
    pub fn new(aggregator: Aggregator, clock: Clock, random: Random) -> ObjectsOfOthers {
        ObjectsOfOthers { aggregator, clock, random: Arc::new(random), held: HeldBytes::default() }
    }

    /// What is answered about an object.
    ///
    /// # Errors
    /// A refusal: [`Reason::NotFound`] and [`Reason::Conflict`] are told apart.
    async fn ask(
        &self,
        caller: &Caller,
        at: &PlaceElsewhere,
        (method, query): (Method, &str),
        sent: Option<SentBody>,
    ) -> Result<Bytes, Status> {
        let route = self.aggregator.routes.find(&at.of.group, &at.of.version);
        let route = route.ok_or_else(|| Status::internal("it is no longer served"))?;
        let (bytes_max, wait) = (OBJECT_BYTES_MAX, OBJECT_WAIT);
        let asking = AskingOther { route, caller, clock: &self.clock, bytes_max, wait };
        let path = path(at)?;
        let (code, body) = asking.ask(method, &format!("{path}{query}"), METADATA, sent).await?;
        match code.is_success() {
            true => body,
            false => Err(refusal(at, &path, code, &body)),
        }
    }
}

impl ObjectsElsewhere for ObjectsOfOthers {
    fn known(&self) -> Result<KnownElsewhere, Status> {
        let change = self.aggregator.changes.count();
        if !self.aggregator.is_told() {
            return Err(Status::internal("the APIServices are not known yet"));
        }
        Ok(KnownElsewhere { change, ..known(&self.aggregator.extensions.now()) })
    }

    fn changed(&self, change: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.aggregator.changes.later_than(change))
    }

    fn follow(&self, caller: Arc<Caller>, of: Arc<KindElsewhere>) -> Box<dyn FollowElsewhere> {
        let way = OverProxy { aggregator: self.aggregator.clone(), caller, of: of.clone() };
        let by = (self.clock.clone(), self.random.clone());
        Box::new(FollowedObjects::new(way, by, self.held.share(), of))
    }

    fn metadata<'a>(
        &'a self,
        caller: &'a Caller,
        at: &'a PlaceElsewhere,
    ) -> BoxFuture<'a, Result<Option<Value>, Status>> {
        Box::pin(async move {
            match self.ask(caller, at, (Method::GET, ""), None).await {
                Ok(body) => metadata(at, &body).map(Some),
                Err(status) if status.reason == Reason::NotFound => Ok(None),
                Err(status) => Err(status),
            }
        })
    }

    fn delete<'a>(
        &'a self,
        caller: &'a Caller,
        at: &'a PlaceElsewhere,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let mut body = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
            if let Some(policy) = options.propagation_policy {
                body["propagationPolicy"] = policy.as_str().into();
            }
            let asked = &options.preconditions;
            for (name, value) in [("uid", &asked.uid), ("resourceVersion", &asked.resource_version)] {
                if let Some(value) = value {
                    body["preconditions"][name] = value.as_str().into();
                }
            }
            let sent = Some((JSON, body.to_string().into()));
            self.ask(caller, at, (Method::DELETE, ""), sent).await.map(drop)
        })
    }

    fn merge<'a>(
        &'a self,
        caller: &'a Caller,
        at: &'a PlaceElsewhere,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let sent = Some((MERGE_PATCH, patch.to_string().into()));
            let query = "?fieldManager=kube-controller-manager";
            self.ask(caller, at, (Method::PATCH, query), sent).await.map(drop)
        })
    }
}

/// Where an object is.
///
/// # Errors
/// Its name is no part of a URL.
fn path(at: &PlaceElsewhere) -> Result<String, Status> {
    let PlaceElsewhere { of, namespace, name } = at;
    let root = format!("/apis/{}/{}", of.group, of.version);
    let name = segment(name)?;
    Ok(match of.is_namespaced {
        true => format!("{root}/namespaces/{}/{}/{name}", segment(namespace)?, of.resource),
        false => format!("{root}/{}/{name}", of.resource),
    })
}

/// What is said instead of an answer about the object at `at`.
fn refusal(at: &PlaceElsewhere, path: &str, code: StatusCode, body: &Result<Bytes, Status>) -> Status {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Said {
        kind: String,
        reason: String,
        details: Option<Details>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Details {
        name: String,
    }
    let status = refused(path, code, body);
    let said = body.as_ref().ok().and_then(|body| serde_json::from_slice::<Said>(body).ok());
    let said = said.filter(|said| said.kind == "Status").unwrap_or_default();
    let names_it = said.details.is_some_and(|details| *details.name == *at.name);
    match (code, &*said.reason) {
        (StatusCode::NOT_FOUND, "NotFound") if names_it => Status::new(Reason::NotFound, status.message),
        (StatusCode::CONFLICT, "Conflict") => Status::new(Reason::Conflict, status.message),
        _ => status,
    }
}

/// The metadata of the object at `at`.
///
/// # Errors
/// It is not that object, or is too much.
fn metadata(at: &PlaceElsewhere, body: &[u8]) -> Result<Value, Status> {
    let span = metadata_span(body).ok_or_else(|| Status::internal("an answer without metadata"))?;
    if weight::of_text(span) > OBJECT_TREE_BYTES_MAX {
        return Err(Status::internal(format!("metadata of {} bytes has too many values", span.len())));
    }
    let metadata: Value = serde_json::from_slice(span).map_err(Status::internal)?;
    let is = |name: &str, want: &str| metadata[name].as_str().unwrap_or_default() == want;
    let has_uid = metadata["uid"].as_str().is_some_and(|uid| !uid.is_empty());
    if is("name", &at.name) && is("namespace", &at.namespace) && has_uid {
        return Ok(metadata);
    }
    Err(Status::internal("what is answered is another object"))
}

/// Where its metadata is.
fn metadata_span(body: &[u8]) -> Option<&[u8]> {
    let (mut text, mut found, mut passed) = (Reader::new(body), None, 0);
    text.begin(b'{').ok()?;
    while let Some(name) = text.member(passed).ok()? {
        passed += 1;
        let from = text.at();
        text.skip().ok()?;
        if *name == *b"metadata" {
            found = body.get(from..text.at());
        }
    }
    found
}

/// The kinds that they say they serve. Of those that can be followed one is, in the version of its group that
/// comes first; the first [`FOLLOWED_MAX`] by group and resource.
fn known(extensions: &[Extension]) -> KnownElsewhere {
    let mut told = KnownElsewhere::default();
    // (group, resource) -> the priority of its version, and that version
    let mut first = HashMap::<(&str, &str), (u32, &str)>::new();
    for extension in extensions {
        let version = format!("{}/{}", extension.group, extension.version);
        if extension.is_stale {
            told.unknown.push(version.clone());
        }
        told.versions.push(version);
        for known in extension.resources.iter().filter(|known| can(known, &["delete", "list", "watch"])) {
            let entry = first.entry((&extension.group, &known.resource)).or_insert((0, ""));
            if entry.1.is_empty() || entry.0 < extension.version_priority {
                *entry = (extension.version_priority, &extension.version);
            }
        }
    }
    let mut followed: Vec<(&str, &str)> = first.keys().copied().collect();
    followed.sort_unstable();
    if followed.len() > FOLLOWED_MAX {
        let resources = followed.len();
        tracing::warn!(
            resources,
            "other servers serve more resources than are followed: some are not collected"
        );
    }
    for beyond in followed.drain(FOLLOWED_MAX.min(followed.len())..) {
        first.remove(&beyond);
    }
    for extension in extensions {
        for known in extension.resources.iter().filter(|known| can(known, &["get"])) {
            let of_first = first.get(&(&*extension.group, &*known.resource));
            let is_followed = of_first.is_some_and(|(_, version)| **version == *extension.version)
                && can(known, &["delete", "list", "watch"]);
            told.kinds.push(Arc::new(KindElsewhere {
                group: extension.group.clone(),
                version: extension.version.clone(),
                is_namespaced: &*known.scope == "Namespaced",
                kind: known.response_kind.kind.clone(),
                resource: known.resource.clone(),
                is_followed,
            }));
        }
    }
    told.kinds.sort_unstable();
    told.kinds.dedup_by(|one, other| {
        (&one.group, &one.version, &one.resource) == (&other.group, &other.version, &other.resource)
    });
    told
}

fn can(known: &ExtensionResource, verbs: &[&str]) -> bool {
    // Few: there are ten verbs.
    verbs.iter().all(|verb| known.verbs.iter().any(|known| &**known == *verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flunder() -> PlaceElsewhere {
        let of = KindElsewhere {
            group: "a.io".into(),
            version: "v1".into(),
            resource: "flunders".into(),
            kind: "Flunder".into(),
            is_namespaced: true,
            is_followed: true,
        };
        PlaceElsewhere { of: Arc::new(of), namespace: "x".into(), name: "f".into() }
    }

    #[test]
    fn only_a_404_that_names_the_object_says_that_it_is_not_there() {
        let status = |details: Value| json!({ "kind": "Status", "reason": "NotFound", "code": 404, "message": "gone", "details": details });
        let of = json!({ "name": "f", "group": "a.io", "kind": "flunders" });
        let (not_found, unavailable) = (StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE);
        let mut other_kind = status(of.clone());
        other_kind["kind"] = "Flunder".into();
        for (code, said, want) in [
            (not_found, status(of.clone()).to_string(), Reason::NotFound),
            (unavailable, status(of.clone()).to_string(), Reason::InternalError),
            (not_found, status(json!({ "name": "g" })).to_string(), Reason::InternalError),
            (not_found, status(json!({})).to_string(), Reason::InternalError),
            (not_found, status(Value::Null).to_string(), Reason::InternalError),
            (not_found, other_kind.to_string(), Reason::InternalError),
            (not_found, "404 page not found\n".to_owned(), Reason::InternalError),
            (not_found, String::new(), Reason::InternalError),
        ] {
            let refused = refusal(&flunder(), "/apis/a.io", code, &Ok(said.clone().into()));
            assert_eq!(refused.reason, want, "{code} {said}");
        }
        let unread = refusal(&flunder(), "/apis/a.io", not_found, &Err(Status::internal("too long")));
        assert_eq!(unread.reason, Reason::InternalError);
        let conflict = json!({ "kind": "Status", "reason": "Conflict" }).to_string();
        let conflict = refusal(&flunder(), "/apis/a.io", StatusCode::CONFLICT, &Ok(conflict.into()));
        assert_eq!(conflict.reason, Reason::Conflict);
    }

    #[test]
    fn metadata_is_that_of_the_object_that_was_asked_for() {
        let own = json!({ "name": "f", "namespace": "x", "uid": "u" });
        let read = |body: Value| metadata(&flunder(), body.to_string().as_bytes());
        assert_eq!(read(json!({ "spec": [{ "metadata": 1 }], "metadata": own })), Ok(own.clone()));
        for other in [
            json!({ "metadata": { "name": "g", "namespace": "x", "uid": "u" } }),
            json!({ "metadata": { "name": "f", "namespace": "y", "uid": "u" } }),
            json!({ "metadata": { "name": "f", "namespace": "x" } }),
            json!({ "kind": "Status" }),
            json!([]),
        ] {
            assert!(read(other.clone()).is_err(), "{other}");
        }
        let long = json!({ "name": "f", "namespace": "x", "uid": "u", "finalizers": vec![json!({ "a": 1 }); 10_000] });
        assert!(read(json!({ "metadata": long })).is_err());
    }

    #[test]
    fn the_path_of_an_object_has_its_namespace_where_it_has_one() {
        assert_eq!(path(&flunder()).as_deref(), Ok("/apis/a.io/v1/namespaces/x/flunders/f"));
        let of = KindElsewhere { is_namespaced: false, ..(*flunder().of).clone() };
        let of_cluster = PlaceElsewhere { of: Arc::new(of), namespace: "".into(), ..flunder() };
        assert_eq!(path(&of_cluster).as_deref(), Ok("/apis/a.io/v1/flunders/f"));
        assert!(path(&PlaceElsewhere { name: "../f".into(), ..flunder() }).is_err());
    }

    fn extension(version: &str, priority: u32, resources: &[(&str, &[&str])]) -> Extension {
        let resource = |(resource, verbs): &(&str, &[&str])| ExtensionResource {
            resource: (*resource).into(),
            scope: "Namespaced".into(),
            verbs: verbs.iter().map(|verb| Box::from(*verb)).collect(),
            ..ExtensionResource::default()
        };
        Extension {
            group: "a.io".into(),
            version: version.into(),
            version_priority: priority,
            resources: resources.iter().map(resource).collect(),
            ..Extension::default()
        }
    }

    #[test]
    fn what_can_be_followed_is_in_the_version_that_comes_first_and_what_can_be_read_is_known() {
        let all = ["delete", "get", "list", "watch"];
        let extensions = [
            extension("v1", 20, &[("flunders", &all), ("metrics", &["get", "list"])]),
            extension("v1beta1", 10, &[("flunders", &all), ("old", &all), ("reviews", &["create"])]),
            Extension { is_stale: true, ..extension("v2", 30, &[]) },
        ];
        let told = known(&extensions);
        let shown = |of: &Arc<KindElsewhere>| format!("{} {} {}", of.version, of.resource, of.is_followed);
        assert_eq!(
            told.kinds.iter().map(shown).collect::<Vec<_>>(),
            ["v1 flunders true", "v1 metrics false", "v1beta1 flunders false", "v1beta1 old true"]
        );
        assert_eq!(told.unknown, ["a.io/v2"]);
        assert_eq!(told.versions, ["a.io/v1", "a.io/v1beta1", "a.io/v2"]);
    }

    #[test]
    fn no_more_are_followed_than_the_limit() {
        let names: Vec<String> = (0..=FOLLOWED_MAX).map(|number| format!("r{number:03}")).collect();
        let all = ["delete", "get", "list", "watch"];
        let resources: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &all[..])).collect();
        let told = known(&[extension("v1", 1, &resources)]);
        let followed = told.kinds.iter().filter(|of| of.is_followed).count();
        assert_eq!((told.kinds.len(), followed), (FOLLOWED_MAX + 1, FOLLOWED_MAX));
        assert!(!told.kinds[FOLLOWED_MAX].is_followed, "the last one by name");
    }
}
