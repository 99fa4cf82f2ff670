//! Sequences of updates and applies by several clients to one object of each kind: every step's
//! managedFields, and the object that an apply makes, are those of kube-apiserver's field manager.

use std::borrow::Cow;
use std::collections::BTreeMap;

use forebay_apimachinery::{Lease, Status};
use forebay_crd::Definition;
use forebay_fieldmanager::{ConvertError, FieldManager, FieldType, Sent, Versions};
use forebay_fuzz::setting;
use forebay_merge::{Element, Filter, Matcher, Set, TypeRef};
use forebay_schema::builtin::{codec, table};
use serde_json::{Map, Value, json};

use crate::crds::random_schema;
use crate::random::Random;
use crate::{go, objects};

/// Sequences that are run for a kind, and for a random CRD.
const SEQUENCES: u64 = 2;
const CRDS: u64 = 100;
const STEPS: usize = 8;
const MANAGERS: [&str; 4] = ["kubectl", "helm", "controller", ""];
const DEPTH: usize = 6;

/// A built-in kind in one version.
struct BuiltIn {
    api_version: String,
    ty: FieldType<'static>,
}

impl Versions<'static> for BuiltIn {
    fn type_in(&self, api_version: &str) -> Result<FieldType<'static>, ConvertError> {
        if api_version == self.api_version { Ok(self.ty) } else { Err(ConvertError::MissingVersion) }
    }

    fn convert(&self, _object: &Value, _api_version: &str) -> Result<Value, ConvertError> {
        unreachable!("there is one version")
    }
}

/// A custom resource.
struct Custom<'s>(&'s Definition);

impl<'s> Versions<'s> for Custom<'s> {
    fn type_in(&self, api_version: &str) -> Result<FieldType<'s>, ConvertError> {
        let version = self
            .0
            .versions
            .iter()
            .find(|version| format!("{}/{}", self.0.group, version.name) == api_version);
        let schema = version.and_then(|version| version.schema.as_ref());
        let invalid = || format!("request to convert CR to an invalid group/version: {api_version}");
        schema.map(FieldType::of_schema).ok_or_else(|| ConvertError::Failed(invalid()))
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let mut converted = object.clone();
        converted["apiVersion"] = Value::from(api_version);
        Ok(converted)
    }
}

/// What of a canonical object is asked of both.
fn canonical(ty: FieldType<'_>, mut object: Value) -> Value {
    if let FieldType::BuiltIn(id, _) = ty {
        codec::normalize(id, &mut object).expect("an object of its type");
    }
    object
}

/// A random object with its metadata.
fn random_object(
    random: &mut Random,
    ty: FieldType<'_>,
    api_version: &str,
    kind: &str,
    names: &Names<'_>,
) -> Value {
    let mut object = objects::value(random, ty, names, DEPTH);
    let mut metadata = Map::new();
    for name in ["labels", "annotations"] {
        if random.below(3) == 0 {
            metadata.insert(name.to_owned(), json!({*random.of(&["x", "y"]): random.below(3).to_string()}));
        }
    }
    if random.below(3) == 0 {
        metadata.insert("finalizers".to_owned(), json!([format!("example.com/{}", random.below(3))]));
    }
    object["metadata"] = Value::Object(metadata);
    object["metadata"]["name"] = json!("n");
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object
}

type Names<'n> = dyn Fn(FieldType<'_>) -> Vec<String> + 'n;

pub fn built_in_names(ty: FieldType<'_>) -> Vec<String> {
    let FieldType::BuiltIn(id, _) = ty else { return Vec::new() };
    table().members(id).map(|field| field.name.to_owned()).filter(|name| name != "managedFields").collect()
}

/// What is done to an object of one of these versions.
fn steps(random: &mut Random, versions: &[(String, FieldType<'_>)], kind: &str, names: &Names<'_>) -> Value {
    let mut sent = Vec::new();
    let mut next = |random: &mut Random| step(random, versions, kind, names, &mut sent);
    match random.below(4) {
        0 => by_many(random, &mut next),
        1 => by_kubectl(random, &mut next),
        _ => (0..STEPS).map(|_| next(random)).collect(),
    }
}

/// By more clients than are remembered apart, each of which has a label of its own.
fn by_many(random: &mut Random, next: &mut dyn FnMut(&mut Random) -> Value) -> Value {
    let mut labels = Map::new();
    let one = |index: usize| {
        let mut step = next(random);
        let manager = format!("m{}", random.below(2 * STEPS));
        step["Apply"] = json!(random.below(8) == 0);
        if step["Apply"] == false {
            labels.insert(manager.clone(), json!(index.to_string()));
            step["Object"]["metadata"]["labels"] = Value::Object(labels.clone());
        }
        step["Manager"] = json!(manager);
        step["Managed"] = json!("keep");
        step["Reset"] = json!({});
        step["Only"] = json!({});
        step
    };
    (0..3 * STEPS).map(one).collect()
}

/// By kubectl, first on the client's side, with a note of what it applied, then on the server's, and by
/// somebody else between.
fn by_kubectl(random: &mut Random, next: &mut dyn FnMut(&mut Random) -> Value) -> Value {
    const NOTE: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut noted = next(random)["Object"].take();
    let one = |index: usize| {
        let mut step = next(random);
        step["Object"]["apiVersion"] = noted["apiVersion"].clone();
        step["Version"] = json!(noted["apiVersion"].as_str().and_then(|version| version.rsplit('/').next()));
        let is_applied = index > 0 && random.below(2) == 0;
        let is_kubectl = is_applied || index == 0 || random.below(3) == 0;
        if random.below(3) > 0 {
            // Another label is all that is different.
            step["Object"] = noted.clone();
            step["Object"]["metadata"]["labels"] = json!({"x": random.below(3).to_string()});
        }
        if is_kubectl && !is_applied {
            noted = step["Object"].clone();
        }
        if !is_applied || random.below(3) == 0 {
            step["Object"]["metadata"]["annotations"][NOTE] = json!(noted.to_string());
        }
        step["Apply"] = json!(is_applied);
        step["Force"] = json!(false);
        step["Subresource"] = json!("");
        step["Manager"] = json!(match (is_kubectl, is_applied) {
            (true, true) => "kubectl",
            (true, false) => "kubectl-client-side-apply",
            _ => "controller",
        });
        step["Managed"] = json!("keep");
        step["Reset"] = json!({});
        step["Only"] = json!({});
        step
    };
    (0..STEPS).map(one).collect()
}

/// One request, with an object that is partly one that was sent before.
fn step(
    random: &mut Random,
    versions: &[(String, FieldType<'_>)],
    kind: &str,
    names: &Names<'_>,
    sent: &mut Vec<Value>,
) -> Value {
    let (version, ty) = random.of(versions);
    let mut object = random_object(random, *ty, version, kind, names);
    let before: Vec<&Value> = sent.iter().filter(|before| before["apiVersion"] == **version).collect();
    if !before.is_empty() && random.below(2) == 0 {
        let fields: Vec<&String> = object.as_object().expect("an object").keys().collect();
        let name = (*random.of(&fields)).clone();
        let mut again = (*random.of(&before)).clone();
        again[&name] = object[&name].take();
        object = again;
    }
    sent.push(object.clone());
    let mut object = canonical(*ty, object);
    let manager = *random.of(&MANAGERS);
    if manager == "kubectl" && random.below(3) == 0 {
        let noted = object.to_string();
        object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(noted);
    }
    let subresource = *random.of(&["", "", "", "status"]);
    let reset = match (random.below(3), subresource) {
        (0, "") => json!({(version): [["status"]]}),
        (0, _) => json!({(version): [["metadata"], ["spec"]]}),
        _ => json!({}),
    };
    let only = match random.below(6) {
        0 => {
            json!({(version): [["metadata", "labels"], ["spec", "containers", "*", "resources"], ["spec", "*", "a"]]})
        }
        _ => json!({}),
    };
    let managed = random.of(&["keep", "keep", "keep", "keep", "none", "reset", "blank"]);
    json!({
        "SleepMS": random.of(&[0, 300, 1100]), "Apply": random.below(2) == 0, "Force": random.below(3) == 0,
        "Version": version.rsplit('/').next(), "Subresource": subresource, "Manager": manager, "Object": object,
        "Managed": managed, "Reset": reset, "Only": only,
    })
}

/// Whether a step ends as upstream's did.
///
/// - `canonical`: what becomes of an object before it is asked about, and of answers before they are
///   compared.
pub fn check<'s>(
    versions: &dyn Versions<'s>,
    kind: &str,
    step: &Value,
    done: &Value,
    canonical: &dyn Fn(FieldType<'_>, Value) -> Value,
) -> Result<(), String> {
    let object = &step["Object"];
    // What is there was brought to the version that is asked for.
    let api_version =
        done["live"]["apiVersion"].as_str().or(object["apiVersion"].as_str()).expect("a version");
    let ty = versions.type_in(api_version).expect("a version");
    let lease = Lease::of_server();
    let text = |of: &'_ Value| of.as_str().unwrap_or_default().to_owned();
    let (subresource, now, manager) =
        (text(&step["Subresource"]), text(&done["now"]), text(&step["Manager"]));
    let mut filters = resets(&step["Reset"]);
    filters.extend(inclusions(&step["Only"]));
    let field_manager = FieldManager::new(versions, api_version, kind, &subresource, filters, &now, &lease);
    let field_manager = field_manager.expect("a version");
    let live = (!done["live"].is_null()).then(|| canonical(ty, done["live"].clone()));
    let theirs = canonical(ty, done["result"].clone());
    if step["Apply"] == true {
        let applied = field_manager.apply(
            live.clone().map(Cow::Owned),
            object,
            &manager,
            step["Force"] == true,
            usize::MAX,
        );
        return match (applied, done["error"].is_null()) {
            (Ok(mut ours), true) => {
                let (mut ours, mut theirs) = (canonical(ty, ours.take()), theirs);
                versions.complete(&mut ours, ty);
                versions.complete(&mut theirs, ty);
                same("object", ours, theirs)
            }
            (Err(ours), false) => same("error", told(&ours), told_by_upstream(&done["error"])),
            (Err(ours), true) => Err(format!("{}, but upstream: applied", ours.message)),
            (Ok(_), false) => Err(format!("applied, but upstream: {}", done["error"])),
        };
    }
    let sent = if done["sent"] == "reset" { Sent::Reset } else { Sent::AsTheyAre };
    let new = canonical(ty, done["object"].clone());
    let entries = field_manager.update(live.as_ref(), &new, sent, &manager).expect("room");
    let theirs = theirs["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    same("managedFields", Value::Array(entries), Value::Array(theirs))
}

fn same(what: &str, ours: Value, theirs: Value) -> Result<(), String> {
    if ours == theirs { Ok(()) } else { Err(format!("{what}\n  ours   {ours}\n  theirs {theirs}")) }
}

fn told(status: &Status) -> Value {
    let causes = status.causes.iter().map(|cause| format!("{} {}", cause.message, cause.field)).collect();
    json!([lines(&status.message), sorted(causes)])
}

/// Upstream's order of causes, and of faults, is that of a map.
fn told_by_upstream(status: &Value) -> Value {
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let causes = causes.map(|cause| {
        format!(
            "{} {}",
            cause["message"].as_str().unwrap_or_default(),
            cause["field"].as_str().unwrap_or_default()
        )
    });
    json!([lines(status["message"].as_str().unwrap_or_default()), sorted(causes.collect())])
}

/// What does not depend on the order of a map: of an object with fields that are not declared, upstream tells
/// any, and of what else is wrong with it what comes before.
fn lines(text: &str) -> Vec<String> {
    if text.contains(": field not declared in schema") {
        let doing = text.split(" .").next().unwrap_or_default();
        return vec![doing.replace("errors:", "").trim().to_owned()];
    }
    sorted(text.lines().map(str::to_owned).collect())
}

fn sorted(mut causes: Vec<String>) -> Vec<String> {
    causes.sort();
    causes
}

fn resets(reset: &Value) -> BTreeMap<String, Filter> {
    let path = |path: &'_ Value| -> Vec<Element<'static>> {
        let names = path.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| Element::field(name).into_owned()).collect()
    };
    let of = |paths: &Value| Filter::Exclude(Set::of_paths(paths.as_array().into_iter().flatten().map(path)));
    reset.as_object().into_iter().flatten().map(|(version, paths)| (version.clone(), of(paths))).collect()
}

fn inclusions(only: &Value) -> BTreeMap<String, Filter> {
    let prefix = |path: &Value| {
        let names = path.as_array().into_iter().flatten().filter_map(Value::as_str);
        let parts: Vec<_> =
            names.map(|name| (name != "*").then(|| Element::field(name).into_owned())).collect();
        Matcher::prefix(parts.into_iter())
    };
    let of = |paths: &Value| {
        let matchers = paths.as_array().into_iter().flatten().map(prefix);
        Filter::Include(matchers.reduce(Matcher::merge).expect("a path"))
    };
    only.as_object().into_iter().flatten().map(|(version, paths)| (version.clone(), of(paths))).collect()
}

/// What is wrong with the answers to a sequence; how many steps were compared.
fn replay<'s>(versions: &dyn Versions<'s>, asked: &Value, answer: &Value, wrong: &mut Vec<String>) -> usize {
    let steps = asked["Steps"].as_array().expect("steps");
    let answers = answer.as_array().expect("a list");
    assert_eq!(steps.len(), answers.len());
    let kind = asked["Kind"].as_str().expect("a kind");
    for (index, (step, done)) in steps.iter().zip(answers).enumerate() {
        if let Err(why) = check(versions, kind, step, done, &canonical) {
            wrong.push(format!(
                "{kind} step {index} of {}: {why}\n  step {step}\n  live {}",
                asked["Group"], done["live"]
            ));
        }
    }
    steps.len()
}

fn ask(questions: &[Value]) -> Option<Vec<Value>> {
    let definitions = go::definitions()?;
    let questions: String = questions.iter().map(|question| format!("{question}\n")).collect();
    go::ask(&["requests", definitions.to_str().expect("a path")], &questions)
}

/// What must be met in the answers.
const ENDS: [&str; 7] = [
    "conflict",
    "applied",
    "applied without a change",
    "forgotten",
    "capped",
    "before the first apply",
    "through a subresource",
];

/// How often upstream's steps ended in each way.
fn ends_of(answers: &[Value]) -> BTreeMap<&'static str, usize> {
    let mut ends = BTreeMap::new();
    for done in answers.iter().flat_map(|answer| answer.as_array().into_iter().flatten()) {
        let text = done["result"]["metadata"]["managedFields"].to_string();
        let names = |name: &str| text.contains(&format!("\"manager\":\"{name}\""));
        let is_apply = done["apply"] == true;
        let met = [
            ("conflict", !done["error"]["details"]["causes"].is_null()),
            ("applied", is_apply && done["error"].is_null()),
            (
                "applied without a change",
                is_apply && done["error"].is_null() && done["live"] == done["result"],
            ),
            (
                "forgotten",
                !done["result"].is_null()
                    && text == "null"
                    && !done["live"]["metadata"]["managedFields"].is_null(),
            ),
            ("capped", names("ancient-changes")),
            ("before the first apply", names("before-first-apply")),
            ("through a subresource", text.contains("\"subresource\":\"status\"")),
        ];
        for (end, _) in met.into_iter().filter(|(_, met)| *met) {
            *ends.entry(end).or_default() += 1;
        }
    }
    ends
}

fn report(compared: usize, wrong: &[String], answers: &[Value]) {
    let ends = ends_of(answers);
    println!("{compared} steps compared: {ends:?}");
    let is_met = |end: &&str| ends.get(end).is_none_or(|times| *times < 5);
    let missed: Vec<&&str> = ENDS.iter().filter(|end| is_met(end)).collect();
    assert!(missed.is_empty(), "what is hardly ever asked: {missed:?}");
    let shown: Vec<&str> =
        wrong.iter().take(5).map(|why| &why[..why.floor_char_boundary(why.len().min(6_000))]).collect();
    assert!(wrong.is_empty(), "{} of {compared} steps differ:\n{}", wrong.len(), shown.join("\n"));
}

#[test]
fn what_clients_do_to_built_in_kinds_is_kept_alike() {
    let mut random = Random::new(setting("FIELDMANAGER_SEED", 1));
    let mut kinds = Vec::new();
    for resource in table().resources().iter().filter(|resource| resource.storage_prefix.is_some()) {
        let Some(ty) = FieldType::of_kind(resource.group, resource.version, resource.kind) else { continue };
        let group = if resource.group.is_empty() { String::new() } else { format!("{}/", resource.group) };
        let api_version = format!("{group}{}", resource.version);
        for _ in 0..setting("FIELDMANAGER_SEQUENCES", SEQUENCES) {
            kinds.push((resource.group, resource.kind, BuiltIn { api_version: api_version.clone(), ty }));
        }
    }
    let asked: Vec<Value> = kinds
        .iter()
        .map(|(group, kind, of)| {
            let versions = [(of.api_version.clone(), of.ty)];
            json!({"Group": group, "Kind": kind, "Steps": steps(&mut random, &versions, kind, &built_in_names)})
        })
        .collect();
    let Some(answers) = ask(&asked) else { return };
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (((_, _, of), asked), answer) in kinds.iter().zip(&asked).zip(&answers) {
        compared += replay(of, asked, answer, &mut wrong);
    }
    report(compared, &wrong, &answers);
}

#[test]
fn what_clients_do_to_custom_resources_is_kept_alike() {
    let mut random = Random::new(setting("FIELDMANAGER_SEED", 1));
    let root = |random: &mut Random| json!({"type": "object", "properties": {"spec": random_schema(random, 4), "status": random_schema(random, 2)}});
    let crds: Vec<Value> = (0..setting("FIELDMANAGER_CRDS", CRDS))
        .map(|_| {
            let mut crd = crate::crds::crd(root(&mut random));
            let second = if random.below(2) == 0 { root(&mut random) } else { crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone() };
            let second = json!({"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": second}});
            crd["spec"]["versions"].as_array_mut().expect("versions").push(second);
            crd
        })
        .collect();
    let definitions: Vec<Definition> = crds.iter().map(Definition::compile).collect();
    let asked: Vec<Value> = crds
        .iter()
        .zip(&definitions)
        .map(|(crd, definition)| {
            let of = |version: &str| (format!("example.com/{version}"), Custom(definition).type_in(&format!("example.com/{version}")).expect("a version"));
            let versions = [of("v1"), of("v1"), of("v2")];
            let names = |ty: FieldType<'_>| match ty {
                FieldType::Custom(_) => ["spec", "status", "p0", "p1", "p2", "key"].map(str::to_owned).into_iter().filter(|name| ty.field(name).is_some()).collect(),
                other => built_in_names(other),
            };
            json!({"CRD": crd, "Group": "example.com", "Kind": "Thing", "Steps": steps(&mut random, &versions, "Thing", &names)})
        })
        .collect();
    let Some(answers) = ask(&asked) else { return };
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for ((definition, asked), answer) in definitions.iter().zip(&asked).zip(&answers) {
        compared += replay(&Custom(definition), asked, answer, &mut wrong);
    }
    report(compared, &wrong, &answers);
}
