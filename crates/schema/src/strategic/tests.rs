//! What upstream documents of strategic merge patch, row by row.

use serde_json::{Value, json};

use super::*;
use crate::builtin::table;
use forebay_apimachinery::steps;

fn ty(api_version: &str, kind: &str) -> TypeId {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    table().kind(group, version, kind).unwrap_or_else(|| panic!("{api_version} {kind} is not built in")).ty
}

fn pod(original: Value, patch: Value) -> Result<Value, String> {
    merge(ty("v1", "Pod"), original, patch).map_err(|error| error.to_string())
}

/// Merges into the spec of a pod.
fn spec(original: Value, patch: Value) -> Result<Value, String> {
    let mut merged = pod(json!({"spec": original}), json!({"spec": patch}))?;
    Ok(merged["spec"].take())
}

#[test]
fn maps_merge_and_null_deletes() {
    let check = |original: Value, patch: Value, want: Value| {
        assert_eq!(pod(original, patch.clone()), Ok(want), "{patch}");
    };
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    check(
        labels(json!({"a": "1", "b": "2"})),
        labels(json!({"b": null, "c": "3"})),
        labels(json!({"a": "1", "c": "3"})),
    );
    check(labels(json!({"a": "1"})), labels(Value::Null), json!({"metadata": {}}));
    check(json!({}), labels(json!({"a": "1", "b": null})), labels(json!({"a": "1"})));
    check(json!({"metadata": null}), labels(json!({"a": "1"})), labels(json!({"a": "1"})));
    check(
        labels(json!({"a": "1"})),
        labels(json!({"$patch": "replace", "b": "2"})),
        labels(json!({"b": "2"})),
    );
    check(labels(json!({"a": "1"})), labels(json!({"$patch": "delete"})), labels(json!({})));
    check(json!({"metadata": {}}), labels(json!({"$patch": "delete"})), json!({"metadata": {}}));
    check(
        json!({"spec": {"nodeName": "a"}}),
        json!({"spec": {"nodeName": "b"}}),
        json!({"spec": {"nodeName": "b"}}),
    );
    check(json!({"a": 1}), Value::Null, json!({"a": 1}));
    check(Value::Null, json!({"a": 1}), json!({"a": 1}));
    check(json!({"a": 1}), json!({"$patch": "replace"}), json!({}));
}

#[test]
fn lists_with_a_merge_key_merge_by_it() {
    let check = |original: Value, patch: Value, want: Value| {
        let merged = spec(json!({"containers": original}), json!({"containers": patch.clone()}));
        assert_eq!(merged, Ok(json!({"containers": want})), "{patch}");
    };
    let live = json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]);
    check(
        live.clone(),
        json!([{"name": "b", "image": "2"}]),
        json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]),
    );
    // What is new comes first: the patch's order wins where the server knows nothing.
    check(
        live.clone(),
        json!([{"name": "c"}]),
        json!([{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "1"}]),
    );
    check(live.clone(), json!([{"$patch": "delete", "name": "a"}]), json!([{"name": "b", "image": "1"}]));
    check(live.clone(), json!([{"$patch": "delete", "name": "x"}]), live.clone());
    check(live.clone(), json!([{"$patch": "replace"}, {"name": "c"}]), json!([{"name": "c"}]));
    check(live.clone(), json!([{"$patch": "replace"}]), json!([]));
    check(
        live.clone(),
        json!([{"name": "a", "image": null, "ports": [{"containerPort": 80}]}]),
        json!([{"name": "a", "ports": [{"containerPort": 80}]}, {"name": "b", "image": "1"}]),
    );
    check(json!([]), json!([]), json!([]));
}

#[test]
fn lists_without_a_strategy_are_replaced() {
    let merged = spec(
        json!({"tolerations": [{"key": "a"}], "containers": [{"name": "a", "command": ["x", "y"]}]}),
        json!({"tolerations": [{"key": "b"}], "containers": [{"name": "a", "command": ["z"]}]}),
    );
    let want = json!({"tolerations": [{"key": "b"}], "containers": [{"name": "a", "command": ["z"]}]});
    assert_eq!(merged, Ok(want));
}

#[test]
fn lists_of_scalars_with_merge_are_sets() {
    let check = |original: Value, patch: Value, want: Value| {
        let patched = pod(json!({"metadata": {"finalizers": original}}), json!({"metadata": patch.clone()}));
        assert_eq!(patched, Ok(json!({"metadata": {"finalizers": want}})), "{patch}");
    };
    check(json!(["a", "b"]), json!({"finalizers": ["c"]}), json!(["c", "a", "b"]));
    check(json!(["a", "b"]), json!({"finalizers": ["b", "a"]}), json!(["b", "a"]));
    check(
        json!(["a", "b", "c"]),
        json!({"$deleteFromPrimitiveList/finalizers": ["b", "x"]}),
        json!(["a", "c"]),
    );
    check(
        json!(["a", "b"]),
        json!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}),
        json!(["c", "b"]),
    );
    check(json!(["a", "b", "c"]), json!({"$setElementOrder/finalizers": ["c", "a"]}), json!(["b", "c", "a"]));
    check(
        json!(["a", "b"]),
        json!({"$setElementOrder/finalizers": ["b", "c", "a"], "finalizers": ["c"]}),
        json!(["b", "c", "a"]),
    );
}

#[test]
fn delete_lists_leave_absent_lists_alone() {
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}});
    assert_eq!(pod(json!({"metadata": {"name": "a"}}), patch), Ok(json!({"metadata": {"name": "a"}})));
}

#[test]
fn set_element_order_orders_and_keeps_what_only_the_server_has() {
    let check = |original: Value, patch: Value, want: Value| {
        let merged = spec(json!({"containers": original}), patch.clone());
        let names: Value = merged.expect("the patch applies")["containers"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|container| container["name"].clone())
            .collect();
        assert_eq!(names, want, "{patch}");
    };
    let named = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    let live = named(&["a", "server", "b", "c"]);
    check(
        live.clone(),
        json!({"$setElementOrder/containers": named(&["c", "b", "a"])}),
        json!(["server", "c", "b", "a"]),
    );
    check(
        live.clone(),
        json!({
            "$setElementOrder/containers": named(&["a", "new", "b", "c"]),
            "containers": [{"name": "new", "image": "1"}],
        }),
        json!(["a", "new", "server", "b", "c"]),
    );
    check(
        live.clone(),
        json!({
            "$setElementOrder/containers": named(&["a", "c"]),
            "containers": [{"$patch": "delete", "name": "b"}],
        }),
        json!(["a", "server", "c"]),
    );
    check(json!([{"name": "x"}]), json!({"$setElementOrder/initContainers": []}), json!(["x"]));
    // What kubectl apply sends to replace one by another: the new one takes the place that was freed.
    let replace = |gone: &str| {
        json!({
            "$setElementOrder/containers": named(&["new"]),
            "containers": [{"name": "new"}, {"$patch": "delete", "name": gone}],
        })
    };
    check(named(&["old", "server"]), replace("old"), json!(["server", "new"]));
    check(named(&["server"]), replace("old"), json!(["new", "server"]));
}

#[test]
fn retain_keys_clears_the_rest() {
    let deployment = |strategy: Value| json!({"spec": {"strategy": strategy}});
    let check = |original: Value, patch: Value, want: Result<Value, &str>| {
        let merged = merge(ty("apps/v1", "Deployment"), deployment(original), deployment(patch));
        let want = want.map(deployment).map_err(str::to_owned);
        assert_eq!(merged.map_err(|error| error.to_string()), want);
    };
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
    check(
        rolling.clone(),
        json!({"$retainKeys": ["type"], "type": "Recreate"}),
        Ok(json!({"type": "Recreate"})),
    );
    check(
        rolling.clone(),
        json!({"$retainKeys": ["rollingUpdate"]}),
        Ok(json!({"rollingUpdate": {"maxSurge": 1}})),
    );
    let wrong = Err("invalid patch format of retainKeys");
    check(rolling.clone(), json!({"$retainKeys": ["rollingUpdate"], "type": "Recreate"}), wrong.clone());
    check(rolling.clone(), json!({"$retainKeys": "type"}), wrong);
    check(
        rolling,
        json!({"$retainKeys": ["type"], "rollingUpdate": null}),
        Ok(json!({"type": "RollingUpdate"})),
    );
}

#[test]
fn directives_in_what_is_new_are_dropped() {
    let merged = spec(
        json!({}),
        json!({
            "containers": [{"name": "a", "env": [{"$patch": "delete", "name": "x"}, {"name": "y", "value": null}]}, {"$patch": "replace"}],
            "securityContext": {"$patch": "replace", "runAsUser": 1},
        }),
    );
    assert_eq!(merged, Ok(json!({"containers": [{"name": "a", "env": [{"name": "y"}]}]})));
}

#[test]
fn bad_patches_are_refused_in_upstreams_words() {
    let check = |original: Value, patch: Value, want: &str, fault: PatchFault| {
        let error = merge(ty("v1", "Pod"), original, patch).expect_err(want);
        assert_eq!((error.to_string().as_str(), error.fault()), (want, fault));
    };
    let live = || json!({"metadata": {"name": "a", "finalizers": ["a"]}, "spec": {"containers": [{"name": "a", "tty": true}]}});
    let containers = |list: Value| json!({"spec": {"containers": list}});
    use PatchFault::*;
    check(
        live(),
        json!([]),
        "json: cannot unmarshal array into Go value of type map[string]interface {}",
        BadRequest,
    );
    check(
        live(),
        containers(json!([{"image": "x"}])),
        "map: map[image:x] does not contain declared merge key: name",
        Internal,
    );
    check(
        live(),
        containers(json!([{"$patch": "delete"}])),
        "map: map[$patch:delete] does not contain declared merge key: name",
        Internal,
    );
    check(
        live(),
        containers(json!([{"$patch": "merge", "name": "a"}])),
        "merging lists cannot yet be specified in the patch",
        Internal,
    );
    check(
        live(),
        containers(json!([{"$patch": "x", "name": "a"}])),
        "unknown patch type: x in map: map[$patch:x name:a]",
        Internal,
    );
    check(
        live(),
        json!({"spec": {"$patch": "merge"}}),
        "unknown patch type: merge in map: map[$patch:merge]",
        Internal,
    );
    check(
        live(),
        containers(json!(["a"])),
        "list element types are not identical: [[map[name:a tty:true]] [a]]",
        Internal,
    );
    check(
        live(),
        json!({"metadata": {"$deleteFromPrimitiveList": ["a"]}}),
        "invalid patch format of primitive list",
        BadRequest,
    );
    check(
        live(),
        json!({"metadata": {"$setElementOrder": []}}),
        "invalid patch format of setElementOrder list",
        BadRequest,
    );
    check(
        live(),
        json!({"metadata": {"$setElementOrder/finalizers": "a"}}),
        "expected a []interface {}, but received a string",
        Internal,
    );
    check(
        live(),
        json!({"metadata": {"$setElementOrder/name": []}}),
        "expected a []interface {}, but received a string",
        Internal,
    );
    check(
        live(),
        json!({"metadata": {"$setElementOrder/labels": []}}),
        "expected slice or array type, but got: struct",
        Internal,
    );
    check(
        live(),
        json!({"metadata": {"$setElementOrder/foo": []}}),
        r#"unable to find api field in struct ObjectMeta for the json field "foo""#,
        Internal,
    );
    check(
        live(),
        json!({"metadata": {"$setElementOrder/finalizers": ["a"], "finalizers": ["b"]}}),
        "The order in patch list:\n[b]\n doesn't match $setElementOrder list:\n[a]\n",
        Internal,
    );
    check(
        live(),
        json!({"spec": {"$setElementOrder/containers": [{"name": "a"}, "b"]}}),
        "expected a map[string]interface {}, but received a string",
        Internal,
    );
    check(
        live(),
        json!({"metadata": {"finalizers": [["a"]]}}),
        "list element types are not identical: [[a] [[a]]]",
        Internal,
    );
}

#[test]
fn deep_patches_are_refused() {
    let mut deep = json!({});
    for _ in 0..DEPTH_MAX + 2 {
        deep = json!({"x": deep});
    }
    let crd = ty("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    assert_eq!(merge(crd, json!({}), deep), Err(PatchError::TooDeep));
}

#[test]
fn long_lists_merge_by_key() {
    let list = |from: usize, image: &str| -> Value {
        (from..from + 500).map(|n| json!({"name": format!("c{n}"), "image": image})).collect()
    };
    let merged = spec(json!({"containers": list(0, "old")}), json!({"containers": list(250, "new")}));
    let containers = merged.expect("the patch applies")["containers"].take();
    assert_eq!(containers.as_array().map(Vec::len), Some(750));
    assert_eq!(containers[0], json!({"name": "c0", "image": "old"}));
    assert_eq!(containers[250], json!({"name": "c250", "image": "new"}));
    assert_eq!(containers[749], json!({"name": "c749", "image": "new"}));
}

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn value(&mut self, depth: u64) -> Value {
        const NAMES: [&str; 16] = [
            "metadata",
            "spec",
            "containers",
            "name",
            "finalizers",
            "labels",
            "$patch",
            "$retainKeys",
            "volumes",
            "$setElementOrder/containers",
            "$setElementOrder/finalizers",
            "$deleteFromPrimitiveList/finalizers",
            "ports",
            "emptyDir",
            "image",
            "replace",
        ];
        let name = |numbers: &mut Self| NAMES[numbers.below(16) as usize];
        match self.below(if depth > 5 { 5 } else { 12 }) {
            0 => Value::Null,
            1 => json!(self.below(3)),
            2 => json!(true),
            3 | 4 => json!(name(self)),
            5..=7 => (0..self.below(4)).map(|_| self.value(depth + 1)).collect(),
            _ => (0..self.below(6))
                .map(|_| (name(self).to_owned(), self.value(depth + 1)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

#[test]
fn any_patch_gives_an_object_or_an_error() {
    let mut numbers = Numbers(7);
    let (mut merged, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let (original, patch) = (numbers.value(0), numbers.value(0));
        match merge(ty("v1", "Pod"), original, patch) {
            Ok(value) => {
                assert!(value.is_object());
                merged += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(merged > 1000 && refused > 1000, "{merged} merged, {refused} refused");
}

#[test]
fn an_object_merged_into_itself_stays_as_it_is() {
    let mut numbers = Numbers(11);
    for _ in 0..300 {
        let mut names: Vec<u64> = (0..6).filter(|_| numbers.below(2) == 0).collect();
        let half = names.len() / 2;
        names.rotate_left(half);
        let containers: Value = names
            .iter()
            .map(|n| json!({"name": format!("c{n}"), "image": "i", "ports": [{"containerPort": n}], "resources": {}}))
            .collect();
        let finalizers: Value = names.iter().map(|n| json!(format!("f{n}"))).collect();
        let object = json!({
            "metadata": {"finalizers": finalizers, "labels": {"a": "1"}},
            "spec": {"containers": containers, "tolerations": [{"key": "a"}]},
        });
        assert_eq!(pod(object.clone(), object.clone()), Ok(object.clone()));
        assert_eq!(pod(object.clone(), json!({})), Ok(object));
    }
}

#[test]
fn merging_long_lists_takes_steps_as_they_are_long() {
    let named = |count: usize, more: Value| -> Value {
        let one = |index: usize| {
            let mut one = more.clone();
            one["name"] = format!("n{}", count - index).into();
            one
        };
        (0..count).map(one).collect()
    };
    let cost = |count: usize| {
        let live = json!({"containers": named(count, json!({"image": "1"}))});
        let patches = [
            json!({"containers": named(count, json!({"image": "2"}))}),
            json!({"containers": named(count, json!({"$patch": "delete"}))}),
            json!({"containers": named(count, json!({"image": "2"})), "$setElementOrder/containers": named(count, json!({}))}),
        ];
        steps::counted(|| {
            for patch in patches {
                spec(live.clone(), patch).expect("merged");
            }
        })
    };
    let (few, many) = (cost(2_000), cost(8_000));
    assert!(few > 0 && many <= 5 * few && many <= 32 * 8_000 * 13, "{few} steps, {many} steps");
}

#[test]
fn a_patch_that_names_an_element_again_and_again_is_refused_before_it_costs_more_than_walks() {
    let ports: Value = (0..4_000).map(|port| json!({"containerPort": port})).collect();
    let live = json!({"containers": [{"name": "a", "ports": ports}]});
    let again = |times: usize| -> Value {
        (0..times).map(|_| json!({"name": "a", "ports": [{"containerPort": 1}]})).collect()
    };
    assert!(spec(live.clone(), json!({"containers": again(4)})).is_ok());
    let mut refused = None;
    let cost = steps::counted(|| refused = spec(live, json!({"containers": again(4_000)})).err());
    assert!(refused.is_some_and(|error| error.contains("so often")));
    // A port weighs four, and an element of the patch nine.
    assert!(cost <= 33 * 4_000 * (4 + 9), "{cost} steps");
    assert_eq!(PatchError::TooManyWalks.fault(), PatchFault::Unprocessable);
}
