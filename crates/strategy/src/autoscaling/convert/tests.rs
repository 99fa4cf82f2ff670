//! HorizontalPodAutoscalers of v1 and v2, made of one another as kube-apiserver v1.36.3 does.
//!
//! In: objects. Out: nothing. Never: a store.

use forebay_schema::builtin::{codec, table};
use serde_json::{Value, json};

use super::{to_v1, to_v2};

/// As clients see it: what the codec leaves out counts as left out.
fn canonical(version: &str, mut value: Value) -> Value {
    let ty = table().kind("autoscaling", version, "HorizontalPodAutoscaler").expect("a built-in kind").ty;
    codec::normalize(ty, &mut value).expect("an object of its kind");
    let mut out = Vec::new();
    codec::write_json(ty, &value, &mut out).expect("an object of its kind");
    serde_json::from_slice(&out).expect("JSON")
}

fn v2() -> Value {
    json!({
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "conv", "namespace": "default", "annotations": {"x": "y"}},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
                },
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                },
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "500m"}},
                },
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
                        "target": {"type": "AverageValue", "averageValue": "1500m"},
                    },
                },
                {
                    "type": "Object",
                    "object": {
                        "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
                        "target": {"type": "Value", "value": "5"},
                        "metric": {"name": "q"},
                    },
                },
                {
                    "type": "Object",
                    "object": {
                        "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
                        "target": {"type": "AverageValue", "averageValue": "5"},
                        "metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
                    },
                },
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
                        "target": {"type": "Value", "value": "5"},
                    },
                },
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "q"},
                        "target": {"type": "AverageValue", "averageValue": "5"},
                    },
                },
                {
                    "type": "ContainerResource",
                    "containerResource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 5},
                        "container": "c",
                    },
                },
            ],
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 0,
                    "selectPolicy": "Max",
                    "policies": [
                        {"type": "Pods", "value": 4, "periodSeconds": 15},
                        {"type": "Percent", "value": 100, "periodSeconds": 15},
                    ],
                    "tolerance": "100m",
                },
                "scaleDown": {
                    "stabilizationWindowSeconds": 10,
                    "selectPolicy": "Disabled",
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                },
            },
        },
        "status": {
            "observedGeneration": 3,
            "lastScaleTime": "2026-01-01T00:00:00Z",
            "currentReplicas": 2,
            "desiredReplicas": 3,
            "currentMetrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "current": {"averageValue": "100m", "averageUtilization": 40}},
                },
                {
                    "type": "Resource",
                    "resource": {"name": "memory", "current": {"averageValue": "100Mi"}},
                },
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
                        "current": {"averageValue": "7"},
                    },
                },
                {
                    "type": "Object",
                    "object": {
                        "metric": {"name": "q"},
                        "current": {"value": "3", "averageValue": "2"},
                        "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
                    },
                },
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
                        "current": {"value": "3", "averageValue": "2"},
                    },
                },
                {"type": "External", "external": {"metric": {"name": "q"}, "current": {}}},
                {
                    "type": "ContainerResource",
                    "containerResource": {"name": "cpu", "current": {"averageUtilization": 4}, "container": "c"},
                },
            ],
            "conditions": [
                {
                    "type": "AbleToScale",
                    "status": "True",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "reason": "r",
                    "message": "m",
                },
                {"type": "Z", "status": "False", "lastTransitionTime": null},
            ],
        },
    })
}

fn v1() -> Value {
    json!({
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "conv",
            "namespace": "default",
            "annotations": {
                "autoscaling.alpha.kubernetes.io/behavior": "{\"ScaleUp\":{\"StabilizationWindowSeconds\":0,\"SelectPolicy\":\"Max\",\"Policies\":[{\"Type\":\"Pods\",\"Value\":4,\"PeriodSeconds\":15},{\"Type\":\"Percent\",\"Value\":100,\"PeriodSeconds\":15}],\"Tolerance\":\"100m\"},\"ScaleDown\":{\"StabilizationWindowSeconds\":10,\"SelectPolicy\":\"Disabled\",\"Policies\":[{\"Type\":\"Percent\",\"Value\":100,\"PeriodSeconds\":15}],\"Tolerance\":null}}",
                "autoscaling.alpha.kubernetes.io/conditions": "[{\"type\":\"AbleToScale\",\"status\":\"True\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"reason\":\"r\",\"message\":\"m\"},{\"type\":\"Z\",\"status\":\"False\",\"lastTransitionTime\":null}]",
                "autoscaling.alpha.kubernetes.io/current-metrics": "[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"currentAverageUtilization\":40,\"currentAverageValue\":\"100m\"}},{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\"currentAverageValue\":\"100Mi\"}},{\"type\":\"Pods\",\"pods\":{\"metricName\":\"q\",\"currentAverageValue\":\"7\",\"selector\":{\"matchLabels\":{\"a\":\"b\"}}}},{\"type\":\"Object\",\"object\":{\"target\":{\"kind\":\"Service\",\"name\":\"s\",\"apiVersion\":\"v1\"},\"metricName\":\"q\",\"currentValue\":\"3\",\"averageValue\":\"2\"}},{\"type\":\"External\",\"external\":{\"metricName\":\"q\",\"metricSelector\":{\"matchLabels\":{\"a\":\"b\"}},\"currentValue\":\"3\",\"currentAverageValue\":\"2\"}},{\"type\":\"External\",\"external\":{\"metricName\":\"q\",\"currentValue\":\"0\"}},{\"type\":\"ContainerResource\",\"containerResource\":{\"name\":\"cpu\",\"currentAverageUtilization\":4,\"currentAverageValue\":\"0\",\"container\":\"c\"}}]",
                "autoscaling.alpha.kubernetes.io/metrics": "[{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\"targetAverageValue\":\"100Mi\"}},{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"targetAverageValue\":\"500m\"}},{\"type\":\"Pods\",\"pods\":{\"metricName\":\"q\",\"targetAverageValue\":\"1500m\",\"selector\":{\"matchLabels\":{\"a\":\"b\"}}}},{\"type\":\"Object\",\"object\":{\"target\":{\"kind\":\"Service\",\"name\":\"s\",\"apiVersion\":\"v1\"},\"metricName\":\"q\",\"targetValue\":\"5\"}},{\"type\":\"Object\",\"object\":{\"target\":{\"kind\":\"Service\",\"name\":\"s\",\"apiVersion\":\"v1\"},\"metricName\":\"q\",\"targetValue\":\"0\",\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"averageValue\":\"5\"}},{\"type\":\"External\",\"external\":{\"metricName\":\"q\",\"metricSelector\":{\"matchLabels\":{\"a\":\"b\"}},\"targetValue\":\"5\"}},{\"type\":\"External\",\"external\":{\"metricName\":\"q\",\"targetAverageValue\":\"5\"}},{\"type\":\"ContainerResource\",\"containerResource\":{\"name\":\"cpu\",\"targetAverageUtilization\":5,\"container\":\"c\"}}]",
                "x": "y",
            },
        },
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 50,
        },
        "status": {
            "observedGeneration": 3,
            "lastScaleTime": "2026-01-01T00:00:00Z",
            "currentReplicas": 2,
            "desiredReplicas": 3,
            "currentCPUUtilizationPercentage": 40,
        },
    })
}

#[test]
fn what_v1_has_no_fields_for_is_in_its_annotations() {
    let mut made = v2();
    to_v1(&mut made);
    assert_eq!(canonical("v1", made), canonical("v1", v1()));
}

#[test]
fn v2_gets_back_all_but_the_place_of_the_cpu_metric() {
    let mut made = v1();
    to_v2(&mut made);
    let mut wanted = v2();
    let metrics = wanted["spec"]["metrics"].as_array_mut().expect("metrics");
    let cpu = metrics.remove(1);
    metrics.push(cpu);
    // v1 has no current value that is absent.
    let current = &mut wanted["status"]["currentMetrics"];
    current[5]["external"]["current"]["value"] = json!("0");
    current[6]["containerResource"]["current"]["averageValue"] = json!("0");
    assert_eq!(canonical("v2", made), canonical("v2", wanted));
}

#[test]
fn annotations_that_cannot_be_read_are_as_good_as_none() {
    for name in ["metrics", "behavior", "conditions", "current-metrics"] {
        for text in ["junk", "[]", "{}", r#"[{"type": 5}]"#, "[1]"] {
            let mut made = json!({
                "apiVersion": "autoscaling/v1",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "a", "annotations": {format!("autoscaling.alpha.kubernetes.io/{name}"): text}},
                "spec": {"maxReplicas": 3},
            });
            to_v2(&mut made);
            let wanted = json!({
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "a"},
                "spec": {
                    "maxReplicas": 3,
                    "metrics": [{
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                    }],
                },
            });
            assert_eq!(canonical("v2", made), canonical("v2", wanted), "{name} {text}");
        }
    }
}

#[test]
fn a_zero_beside_an_average_means_none() {
    let metric = r#"[{"type":"Object","object":{"target":{"kind":"K","name":"n"},"metricName":"m","targetValue":"0","averageValue":"3"}}]"#;
    let mut made = json!({
        "metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": metric}},
        "spec": {"maxReplicas": 3},
    });
    to_v2(&mut made);
    let target = &made["spec"]["metrics"][0]["object"]["target"];
    assert_eq!(*target, json!({"type": "AverageValue", "averageValue": "3"}));
}

#[test]
fn behavior_is_read_in_go_s_names() {
    let behavior = r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":5}],"Tolerance":null},"ScaleDown":null}"#;
    let mut made = json!({
        "metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/behavior": behavior}},
        "spec": {"maxReplicas": 3},
    });
    to_v2(&mut made);
    let policies = json!([{"type": "Pods", "value": 1, "periodSeconds": 5}]);
    let wanted = json!({"scaleUp": {"stabilizationWindowSeconds": 0, "policies": policies}});
    assert_eq!(made["spec"]["behavior"], wanted);
}
