//! FlowSchemas and PriorityLevelConfigurations against what kube-apiserver says of them.

mod flow_schema;
mod priority_level;

use crate::field::Causes;
use crate::rules;
use crate::{GroupKind, Privileged, defaults, validate_create};

use super::built_in::ALL;

#[test]
fn what_always_exists_is_valid_and_complete() {
    for built_in in ALL.iter() {
        let kind = GroupKind::built_in("flowcontrol.apiserver.k8s.io", built_in.kind);
        let mut object = built_in.object.clone();
        defaults(&kind, &mut object);
        assert_eq!(object, built_in.object, "{} is filled in", built_in.name);
        assert_eq!(validate_create(&kind, &object, Privileged::Allowed), [], "{}", built_in.name);
    }
    assert_eq!(ALL.iter().filter(|built_in| built_in.mandatory).count(), 4);
}

#[test]
fn the_specs_of_mandatory_ones_are_fixed() {
    let rows = [
        ("FlowSchema", "exempt", "matchingPrecedence", 1),
        ("FlowSchema", "catch-all", "matchingPrecedence", 1),
        ("FlowSchema", "probes", "matchingPrecedence", 0),
    ];
    for (kind, name, member, count) in rows {
        let rules = rules::of("flowcontrol.apiserver.k8s.io", kind);
        let mut object = super::built_in(kind, name).expect("a known name").object.clone();
        object["spec"][member] = 77.into();
        let mut causes = Causes::default();
        (rules.validate_create)(object.as_object().expect("an object"), &mut causes);
        assert_eq!(causes.len(), count, "{name}");
    }
    let rules = rules::of("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration");
    let mut exempt = super::built_in("PriorityLevelConfiguration", "exempt").expect("exempt").object.clone();
    exempt["spec"]["exempt"]["lendablePercent"] = 50.into();
    let mut causes = Causes::default();
    (rules.validate_create)(exempt.as_object().expect("an object"), &mut causes);
    assert!(causes.is_empty(), "what is exempt may lend: {causes:?}");
}
