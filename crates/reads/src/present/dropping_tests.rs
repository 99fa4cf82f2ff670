//! Whatever is shown without managed fields is what is shown with them, but for these.

use forebay_apimachinery::accept::{Drops, MetaVersion};
use forebay_apimachinery::options::{ListOptions, Query};
use serde_json::{Value, json};

use super::{As, Encoding, IncludeObject, Shown};
use crate::frames::{EventForm, JSON};
use crate::tests::{World, config_maps};
use crate::watch::{Now, Step};

const SHOWN_AS: [As; 5] = [
    As::Object,
    As::PartialMetadata,
    As::Table(IncludeObject::None),
    As::Table(IncludeObject::Metadata),
    As::Table(IncludeObject::Object),
];

async fn world() -> World {
    let world = config_maps(Some("default")).await;
    let entry = |manager: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-11-26T05:10:05Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "k:{\"a\":\"]}\"}": {}}}})
    };
    for number in 0..40 {
        let managers: Vec<Value> = (0..number % 3).map(|of| entry(&format!("m{of}"))).collect();
        let metadata = json!({"managedFields": managers, "labels": {"managedFields": "a"}});
        world.put(&format!("o-{number}"), metadata, json!({"managedFields": "[{\"b\":1}]"})).await;
    }
    world
}

fn drops(managed_fields: bool) -> Drops {
    Drops { managed_fields }
}

/// What is left of `value` without the managed fields of any object in it.
fn without(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
                metadata.remove("managedFields");
            }
            members.values_mut().for_each(|value| *value = without(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without(item.take())),
        _ => {}
    }
    value
}

async fn listed(world: &World, what: As, drops: Drops) -> Value {
    let shown = Shown { what, meta: MetaVersion::V1, drops, encoding: Encoding::Json };
    let planned = world.planner.list(&world.target, &ListOptions::default(), shown).expect("is in order");
    let mut body = planned.run(()).await.expect("lists").body;
    let mut out = Vec::new();
    while body.next_chunk(4 << 10, &mut out) {}
    serde_json::from_slice(&out).expect("JSON")
}

async fn watched(world: &World, what: As, drops: Drops) -> Vec<Value> {
    let options = ListOptions::from_query(&Query::parse("watch=1&resourceVersion=0")).expect("options");
    let form = EventForm { what, meta: MetaVersion::V1, drops, format: &JSON };
    let mut session = world.watch(&options, form).await.expect("begins").into_session();
    let mut out = Vec::new();
    while session.step(&Now::of(&world.clock), 1 << 20, &mut out) == Step::Frames {}
    out.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect()
}

#[tokio::test]
async fn nothing_is_missing_but_what_was_not_wanted() {
    let world = world().await;
    for what in SHOWN_AS {
        let (whole, less) =
            (listed(&world, what, drops(false)).await, listed(&world, what, drops(true)).await);
        assert_eq!(less, without(whole.clone()), "{what:?}");
        assert_eq!(less != whole, what != As::Table(IncludeObject::None), "{what:?}");
        let (whole, less) =
            (watched(&world, what, drops(false)).await, watched(&world, what, drops(true)).await);
        assert_eq!(less, whole.into_iter().map(without).collect::<Vec<_>>(), "{what:?}");
        assert_eq!(less.len(), 40, "{what:?}");
    }
}
