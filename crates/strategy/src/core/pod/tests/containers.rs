//! Containers: what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use super::sample;

#[test]
fn containers_must_be_well_made() {
    sample().check_creates(&[
        ("spec.containers=[]", &["spec.containers: Required value"]),
        ("spec.containers=null", &["spec.containers: Required value"]),
        (r#"spec.containers.0.name="""#, &["spec.containers[0].name: Required value"]),
        (r#"spec.containers.0.name="A""#, &[r#"spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and …"#]),
        (r#"spec.containers.0.name="a.b""#, &[r#"spec.containers[0].name: Invalid value: "a.b": must not contain dots"#]),
        (r#"spec.containers.0.image="""#, &["spec.containers[0].image: Required value"]),
        (r#"spec.containers.0.image=" nginx""#, &[r#"spec.containers[0].image: Invalid value: " nginx": must not have leading or trailing whitespace"#]),
        (r#"spec.containers.+={"name":"c","image":"b"}"#, &[r#"spec.containers[1].name: Duplicate value: "c""#]),
        (r#"spec.initContainers=[{"name":"c","image":"b"}]"#, &[r#"spec.initContainers[0].name: Duplicate value: "c""#]),
        (r#"spec.initContainers=[{"name":"i","image":"b","restartPolicy":"Sometimes"}]"#, &[r#"spec.initContainers[0].restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure""#]),
        (r#"spec.ephemeralContainers=[{"name":"e","image":"b"}]"#, &["spec.ephemeralContainers: Forbidden: cannot be set on create"]),
        (r#"spec.containers.0.ports=[{"containerPort":0}]"#, &["spec.containers[0].ports[0].containerPort: Required value"]),
        (r#"spec.containers.0.ports=[{"containerPort":70000}]"#, &["spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
        (r#"spec.containers.0.ports=[{"containerPort":80,"hostPort":-1}]"#, &["spec.containers[0].ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive"]),
        (r#"spec.containers.0.ports=[{"containerPort":80,"protocol":"ICMP"}]"#, &[r#"spec.containers[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP""#]),
        (r#"spec.containers.0.ports=[{"containerPort":80,"name":"A"},{"containerPort":81,"name":"this-is-a-long-name"}]"#, &[r#"spec.containers[0].ports[0].name: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"#, r#"spec.containers[0].ports[0].name: Invalid value: "A": must contain at least one letter (a-z)"#, r#"spec.containers[0].ports[1].name: Invalid value: "this-is-a-long-name": must be no more than 15 characters"#]),
        (r#"spec.containers.0.ports=[{"containerPort":80,"name":"a"},{"containerPort":81,"name":"a"}]"#, &[r#"spec.containers[0].ports[1].name: Duplicate value: "a""#]),
        (r#"spec.containers.0.ports=[{"containerPort":80,"hostPort":8080},{"containerPort":81,"hostPort":8080}]"#, &[r#"spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//8080""#]),
        (r#"spec.containers.0.ports=[{"containerPort":80,"name":"1-2"}]"#, &[r#"spec.containers[0].ports[0].name: Invalid value: "1-2": must contain at least one letter (a-z)"#]),
        (r#"spec.hostNetwork=true;spec.containers.0.ports=[{"containerPort":80,"hostPort":81}]"#, &["spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"]),
        (r#"spec.containers.0.terminationMessagePolicy="X""#, &[r#"spec.containers[0].terminationMessagePolicy: Unsupported value: "X": supported values: "File", "FallbackToLogsOnError""#]),
        (r#"spec.containers.0.imagePullPolicy="X""#, &[r#"spec.containers[0].imagePullPolicy: Unsupported value: "X": supported values: "Always", "IfNotPresent", "Never""#]),
        (r#"spec.containers.0.terminationMessagePath="""#, &[]),
        (r#"spec.containers.0.restartPolicy="X""#, &[r#"spec.containers[0].restartPolicy: Unsupported value: "X": supported values: "Always", "Never", "OnFailure""#]),
        (r#"spec.containers.0.restartPolicy="Never""#, &[]),
        (r#"spec.containers.0.restartPolicyRules=[{"action":"Restart","exitCodes":{"operator":"In","values":[1]}}]"#, &["spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"]),
        (r#"spec.containers.0.restartPolicy="Never";spec.containers.0.restartPolicyRules=[{"action":"X","exitCodes":{"operator":"Y","values":[]}}]"#, &[r#"spec.containers[0].restartPolicyRules[0].action: Unsupported value: "X": supported values: "Restart", "RestartAllContainers""#, r#"spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Y": supported values: "In", "NotIn""#]),
        (r#"spec.containers.0.resizePolicy=[{"resourceName":"cpu","restartPolicy":"X"},{"resourceName":"gpu","restartPolicy":"NotRequired"},{"resourceName":"cpu","restartPolicy":"NotRequired"}]"#, &[r#"spec.containers[0].resizePolicy: Unsupported value: "X": supported values: "NotRequired", "RestartContainer""#, r#"spec.containers[0].resizePolicy: Unsupported value: "gpu": supported values: "cpu", "memory""#, r#"spec.containers[0].resizePolicy[2]: Duplicate value: "cpu""#]),
    ]);
}

#[test]
fn rules_of_a_container_that_runs_before_the_others_go_with_a_policy() {
    let init = |more: &str| format!(r#"spec.initContainers=[{{"name":"i","image":"x"{more}}}]"#);
    let at = "spec.initContainers[0]";
    sample().check_creates(&[
        (
            &init(r#","restartPolicyRules":[{}]"#),
            &[&format!(
                "{at}.restartPolicy: Required value: must specify restartPolicy when restart rules are used"
            )],
        ),
        (
            &init(r#","restartPolicy":"Never","restartPolicyRules":[{"action":"Restart"}]"#),
            &[&format!("{at}.restartPolicyRules[0].exitCodes: Required value: must be specified")],
        ),
    ]);
}

#[test]
fn what_is_there_and_empty_is_set_of_a_container_that_joins_later() {
    let joined = |more: &str| {
        format!(r#"@ephemeralcontainers spec.ephemeralContainers=[{{"name":"e","image":"x",{more}}}]"#)
    };
    let refused = |name: &str| {
        format!("spec.ephemeralContainers[0].{name}: Forbidden: cannot be set for an Ephemeral Container")
    };
    sample().check_updates(&[
        (&joined(r#""resources":{}"#), &[]),
        (&joined(r#""ports":[]"#), &[&refused("ports")]),
        (&joined(r#""resizePolicy":[]"#), &[&refused("resizePolicy")]),
        (&joined(r#""restartPolicyRules":[]"#), &[&refused("restartPolicyRules")]),
        (&joined(r#""resources":{"claims":[]}"#), &[&refused("resources")]),
        (&joined(r#""resources":{"limits":{}}"#), &[&refused("resources")]),
    ]);
    sample().check_creates(&[(
        r#"spec.resources={"claims":[]}"#,
        &["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"],
    )]);
}
