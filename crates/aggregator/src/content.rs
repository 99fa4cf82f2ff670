//! What other servers keep in namespaces: deleted in the name of who ends one, and counted.
//!
//! In: what they say that they serve; a namespace. Out: requests to them, of bounded length and time. Never:
//! decides that a namespace ends; goes by what a server said before it was gone.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`.

use std::collections::BTreeMap;

use forebay_api::{BoxFuture, Elsewhere, LeftElsewhere, ResourceElsewhere, ServedElsewhere};
use forebay_apimachinery::{Caller, Status};
use forebay_documents::discovery::{Extension, ExtensionResource};
use forebay_rt::Clock;
use http::{Method, StatusCode};
use serde::Deserialize;

use crate::aggregator::Aggregator;
use crate::asking::{AskingOther, refused, segment};
use crate::limits::{CONTENT_LIST_BYTES_MAX, CONTENT_LIST_MAX, CONTENT_PAGES_MAX, CONTENT_WAIT};

/// As metadata alone, from servers that know that.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Nobody is to be orphaned or waited for: the namespace goes as a whole.
const BACKGROUND: &str = "propagationPolicy=Background";

/// See the module's doc.
pub struct ContentElsewhere {
    aggregator: Aggregator,
    clock: Clock,
}

impl ContentElsewhere {
    pub fn new(aggregator: Aggregator, clock: Clock) -> ContentElsewhere {
        ContentElsewhere { aggregator, clock }
    }
}

/// A page of a list, as far as it is looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ContentPage {
    metadata: PageMeta,
    items: Vec<Item>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    #[serde(rename = "continue")]
    next: String,
    remaining_item_count: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: ItemMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ItemMeta {
    name: String,
    finalizers: Option<Vec<String>>,
}

impl Elsewhere for ContentElsewhere {
    fn served(&self) -> Result<ServedElsewhere, Status> {
        if !self.aggregator.is_told() {
            return Err(Status::internal("the APIServices are not known yet"));
        }
        Ok(served(&self.aggregator.extensions.now()))
    }

    fn delete_all<'a>(
        &'a self,
        caller: &'a Caller,
        of: &'a ResourceElsewhere,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<LeftElsewhere, Status>> {
        Box::pin(async move {
            let route = self.aggregator.routes.find(&of.group, &of.version);
            let route = route.ok_or_else(|| Status::internal("it is no longer served"))?;
            let (bytes_max, wait) = (CONTENT_LIST_BYTES_MAX, CONTENT_WAIT);
            let asking = ContentAsked(AskingOther { route, caller, clock: &self.clock, bytes_max, wait });
            let path = format!("/apis/{}/{}/namespaces/{namespace}/{}", of.group, of.version, of.resource);
            if !of.has_collections || !asking.delete(&path).await? {
                asking.delete_each(&path).await?;
            }
            let ContentPage { metadata, items } = asking.list(&path, "").await?;
            let count = items.len().saturating_add(metadata.remaining_item_count.unwrap_or(0));
            let finalizers = items.into_iter().flat_map(|item| item.metadata.finalizers.unwrap_or_default());
            Ok(LeftElsewhere { count, finalizers: finalizers.collect() })
        })
    }
}

/// What they say that they serve, each resource in the version of its group that comes first.
fn served(extensions: &[Extension]) -> ServedElsewhere {
    let mut told = ServedElsewhere::default();
    // (group, resource) -> its version's priority, and the resource
    let mut first = BTreeMap::<(&str, &str), (u32, ResourceElsewhere)>::new();
    for extension in extensions {
        if extension.is_stale {
            told.unknown.push(format!("{}/{}", extension.group, extension.version));
        }
        for known in extension.resources.iter().filter(|known| is_content(known)) {
            let (at, priority) = ((&*extension.group, &*known.resource), extension.version_priority);
            if first.get(&at).is_none_or(|(other, _)| *other < priority) {
                let resource = ResourceElsewhere {
                    group: extension.group.clone(),
                    version: extension.version.clone(),
                    resource: known.resource.clone(),
                    has_collections: can(known, "deletecollection"),
                };
                first.insert(at, (priority, resource));
            }
        }
    }
    told.resources = first.into_values().map(|(_, resource)| resource).collect();
    told
}

fn is_content(known: &ExtensionResource) -> bool {
    &*known.scope == "Namespaced" && can(known, "delete") && can(known, "list")
}

fn can(known: &ExtensionResource, verb: &str) -> bool {
    // Few: there are ten verbs.
    known.verbs.iter().any(|known| &**known == verb)
}

/// What is asked of the content of a namespace.
struct ContentAsked<'a>(AskingOther<'a>);

impl ContentAsked<'_> {
    /// Deletes what is at `path`. Whether the server knows how to.
    async fn delete(&self, path: &str) -> Result<bool, Status> {
        let target = format!("{path}?{BACKGROUND}");
        let (code, body) = self.0.ask(Method::DELETE, &target, "application/json", None).await?;
        match code {
            code if code.is_success() => Ok(true),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Ok(false),
            code => Err(refused(path, code, &body)),
        }
    }

    /// Deletes the objects at `path`, one by one.
    async fn delete_each(&self, path: &str) -> Result<(), Status> {
        let mut next = String::new();
        for _ in 0..CONTENT_PAGES_MAX {
            let page = self.list(path, &next).await?;
            for item in page.items {
                let name = segment(&item.metadata.name)?;
                self.delete(&format!("{path}/{name}")).await?;
            }
            next = page.metadata.next;
            if next.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// A page of what is at `path`: the first one, or the one that `next` stands for.
    async fn list(&self, path: &str, next: &str) -> Result<ContentPage, Status> {
        let next = match next {
            "" => String::new(),
            next => format!("&continue={}", segment(next)?),
        };
        let target = format!("{path}?limit={CONTENT_LIST_MAX}{next}");
        let (code, body) = self.0.ask(Method::GET, &target, METADATA, None).await?;
        match code {
            StatusCode::OK => serde_json::from_slice(&body?).map_err(Status::internal),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Ok(ContentPage::default()),
            code => Err(refused(path, code, &body)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extension(version: &str, priority: u32, resources: &[(&str, &str, &[&str])]) -> Extension {
        let resource = |(resource, scope, verbs): &(&str, &str, &[&str])| ExtensionResource {
            resource: (*resource).into(),
            scope: (*scope).into(),
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
    fn what_can_be_deleted_in_namespaces_is_told_once_in_the_version_that_comes_first() {
        let all = ["delete", "deletecollection", "list"];
        let extensions = [
            extension("v1", 20, &[("flunders", "Namespaced", &all), ("fischers", "Cluster", &all)]),
            extension(
                "v1beta1",
                10,
                &[("flunders", "Namespaced", &all[..1]), ("old", "Namespaced", &["delete", "list"])],
            ),
            extension("v2", 5, &[("flunders", "Namespaced", &all), ("shown", "Namespaced", &["list"])]),
            Extension { is_stale: true, ..extension("v3", 1, &[]) },
        ];
        let told = served(&extensions);
        let shown =
            |one: &ResourceElsewhere| format!("{} {} {}", one.resource, one.version, one.has_collections);
        assert_eq!(
            told.resources.iter().map(shown).collect::<Vec<_>>(),
            ["flunders v1 true", "old v1beta1 false"]
        );
        assert_eq!(told.unknown, ["a.io/v3"]);
    }
}
