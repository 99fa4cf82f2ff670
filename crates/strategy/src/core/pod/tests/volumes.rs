//! Volumes and where they are mounted: what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use super::sample;

#[test]
fn sources_that_no_kubelet_mounts_any_more_are_checked_all_the_same() {
    let label = |at: &str| {
        format!(r#"spec.volumes[0].storageos.{at}: Invalid value: "A_": a lowercase RFC 1123 label must…"#)
    };
    let pairs = |registry: &str| {
        format!(
            r#"spec.volumes[0].quobyte.registry: Invalid value: "{registry}": must be a host:port pair or multiple pairs separated by commas"#
        )
    };
    sample().check_creates(&[
        (r#"spec.volumes=[{"name":"v","iscsi":{"targetPortal":"p","iqn":"iqn.2000-01.a:b","lun":0,"initiatorName":""}}]"#, &[r#"spec.volumes[0].iscsi.initiatorname: Invalid value: "": must be valid format starting with iqn, eui, or naa"#]),
        (r#"spec.volumes=[{"name":"v","storageos":{"volumeName":"A_","volumeNamespace":"A_"}}]"#, &[&label("volumeName"), &label("volumeNamespace")]),
        (r#"spec.volumes=[{"name":"v","quobyte":{"registry":"a:1,[::1]:2,:","volume":"v"}}]"#, &[]),
        (r#"spec.volumes=[{"name":"v","quobyte":{"registry":"a","volume":"v"}}]"#, &[&pairs("a")]),
        (r#"spec.volumes=[{"name":"v","quobyte":{"registry":"::1:2,[a]b:1,a]:1","volume":"v"}}]"#, &[&pairs("::1:2,[a]b:1,a]:1"), &pairs("::1:2,[a]b:1,a]:1"), &pairs("::1:2,[a]b:1,a]:1")]),
    ]);
}

#[test]
fn volumes_must_be_well_made() {
    sample().check_creates(&[
        (r#"spec.containers.0.volumeMounts=[{"name":"v","mountPath":"/a"}]"#, &[r#"spec.containers[0].volumeMounts[0].name: Not found: "v""#]),
        (r#"spec.volumes=[{"name":"v"}];spec.containers.0.volumeMounts=[{"name":"v","mountPath":""},{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/b","subPath":"/x"},{"name":"v","mountPath":"/c","subPath":"../x"},{"name":"v","mountPath":"/d","subPath":"x","subPathExpr":"y"}]"#, &["spec.containers[0].volumeMounts[0].mountPath: Required value", r#"spec.containers[0].volumeMounts[2].mountPath: Invalid value: "/a": must be unique"#, r#"spec.containers[0].volumeMounts.subPath: Invalid value: "/x": must be a relative path"#, r#"spec.containers[0].volumeMounts.subPath: Invalid value: "../x": must not contain '..'"#, r#"spec.containers[0].volumeMounts[5].subPathExpr: Invalid value: "y": subPathExpr and subPath are mutually exclusive"#]),
        (r#"spec.volumes=[{"name":"v"}];spec.containers.0.volumeMounts=[{"name":"v","mountPath":"/a","mountPropagation":"Both"}]"#, &[r#"spec.containers[0].volumeMounts.mountPropagation: Unsupported value: "Both": supported values: "Bidirectional", "HostToContainer", "None""#]),
        (r#"spec.volumes=[{"name":"v"}];spec.containers.0.volumeMounts=[{"name":"v","mountPath":"/a","mountPropagation":"Bidirectional"}]"#, &["spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"]),
        (r#"spec.volumes=[{"name":"v"}];spec.containers.0.volumeMounts=[{"name":"v","mountPath":"/a","recursiveReadOnly":"Enabled"}]"#, &["spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"]),
        (r#"spec.volumes=[{"name":"v"}];spec.containers.0.volumeMounts=[{"name":"v","mountPath":"/a","recursiveReadOnly":"x"}]"#, &[r#"spec.containers[0].volumeMounts.recursiveReadOnly: Unsupported value: "x": supported values: "Disabled", "Enabled", "IfPossible""#]),
        (r#"spec.volumes=[{"name":"v"}];spec.containers.0.volumeDevices=[{"name":"v","devicePath":"/a/../b"},{"name":"w","devicePath":""}]"#, &[r#"spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"#, r#"spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/a/../b": can not contain backsteps ('..')"#, r#"spec.containers[0].volumeDevices[1].name: Not found: "w""#, "spec.containers[0].volumeDevices[1].devicePath: Required value"]),
        (r#"spec.volumes=[{"name":"v"},{"name":"v"}]"#, &[r#"spec.volumes[1].name: Duplicate value: "v""#]),
        (r#"spec.volumes=[{"name":""}]"#, &["spec.volumes[0].name: Required value"]),
        (r#"spec.volumes=[{"name":"A"}]"#, &[r#"spec.volumes[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end…"#]),
        (r#"spec.volumes=[{"name":"v","emptyDir":{},"hostPath":{"path":"/"}}]"#, &["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"]),
        (r#"spec.volumes=[{"name":"v","emptyDir":{"sizeLimit":"-1"}}]"#, &["spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"]),
        (r#"spec.volumes=[{"name":"v","emptyDir":{"medium":"x"}}]"#, &[]),
        (r#"spec.volumes=[{"name":"v","hostPath":{"path":""}}]"#, &["spec.volumes[0].hostPath.path: Required value"]),
        (r#"spec.volumes=[{"name":"v","hostPath":{"path":"/a/../b","type":"Nope"}}]"#, &[r#"spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not contain '..'"#, r#"spec.volumes[0].hostPath.type: Unsupported value: "Nope": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket""#]),
        (r#"spec.volumes=[{"name":"v","secret":{}}]"#, &["spec.volumes[0].secret.secretName: Required value"]),
        (r#"spec.volumes=[{"name":"v","secret":{"secretName":"s","defaultMode":1000,"items":[{"key":"","path":""},{"key":"k","path":"/a"},{"key":"k","path":"..a","mode":-1}]}}]"#, &["spec.volumes[0].secret.defaultMode: Invalid value: 1000: must be a number between 0 and 0777 (octal), both inclusive", "spec.volumes[0].secret.items[0].key: Required value", "spec.volumes[0].secret.items[0].path: Required value", r#"spec.volumes[0].secret.items[1].path: Invalid value: "/a": must be a relative path"#, r#"spec.volumes[0].secret.items[2].path: Invalid value: "..a": must not start with '..'"#, "spec.volumes[0].secret.items[2].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive"]),
        (r#"spec.volumes=[{"name":"v","configMap":{"items":[{"key":"k","path":"../a"}]}}]"#, &["spec.volumes[0].configMap.name: Required value", r#"spec.volumes[0].configMap.items[0].path: Invalid value: "../a": must not contain '..'"#]),
        (r#"spec.volumes=[{"name":"v","persistentVolumeClaim":{"claimName":""}}]"#, &["spec.volumes[0].persistentVolumeClaim.claimName: Required value"]),
        (r#"spec.volumes=[{"name":"v","nfs":{"server":"","path":""}}]"#, &["spec.volumes[0].nfs.server: Required value", "spec.volumes[0].nfs.path: Required value", r#"spec.volumes[0].nfs.path: Invalid value: "": must be an absolute path"#]),
        (r#"spec.volumes=[{"name":"v","csi":{"driver":""}}]"#, &["spec.volumes[0].csi.driver: Required value"]),
        (r#"spec.volumes=[{"name":"v","csi":{"driver":"A_b"}}]"#, &[r#"spec.volumes[0].csi.driver: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and m…"#]),
        (r#"spec.volumes=[{"name":"v","iscsi":{"targetPortal":"","iqn":"x","lun":300}}]"#, &["spec.volumes[0].iscsi.targetPortal: Required value", r#"spec.volumes[0].iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa"#, "spec.volumes[0].iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive"]),
        (r#"spec.volumes=[{"name":"v","image":{}}]"#, &["spec.volumes[0].image.reference: Required value"]),
        (r#"spec.volumes=[{"name":"v","image":{"reference":"x","pullPolicy":"No"}}]"#, &[r#"spec.volumes[0].image.pullPolicy: Unsupported value: "No": supported values: "Always", "IfNotPresent", "Never""#]),
        (r#"spec.volumes=[{"name":"v","gitRepo":{"repository":""}}]"#, &["spec.volumes[0].gitRepo.repository: Required value"]),
        (r#"spec.volumes=[{"name":"v","fc":{}}]"#, &["spec.volumes[0].fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"]),
        (r#"spec.volumes=[{"name":"v","cephfs":{"monitors":[]}}]"#, &["spec.volumes[0].cephfs.monitors: Required value"]),
        (r#"spec.volumes=[{"name":"v","rbd":{"monitors":[],"image":""}}]"#, &["spec.volumes[0].rbd.monitors: Required value", "spec.volumes[0].rbd.image: Required value"]),
        (r#"spec.volumes=[{"name":"v","flexVolume":{"driver":""}}]"#, &["spec.volumes[0].flexVolume.driver: Required value"]),
        (r#"spec.volumes=[{"name":"v","azureFile":{"secretName":"","shareName":""}}]"#, &["spec.volumes[0].azureFile.secretName: Required value", "spec.volumes[0].azureFile.shareName: Required value"]),
        (r#"spec.volumes=[{"name":"v","awsElasticBlockStore":{"volumeID":"","partition":300}}]"#, &["spec.volumes[0].awsElasticBlockStore.volumeID: Required value", "spec.volumes[0].awsElasticBlockStore.partition: Invalid value: 300: must be between 1 and 255, inclusive"]),
        (r#"spec.volumes=[{"name":"v","gcePersistentDisk":{"pdName":"","partition":-1}}]"#, &["spec.volumes[0].persistentDisk.pdName: Required value", "spec.volumes[0].persistentDisk.partition: Invalid value: -1: must be between 1 and 255, inclusive"]),
        (r#"spec.volumes=[{"name":"v","cinder":{"volumeID":""}}]"#, &["spec.volumes[0].cinder.volumeID: Required value"]),
        (r#"spec.volumes=[{"name":"v","glusterfs":{"endpoints":"","path":""}}]"#, &["spec.volumes[0].glusterfs.endpoints: Required value", "spec.volumes[0].glusterfs.path: Required value"]),
        (r#"spec.volumes=[{"name":"v","downwardAPI":{"items":[{"path":"a"},{"path":"b","fieldRef":{"fieldPath":"spec.nodeName"}},{"path":"c","resourceFieldRef":{"resource":"limits.cpu"}}]}}]"#, &["spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required", r#"spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: "metadata.annotations", "metadata.labels", "meta…"#, "spec.volumes[0].downwardAPI.resourceFieldRef.containerName: Required value"]),
        (r#"spec.volumes=[{"name":"v","projected":{"sources":[{},{"secret":{"name":""}},{"serviceAccountToken":{"path":"","expirationSeconds":1}},{"configMap":{"name":"a","items":[{"key":"a","path":"p"}]}},{"secret":{"name":"b","items":[{"key":"a","path":"p"}]}}]}}]"#, &["spec.volumes[0].projected.sources[1].secret.name: Required value", "spec.volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes", "spec.volumes[0].projected.path: Required value", r#"spec.volumes[0].projected: Invalid value: "b": conflicting duplicate paths"#, "spec.volumes[0].projected.sources[2].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"]),
        (r#"spec.volumes=[{"name":"v","projected":{"sources":[{"clusterTrustBundle":{"path":""}}]}}]"#, &[]),
        (r#"spec.volumes=[{"name":"v","ephemeral":{}}]"#, &["spec.volumes[0].ephemeral.volumeClaimTemplate: Required value"]),
        (r#"spec.volumes=[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}]"#, &["spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required", "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"]),
    ]);
}

#[test]
fn a_host_path_without_a_path_is_told_once() {
    sample().check_creates(&[(
        r#"spec.volumes=[{"name":"v","hostPath":{"path":"","type":"Nope"}}]"#,
        &["spec.volumes[0].hostPath.path: Required value"],
    )]);
}

#[test]
fn names_of_iscsi_are_of_a_scheme_and_well_made() {
    let volume = |more: &str| {
        format!(r#"spec.volumes=[{{"name":"v","iscsi":{{"targetPortal":"1.1.1.1","lun":1,{more}}}}}]"#)
    };
    let at = "spec.volumes[0].iscsi";
    let long = "a".repeat(70);
    sample().check_creates(&[
        (&volume(r#""iqn":"iqn.2001-04.com.example:a","initiatorName":"eui.0123456789abcdef""#), &[]),
        (&volume(r#""iqn":"iqn.2001-04.com""#), &[&format!(r#"{at}.iqn: Invalid value: "iqn.2001-04.com": must be valid format"#)]),
        (&volume(r#""iqn":"naa.1","initiatorName":"x""#), &[&format!(r#"{at}.iqn: Invalid value: "naa.1": must be valid format"#), &format!(r#"{at}.initiatorname: Invalid value: "x": must be valid format starting with iqn, eui, or naa"#)]),
        (
            &format!(r#"spec.volumes=[{{"name":"v","iscsi":{{"targetPortal":"{long}","iqn":"iqn.2001-04.a:b","initiatorName":"iqn.2001-04.a:b"}}}}]"#),
            &[r#"spec.volumes[0].name: Invalid value: "v": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."#],
        ),
    ]);
}

#[test]
fn a_claim_is_made_with_labels_and_annotations_and_no_other_metadata() {
    let volume = |metadata: &str| {
        let spec = r#"{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}"#;
        format!(
            r#"spec.volumes=[{{"name":"v","ephemeral":{{"volumeClaimTemplate":{{"metadata":{metadata},"spec":{spec}}}}}}}]"#
        )
    };
    let at = "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata";
    sample().check_creates(&[
        (&volume(r#"{"labels":{"a":"b"},"annotations":{"a":"b"},"generation":0,"name":""}"#), &[]),
        (
            &volume(r#"{"name":"x","uid":"u"}"#),
            &[
                &format!("{at}.name: Forbidden: cannot be set"),
                &format!("{at}.uID: Forbidden: cannot be set"),
            ],
        ),
        (
            &volume(r#"{"deletionGracePeriodSeconds":0}"#),
            &[&format!("{at}.deletionGracePeriodSeconds: Forbidden: cannot be set")],
        ),
    ]);
}

#[test]
fn certificates_for_pods_are_a_feature_that_is_off() {
    let volume =
        r#"spec.volumes=[{"name":"v","projected":{"sources":[{"podCertificate":{"keyType":"x"}}]}}]"#;
    let pod = sample().created(volume);
    assert_eq!(pod["spec"]["volumes"][0]["projected"]["sources"], serde_json::json!([{}]));
}
