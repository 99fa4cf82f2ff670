//! What stays of an object, by rows and held against the same on a tree.

use forebay_apimachinery::{FieldPath, Key, PathStep, Revision};
use forebay_object::{Form, Interner, Layout, Object, Scope};
use forebay_rt::Random;
use serde_json::{Map, Value};

use super::*;
use crate::limits::PROJECTION_PATHS_MAX;

fn paths(texts: &[&str]) -> Vec<FieldPath> {
    texts.iter().map(|text| text.parse().expect(text)).collect()
}

fn projection(drop: &[&str], keep: Option<&[&str]>) -> Projection {
    Projection::new(&paths(drop), keep.map(paths).as_deref()).expect("a projection")
}

fn apply(projection: &Projection, value: &str) -> String {
    String::from_utf8(projection.apply(value.as_bytes()).expect(value)).expect("text")
}

const POD: &str = concat!(
    r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","labels":{"app":"x"},"#,
    r#""annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"}","a":"b"},"managedFields":[{"f":{}}]},"#,
    r#""spec":{"nodeName":"n","containers":[{"name":"c","image":"i","env":[{"name":"e"}]},{"image":"j"}]},"status":{"phase":"x"}}"#,
);

/// What is dropped and kept, and what stays.
type Row<'a> = (&'a [&'a str], Option<&'a [&'a str]>, String);

const HEAD: &str =
    r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u""#;

#[test]
fn a_projection_leaves_what_its_paths_say() {
    let managed = r#","managedFields":[{"f":{}}]"#;
    let applied = r#""kubectl.kubernetes.io/last-applied-configuration":"{\"}","#;
    let annotations = format!(r#","annotations":{{{applied}"a":"b"}}"#);
    let meta = &POD[..POD.find(r#","spec""#).expect("it is there")];
    let env = r#","env":[{"name":"e"}]"#;
    let rows: &[Row] = &[
        (&[], None, POD.into()),
        (&["x", "spec.x.y", "status.phase.z", "spec[*]", "metadata.name.x"], None, POD.into()),
        // Some of it goes.
        (&[MANAGED_FIELDS], None, POD.replace(managed, "")),
        (&[LAST_APPLIED], None, POD.replace(applied, "")),
        (&[MANAGED_FIELDS, LAST_APPLIED], None, POD.replace(managed, "").replace(applied, "")),
        (&[LAST_APPLIED, "metadata.annotations.a"], None, POD.replace(&annotations, r#","annotations":{}"#)),
        (&["metadata.annotations", LAST_APPLIED], None, POD.replace(&annotations, "")),
        (&["spec.containers[*].env"], None, POD.replace(env, "")),
        (&["spec.containers[*].env[*].name"], None, POD.replace(env, r#","env":[{}]"#)),
        (&["spec.containers[*].env[*]"], None, POD.replace(env, r#","env":[]"#)),
        // What an object is known by stays.
        (&["metadata", "spec", "status", "kind"], None, format!("{HEAD}}}}}")),
        (&["metadata.name", "metadata.uid", "apiVersion"], None, POD.into()),
        // No more than some of it stays.
        (&[], Some(&[]), format!("{HEAD}}}}}")),
        (&[], Some(&["metadata"]), format!("{meta}}}")),
        (&[MANAGED_FIELDS], Some(&["metadata"]), format!("{}}}", meta.replace(managed, ""))),
        (&[], Some(&["spec.nodeName"]), format!(r#"{HEAD}}},"spec":{{"nodeName":"n"}}}}"#)),
        (
            &[],
            Some(&["spec.containers[*].image", "metadata.labels"]),
            format!(
                r#"{HEAD},"labels":{{"app":"x"}}}},"spec":{{"containers":[{{"image":"i"}},{{"image":"j"}}]}}}}"#
            ),
        ),
        (
            &["spec.containers[*].env"],
            Some(&["spec.containers"]),
            format!(r#"{HEAD}}},"spec":{{"containers":[{{"name":"c","image":"i"}},{{"image":"j"}}]}}}}"#),
        ),
        // It goes also where it is kept.
        (&["spec"], Some(&["spec.nodeName", "status"]), format!(r#"{HEAD}}},"status":{{"phase":"x"}}}}"#)),
        (&["spec.nodeName"], Some(&["spec.nodeName"]), format!(r#"{HEAD}}},"spec":{{}}}}"#)),
        // A path that ends before another one.
        (&[], Some(&["status", "status.phase"]), format!(r#"{HEAD}}},"status":{{"phase":"x"}}}}"#)),
        // What the paths cannot go into stays, and with it what is not dropped of it.
        (&[], Some(&["status.phase.z"]), format!(r#"{HEAD}}},"status":{{"phase":"x"}}}}"#)),
        (
            &["spec.containers[*].env"],
            Some(&["spec.containers.image"]),
            format!(r#"{HEAD}}},"spec":{{"containers":[{{"name":"c","image":"i"}},{{"image":"j"}}]}}}}"#),
        ),
    ];
    for (drop, keep, want) in rows {
        assert_eq!(&apply(&projection(drop, *keep), POD), want, "{drop:?} {keep:?}");
    }
    assert_eq!(apply(&Projection::metadata_only(), POD), format!("{meta}}}"));
    assert_eq!(apply(&Projection::default(), POD), POD);
}

#[test]
fn names_are_known_with_escapes_and_twice() {
    let rows = [
        (r#"{"\u0061":1,"b":2,"a":3}"#, r#"{"b":2}"#),
        (r#"{"b":1,"\u0061":2}"#, r#"{"b":1}"#),
        (r#"{"a":1}"#, "{}"),
        ("{}", "{}"),
        (r#"{"A":1,"a.b":2}"#, r#"{"A":1,"a.b":2}"#),
    ];
    for (value, want) in rows {
        assert_eq!(apply(&projection(&["a"], None), value), want, "{value}");
    }
    // An earlier member does not come back when a later one is of another shape.
    let keep = projection(&[], Some(&["a.b"]));
    assert_eq!(apply(&keep, r#"{"a":{"b":1,"c":2},"a":5}"#), r#"{"a":{"b":1},"a":5}"#);
    assert_eq!(apply(&keep, r#"{"a":5,"a":{"b":1,"c":2}}"#), r#"{"a":5,"a":{"b":1}}"#);
    assert_eq!(apply(&keep, r#"{"a":null}"#), r#"{"a":null}"#);
}

#[test]
fn elements_stay_in_their_places() {
    let keep = projection(&[], Some(&["a[*].b", "c[*][*].d"]));
    let value = r#"{"a":[{"b":1,"x":2},5,{"x":3},[{"b":4}],null],"c":[[{"d":1,"e":2}],[],{"d":3}]}"#;
    let want = r#"{"a":[{"b":1},5,{},[{"b":4}],null],"c":[[{"d":1}],[],{"d":3}]}"#;
    assert_eq!(apply(&keep, value), want);
}

#[test]
fn paths_that_are_no_projection_are_refused() {
    for (drop, keep) in [(vec!["a[0].b"], None), (vec![], Some(vec!["a", "b[3]"]))] {
        let made = Projection::new(&paths(&drop), keep.map(|keep| paths(&keep)).as_deref());
        assert!(matches!(made, Err(ProjectionError::Element { .. })), "{drop:?}");
    }
    let many = vec!["a".parse().expect("a path"); PROJECTION_PATHS_MAX];
    assert!(Projection::new(&many, None).is_ok());
    let paths = PROJECTION_PATHS_MAX + 1;
    assert_eq!(Projection::new(&many, Some(&many[..1])), Err(ProjectionError::TooMany { paths }));
}

#[test]
fn what_is_no_value_is_garbled() {
    let drop = projection(&["a", "b.c"], Some(&["b"]));
    let rows = [
        "",
        "[]",
        "{",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":1"#,
        r#"{"a":1}}"#,
        r#"{"a":1} "#,
        r#"{"a": 1}"#,
        r#"{"b":[1}"#,
        r#"{"b":{"c":1]}"#,
        r#"{"b":{"c"1}}"#,
        r#"{"\x":1}"#,
        "null",
    ];
    for value in rows {
        assert!(matches!(drop.apply(value.as_bytes()), Err(WireError::Garbled { .. })), "{value}");
    }
}

#[test]
fn a_hostile_depth_or_width_costs_no_more_than_its_bytes() {
    let depth = 1_000_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let value = format!(r#"{{"a":{deep},"b":{deep},"c":1}}"#);
    let drop = projection(&["a", "b[*][*][*].c"], None);
    assert_eq!(apply(&drop, &value), format!(r#"{{"b":{deep},"c":1}}"#));
    let members = format!(r#"{{"a":{{{}"z":1}}}}"#, r#""b":{"c":1,"d":[]},"#.repeat(100_000));
    let want = format!(r#"{{"a":{{{}"z":1}}}}"#, r#""b":{"d":[]},"#.repeat(100_000));
    assert_eq!(apply(&projection(&["a.b.c"], None), &members), want);
}

#[test]
fn what_stays_is_what_the_cache_decodes() {
    let of = TypeMeta { kind: "Pod".into(), api_version: "v1".into() };
    let versioned = POD.replace(r#""uid":"u""#, r#""uid":"u","resourceVersion":"7""#);
    // An item of a list, and one with white space.
    let item = versioned.replace(r#""kind":"Pod","apiVersion":"v1","#, "");
    let spaced = versioned.replace(r#","spec""#, " ,\n\"spec\"");
    let projections = [
        Projection::default(),
        Projection::metadata_only(),
        projection(&[MANAGED_FIELDS, LAST_APPLIED], None),
        projection(&["metadata", "spec"], None),
        projection(&[], Some(&["metadata.labels", "spec.nodeName"])),
        projection(&[], Some(&[])),
    ];
    for text in [&versioned, &item, &spaced] {
        for (form, projection) in
            [Form::Typed, Form::Whole].iter().flat_map(|form| projections.iter().map(move |it| (*form, it)))
        {
            let read = || ObjectText::read(text.as_bytes()).expect("an object");
            let value = read().into_projected(form, &of, projection).expect("a value");
            assert_eq!(Ok(&value), projection.apply(&read().into_value(form, &of)).as_ref());
            let fields = vec![vec!["spec".into(), "nodeName".into()]];
            let layout =
                Layout { prefix_len: "/registry/pods/".len(), scope: Scope::Namespaced, form, fields };
            let key = Key::new("/registry/pods/default/web");
            let object =
                Object::decode(&layout, key, Revision::from_log(7), &value, &mut Interner::default());
            let object = object.expect("it decodes");
            let keeps = |what: &str| String::from_utf8_lossy(&value).contains(what);
            assert_eq!(object.field(0).is_some(), keeps("nodeName"), "{projection:?}");
            assert_eq!(object.label("app").is_some(), keeps("labels"), "{projection:?}");
            let metadata: Value = serde_json::from_slice(&object.metadata()).expect("JSON");
            assert_eq!((&metadata["name"], &metadata["resourceVersion"]), (&"web".into(), &"7".into()));
        }
    }
}

const NAMES: [&str; 9] =
    ["kind", "apiVersion", "metadata", "name", "uid", "resourceVersion", "a", "b", "x.y/z"];

fn random_name(random: &Random) -> &'static str {
    NAMES[random.below(NAMES.len() as u64) as usize]
}

fn random_path(random: &Random) -> Vec<PathStep> {
    let steps = 1 + random.below(4);
    let step = |index| match random.below(4) {
        0 if index > 0 => PathStep::Elements,
        _ => PathStep::Member(random_name(random).into()),
    };
    (0..steps).map(step).collect()
}

fn random_value(random: &Random, depth: usize, out: &mut String) {
    let (open, close) = match random.below(if depth < 5 { 8 } else { 4 }) {
        0 => return out.push_str("-1.5e3"),
        1 => return out.push_str("null"),
        2 => return out.push_str(r#""]}\",{""#),
        3 => return out.push_str("\"\""),
        4 | 5 if depth > 0 => ('[', ']'),
        _ => ('{', '}'),
    };
    out.push(open);
    for index in 0..random.below(6) {
        if index > 0 {
            out.push(',');
        }
        if open == '{' {
            let name = random_name(random);
            let escaped = format!("\\u{:04x}{}", u32::from(name.as_bytes()[0]), &name[1..]);
            let name = if random.below(5) == 0 { &escaped } else { name };
            *out += &format!("\"{name}\":");
        }
        random_value(random, depth + 1, out);
    }
    out.push(close);
}

/// What a projection is, said of a tree.
struct OnTree {
    drop: Vec<Vec<PathStep>>,
    keep: Option<Vec<Vec<PathStep>>>,
    identity: Vec<Vec<PathStep>>,
}

impl OnTree {
    fn goes_on(paths: &[Vec<PathStep>], at: &[PathStep], into: Option<&Value>) -> bool {
        paths.iter().filter(|path| path.starts_with(at)).filter_map(|path| path.get(at.len())).any(|step| {
            match into {
                None => true,
                Some(Value::Object(_)) => matches!(step, PathStep::Member(_)),
                Some(Value::Array(_)) => *step == PathStep::Elements,
                Some(_) => false,
            }
        })
    }

    fn some_goes_on(&self, is_dropped: bool, at: &[PathStep], into: Option<&Value>) -> bool {
        let keep = self.keep.as_deref().filter(|_| !is_dropped).unwrap_or_default();
        OnTree::goes_on(&self.identity, at, into) || OnTree::goes_on(keep, at, into)
    }

    /// - `stays`: whether all of `value` does, that is not dropped; `is_dropped`: none of it.
    fn of(&self, value: &Value, at: &mut Vec<PathStep>, stays: bool, is_dropped: bool) -> Value {
        let mut child = |step: PathStep, value: &Value| {
            at.push(step);
            let made = self.child(value, at, stays, is_dropped);
            at.pop();
            made
        };
        match value {
            Value::Object(members) => {
                let members = members.iter().filter_map(|(name, value)| {
                    Some((name.clone(), child(PathStep::Member(name.clone()), value)?))
                });
                Value::Object(members.collect::<Map<_, _>>())
            }
            Value::Array(items) => {
                Value::Array(items.iter().filter_map(|item| child(PathStep::Elements, item)).collect())
            }
            scalar => scalar.clone(),
        }
    }

    fn child(&self, value: &Value, at: &mut Vec<PathStep>, stays: bool, is_dropped: bool) -> Option<Value> {
        if self.identity.contains(at) {
            return Some(value.clone());
        }
        let is_dropped = is_dropped || self.drop.contains(at);
        let is_kept = self.keep.as_ref().is_some_and(|keep| keep.contains(at));
        let stays = !is_dropped && (stays || is_kept);
        if !stays && !self.some_goes_on(is_dropped, at, None) {
            return None;
        }
        let is_entered = stays || self.some_goes_on(is_dropped, at, Some(value));
        match (is_entered, is_dropped) {
            (true, _) => Some(self.of(value, at, stays, is_dropped)),
            (false, true) => Some(value.clone()),
            (false, false) => Some(self.of(value, at, true, false)),
        }
    }
}

/// Every string in its order, names among them.
fn strings(mut text: &[u8]) -> Vec<&[u8]> {
    let mut strings = Vec::new();
    while let Some(from) = text.iter().position(|byte| *byte == b'"') {
        let end = forebay_apimachinery::json::string_end(text, from + 1).expect("it ends");
        strings.push(&text[from..end]);
        text = &text[end..];
    }
    strings
}

#[test]
fn what_stays_is_what_stays_of_a_tree_and_in_its_order() {
    let path = |text: &&str| text.parse::<FieldPath>().expect("a path").steps().to_vec();
    let identity = [
        "kind",
        "apiVersion",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.resourceVersion",
    ];
    let identity: Vec<_> = identity.iter().map(path).collect();
    let written = |paths: &[Vec<PathStep>]| -> Vec<FieldPath> {
        let text = |path: &Vec<PathStep>| -> String {
            let step = |step: &PathStep| match step {
                PathStep::Member(name) => format!("['{name}']"),
                _ => "[*]".into(),
            };
            path.iter().map(step).collect()
        };
        paths.iter().map(|path| text(path).parse().expect("a path")).collect()
    };
    let (mut changed, mut same) = (0, 0);
    for seed in 0..20_000 {
        let random = Random::seeded(seed);
        let some = || (0..random.below(4)).map(|_| random_path(&random)).collect::<Vec<_>>();
        let (drop, keep) = (some(), Some(some()).filter(|_| random.below(2) == 0));
        let projection = Projection::new(&written(&drop), keep.as_deref().map(written).as_deref());
        let projection = projection.expect("a projection");
        let mut text = String::new();
        while !text.starts_with('{') {
            text.clear();
            random_value(&random, 0, &mut text);
        }
        let tree: Value = serde_json::from_str(&text).expect(&text);
        let stays = keep.is_none();
        let on_tree = OnTree { drop, keep, identity: identity.clone() };
        let want = on_tree.of(&tree, &mut Vec::new(), stays, false);
        let got = apply(&projection, &text);
        let tell = || format!("seed {seed}: {text} {:?} {:?}", on_tree.drop, on_tree.keep);
        assert_eq!(serde_json::from_str::<Value>(&got).ok(), Some(want), "{}", tell());
        assert_eq!(apply(&projection, &got), got, "{}", tell());
        // In their order: each is found behind the one before it.
        let mut all = strings(text.as_bytes()).into_iter();
        assert!(strings(got.as_bytes()).iter().all(|string| all.any(|it| it == *string)), "{}", tell());
        changed += usize::from(got != text);
        same += usize::from(got == text);
    }
    assert!(changed > 5_000 && same > 1_000, "{changed} {same}");
}
