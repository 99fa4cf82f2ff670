//! The rest of a pod: what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use super::super::spec::block_devices;
use super::sample;
use crate::field::{Causes, Path};

#[test]
fn pods_must_be_well_made() {
    sample().check_creates(&[
        (r#"metadata.name="A_b""#, &[r#"metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and…"#]),
        (r#"metadata.name="a.b""#, &[]),
        (r#"spec.restartPolicy="Sometimes""#, &[r#"spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never""#]),
        (r#"spec.dnsPolicy="X""#, &[r#"spec.dnsPolicy: Unsupported value: "X": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None""#]),
        (r#"spec.dnsPolicy="None""#, &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"]),
        (r#"spec.dnsConfig={"nameservers":["a","1.1.1.1","1.1.1.2","1.1.1.3"],"searches":["-"],"options":[{}]}"#, &[r#"spec.dnsConfig.nameservers: Invalid value: ["a","1.1.1.1","1.1.1.2","1.1.1.3"]: must not have more than 3 nameservers"#, r#"spec.dnsConfig.nameservers[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#, r#"spec.dnsConfig.searches[0]: Invalid value: "-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', an…"#, "spec.dnsConfig.options[0]: Required value: must not be empty"]),
        (r#"spec.hostname="A""#, &[r#"spec.hostname: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with a…"#]),
        (r#"spec.subdomain="a.b""#, &[r#"spec.subdomain: Invalid value: "a.b": must not contain dots"#]),
        (r#"spec.serviceAccountName="A""#, &[r#"spec.serviceAccountName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must s…"#]),
        (r#"spec.nodeName="A""#, &[r#"spec.nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and e…"#]),
        ("spec.activeDeadlineSeconds=0", &["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"]),
        ("spec.terminationGracePeriodSeconds=-1", &[]),
        (r#"spec.hostAliases=[{"ip":"x","hostnames":["A_"]}]"#, &[r#"spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#, r#"spec.hostAliases[0].hostnames[0]: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', …"#]),
        (r#"spec.priorityClassName="A""#, &[r#"spec.priorityClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must st…"#]),
        (r#"spec.runtimeClassName="A_""#, &[r#"spec.runtimeClassName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must st…"#]),
        (r#"spec.preemptionPolicy="X""#, &[r#"spec.preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never""#]),
        (r#"spec.resourceClaims=[{"name":""},{"name":"a"},{"name":"a","resourceClaimName":"x","resourceClaimTemplateName":"y"}]"#, &["spec.resourceClaims[0].name: Required value", r#"spec.resourceClaims[0]: Invalid value: {"Name":"","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"#, r#"spec.resourceClaims[1]: Invalid value: {"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"#, r#"spec.resourceClaims[2].name: Duplicate value: "a""#, r#"spec.resourceClaims[2]: Invalid value: {"Name":"a","ResourceClaimName":"x","ResourceClaimTemplateName":"y"}: at most one of `resourceClaimName` or `re…"#]),
        (r#"spec.imagePullSecrets=[{"name":""}]"#, &[]),
        (r#"spec.schedulerName="A_""#, &[]),
        ("spec.setHostnameAsFQDN=true", &[]),
        (r#"spec.hostnameOverride="A""#, &[r#"spec.hostnameOverride: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must sta…"#]),
        (r#"metadata.annotations={"kubernetes.io/config.mirror":"x"}"#, &[r#"metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set"#]),
        (r#"metadata.annotations={"controller.kubernetes.io/pod-deletion-cost":"1.5"}"#, &[r#"metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "1.5": must be a 32bit integer"#]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric…"#]),
        (r#"metadata.finalizers=["x"]"#, &[r#"metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#]),
        (r#"metadata.ownerReferences=[{"apiVersion":"v1","kind":"","name":"","uid":""}]"#, &[r#"metadata.ownerReferences.kind: Invalid value: "": must not be empty"#, r#"metadata.ownerReferences.name: Invalid value: "": must not be empty"#, r#"metadata.ownerReferences.uid: Invalid value: "": must not be empty"#]),
        (r#"spec.schedulingGroup={"podGroupName":""}"#, &[]),
    ]);
}

#[test]
fn names_are_no_longer_than_what_they_name() {
    let too_long = "a".repeat(254);
    for member in ["nodeName", "serviceAccountName"] {
        sample().check_creates(&[
            (&format!(r#"spec.{member}="{}""#, "a".repeat(253)), &[]),
            (
                &format!(r#"spec.{member}="{too_long}""#),
                &[&format!(
                    r#"spec.{member}: Invalid value: "{too_long}": must be no more than 253 characters"#
                )],
            ),
        ]);
    }
    let of_old = format!(r#"spec.serviceAccount="{too_long}""#);
    sample().check_creates(&[(&of_old, &["spec.serviceAccountName: Invalid value: …"])]);
}

#[test]
fn what_is_there_and_empty_names_no_class_and_no_policy() {
    sample().check_creates(&[
        (
            r#"spec.runtimeClassName="""#,
            &[r#"spec.runtimeClassName: Invalid value: "": a lowercase RFC 1123 subdomain must…"#],
        ),
        (r#"spec.priorityClassName="""#, &[]),
        (r#"spec.preemptionPolicy="""#, &["spec.preemptionPolicy: Required value"]),
    ]);
}

#[test]
fn claims_are_of_objects_that_there_may_be() {
    let subdomain = |at: &str| {
        format!(r#"spec.resourceClaims[0].{at}: Invalid value: "A_": a lowercase RFC 1123 subdomain must…"#)
    };
    sample().check_creates(&[
        (r#"spec.resourceClaims=[{"name":"a","resourceClaimName":"A_"}]"#, &[&subdomain("resourceClaimName")]),
        (r#"spec.resourceClaims=[{"name":"a","resourceClaimTemplateName":"A_"}]"#, &[&subdomain("resourceClaimTemplateName")]),
        (r#"spec.resourceClaims=[{"name":"a","resourceClaimName":"a.b"}]"#, &[]),
        (r#"metadata.annotations={"kubernetes.io/config.mirror":"x"};spec.nodeName="n";spec.resourceClaims=[{"name":"","resourceClaimName":"A_"}]"#, &["[]: Forbidden: static pods do not support resource claims"]),
    ]);
}

#[test]
fn a_pod_with_users_of_its_own_has_no_block_devices() {
    let pod = r#"spec.hostUsers=false;spec.volumes=[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}];spec.containers.0.volumeDevices=[{"name":"v","devicePath":"/a"}]"#;
    sample().check_creates(&[
        (pod, &["spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false"]),
        (&pod.replace("false", "true"), &[]),
    ]);
    let spec = sample().sent(pod)["spec"].clone();
    let mut told = Causes::default();
    let members = spec.as_object().expect("an object");
    block_devices(members, Some(members), &Path::root("spec"), &mut told);
    assert!(told.is_empty(), "one that was there may go on");
}
