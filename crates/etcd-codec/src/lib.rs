//! How objects are kept in etcd: as kube-apiserver keeps them, so that both can stand on the same etcd.
//!
//! In: keys, and values as the registry has them, JSON that begins with `kind` and `apiVersion`. Out: `k8s\0`
//! and a protobuf message for built-in kinds, JSON for definitions of custom resources, for custom resources,
//! and for what has no message; and back. Never: another version than the one that is stored here, unless it
//! is like it; a value that cannot be read is said to be so, by key.
//!
//! Source: reference §6; apiserver v1.36.3 `storage/etcd3`.

mod definition;
mod encrypted;

pub use encrypted::Encrypted;

use std::cell::RefCell;

use bytes::Bytes;
use forebay_apimachinery::Lease;
use forebay_apimachinery::resource::{api_version, split_api_version};
use forebay_etcd::{Codec, Unread};
use forebay_schema::builtin::{Resource, StoredAs, TypeId, codec, protobuf, table};
use serde_json::Value;

/// See the module's doc.
pub struct AsKubernetes {
    /// Where objects are: `/registry`.
    prefix: String,
    /// Of built-in kinds, below it. Sorted.
    places: Vec<Place>,
}

/// Where the objects of a built-in kind are, and as what.
struct Place {
    /// With a slash behind: `pods/`.
    name: String,
    kind: &'static str,
    api_version: String,
    /// If its objects are kept as messages.
    ty: Option<TypeId>,
}

/// Versions that kube-apiserver stored before, and the kinds in them whose objects have the shape of those
/// that are stored now: they are read as such. The shape of all others has changed: what is stored in them
/// cannot be read here, which is better than to lose what has another name now.
const ALIKE: &[(&str, &str)] = &[
    (
        "admissionregistration.k8s.io/v1alpha1",
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy \
         ValidatingAdmissionPolicyBinding",
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration \
         ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    ),
    ("apiregistration.k8s.io/v1beta1", "APIService"),
    ("apps/v1beta1", "ControllerRevision Deployment StatefulSet"),
    ("apps/v1beta2", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"),
    ("batch/v1beta1", "CronJob"),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest"),
    ("coordination.k8s.io/v1beta1", "Lease"),
    ("extensions/v1beta1", "DaemonSet Deployment NetworkPolicy ReplicaSet"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema PriorityLevelConfiguration"),
    ("networking.k8s.io/v1beta1", "IPAddress IngressClass ServiceCIDR"),
    ("node.k8s.io/v1beta1", "RuntimeClass"),
    ("policy/v1beta1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1alpha1", "ClusterRole Role"),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole ClusterRoleBinding Role RoleBinding"),
    ("resource.k8s.io/v1beta1", "DeviceClass"),
    ("resource.k8s.io/v1beta2", "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice"),
    ("scheduling.k8s.io/v1beta1", "PriorityClass"),
    ("storage.k8s.io/v1alpha1", "CSIStorageCapacity VolumeAttachment VolumeAttributesClass"),
    (
        "storage.k8s.io/v1beta1",
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
    ),
];

fn is_alike(api_version: &str, kind: &str) -> bool {
    ALIKE.iter().any(|(known, kinds)| *known == api_version && kinds.split(' ').any(|alike| alike == kind))
}

impl Place {
    fn of(resource: &'static Resource) -> Option<Place> {
        let name = format!("{}/", resource.storage_prefix?);
        Some(Place::new(name, resource.kind, api_version(resource.group, resource.version)))
    }

    fn new(name: String, kind: &'static str, api_version: String) -> Place {
        let ty = message_kind(&api_version, kind).map(|known| known.ty);
        Place { name, kind, api_version, ty }
    }

    /// Lets through what says that it is of this kind and version, if it is read as what is stored here.
    ///
    /// # Errors
    /// Why it is not.
    fn takes(&self, kind: &str, api_version: &str) -> Result<(), String> {
        if kind == self.kind && (api_version == self.api_version || is_alike(api_version, kind)) {
            return Ok(());
        }
        let Place { kind: own, api_version: own_version, .. } = self;
        Err(format!("it is a {kind} of {api_version}, which is not read as a {own} of {own_version}"))
    }
}

/// A built-in kind that has a message.
struct Kind<'a> {
    ty: TypeId,
    kind: &'a str,
    api_version: &'a str,
}

impl AsKubernetes {
    pub fn new(prefix: &str) -> AsKubernetes {
        // A kind that is stored as another version is where that one is.
        let stored = table().resources().iter().filter(|resource| StoredAs::of(resource).is_none());
        let mut places: Vec<_> = stored.filter_map(Place::of).collect();
        // Where servers say where they are: Endpoints, in a place that no resource has.
        places.push(Place::new("masterleases/".into(), "Endpoints", "v1".into()));
        places.sort_by(|one, other| one.name.cmp(&other.name));
        AsKubernetes { prefix: prefix.to_string(), places }
    }

    /// The place that `key` is in, if a built-in kind is kept there. Custom resources may have the name of a
    /// built-in kind.
    fn place(&self, key: &str) -> Option<&Place> {
        let below = key.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        // Places are one or two names deep.
        let mut ends = below.match_indices('/').map(|(at, _)| at + 1).take(2);
        ends.find_map(|end| {
            let at = self.places.binary_search_by(|place| place.name.as_str().cmp(&below[..end])).ok()?;
            self.places.get(at)
        })
    }
}

impl Codec for AsKubernetes {
    fn to_stored(&self, key: &str, value: &Bytes) -> Result<Bytes, String> {
        if self.place(key).is_none() {
            return Ok(value.clone());
        }
        let Some((kind, api_version)) = type_of(value) else {
            return Err("it does not begin with its kind".to_string());
        };
        let Some(kind) = message_kind(api_version, kind) else { return Ok(value.clone()) };
        let mut message = Vec::with_capacity(value.len());
        protobuf::encode_json(kind.ty, value, &mut message).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        protobuf::Envelope::new(kind.api_version, kind.kind).write(&message, &mut out);
        Ok(out.into())
    }

    fn to_value(&self, key: &str, stored: Bytes) -> Result<Bytes, Unread> {
        self.read(key, stored).map_err(|(instead, why)| Unread::ForGood { instead, why })
    }
}

impl AsKubernetes {
    /// The value, or what is handed on in its place and why it cannot be read.
    fn read(&self, key: &str, stored: Bytes) -> Result<Bytes, (Bytes, String)> {
        if stored.starts_with(&protobuf::ENCRYPTED_PREFIX) {
            return Err((stored, "it is encrypted".to_string()));
        }
        let place = self.place(key);
        if stored.starts_with(&protobuf::ENVELOPE_PREFIX) {
            return from_message(&stored, place).map_err(|why| (stored, why));
        }
        if !stored.starts_with(b"{") {
            return Err((stored, "it is neither JSON nor protobuf".to_string()));
        }
        if let Some((kind, api_version)) = type_of(&stored) {
            if api_version == definition::OLD_VERSION {
                return from_old_definition(&stored).map_err(|why| (stored, why));
            }
            if let Some(Err(why)) = place.map(|place| place.takes(kind, api_version)) {
                return Err((hidden(&stored), why));
            }
        }
        // Go's encoder ends a value with a new line.
        Ok(stored.slice(..stored.trim_ascii_end().len()))
    }
}

/// JSON of another version, handed on so that nobody takes it for what it is not: values begin with a brace.
fn hidden(stored: &[u8]) -> Bytes {
    [b"\n".as_slice(), stored].concat().into()
}

/// What a thread keeps to write JSON into, before it is known how long that is.
const SCRATCH_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The JSON of a message in its envelope.
fn from_message(stored: &[u8], place: Option<&Place>) -> Result<Bytes, String> {
    let unknown = protobuf::decode_envelope(stored).map_err(|error| error.to_string())?;
    let (api_version, kind) = (&*unknown.api_version, &*unknown.kind);
    let usual = place.filter(|place| place.kind == kind && place.api_version == api_version);
    let known = match usual.and_then(|place| place.ty) {
        Some(ty) => Some(Kind { ty, kind, api_version }),
        None => message_kind(api_version, kind),
    };
    let known = known.ok_or_else(|| format!("no kind {kind} of {api_version} is known"))?;
    if let Some(place) = place {
        place.takes(kind, api_version)?;
    }
    let straight = SCRATCH.with_borrow_mut(|out| {
        out.clear();
        out.shrink_to(SCRATCH_BYTES_MAX);
        write_head(&known, out);
        let fields = protobuf::UnknownFields::PassedOver;
        protobuf::stored_json(known.ty, unknown.raw, fields, out).map(|_| Bytes::copy_from_slice(out))
    });
    if let Some(json) = straight {
        return Ok(json);
    }
    let value =
        protobuf::decode(known.ty, unknown.raw, &Lease::of_server()).map_err(|error| error.to_string())?;
    canonical(known, value)
}

/// The JSON of a definition in the form that kube-apiserver keeps.
fn from_old_definition(stored: &[u8]) -> Result<Bytes, String> {
    let mut value: Value = serde_json::from_slice(stored).map_err(|error| error.to_string())?;
    definition::renew(&mut value);
    let (group, version) = split_api_version(definition::VERSION);
    let kind = "CustomResourceDefinition";
    let known = table().kind(group, version, kind).ok_or("definitions are not known")?;
    canonical(Kind { ty: known.ty, kind, api_version: definition::VERSION }, value)
}

/// A value as it is written here.
fn canonical(known: Kind<'_>, mut value: Value) -> Result<Bytes, String> {
    codec::normalize(known.ty, &mut value).map_err(|error| error.to_string())?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    let mut out = Vec::new();
    write_head(&known, &mut out);
    codec::encode(known.ty, &value, &mut out).map_err(|error| error.to_string())?;
    Ok(out.into())
}

/// What a value begins with.
fn write_head(known: &Kind<'_>, out: &mut Vec<u8>) {
    for part in ["{\"kind\":\"", known.kind, "\",\"apiVersion\":\"", known.api_version, "\","] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// The built-in kind, if its objects are kept as messages.
fn message_kind<'a>(api_version: &'a str, kind: &'a str) -> Option<Kind<'a>> {
    let (group, version) = split_api_version(api_version);
    let ty = table().kind(group, version, kind)?.ty;
    let kept = protobuf::is_message(ty) && !table().stored_as_json(ty);
    kept.then_some(Kind { ty, kind, api_version })
}

/// The kind and version with which values of built-in kinds begin, in this order or the other.
fn type_of(value: &[u8]) -> Option<(&str, &str)> {
    let (first, one, rest) = text_member(value.strip_prefix(b"{")?)?;
    let (second, other, _) = text_member(rest.strip_prefix(b",")?)?;
    match (first, second) {
        ("kind", "apiVersion") => Some((one, other)),
        ("apiVersion", "kind") => Some((other, one)),
        _ => None,
    }
}

/// The name and the text of the member that `json` begins with, and what is behind it.
fn text_member(json: &[u8]) -> Option<(&str, &str, &[u8])> {
    let (name, rest) = text(json)?;
    let (value, rest) = text(rest.strip_prefix(b":")?)?;
    Some((name, value, rest))
}

/// The text that `json` begins with, and what is behind it.
fn text(json: &[u8]) -> Option<(&str, &[u8])> {
    let json = json.strip_prefix(b"\"")?;
    let end = json.iter().position(|byte| *byte == b'"')?;
    Some((std::str::from_utf8(&json[..end]).ok()?, &json[end + 1..]))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use forebay_schema::builtin::TypeKind;

    use super::*;

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{"name":"c","image":"i","resources":{}}]},"status":{}}"#;

    #[test]
    fn built_in_kinds_are_messages_and_everything_else_is_as_it_is() {
        let codec = AsKubernetes::new("/registry");
        let stored = |key: &str, value: &str| codec.to_stored(key, &Bytes::from(value.to_owned()));
        let pod = stored("/registry/pods/default/web", POD).expect("a pod");
        assert!(pod.starts_with(b"k8s\0"));
        assert_eq!(codec.read("/registry/pods/default/web", pod).expect("a pod"), POD);
        // A custom resource by the same name is kept elsewhere.
        let custom = r#"{"apiVersion":"g.io/v1","kind":"Pod","metadata":{"name":"web"}}"#;
        for (key, value) in [
            ("/registry/g.io/pods/default/web", custom),
            ("/registry/ranges/servicenodeports/30000", r#"{"kind":"NodePort"}"#),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/a.b",
                r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{}}"#,
            ),
        ] {
            assert_eq!(stored(key, value).expect("as it is"), value, "{key}");
        }
        assert!(stored("/registry/pods/default/web", "{}").is_err());
        let theirs = codec.read("/registry/g.io/pods/default/web", format!("{custom}\n").into());
        assert_eq!(theirs.expect("JSON"), custom);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let codec = AsKubernetes::new("/registry");
        let cases: [(&[u8], &str); 5] = [
            (b"k8s:enc:aescbc:v1:key1:xyz", "it is encrypted"),
            (b"\xd9\xd9\xf7\xa0", "it is neither JSON nor protobuf"),
            (b"", "it is neither JSON nor protobuf"),
            (b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Foo", "no kind Foo of v1 is known"),
            (b"k8s\0\xff", ""),
        ];
        for (stored, why) in cases {
            let (back, cause) = codec.read("/registry/x/y", stored.into()).expect_err("unreadable");
            assert_eq!(back, stored, "handed on as it is");
            assert!(cause.contains(why), "{cause}");
        }
    }

    /// A value as kube-apiserver stores it.
    fn message(api_version: &str, kind: &str, json: &str) -> Bytes {
        let kind = message_kind(api_version, kind).expect("a kind that is kept as a message");
        let (mut message, mut out) = (Vec::new(), Vec::new());
        protobuf::encode_json(kind.ty, json.as_bytes(), &mut message).expect("encodes");
        protobuf::Envelope::new(kind.api_version, kind.kind).write(&message, &mut out);
        out.into()
    }

    /// An object that begins with its type, and its key.
    fn object(place: &str, api_version: &str, kind: &str, rest: &str) -> (String, String) {
        let meta = r#""metadata":{"name":"a","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"}"#;
        let json = format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}",{meta},{rest}}}"#);
        (format!("/registry/{place}/a"), json)
    }

    #[test]
    fn a_version_that_is_alike_is_read_as_the_one_that_is_stored() {
        let codec = AsKubernetes::new("/registry");
        let (api_version, kind) = ("rbac.authorization.k8s.io/v1beta1", "ClusterRole");
        let rest = r#""rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]"#;
        let (key, json) = object("clusterroles", api_version, kind, rest);
        for stored in [Bytes::from(json.clone()), message(api_version, kind, &json)] {
            assert_eq!(codec.read(&key, stored).expect("is read"), json);
        }
    }

    #[test]
    fn a_version_of_another_shape_cannot_be_read_and_says_which_it_is() {
        let codec = AsKubernetes::new("/registry");
        let autoscaler = r#""spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"},"maxReplicas":3,"targetCPUUtilizationPercentage":80},"status":{"currentReplicas":1,"desiredReplicas":1}"#;
        let ingress =
            r#""spec":{"backend":{"serviceName":"web","servicePort":80}},"status":{"loadBalancer":{}}"#;
        let class = r#""spec":{"runtimeHandler":"runc"}"#;
        for (place, api_version, kind, rest) in [
            ("horizontalpodautoscalers/x", "autoscaling/v1", "HorizontalPodAutoscaler", autoscaler),
            ("ingress/x", "networking.k8s.io/v1beta1", "Ingress", ingress),
            ("events/x", "events.k8s.io/v1", "Event", r#""eventTime":null,"note":"n""#),
            ("runtimeclasses", "node.k8s.io/v1alpha1", "RuntimeClass", class),
        ] {
            let (key, json) = object(place, api_version, kind, rest);
            let stored = message(api_version, kind, &json);
            let (back, why) = codec.read(&key, stored.clone()).expect_err("is of another shape");
            assert_eq!(back, stored, "handed on as it is");
            assert!(why.contains(&format!("it is a {kind} of {api_version}")), "{why}");
            let (back, same) = codec.read(&key, json.clone().into()).expect_err("is of another shape");
            assert_eq!(same, why);
            assert!(back.ends_with(json.as_bytes()) && !back.starts_with(b"{"), "nobody can read it");
        }
        // A version that nothing here knows any more, and one that another program wrote.
        let old = r#"{"apiVersion":"autoscaling/v2beta2","kind":"HorizontalPodAutoscaler","metadata":{"name":"a"}}"#;
        let (_, why) = codec.read("/registry/horizontalpodautoscalers/x/a", old.into()).expect_err("is old");
        assert!(why.contains("a HorizontalPodAutoscaler of autoscaling/v2beta2"), "{why}");
    }

    /// Members of a value of type `old` that one of type `new` has not, or has as something else.
    fn lost(old: TypeId, new: TypeId, path: &str, seen: &mut HashSet<(TypeId, TypeId)>) -> Vec<String> {
        let table = table();
        if old == new || !seen.insert((old, new)) {
            return Vec::new();
        }
        match (table.ty(old).kind, table.ty(new).kind) {
            (one, other) if one != other => vec![path.to_string()],
            (TypeKind::List | TypeKind::Map, _) => lost(table.elem(old), table.elem(new), path, seen),
            (TypeKind::Struct, _) => {
                let mut found = Vec::new();
                for member in table.members(old) {
                    let path = format!("{path}.{}", member.name);
                    match table.member(new, member.name) {
                        Some(other) => found.extend(lost(member.ty, other.ty, &path, seen)),
                        None => found.push(path),
                    }
                }
                found
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn versions_are_alike_where_nothing_of_them_is_lost() {
        // What kube-apiserver keeps in annotations, which nobody reads any more.
        const PAST: [&str; 2] = [".spec.rollbackTo", ".spec.templateGeneration"];
        let mut alike = 0;
        for place in AsKubernetes::new("/registry").places {
            let (group, version) = split_api_version(&place.api_version);
            let stored = table().kind(group, version, place.kind).expect("what is stored is known").ty;
            for other in table().kinds().iter().filter(|other| other.kind == place.kind) {
                let known = api_version(other.group, other.version);
                // The definitions of old are made new.
                if known == place.api_version || known == definition::OLD_VERSION {
                    continue;
                }
                let mut lost = lost(other.ty, stored, "", &mut HashSet::new());
                lost.retain(|path| !PAST.contains(&path.as_str()));
                assert_eq!(
                    is_alike(&known, place.kind),
                    lost.is_empty(),
                    "{} of {known}: {lost:?}",
                    place.kind
                );
                alike += usize::from(lost.is_empty());
            }
        }
        let listed: usize = ALIKE.iter().map(|(_, kinds)| kinds.split(' ').count()).sum();
        assert_eq!(alike, listed, "none is listed that there is not");
    }
}
