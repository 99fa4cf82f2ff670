//! The kinds of devices against what kube-apiserver says of them.

mod device_class;
mod expression;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;

/// `count` times the JSON that `item` makes, as a list.
fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..count).map(item).collect::<Vec<_>>().join(","))
}

#[test]
fn lists_and_texts_of_classes_have_bounds() {
    let opaque = |_| r#"{"opaque":{"driver":"d.com","parameters":{}}}"#.to_string();
    let selector = |_| r#"{"cel":{"expression":"true"}}"#.to_string();
    let parameters =
        format!(r#"{{"opaque":{{"driver":"d.com","parameters":{{"a":"{}"}}}}}}"#, "x".repeat(10_300));
    let rows = [
        (
            format!("spec.selectors={}", list(33, selector)),
            "spec.selectors: Too many: 33: must have at most 32 items",
        ),
        (
            format!(r#"spec.selectors=[{{"cel":{{"expression":"{}"}}}}]"#, "a".repeat(10_241)),
            "spec.selectors[0].cel.expression: Too long: may not be more than 10240 bytes",
        ),
        (
            format!("spec.config={}", list(33, opaque)),
            "spec.config: Too many: 33: must have at most 32 items",
        ),
        (
            format!("spec.config=[{parameters}]"),
            "spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes",
        ),
    ];
    for (edits, expected) in &rows {
        device_class::sample().check_creates(&[(edits, &[expected])]);
    }
}

#[test]
fn lists_of_claims_have_bounds() {
    let request = |index| format!(r#"{{"name":"r{index}","exactly":{{"deviceClassName":"c"}}}}"#);
    let alternative = |index| format!(r#"{{"name":"s{index}","deviceClassName":"c"}}"#);
    let constraint = |_| r#"{"matchAttribute":"a.com/b"}"#.to_string();
    let consumer = |index| format!(r#"{{"resource":"pods","name":"p","uid":"u{index}"}}"#);
    let result = |_| r#"{"request":"r","driver":"d.com","pool":"p","device":"dev"}"#.to_string();
    let rows = [
        (
            format!("spec.devices.requests={}", list(33, request)),
            "spec.devices.requests: Too many: 33: must have at most 32 items",
        ),
        (
            format!(r#"spec.devices.requests=[{{"name":"r","firstAvailable":{}}}]"#, list(9, alternative)),
            "spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items",
        ),
        (
            format!("spec.devices.constraints={}", list(33, constraint)),
            "spec.devices.constraints: Too many: 33: must have at most 32 items",
        ),
    ];
    for (edits, expected) in &rows {
        resource_claim::sample().check_creates(&[(edits, &[expected])]);
    }
    let allocation = |count| format!(r#"{{"devices":{{"results":{}}}}}"#, list(count, result));
    let rows = [
        (
            format!(
                r#"@status status={{"allocation":{},"reservedFor":{}}}"#,
                allocation(1),
                list(257, consumer)
            ),
            "status.reservedFor: Too many: 257: must have at most 256 items",
        ),
        (
            format!("@status status.allocation={}", allocation(33)),
            "status.allocation.devices.results: Too many: 33: must have at most 32 items",
        ),
    ];
    for (edits, expected) in &rows {
        resource_claim::sample().check_updates(&[(edits, &[expected])]);
    }
}

#[test]
fn lists_of_slices_have_bounds() {
    let device = |index| format!(r#"{{"name":"d{index}"}}"#);
    let tainted = |index| format!(r#"{{"name":"d{index}","taints":[{{"key":"a","effect":"NoSchedule"}}]}}"#);
    let taint = |_| r#"{"key":"a","effect":"NoExecute"}"#.to_string();
    let set = |index| format!(r#"{{"name":"a{index}","counters":{{"b":{{"value":"1"}}}}}}"#);
    let many = |count, value: &str| {
        let members: Vec<String> = (0..count).map(|index| format!(r#""a{index}":{value}"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    let rows = [
        (
            format!("spec.devices={}", list(129, device)),
            "spec.devices: Too many: 129: must have at most 128 items",
        ),
        (
            format!("spec.devices={}", list(65, tainted)),
            "spec.devices: Too many: 65: must have at most 64 items",
        ),
        (
            format!(r#"spec.devices=[{{"name":"d","taints":{}}}]"#, list(17, taint)),
            "spec.devices[0].taints: Too many: 17: must have at most 16 items",
        ),
        (
            format!(r#"spec.devices=[{{"name":"d","attributes":{}}}]"#, many(33, r#"{"int":1}"#)),
            "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32",
        ),
        (
            format!("spec.devices=null;spec.sharedCounters={}", list(9, set)),
            "spec.sharedCounters: Too many: 9: must have at most 8 items",
        ),
        (
            format!(
                r#"spec.devices=null;spec.sharedCounters=[{{"name":"a","counters":{}}}]"#,
                many(33, r#"{"value":"1"}"#)
            ),
            "spec.sharedCounters[0].counters: Too many: 33: must have at most 32 items",
        ),
    ];
    for (edits, expected) in &rows {
        resource_slice::sample().check_creates(&[(edits, &[expected])]);
    }
}
