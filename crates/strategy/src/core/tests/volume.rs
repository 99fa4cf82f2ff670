//! PersistentVolumes: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "PersistentVolume",
        json!({
            "metadata": {"name": "pv"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/x"},
            },
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"name": "pv"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/x", "type": ""},
                "persistentVolumeReclaimPolicy": "Retain",
                "volumeMode": "Filesystem",
            },
            "status": {"lastPhaseTransitionTime": "2026-01-01T00:00:00Z", "phase": "Pending"},
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        ("spec.capacity=null", &["spec.capacity: Required value", r#"spec.capacity: Unsupported value: null: supported values: "storage""#]),
        (r#"spec.capacity={"cpu":"1"}"#, &[r#"spec.capacity: Unsupported value: {"cpu":"1"}: supported values: "storage""#]),
        (r#"spec.capacity={"storage":"0"}"#, &[r#"spec.capacity[storage]: Invalid value: "0": must be greater than zero"#]),
        ("spec.accessModes=[]", &["spec.accessModes: Required value"]),
        (r#"spec.accessModes=["X"]"#, &[r#"spec.accessModes: Unsupported value: "X": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod""#]),
        ("spec.hostPath=null", &["spec: Required value: must specify a volume type"]),
        (r#"spec.hostPath={"path":"/a/.."}"#, &[r#"spec.hostPath.path: Invalid value: "/a/..": must not contain '..'"#]),
        (r#"spec.hostPath={"path":""}"#, &["spec.hostPath.path: Required value"]),
        (r#"spec.nfs={"server":"s","path":"/p"}"#, &["spec.nfs: Forbidden: may not specify more than 1 volume type"]),
        (r#"spec.persistentVolumeReclaimPolicy="X""#, &[r#"spec.persistentVolumeReclaimPolicy: Unsupported value: "X": supported values: "Delete", "Recycle", "Retain""#]),
        (r#"spec.persistentVolumeReclaimPolicy="Recycle";spec.hostPath={"path":"/"}"#, &["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"]),
        (r#"spec.volumeMode="X""#, &[r#"spec.volumeMode: Unsupported value: "X": supported values: "Block", "Filesystem""#]),
        (r#"spec.storageClassName="A_""#, &[r#"spec.storageClassName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must st…"#]),
        ("spec.nodeAffinity={}", &["spec.nodeAffinity.required: Required value: must specify required node constraints"]),
        (r#"spec.hostPath=null;spec.local={"path":""}"#, &["spec.local.path: Required value", "spec.nodeAffinity: Required value: Local volume requires node affinity"]),
        (r#"spec.hostPath=null;spec.local={"path":"/x"}"#, &["spec.nodeAffinity: Required value: Local volume requires node affinity"]),
        (r#"spec.hostPath=null;spec.csi={"driver":"","volumeHandle":""}"#, &["spec.csi.driver: Required value", "spec.csi.volumeHandle: Required value"]),
        (r#"spec.claimRef={"name":"x"}"#, &[]),
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        (r#"spec.hostPath={"path":"/y"}"#, &["spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n@@ -2,7 +2,7 @@\n  \"GCEPersistentDisk\": null,\n  \"AWSElasticBlockStore\": null,\n  \"HostPath\": {\n-  \"Path\": \"/x\",\n+  \"Path\": \"/y\",\n   \"Type\": \"\"\n  },\n  \"Glusterfs\": null,\n"]),
        (r#"spec.volumeMode="Block""#, &[r#"volumeMode: Invalid value: "Block": field is immutable"#]),
        (r#"spec.persistentVolumeReclaimPolicy="Delete""#, &[]),
        (r#"spec.capacity={"storage":"2Gi"}"#, &[]),
        (r#"spec.nodeAffinity={"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}"#, &[]),
        (r#"@status status.phase="Bound""#, &[]),
        (r#"!spec.nodeAffinity={"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}} => spec.nodeAffinity={"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"b","operator":"Exists"}]}]}}"#, &[r#"nodeAffinity: Invalid value: {"Required":{"NodeSelectorTerms":[{"MatchExpressions":[{"Key":"b","Operator":"Exists","Values":null}],"MatchFields":null}…"#]),
    ]);
}

#[test]
fn the_secrets_and_names_of_sources_are_whole() {
    let source = |json: &str| format!(r#"spec.hostPath=null;spec.{json}"#);
    let required = |at: &str| format!("spec.{at}: Required value");
    sample().check_creates(&[
        (&source(r#"azureFile={"secretName":"s","shareName":"x","secretNamespace":""}"#), &[&required("azureFile.secretNamespace")]),
        (&source(r#"cinder={"volumeID":"x","secretRef":{"name":"s"}}"#), &[&required("cinder.secretRef.namespace")]),
        (&source(r#"storageos={"volumeName":"x","secretRef":{"name":"s"}}"#), &[&required("storageos.secretRef.namespace")]),
        (&source(r#"gcePersistentDisk={"pdName":""}"#), &[&required("persistentDisk.pdName")]),
        (&source(r#"glusterfs={"endpoints":"e","path":"p","endpointsNamespace":""}"#), &[r#"spec.glusterfs.endpointsNamespace: Invalid value: "": if the endpointnamespace is set, it must be a valid namespace name"#]),
        (&source(r#"glusterfs={"endpoints":"e","path":"p","endpointsNamespace":"A"}"#), &["spec.glusterfs.endpointsNamespace: Invalid value: \"A\": a lowercase RFC 1123 label must…"]),
        (&source(r#"csi={"driver":"a.b","volumeHandle":"h","nodeExpandSecretRef":{"name":"A_"}}"#), &["spec.csi.nodeExpandSecretRef.name: Invalid value: \"A_\": a lowercase RFC 1123 subdomain must…", &required("csi.nodeExpandSecretRef.namespace")]),
        (&source(r#"csi={"driver":"a.b","volumeHandle":"h","controllerPublishSecretRef":{"name":"s","namespace":"A"}}"#), &["spec.csi.controllerPublishSecretRef.namespace: Invalid value: \"A\": a lowercase RFC 1123 label must…"]),
        (&source(r#"csi={"driver":"a.b","volumeHandle":"h","controllerExpandSecretRef":{"name":"s","namespace":"n"}}"#), &[]),
        (&source(r#"iscsi={"targetPortal":"t","iqn":"x","secretRef":{}}"#), &[r#"spec.iscsi.iqn: Invalid value: "x": must be valid format"#, &required("iscsi.secretRef.name")]),
    ]);
}

#[test]
fn what_is_false_where_it_is_no_pointer_changes_no_source() {
    let csi =
        |more: &str| format!(r#"spec.hostPath=null;spec.csi={{"driver":"a.b","volumeHandle":"h"{more}}}"#);
    sample().check_updates(&[
        (&format!("!{} => spec.csi.readOnly=false", csi("")), &[]),
        (r#"!spec.hostPath=null;spec.awsElasticBlockStore={"volumeID":"v"} => spec.awsElasticBlockStore.partition=0"#, &[]),
        (&format!("!{} => spec.csi.controllerExpandSecretRef={{\"name\":\"s\",\"namespace\":\"n\"}}", csi("")), &[]),
        (&format!("!{} => spec.csi.readOnly=true", csi("")), &["spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation…"]),
    ]);
}
