//! What containers and pods ask for: what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use super::sample;

#[test]
fn requests_and_limits_must_fit() {
    sample().check_creates(&[
        (r#"spec.containers.0.resources={"requests":{"cpu":"2"},"limits":{"cpu":"1"}}"#, &[r#"spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1"#]),
        (r#"spec.containers.0.resources={"requests":{"memory":"2Gi"},"limits":{"memory":"1Gi","cpu":"1"}}"#, &[r#"spec.containers[0].resources.requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi"#]),
        (r#"spec.containers.0.resources={"limits":{"cpu":"-1"}}"#, &[r#"spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0"#, r#"spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0"#]),
        (r#"spec.containers.0.resources={"limits":{"gpu":"1"}}"#, &[r#"spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified"#, r#"spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers"#, r#"spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified"#, r#"spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers"#]),
        (r#"spec.containers.0.resources={"limits":{"Nope/":"1"}}"#, &[r#"spec.containers[0].resources.limits[Nope/]: Invalid value: "Nope/": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric…"#, r#"spec.containers[0].resources.limits[Nope/]: Invalid value: "Nope/": name part must be non-empty"#, r#"spec.containers[0].resources.limits[Nope/]: Invalid value: "Nope/": name part must consist of alphanumeric characters, '-', '_' or '.', and must start…"#, r#"spec.containers[0].resources.limits[Nope/]: Invalid value: "Nope/": doesn't follow extended resource name standard"#, r#"spec.containers[0].resources.requests[Nope/]: Invalid value: "Nope/": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumer…"#, r#"spec.containers[0].resources.requests[Nope/]: Invalid value: "Nope/": name part must be non-empty"#, r#"spec.containers[0].resources.requests[Nope/]: Invalid value: "Nope/": name part must consist of alphanumeric characters, '-', '_' or '.', and must sta…"#, r#"spec.containers[0].resources.requests[Nope/]: Invalid value: "Nope/": doesn't follow extended resource name standard"#]),
        (r#"spec.containers.0.resources={"limits":{"example.com/gpu":"1.5"}}"#, &[r#"spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer"#, r#"spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "1500m": must be an integer"#]),
        (r#"spec.containers.0.resources={"requests":{"example.com/gpu":"1"}}"#, &["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"]),
        (r#"spec.containers.0.resources={"requests":{"example.com/gpu":"1"},"limits":{"example.com/gpu":"2"}}"#, &[r#"spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2"#]),
        (r#"spec.containers.0.resources={"limits":{"hugepages-2Mi":"3Mi"}}"#, &[r#"spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi"#, r#"spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi"#, "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"]),
        (r#"spec.containers.0.resources={"claims":[{"name":"x"}]}"#, &[r#"spec.containers[0].resources.claims[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims which is empty"#]),
        (r#"spec.containers.0.resources={"limits":{"cpu":"1"}}"#, &[]),
        (r#"spec.containers.0.resources={"limits":{"cpu":"100u"}}"#, &[]),
        (r#"spec.containers.0.resources={"limits":{"storage":"1"}}"#, &[r#"spec.containers[0].resources.limits[storage]: Invalid value: "storage": must be a standard resource for containers"#, r#"spec.containers[0].resources.requests[storage]: Invalid value: "storage": must be a standard resource for containers"#]),
        (r#"spec.overhead={"cpu":"-1"}"#, &[r#"spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0"#]),
        (r#"spec.resources={"limits":{"cpu":"1"}}"#, &[]),
        (r#"spec.resources={"requests":{"example.com/a":"1"}}"#, &[r#"spec.resources.requests[example.com/a]: Unsupported value: "example.com/a": supported values: "cpu", "hugepages-", "memory""#, "spec.resources.limits: Required value: Limit must be set for non overcommitable resources"]),
        (r#"spec.resources={"requests":{"cpu":"1"}};spec.containers.0.resources={"requests":{"cpu":"2"}}"#, &[r#"spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2"#]),
        (r#"spec.resources={"limits":{"memory":"1Gi"}};spec.containers.0.resources={"limits":{"memory":"2Gi"}}"#, &[r#"spec.resources.requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi"#, r#"spec.resources.containers[0][memory].limits: Invalid value: "2Gi": must be less than or equal to pod limits of 1Gi"#]),
    ]);
}
