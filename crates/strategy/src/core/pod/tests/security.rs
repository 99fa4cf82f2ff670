//! Security contexts and operating systems: what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::{Value, json};

use super::sample;
use crate::core::pod::app_armor;

#[test]
fn security_contexts_must_be_well_made() {
    sample().check_creates(&[
        (r#"spec.containers.0.securityContext={"runAsUser":-1,"runAsGroup":-1}"#, &["spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive", "spec.containers[0].securityContext.runAsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive"]),
        (r#"spec.containers.0.securityContext={"capabilities":{"add":["CAP_SYS_ADMIN"]},"allowPrivilegeEscalation":false}"#, &[r#"spec.containers[0].securityContext: Invalid value: {"Capabilities":{"Add":["CAP_SYS_ADMIN"],"Drop":null},"Privileged":null,"SELinuxOptions":null,"Wind…"#]),
        (r#"spec.containers.0.securityContext={"procMount":"X"}"#, &[r#"spec.containers[0].securityContext.procMount: Unsupported value: "X": supported values: "Default", "Unmasked""#]),
        (r#"spec.containers.0.securityContext={"procMount":"Unmasked"}"#, &[r#"spec.containers[0].securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`"#]),
        (r#"spec.containers.0.securityContext={"seccompProfile":{"type":"X"}}"#, &[r#"spec.containers[0].securityContext.seccompProfile.type: Unsupported value: "X": supported values: "Localhost", "RuntimeDefault", "Unconfined""#]),
        (r#"spec.containers.0.securityContext={"seccompProfile":{"type":""}}"#, &["spec.containers[0].securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set"]),
        (r#"spec.containers.0.securityContext={"seccompProfile":{"type":"Localhost"}}"#, &["spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost"]),
        (r#"spec.containers.0.securityContext={"seccompProfile":{"type":"Unconfined","localhostProfile":"x"}}"#, &[r#"spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: {"Type":"Unconfined","LocalhostProfile":"x"}: can only be set when seccomp type is Localhost"#]),
        (r#"spec.containers.0.securityContext={"appArmorProfile":{"type":"X"}}"#, &[r#"spec.containers[0].securityContext.appArmorProfile.type: Unsupported value: "X": supported values: "Localhost", "RuntimeDefault", "Unconfined""#]),
        (r#"spec.containers.0.securityContext={"appArmorProfile":{"type":"Localhost"}}"#, &["spec.containers[0].securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost"]),
        (r#"spec.containers.0.securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":" "}}"#, &[r#"spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: " ": must not be padded with whitespace"#]),
        (r#"spec.containers.0.securityContext={"appArmorProfile":{"type":"RuntimeDefault","localhostProfile":"x"}}"#, &[r#"spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: "x": can only be set when AppArmor type is Localhost"#]),
        (r#"spec.containers.0.securityContext={"appArmorProfile":{"type":""}}"#, &["spec.containers[0].securityContext.appArmorProfile.type: Required value: type is required when appArmorProfile is set"]),
        (r#"spec.containers.0.securityContext={"windowsOptions":{"runAsUserName":""}}"#, &[r#"spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string"#]),
        (r#"spec.securityContext={"runAsUser":-1,"fsGroup":-1,"supplementalGroups":[-1],"runAsGroup":-1}"#, &["spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive", "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive", "spec.securityContext.runAsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive", "spec.securityContext.supplementalGroups[0]: Invalid value: -1: must be between 0 and 2147483647, inclusive"]),
        (r#"spec.securityContext={"fsGroupChangePolicy":"X"}"#, &[r#"spec.securityContext.fsGroupChangePolicy: Unsupported value: "X": supported values: "Always", "OnRootMismatch""#]),
        (r#"spec.securityContext={"sysctls":[{"name":"","value":"a"},{"name":"a b","value":"a"},{"name":"kernel.shm","value":"1"},{"name":"kernel.shm","value":"1"}]}"#, &["spec.securityContext.sysctls[0].name: Required value", r#"spec.securityContext.sysctls[1].name: Invalid value: "a b": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"#, r#"spec.securityContext.sysctls[3].name: Duplicate value: "kernel.shm""#]),
        (r#"spec.hostIPC=true;spec.securityContext={"sysctls":[{"name":"kernel.msgmax","value":"1"},{"name":"kernel.osrelease","value":"1"},{"name":"net.core.somaxconn","value":"1"}]}"#, &[r#"spec.securityContext.sysctls[0].name: Invalid value: "kernel.msgmax": may not be specified when 'hostIPC' is true"#]),
        (r#"spec.securityContext={"supplementalGroupsPolicy":"X","seLinuxChangePolicy":"Y"}"#, &[r#"spec.securityContext.supplementalGroupsPolicy: Unsupported value: "X": supported values: "Merge", "Strict""#, r#"spec.securityContext.seLinuxChangePolicy: Unsupported value: "Y": supported values: "Recursive""#]),
        (r#"spec.securityContext={"seccompProfile":{"type":"Localhost","localhostProfile":"/x"}}"#, &[r#"spec.securityContext.seccompProfile.localhostProfile: Invalid value: "/x": must be a relative path"#]),
        ("spec.shareProcessNamespace=true;spec.hostPID=true", &["spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"]),
        ("spec.hostUsers=false;spec.hostNetwork=true;spec.hostPID=true", &["spec.hostNetwork: Forbidden: when `hostUsers` is false", "spec.HostPID: Forbidden: when `hostUsers` is false"]),
        (r#"spec.os={"name":"mac"}"#, &[r#"spec.os: Unsupported value: "mac": supported values: "linux", "windows""#]),
        (r#"spec.os={"name":""}"#, &["spec.os.name: Required value"]),
        (r#"spec.os={"name":"linux"};spec.containers.0.securityContext={"windowsOptions":{"runAsUserName":"x"}}"#, &["spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"]),
    ]);
}

const OF_C: &str = "container.apparmor.security.beta.kubernetes.io/c";

fn annotated(profile: &str, more: &str) -> String {
    format!(r#"metadata.annotations={{"{OF_C}":"{profile}"}};{more}"#)
}

#[test]
fn profiles_that_annotations_name_become_those_of_the_containers() {
    let local = json!({"type": "Localhost", "localhostProfile": "x"});
    let padded = format!("localhost/{}", "x".repeat(4096));
    for (profile, more, field, is_told) in [
        ("localhost/x", "", local.clone(), true),
        ("runtime/default", "", json!({"type": "RuntimeDefault"}), true),
        ("unconfined", "", json!({"type": "Unconfined"}), true),
        ("unconfined", r#"spec.os={"name":"windows"}"#, Value::Null, false),
        ("localhost/", "", Value::Null, true),
        ("localhost/ x", "", Value::Null, true),
        (padded.as_str(), "", Value::Null, true),
        ("", "", Value::Null, true),
        (
            "localhost/x",
            r#"spec.securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":"x"}}"#,
            Value::Null,
            false,
        ),
        (
            "localhost/x",
            r#"spec.securityContext={"appArmorProfile":{"type":"Unconfined"}}"#,
            local.clone(),
            true,
        ),
        (
            "localhost/x",
            r#"spec.containers.0.securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":"x"}}"#,
            local.clone(),
            false,
        ),
    ] {
        let edits = annotated(profile, more);
        let pod = sample().created(&edits);
        assert_eq!(pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"], field, "{edits}");
        let sent = sample().sent(&edits);
        let mut told = Vec::new();
        app_armor::warn(sent.as_object().expect("an object"), &mut told);
        let why = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;
        let expected = [format!("metadata.annotations[{OF_C}]: {why}")];
        assert_eq!(told, if is_told { &expected[..] } else { &[] }, "{edits}");
    }
}

#[test]
fn containers_of_one_name_do_not_each_get_a_copy_of_its_profile() {
    let containers = r#"spec.containers=[{"name":"c","image":"i"},{"name":"c","image":"i"}]"#;
    let pod = sample().created(&annotated("localhost/x", containers));
    assert_eq!(pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"]["localhostProfile"], "x");
    assert_eq!(pod["spec"]["containers"][1].get("securityContext"), None);
}

#[test]
fn annotations_about_profiles_must_fit_the_containers() {
    let unfit = annotated("x", "");
    let other = annotated("unconfined", r#"spec.containers.0.name="d""#);
    let of_container = annotated(
        "unconfined",
        r#"spec.containers.0.securityContext={"appArmorProfile":{"type":"RuntimeDefault"}}"#,
    );
    let of_name = annotated(
        "localhost/y",
        r#"spec.containers.0.securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":"x"}}"#,
    );
    sample().check_creates(&[
        (&unfit, &[r#"metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Invalid value: "x": invalid AppArmor profile name: "x""#]),
        (&other, &[r#"metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Invalid value: "c": container not found"#]),
        (&of_container, &["spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match"]),
        (&of_name, &["spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and field must match"]),
    ]);
}

#[test]
fn users_of_windows_are_named_as_windows_names_them() {
    let long = "a".repeat(105);
    for (name, faults) in [
        ("u", vec![]),
        (r"D\\u", vec![]),
        (r"a-b.example.com\\u", vec![]),
        ("a\\nb", vec!["runAsUserName cannot contain control characters"]),
        (r"a\\b\\c", vec!["runAsUserName cannot contain more than one backslash"]),
        (r"\\u", vec!["runAsUserName's Domain doesn't match the NetBios nor the DNS format"]),
        (r".d\\u", vec!["runAsUserName's Domain doesn't match the NetBios nor the DNS format"]),
        (r"D\\", vec!["runAsUserName's User cannot be empty"]),
        (long.as_str(), vec!["runAsUserName's User length must not be longer than 104 characters"]),
        (". .", vec!["runAsUserName's User cannot contain only periods or spaces"]),
        ("a@b", vec![r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#]),
    ] {
        let edits = format!(r#"spec.securityContext={{"windowsOptions":{{"runAsUserName":"{name}"}}}}"#);
        let at = "spec.securityContext.windowsOptions.runAsUserName";
        let want: Vec<String> =
            faults.iter().map(|fault| format!(r#"{at}: Invalid value: "{name}": {fault}"#)).collect();
        let want: Vec<&str> = want.iter().map(String::as_str).collect();
        sample().check_creates(&[(&edits, &want)]);
    }
}
