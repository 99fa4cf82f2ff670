//! Every kind of k8s-openapi with a golden file of Kubernetes, read through a handle and straight from the
//! file.
//!
//! In: golden files of `k8s.io/api`. Out: what handles say of each. Never: reads a file itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use forebay_apimachinery::{FieldPath, Key, Revision};
use forebay_client::wire::{self, ObjectText};
use forebay_object::{Form, Interner, Layout, Object, Scope};
use forebay_rt::Random;
use forebay_view::{Handle, Metadata, Scalar, TypeMeta};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata as HasMetadata, Resource};
use kube_core::DynamicObject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Name -> JSON.
type Goldens = BTreeMap<String, String>;

/// Fields of each object that are looked for.
const FIELDS: u64 = 200;

/// Calls `check::<T>` for each of the types, and collects what it returns.
macro_rules! each {
    ($goldens:expr, $($group:ident $version:ident: $($kind:ident)+;)+) => {
        [$($(check::<k8s_openapi::api::$group::$version::$kind>($goldens)),+),+]
    };
}

/// Every kind of k8s-openapi that has metadata and a golden file.
fn check_all(goldens: &Goldens) -> Vec<String> {
    each!(goldens,
        admissionregistration v1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration
            ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration;
        admissionregistration v1alpha1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
        admissionregistration v1beta1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
        apiserverinternal v1alpha1: StorageVersion;
        apps v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        authentication v1: SelfSubjectReview TokenRequest TokenReview;
        authorization v1: LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview;
        autoscaling v1: HorizontalPodAutoscaler Scale;
        autoscaling v2: HorizontalPodAutoscaler;
        batch v1: CronJob Job;
        certificates v1: CertificateSigningRequest;
        certificates v1alpha1: ClusterTrustBundle;
        certificates v1beta1: ClusterTrustBundle PodCertificateRequest;
        coordination v1: Lease;
        coordination v1alpha2: LeaseCandidate;
        coordination v1beta1: LeaseCandidate;
        core v1: Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
            PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount;
        discovery v1: EndpointSlice;
        events v1: Event;
        flowcontrol v1: FlowSchema PriorityLevelConfiguration;
        networking v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
        networking v1beta1: IPAddress ServiceCIDR;
        node v1: RuntimeClass;
        policy v1: Eviction PodDisruptionBudget;
        rbac v1: ClusterRole ClusterRoleBinding Role RoleBinding;
        resource v1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        resource v1alpha3: DeviceTaintRule ResourcePoolStatusRequest;
        resource v1beta1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        resource v1beta2: DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice;
        scheduling v1: PriorityClass;
        scheduling v1alpha2: PodGroup Workload;
        storage v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass;
        storage v1beta1: VolumeAttributesClass;
        storagemigration v1beta1: StorageVersionMigration;
    )
    .into()
}

#[test]
fn every_golden_object_reads_as_k8s_openapi_reads_it() {
    let Some(goldens) = forebay_golden::goldens(&[forebay_golden::API]) else { return };
    let goldens: Goldens = goldens.into_iter().map(|golden| (golden.name, golden.json)).collect();
    let checked: BTreeSet<String> = check_all(&goldens).into_iter().collect();
    assert_eq!(checked.len(), 96);
    // Of the versions that are neither alpha nor beta none was left out, but for kinds that are no objects.
    let is_stable = |name: &String| {
        let version = name.rsplit('.').nth(1).unwrap_or_default();
        !version.contains("alpha") && !version.contains("beta")
    };
    let is_missed =
        |name: &String| is_stable(name) && !checked.contains(name) && has_metadata(&goldens[name]);
    let missed: Vec<&String> = goldens.keys().filter(|name| is_missed(name)).collect();
    assert_eq!(missed, MISSED);
}

/// Golden objects whose kind k8s-openapi does not have, or not as an object: no server keeps them.
const MISSED: [&str; 4] = [
    "apidiscovery.k8s.io.v2.APIGroupDiscovery",
    "core.v1.PodStatusResult",
    "core.v1.RangeAllocation",
    "core.v1.Status",
];

/// Those that k8s-openapi does not read: a null among times in a map.
const UNREADABLE: [&str; 1] = ["policy.v1.PodDisruptionBudget"];

fn has_metadata(golden: &str) -> bool {
    serde_json::from_str::<Value>(golden).expect("JSON")["metadata"].is_object()
}

/// Holds a kind's golden object against what is read of it here; returns the name of its file.
fn check<K>(goldens: &Goldens) -> String
where
    K: Resource + HasMetadata<Ty = ObjectMeta> + DeserializeOwned + Serialize + PartialEq + Debug,
{
    let group = if K::GROUP.is_empty() { "core" } else { K::GROUP };
    let name = format!("{group}.{}.{}", K::VERSION, K::KIND);
    let golden = goldens.get(&name).expect(&name);
    // The revisions of this cache are numbers. The first one is that of the object.
    let golden = golden.replacen("\"resourceVersionValue\"", "\"42\"", 1);
    let want: Result<K, _> = serde_json::from_str(&golden);
    assert_eq!(want.is_err(), UNREADABLE.contains(&&*name), "{name}: {:?}", want.err());
    let tree: Value = serde_json::from_str(&golden).expect(&name);
    for form in [Form::Typed, Form::Whole] {
        let handle: Handle<K> = handle(&golden, form, K::KIND, K::API_VERSION);
        assert_eq!(handle.typed().ok(), want.as_ref().ok(), "{name}");
        assert_eq!(
            serde_json::from_slice::<Value>(&handle.to_json().expect("in memory")).ok().as_ref(),
            Some(&tree),
            "{name}"
        );
        let meta: ObjectMeta = serde_json::from_value(tree["metadata"].clone()).expect(&name);
        assert_metadata(handle.metadata().expect(&name), &meta, &name);
        assert!(want.as_ref().map_or(true, |want| *want.metadata() == meta), "{name}");
        assert_fields(&handle, &tree, &name);
        let dynamic = handle.cast::<DynamicObject>();
        let straight: DynamicObject = serde_json::from_str(&golden).expect(&name);
        assert_eq!(*dynamic.typed().expect(&name), straight, "{name}");
    }
    name
}

fn handle<K>(golden: &str, form: Form, kind: &str, api_version: &str) -> Handle<K> {
    let text = ObjectText::read(golden.as_bytes()).expect(kind);
    let layout = Layout { prefix_len: "/registry/x/".len(), scope: Scope::Namespaced, form, fields: vec![] };
    let key = Key::from(format!("/registry/x/{}/{}", text.namespace(), text.name()));
    let value = text.into_value(form, &wire::TypeMeta::default());
    let object = Object::decode(&layout, key, Revision::from_log(42), &value, &mut Interner::default());
    Handle::new(Arc::new(object.expect(kind)), Arc::new(TypeMeta::new(kind, api_version)))
}

fn assert_metadata(got: &Metadata, want: &ObjectMeta, name: &str) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let time = |time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        serde_json::to_value(time).expect("a time").as_str().map(String::from)
    };
    assert_eq!((&got.name, &got.namespace), (&text(&want.name), &text(&want.namespace)), "{name}");
    assert_eq!(
        (&got.uid, &got.resource_version),
        (&text(&want.uid), &text(&want.resource_version)),
        "{name}"
    );
    assert_eq!(Some(got.generation), want.generation, "{name}");
    assert_eq!(
        (Some(&got.labels), Some(&got.annotations)),
        (want.labels.as_ref(), want.annotations.as_ref())
    );
    assert_eq!(Some(&got.finalizers), want.finalizers.as_ref(), "{name}");
    assert_eq!(got.creation_timestamp, time(&want.creation_timestamp), "{name}");
    assert_eq!(got.deletion_timestamp, time(&want.deletion_timestamp), "{name}");
    let owners = want.owner_references.as_deref().unwrap_or_default();
    assert_eq!(got.owner_references.len(), owners.len(), "{name}");
    for (got, want) in got.owner_references.iter().zip(owners) {
        assert_eq!((&got.api_version, &got.kind), (&want.api_version, &want.kind), "{name}");
        assert_eq!((&got.name, &got.uid), (&want.name, &want.uid), "{name}");
        assert_eq!(got.controller, want.controller, "{name}");
        assert_eq!(got.block_owner_deletion, want.block_owner_deletion, "{name}");
    }
}

/// Random paths through the tree, some of them out of it.
fn assert_fields<K>(handle: &Handle<K>, tree: &Value, name: &str) {
    let random = Random::seeded(name.len() as u64);
    let mut found = 0;
    for _ in 0..FIELDS {
        let (mut path, mut at) = (String::new(), Some(tree));
        loop {
            match at {
                Some(Value::Object(members)) if !members.is_empty() => {
                    let nth = random.below(members.len() as u64) as usize;
                    let (name, value) = members.iter().nth(nth).expect("it has so many");
                    path += &format!("['{name}']");
                    at = Some(value);
                }
                Some(Value::Array(items)) if !items.is_empty() => {
                    let nth = random.below(items.len() as u64 + 1) as usize;
                    path += &format!("[{nth}]");
                    at = items.get(nth);
                }
                _ => break,
            }
        }
        if random.below(20) == 0 {
            path += ["['x']", "[0]"][random.below(2) as usize];
            at = None;
        }
        let path: FieldPath = path.parse().expect("a path");
        let got = handle.field_at(&path).expect(name).map(tree_of);
        let want = at.filter(|value| !matches!(value, Value::Null | Value::Object(_) | Value::Array(_)));
        found += u64::from(want.is_some());
        assert_eq!(got.as_ref(), want, "{name} {path}");
    }
    assert!(found > FIELDS / 2, "{name}: {found}");
}

fn tree_of(scalar: Scalar<'_>) -> Value {
    match scalar {
        Scalar::Text(text) => Value::String(text.into_owned()),
        Scalar::Number(number) => Value::Number(number),
        Scalar::Bool(value) => Value::Bool(value),
    }
}
