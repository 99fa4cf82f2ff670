//! Pods: what is filled in, and the sample that the other tests edit.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

mod annotations;
mod containers;
mod env;
mod probes;
mod resources;
mod scheduling;
mod security;
mod spec;
mod status;
mod update;
mod volumes;
mod warnings;

use serde_json::json;

use crate::testing::Sample;

pub fn sample() -> Sample {
    Sample::new(
        "",
        "v1",
        "Pod",
        json!({
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {"generation": 1, "name": "p", "namespace": "default"},
            "spec": {
                "containers": [
                    {
                        "image": "nginx:1",
                        "imagePullPolicy": "IfNotPresent",
                        "name": "c",
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    },
                ],
                "dnsPolicy": "ClusterFirst",
                "enableServiceLinks": true,
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            },
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        })
    );
}
