//! PriorityLevelConfigurations: what is filled in, what is refused.
//!
//! In: writes as text. Out: causes as kube-apiserver v1.36.3 gives them. Never: a store.

use serde_json::json;

use crate::testing::Sample;

fn sample() -> Sample {
    Sample::new(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "PriorityLevelConfiguration",
        json!({
            "metadata": {
                "name": "pl"
            },
            "spec": {
                "limited": {
                    "limitResponse": {
                        "queuing": {},
                        "type": "Queue"
                    }
                },
                "type": "Limited"
            }
        }),
    )
}

#[test]
fn what_is_left_out_is_filled_in() {
    assert_eq!(
        sample().created(""),
        json!({
            "metadata": {
                "generation": 1,
                "name": "pl"
            },
            "spec": {
                "limited": {
                    "lendablePercent": 0,
                    "limitResponse": {
                        "queuing": {
                            "handSize": 8,
                            "queueLengthLimit": 50,
                            "queues": 64
                        },
                        "type": "Queue"
                    },
                    "nominalConcurrencyShares": 30
                },
                "type": "Limited"
            },
            "status": {}
        })
    );
    assert_eq!(
        sample().created(
            r#"spec.limited.limitResponse={"type":"Reject"};spec.limited.nominalConcurrencyShares=0"#
        ),
        json!({
            "metadata": {
                "generation": 1,
                "name": "pl"
            },
            "spec": {
                "limited": {
                    "lendablePercent": 0,
                    "limitResponse": {
                        "type": "Reject"
                    },
                    "nominalConcurrencyShares": 0
                },
                "type": "Limited"
            },
            "status": {}
        })
    );
}

#[test]
fn malformed_objects_are_refused() {
    sample().check_creates(&[
        (r#"metadata.name="A""#, &[r#"metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanume…"#]),
        ("spec=null", &["spec.type: Required value"]),
        (r#"spec.type="""#, &["spec.type: Required value"]),
        (r#"spec.type="X""#, &[r#"spec.type: Unsupported value: "X": supported values: "Exempt", "Limited""#]),
        (r#"spec.type="Exempt""#, &[r#"spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if `name` is 'exempt'"#, "spec.limited: Forbidden: must be nil if the type is not Limited"]),
        (r#"spec.type="Exempt";spec.limited=null"#, &[r#"spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if `name` is 'exempt'"#]),
        (r#"spec.type="Exempt";spec.limited=null;spec.exempt={"nominalConcurrencyShares":-1,"lendablePercent":101}"#, &[r#"spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if `name` is 'exempt'"#, "spec.exempt.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer", "spec.exempt.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive"]),
        ("spec.exempt={}", &["spec.exempt: Forbidden: must be nil if the type is Limited"]),
        ("spec.limited=null", &["spec.limited: Required value: must not be empty when type is Limited"]),
        ("spec.limited={}", &["spec.limited.limitResponse.type: Required value"]),
        ("spec.limited.nominalConcurrencyShares=-1", &["spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer"]),
        ("spec.limited.lendablePercent=-1", &["spec.limited.lendablePercent: Invalid value: -1: must be between 0 and 100, inclusive"]),
        ("spec.limited.lendablePercent=101", &["spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive"]),
        ("spec.limited.borrowingLimitPercent=-1", &["spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer"]),
        ("spec.limited.borrowingLimitPercent=0", &[]),
        (r#"spec.limited.limitResponse.type="""#, &["spec.limited.limitResponse.type: Required value"]),
        (r#"spec.limited.limitResponse.type="X""#, &[r#"spec.limited.limitResponse.type: Unsupported value: "X": supported values: "Queue", "Reject""#]),
        (r#"spec.limited.limitResponse.type="Reject""#, &["spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited"]),
        ("spec.limited.limitResponse.queuing=null", &["spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is Limited"]),
        ("spec.limited.limitResponse.queuing.queues=-1", &["spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive", "spec.limited.limitResponse.queuing.handSize: Invalid value: 8: should not be greater than queues (-1)"]),
        ("spec.limited.limitResponse.queuing.queues=10000001", &["spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000", "spec.limited.limitResponse.queuing.handSize: Invalid value: 8: required entropy bits of deckSize 10000001 and handSize 8 should not be greater than 60"]),
        ("spec.limited.limitResponse.queuing.handSize=-1", &["spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive"]),
        ("spec.limited.limitResponse.queuing.handSize=65", &["spec.limited.limitResponse.queuing.handSize: Invalid value: 65: should not be greater than queues (64)"]),
        ("spec.limited.limitResponse.queuing.handSize=11", &["spec.limited.limitResponse.queuing.handSize: Invalid value: 11: required entropy bits of deckSize 64 and handSize 11 should not be greater than 60"]),
        ("spec.limited.limitResponse.queuing.handSize=10", &[]),
        ("spec.limited.limitResponse.queuing.queueLengthLimit=-1", &["spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive"]),
        ("spec.limited.limitResponse.queuing.queues=1;spec.limited.limitResponse.queuing.handSize=1", &[]),
        ("spec.limited.limitResponse.queuing.queues=4", &["spec.limited.limitResponse.queuing.handSize: Invalid value: 8: should not be greater than queues (4)"]),
        (r#"metadata.annotations={"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":""}"#, &["metadata.annotations: Forbidden: annotation 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares' is forbidden"]),
        (r#"metadata.name="exempt""#, &[r#"spec.type: Invalid value: "Limited": must be 'Exempt' if and only if `name` is 'exempt'"#, r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":30,"LimitResponse":{"Type":"Queue","Queuing":{"Queues":64,"HandSize":8,"QueueLengthLimit":50}…"#]),
        (r#"metadata.name="catch-all""#, &[r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":30,"LimitResponse":{"Type":"Queue","Queuing":{"Queues":64,"HandSize":8,"QueueLengthLimit":50}…"#]),
    ]);
}

#[test]
fn updates_are_refused_where_they_may_not_change() {
    sample().check_updates(&[
        ("spec.limited.nominalConcurrencyShares=0", &[]),
        ("spec.limited.nominalConcurrencyShares=-1", &["spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer"]),
        (r#"spec.type="Exempt""#, &[r#"spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if `name` is 'exempt'"#, "spec.limited: Forbidden: must be nil if the type is not Limited"]),
        ("spec.limited.limitResponse.queuing.handSize=100", &["spec.limited.limitResponse.queuing.handSize: Invalid value: 100: should not be greater than queues (64)"]),
        ("spec.limited=null", &["spec.limited: Required value: must not be empty when type is Limited"]),
        (r#"@status status.conditions=[{"type":""}]"#, &["status.conditions[0].type: Required value"]),
        (r#"@status status.conditions=[{"type":"A"},{"type":"A"}]"#, &[r#"status.conditions[1].type: Duplicate value: "A""#]),
        (r#"@status spec.type="X""#, &[]),
        (r#"metadata.labels={"a b":"c"}"#, &[r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#, r#"metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'My…"#]),
        ("spec.exempt={}", &["spec.exempt: Forbidden: must be nil if the type is Limited"]),
    ]);
}
