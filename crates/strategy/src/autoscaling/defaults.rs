//! What a client may leave out of a HorizontalPodAutoscaler.
//!
//! In: one of v1 or v2. Out: the same, filled in. Never: converts; v1's metric is filled in where v1 becomes
//! v2.

use serde_json::{Value, json};

use crate::value::{Members, child_made, child_mut, default, list, text};

/// Percent of requested CPU that is aimed at when nothing else is.
pub const CPU_UTILIZATION: i64 = 80;

pub fn autoscaler(autoscaler: &mut Members) {
    let is_v1 = text(autoscaler, "apiVersion") == "autoscaling/v1";
    let spec = child_made(autoscaler, "spec");
    default(spec, "minReplicas", 1);
    if is_v1 {
        return;
    }
    if list(spec, "metrics").is_empty() {
        spec.insert("metrics".into(), Value::Array(vec![cpu(CPU_UTILIZATION)]));
    }
    if let Some(behavior) = child_mut(spec, "behavior") {
        scaling_rules(child_made(behavior, "scaleUp"), Direction::Up);
        scaling_rules(child_made(behavior, "scaleDown"), Direction::Down);
    }
}

/// The metric that aims at a percentage of the CPU that was asked for.
pub fn cpu(percent: i64) -> Value {
    json!({
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}},
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// How long going down waits is the controller's to say.
fn scaling_rules(rules: &mut Members, direction: Direction) {
    let all = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let policies = match direction {
        Direction::Up => {
            default(rules, "stabilizationWindowSeconds", 0);
            vec![json!({"type": "Pods", "value": 4, "periodSeconds": 15}), all]
        }
        Direction::Down => vec![all],
    };
    default(rules, "selectPolicy", "Max");
    default(rules, "policies", Value::Array(policies));
}
