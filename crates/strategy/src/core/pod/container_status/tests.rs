//! What containers say of themselves, in the status of a pod.
//!
//! In: pods and their statuses. Out: causes. Never: a kubelet.

use serde_json::json;

use super::*;

#[test]
fn what_kubelets_say_of_containers_fits_the_pod() {
    let spec = json!({
        "containers": [{"name": "c", "resources": {
            "requests": {"example.com/a": "1"},
            "claims": [{"name": "x"}, {"name": "y", "request": "r"}],
        }}],
        "resourceClaims": [{"name": "x"}],
    });
    let allocated = |name: &str| json!({"containerStatuses": [{"name": "c", "allocatedResourcesStatus": [{"name": name}]}]});
    let health = json!([{"resourceID": "1", "health": "Bad"}, {"resourceID": "1", "health": "Healthy", "message": ""}]);
    let mapped = |container: &str, resource: &str| {
        let mapping = json!({"containerName": container, "resourceName": resource, "requestName": "r"});
        json!({"extendedResourceClaimStatus": {"resourceClaimName": "n", "requestMappings": [mapping]}})
    };
    for (status, want) in [
        (allocated("example.com/a"), &[][..]),
        (allocated("claim:x"), &[]),
        (allocated("claim:y/r"), &[]),
        (allocated("claim:y"), &["status.containerStatuses[0].allocatedResourcesStatus[0].name"]),
        (allocated("cpu"), &["status.containerStatuses[0].allocatedResourcesStatus[0].name"]),
        (
            json!({"containerStatuses": [{"name": "?", "allocatedResourcesStatus": [{"name": "cpu", "resources": health}]}]}),
            &[
                "status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health",
                "status.containerStatuses[0].allocatedResourcesStatus[0].resources[1].message",
                "status.containerStatuses[0].allocatedResourcesStatus[0].resources[1].resourceID",
            ],
        ),
        (
            json!({"ephemeralContainerStatuses": [{"name": "e", "allocatedResourcesStatus": [{"name": "cpu"}]}]}),
            &["status.ephemeralContainerStatuses[0].allocatedResourcesStatus"],
        ),
        (
            json!({"initContainerStatuses": [{"user": {"linux": {"uid": -1, "gid": -1, "supplementalGroups": [0, -1]}}}]}),
            &[
                "status.initContainerStatuses[0].user.linux.uid",
                "status.initContainerStatuses[0].user.linux.gid",
                "status.initContainerStatuses[0].user.linux.supplementalGroups[1]",
            ],
        ),
        (
            json!({"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "A_"}, {"name": "x"}, {"name": "z"}]}),
            &[
                "status.resourceClaimStatuses[0].resourceClaimName",
                "status.resourceClaimStatuses[1].name",
                "status.resourceClaimStatuses[2].name",
            ],
        ),
        (mapped("c", "example.com/a"), &[]),
        (mapped("c", "cpu"), &["status.extendedResourceClaimStatus.requestMappings[0].resourceName"]),
        (mapped("d", "cpu"), &["status.extendedResourceClaimStatus.requestMappings[0].containerName"]),
        (
            json!({"extendedResourceClaimStatus": {}}),
            &[
                "status.extendedResourceClaimStatus.requestMappings",
                "status.extendedResourceClaimStatus.resourceClaimName",
            ],
        ),
    ] {
        let mut causes = Causes::default();
        let (status, spec) = (status.as_object().expect("an object"), spec.as_object().expect("an object"));
        claims(status, spec, &mut causes);
        users(status, spec, &mut causes);
        super::allocated(status, spec, &mut causes);
        let found: Vec<String> = causes.into_vec().into_iter().map(|cause| cause.field).collect();
        assert_eq!(found, want, "{status:?}");
    }
}
