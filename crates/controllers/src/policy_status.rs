//! Tells the writer of a ValidatingAdmissionPolicy, in its status, what its expressions say of fields that
//! there are not.
//!
//! In: policies; what is served. Out: `status.typeChecking` and `status.observedGeneration`. Never: keeps a
//! policy; looks at one again before its generation is another.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/validatingadmissionpolicystatus`.

mod types;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_apimachinery::options::{ListOptions, PatchOptions};
use forebay_apimachinery::resource::split_api_version;
use forebay_apimachinery::{GroupVersionKind, Reason, Status};
use forebay_catalog::{Catalog, Served, Target};
use forebay_cel::Type;
use forebay_policy::{CheckedKind, type_warnings};
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use serde_json::{Value, json};

use crate::acting::ActingRegistry;
use crate::limits::{POLICY_TYPES_MAX, TYPES_MAX};
use crate::objects::{built_in, collection, find, named};
use crate::queue::{Queue, Verdict};
use crate::run::Named;

const GROUP: &str = "admissionregistration.k8s.io";
const POLICIES: &str = "validatingadmissionpolicies";
/// What the controller is called where it writes.
const MANAGER: &str = "validatingadmissionpolicy-status";

/// The controller.
pub struct PolicyStatus {
    registry: ActingRegistry,
}

impl PolicyStatus {
    pub fn new(registry: ActingRegistry) -> PolicyStatus {
        PolicyStatus { registry }
    }
}

impl Named for PolicyStatus {
    const NAME: &'static str = crate::Controller::PolicyStatus.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        let policies = built_in(&self.registry, GROUP, "v1", POLICIES)?;
        Ok(vec![self.registry.informer(&collection(&policies, None), &ListOptions::default())?])
    }

    fn observe(&self, _: usize, notice: &Notice, _now: Instant, queue: &mut Queue<String>) {
        if let Notice::Put(policy) = notice {
            queue.add(policy.name().to_string());
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.registry.clone();
        async move {
            match sync(&registry, &name).await {
                Ok(()) => Verdict::Done,
                // It is gone, or somebody else wrote it, which is told of.
                Err(status) if matches!(status.reason, Reason::NotFound | Reason::Conflict) => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

async fn sync(registry: &ActingRegistry, name: &str) -> Result<(), Status> {
    let policies = built_in(registry, GROUP, "v1", POLICIES)?;
    let target = named(&policies, "", name);
    let Some(found) = find(registry, &target).await? else { return Ok(()) };
    let policy = policies.to_value(&found)?;
    let generation = policy["metadata"]["generation"].as_i64().unwrap_or_default();
    if generation <= policy["status"]["observedGeneration"].as_i64().unwrap_or_default() {
        return Ok(());
    }
    let catalog = registry.catalog();
    let kinds: Vec<CheckedKind> = kinds(&policy, &catalog)
        .into_iter()
        .filter_map(|served| {
            let name = format!("{}/{}, Kind={}", served.gvk.group, served.gvk.version, served.gvk.kind);
            Some(CheckedKind { name, object: types::of(&served)? })
        })
        .collect();
    let params = params(&policy, &catalog).and_then(|served| types::of(&served)).unwrap_or(Type::Dyn);
    let warnings = type_warnings(&policy, &kinds, &params);
    let mut checking = json!({});
    if !warnings.is_empty() {
        checking["expressionWarnings"] = Value::Array(warnings);
    }
    let config = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ValidatingAdmissionPolicy", "metadata": { "name": name },
        "status": { "observedGeneration": generation, "typeChecking": checking },
    });
    let options = PatchOptions { field_manager: MANAGER.to_owned(), force: true, ..PatchOptions::default() };
    let target = Target { subresource: Some("status".to_owned()), ..target };
    registry.apply(&target, &config, &options).await.map(drop)
}

/// The kinds that a policy names, in the order of their names; those that stand for others are not looked
/// for.
fn kinds(policy: &Value, catalog: &Catalog) -> Vec<Arc<Served>> {
    let mut found: BTreeMap<GroupVersionKind, Arc<Served>> = BTreeMap::new();
    let rules = policy["spec"]["matchConstraints"]["resourceRules"].as_array();
    for rule in rules.into_iter().flatten() {
        let of_rule = kinds_of_rule(rule, catalog);
        let is_last = of_rule.len() == TYPES_MAX;
        found.extend(of_rule.into_iter().map(|served| (served.gvk.clone(), served)));
        if is_last || found.len() >= POLICY_TYPES_MAX {
            break;
        }
    }
    found.into_values().collect()
}

/// Those of a rule, the first [`TYPES_MAX`] by the names of groups, versions and resources; upstream looks at
/// no further rule once one has as many.
fn kinds_of_rule(rule: &Value, catalog: &Catalog) -> Vec<Arc<Served>> {
    // Only what is served is looked for: a rule may name thousands of each.
    let named = |member: &str, of: fn(&Served) -> &str| -> BTreeSet<&str> {
        let all = rule[member].as_array().into_iter().flatten().filter_map(Value::as_str);
        let known: BTreeSet<&str> = catalog.iter().map(|served| of(served)).collect();
        all.filter(|name| known.contains(name)).collect()
    };
    let resources = named("resources", Served::resource);
    let (groups, versions) = (named("apiGroups", Served::group), named("apiVersions", |it| &it.gvr.version));
    let mut found = Vec::new();
    for group in &groups {
        for version in &versions {
            for resource in &resources {
                found.extend(catalog.resource(group, version, resource).cloned());
                if found.len() == TYPES_MAX {
                    return found;
                }
            }
        }
    }
    found
}

fn params(policy: &Value, catalog: &Catalog) -> Option<Arc<Served>> {
    let kind = &policy["spec"]["paramKind"];
    let (group, version) = split_api_version(kind["apiVersion"].as_str()?);
    let wanted = GroupVersionKind::new(group, version, kind["kind"].as_str()?);
    catalog.iter().find(|served| served.gvk == wanted && served.store.is_some()).cloned()
}
