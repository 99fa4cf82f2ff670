//! VolumeAttachments: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "storage.k8s.io",
        "v1",
        "VolumeAttachment",
        json!({
            "metadata": {"name": "va"},
            "spec": {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "va"},
            "spec": {"attacher": "a.b", "source": {"persistentVolumeName": "pv"}, "nodeName": "n"},
            "status": {},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        ("spec=null", &["spec.attacher: Required value", "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName", r#"spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        (r#"spec.attacher="""#, &["spec.attacher: Required value"]),
        (r#"spec.attacher="a b""#, &[r#"spec.attacher: Invalid value: "a b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and…"#]),
        (r#"spec.attacher="A.B""#, &[]),
        (r#"spec.attacher="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, &["spec.attacher: Too long: may not be more than 63 bytes"]),
        (r#"spec.nodeName="""#, &[r#"spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]),
        (r#"spec.nodeName="A_""#, &[r#"spec.nodeName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and …"#]),
        ("spec.source={}", &["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"]),
        (r#"spec.source={"persistentVolumeName":""}"#, &["spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName", r#"spec.source.persistentVolumeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', an…"#]),
        (r#"spec.source={"persistentVolumeName":"A_"}"#, &[r#"spec.source.persistentVolumeName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', …"#]),
        (r#"spec.source.inlineVolumeSpec={"capacity":{"storage":"1"}}"#, &["spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName"]),
        (r#"spec.source={"inlineVolumeSpec":{}}"#, &["spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes", "spec.source.inlineVolumeSpec.accessModes: Required value", "spec.source.inlineVolumeSpec: Required value: must specify a volume type"]),
        (r#"spec.source={"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"csi":{"driver":"a.b","volumeHandle":"h"}}}"#, &[]),
        (r#"spec.source={"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1"},"csi":{"driver":"a.b","volumeHandle":"h"}}}"#, &["spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes"]),
        (r#"spec.source={"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"nfs":{"server":"a","path":"/"}}}"#, &["spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes"]),
        (r#"spec.source={"inlineVolumeSpec":{"accessModes":["X"],"persistentVolumeReclaimPolicy":"Delete","mountOptions":["a"],"storageClassName":"x","volumeMode":"Block","nodeAffinity":{},"csi":{"driver":"","volumeHandle":""}}}"#, &[r#"spec.source.inlineVolumeSpec.accessModes: Unsupported value: "X": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod""#, "spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes", "spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes", "spec.source.inlineVolumeSpec.csi.driver: Required value", "spec.source.inlineVolumeSpec.csi.volumeHandle: Required value", "spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of inline volumes", "spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes"]),
        (r#"spec.source={"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"csi":{"driver":"a.b","volumeHandle":"h"},"volumeAttributesClassName":"x","claimRef":{"name":"a"}}}"#, &["spec.source.inlineVolumeSpec.claimRef: Forbidden: may not be specified in the context of inline volumes"]),
        (r#"status={"attached":true}"#, &[]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.attacher="x""#, &[r#"spec: Invalid value: {"Attacher":"x","Source":{"PersistentVolumeName":"pv","InlineVolumeSpec":null},"NodeName":"n"}: field is immutable"#]),
        (r#"spec.nodeName="y""#, &[r#"spec: Invalid value: {"Attacher":"a.b","Source":{"PersistentVolumeName":"pv","InlineVolumeSpec":null},"NodeName":"y"}: field is immutable"#]),
        ("spec.source={}", &["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName", r#"spec: Invalid value: {"Attacher":"a.b","Source":{"PersistentVolumeName":null,"InlineVolumeSpec":null},"NodeName":"n"}: field is immutable"#]),
        (r#"metadata.labels={"a":"b c"}"#, &[r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#, r#"metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start an…"#]),
        (r#"metadata.labels={"a":"b"}"#, &[]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"metadata.finalizers=["a.b/c"]"#, &[]),
        (r#"@status status={"attached":true}"#, &[]),
        (r#"@status status={"attached":true,"attachError":{"message":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","errorCode":-1}}"#, &["status.attachError.message: Too long: may not be more than 262144 bytes", "status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive"]),
        (r#"@status status={"attached":true,"detachError":{"errorCode":-5}}"#, &["status.detachError.errorCode: Invalid value: -5: must be between 0 and 2147483647, inclusive"]),
        (r#"@status spec.attacher="x""#, &[]),
        (r#"@status metadata.labels={"a":"b c"}"#, &[]),
        (r#"status={"attached":true}"#, &[]),
    ]);
}
