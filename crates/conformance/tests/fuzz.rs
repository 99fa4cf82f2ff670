//! Every kind's defaults, validation, admission and storage withstand objects and patches of any shape. No
//! server, no rival.

use forebay_api::{Body, PatchKind};
use forebay_apimachinery::options::{CreateOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::resource::split_api_version;
use forebay_apimachinery::{Lease, Reason, Status};
use forebay_catalog::Target;
use forebay_conformance::cases::{self, Fixture, NAMESPACE};
use forebay_embedded::{Engine, Options};
use forebay_fuzz::{Corpus, gist, run};
use forebay_registry::{Config, Registry};
use forebay_rt::{Clock, Random, Tasks};
use serde_json::Value;
use tokio::runtime::Runtime;

const WORDS: &[&str] = &[
    "null",
    "[]",
    "{}",
    "\"\"",
    "0",
    "-1",
    "1.5",
    "true",
    "\"a\":",
    "\"name\":\"\"",
    "[{}]",
    "\"10Ei\"",
    "\"-0\"",
    "[null]",
    "\"metadata\":",
    "\"spec\":",
    "\"status\":",
    "\"finalizers\":[\"a/b\"]",
    "\"generateName\":\"x\"",
    "\"$patch\":\"delete\"",
    "\"é\"",
    "\"*\"",
    "2147483648",
];

struct World {
    runtime: Runtime,
    registry: Registry,
    _tasks: Tasks,
}

impl World {
    fn new() -> World {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (registry, tasks) = runtime.block_on(async {
            let (clock, _hand) = Clock::manual(1_700_000_000_000);
            let options = Options { clock: clock.clone(), ..Options::default() };
            let engine = Engine::open_in_memory(options).expect("opens");
            let tasks = Tasks::new();
            let registry = Registry::new(Config::default(), engine, clock, Random::seeded(7), tasks.clone());
            registry.start().await.expect("starts");
            (registry, tasks)
        });
        let world = World { runtime, registry, _tasks: tasks };
        let namespace = serde_json::json!({"metadata": {"name": NAMESPACE}});
        let target = world.target("v1", "namespaces", None);
        world.create(&target, &namespace.to_string().into_bytes(), false).expect("a namespace");
        world
    }

    fn target(&self, api_version: &str, plural: &str, name: Option<&str>) -> Target {
        let (group, version) = split_api_version(api_version);
        let served = self.registry.catalog().resource(group, version, plural).expect("it is served").clone();
        let namespace = served.namespaced.then(|| NAMESPACE.to_owned());
        Target {
            served,
            namespace,
            name: name.map(str::to_owned),
            subresource: None,
            caller: None,
            lease: Lease::of_server(),
            context: forebay_catalog::RequestContext::default(),
        }
    }

    fn create(&self, target: &Target, body: &[u8], dry_run: bool) -> Result<(), Status> {
        let options = CreateOptions { dry_run, ..CreateOptions::default() };
        let body = Body::Json(body.to_vec().into());
        self.runtime.block_on(self.registry.create(target, &body, &options)).map(drop)
    }

    fn update(&self, target: &Target, body: &[u8]) -> Result<(), Status> {
        let options = UpdateOptions { dry_run: true, ..UpdateOptions::default() };
        let body = Body::Json(body.to_vec().into());
        self.runtime.block_on(self.registry.update(target, &body, &options)).map(drop)
    }

    fn patch(&self, target: &Target, kind: PatchKind, patch: &[u8]) -> Result<(), Status> {
        let options = PatchOptions { dry_run: true, ..PatchOptions::default() };
        self.runtime.block_on(self.registry.patch(target, kind, patch, &options)).map(drop)
    }
}

/// What tells answers apart. No input is a fault of the server's.
fn said(answer: Result<(), Status>) -> Result<(), Vec<String>> {
    answer.map_err(|status| {
        // Some malformed patches are an Unknown error to kube-apiserver, and so to us.
        assert!(status.reason != Reason::InternalError, "{}", status.message);
        let mut causes: Vec<String> =
            status.causes.iter().take(4).map(|cause| gist(&cause.message)).collect();
        causes.push(gist(&status.message).chars().take(60).collect());
        causes
    })
}

fn kinds() -> Vec<Fixture> {
    cases::all().expect("the cases can be read")
}

#[test]
fn fuzz_objects_of_every_kind() {
    let world = World::new();
    for kind in kinds() {
        let collection = world.target(&kind.api_version, &kind.plural, None);
        let object = world.target(&kind.api_version, &kind.plural, Some(&kind.name));
        let sample = kind.sample.to_string();
        // Some need others that are not here; then every answer is a refusal of theirs.
        let stored = world.create(&collection, sample.as_bytes(), false).is_ok();
        let corpus = Corpus { inputs: &[sample.as_bytes()], words: WORDS, bytes_max: 16 << 10, one_in: 50 };
        run(&kind.title(), &corpus, |input| {
            let updated = stored.then(|| said(world.update(&object, input)));
            (said(world.create(&collection, input, true)), updated)
        });
    }
}

#[test]
fn fuzz_patches() {
    let world = World::new();
    let patches: [(PatchKind, &[&[u8]]); 3] = [
        (
            PatchKind::Json,
            &[
                br#"[{"op":"test","path":"/metadata/name","value":"conf"},{"op":"add","path":"/metadata/labels","value":{"a/b":"c"}},{"op":"remove","path":"/metadata/labels/a~1b"}]"#,
                br#"[{"op":"copy","from":"/metadata","path":"/spec"},{"op":"move","from":"/spec","path":"/status"},{"op":"replace","path":"","value":{}}]"#,
            ],
        ),
        (PatchKind::Merge, &[br#"{"metadata":{"labels":{"a":"b"},"annotations":null},"spec":{"replicas":2}}"#]),
        (
            PatchKind::StrategicMerge,
            &[br#"{"spec":{"template":{"spec":{"containers":[{"name":"c","$patch":"delete"}],"$setElementOrder/containers":[{"name":"d"}]}}},"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}"#],
        ),
    ];
    let wanted = ["pods", "deployments", "services", "configmaps", "customresourcedefinitions"];
    for kind in kinds().iter().filter(|kind| wanted.contains(&&*kind.plural)) {
        let collection = world.target(&kind.api_version, &kind.plural, None);
        world.create(&collection, kind.sample.to_string().as_bytes(), false).expect("the sample is fine");
        let object = world.target(&kind.api_version, &kind.plural, Some(&kind.name));
        for (how, inputs) in &patches {
            let corpus = Corpus { inputs, words: WORDS, bytes_max: 4 << 10, one_in: 20 };
            run(&kind.title(), &corpus, |patch| said(world.patch(&object, *how, patch)));
        }
    }
}

#[test]
fn the_samples_are_fine_for_the_most_part() {
    let world = World::new();
    let fine = |kind: &&Fixture| {
        let target = world.target(&kind.api_version, &kind.plural, None);
        let sample: &Value = &kind.sample;
        world.create(&target, sample.to_string().as_bytes(), true).is_ok()
    };
    let kinds = kinds();
    let count = kinds.iter().filter(fine).count();
    assert!(count * 10 >= kinds.len() * 9, "{count} of {}", kinds.len());
}
