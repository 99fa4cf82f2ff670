//! Asks this crate what upstream was asked.
//!
//! In: a record. Out: whether the answer is the same, and what it is if not. Never: an answer that was not
//! recorded.

use std::collections::BTreeMap;

use forebay_apimachinery::lease::Lease;
use forebay_merge::{
    Applied, Conflicts, ConvertError, Converter, Duplicates, Element, Error, Extract, Filter, Managers,
    Matcher, Owned, Set, TypedValue, Updater,
};
use serde_json::Value;

use crate::types::{Handle, Schemas};

/// What was said before: the schemas.
#[derive(Default)]
pub struct Replay {
    schemas: Schemas,
}

/// Whether it is the same.
type Answer = Result<(), String>;

impl Replay {
    /// `None` if nothing is asked.
    pub fn ask(&mut self, record: &Value) -> Option<Answer> {
        let kind = record["kind"].as_str().unwrap_or_default();
        Some(match kind {
            "schema" => {
                self.schemas.add(record);
                return None;
            }
            "set" => operation(record),
            "equals" => same(&(set(&record["a"]) == set(&record["b"])), &(record["result"] == true)),
            "has" => same(&set(&record["a"]).contains(&path(&record["path"])), &(record["result"] == true)),
            // An element that is none, which only Go can make.
            "order" if record["a"] == "?" || record["b"] == "?" => return None,
            "order" => order(record),
            // A value that is none, which only Go can make.
            "value" if record["texts"].to_string().contains("{{undefined}}") => return None,
            "value" => value_order(record),
            "write" => write(record),
            "read" => read(record),
            "include" => {
                let filter = Filter::Include(matcher(&record["matcher"]));
                same(&filter.of(&set(&record["a"])), &set(&record["result"]))
            }
            "declared" => {
                let ty = self.schemas.handle(&record["type"])?;
                same(&set(&record["a"]).with_declared_fields(ty), &set(&record["result"]))
            }
            "reconcile" => {
                let ty = self.schemas.handle(&record["type"])?;
                let reconciled = set(&record["a"]).reconciled(ty);
                let wanted = (!record["result"].is_null()).then(|| set(&record["result"]));
                with_error(record, reconciled, |reconciled| same(&reconciled, &wanted))
            }
            "updater" => self.updater(record),
            _ => self.typed(kind, record),
        })
    }

    fn known<'r>(&self, typed: &'r Value) -> Option<TypedValue<'r, Handle>> {
        Some(TypedValue::known(&typed["value"], self.schemas.handle(&typed["type"])?))
    }

    fn typed(&self, kind: &str, record: &Value) -> Answer {
        let Some(a) = self.known(&record["a"]) else { return no_such_type(record) };
        let b = || self.known(&record["b"]).expect("a type");
        let lease = Lease::of_server();
        let value = |typed: TypedValue<'_, Handle>| same(&*typed.value, &record["result"]["value"]);
        match kind {
            "validate" => {
                let duplicates =
                    if record["duplicates"] == true { Duplicates::Allowed } else { Duplicates::Refused };
                with_error(record, TypedValue::new(&a.value, a.ty, duplicates), |_| Ok(()))
            }
            "fields" => with_error(record, a.fields(), |fields| same(&fields, &set(&record["result"]))),
            "merge" => with_error(record, a.merge(&b(), &lease), value),
            "compare" => with_error(record, a.compare(&b()), |found| {
                same(&found.removed, &set(&record["removed"]))?;
                same(&found.modified, &set(&record["modified"]))?;
                same(&found.added, &set(&record["added"]))
            }),
            "remove" => value(a.without(&set(&record["set"]), &lease).expect("room")),
            "extract" => {
                let how = if record["keys"] == true { Extract::FieldsAndKeys } else { Extract::Fields };
                value(a.only(&set(&record["set"]), how, &lease).expect("room"))
            }
            other => Err(format!("nobody knows how to ask {other}")),
        }
    }

    fn updater(&self, record: &Value) -> Answer {
        let Some(asked) = self.asked(record) else { return no_such_type(record) };
        let calls = record["conversions"].as_array().map_or(&[][..], Vec::as_slice);
        let converter = || Recorded { replay: self, calls };
        if record["operation"] == "update" {
            return with_error(record, asked.update(converter()), |owned| {
                same_managers(&owned, &record["result"])
            });
        }
        let applied = match asked.apply(converter()) {
            Err(Error::Conflicts(found)) => return conflicts(&found, record),
            applied => applied,
        };
        with_error(record, applied, |applied| {
            same_managers(&applied.managers, &record["result"])?;
            match (applied.object, record.get("merged")) {
                (Some(object), Some(merged)) => same(&*object.value, &merged["value"]),
                (None, Some(merged)) if record["returnInputOnNoop"] == true => {
                    let is_same = forebay_merge::equal(&asked.live.value, &merged["value"]);
                    same(&is_same, &true)
                }
                (object, merged) => same(&object.is_some(), &merged.is_some()),
            }
        })
    }

    /// What an updater is asked; `None` if there is no such type.
    pub fn asked<'r>(&self, record: &'r Value) -> Option<Asked<'r>> {
        let filters = record["filters"].as_object().into_iter().flatten();
        let text = |name: &str| record[name].as_str().unwrap_or_default();
        Some(Asked {
            live: self.known(&record["live"])?,
            object: self.known(&record["object"])?,
            version: text("version"),
            managers: managers(&record["managers"]),
            manager: text("manager"),
            force: record["force"] == true,
            filters: filters.filter_map(|(version, value)| Some((version.clone(), filter(value)?))).collect(),
        })
    }
}

/// What an updater is asked.
pub struct Asked<'r> {
    live: TypedValue<'r, Handle>,
    object: TypedValue<'r, Handle>,
    version: &'r str,
    managers: Managers,
    manager: &'r str,
    force: bool,
    filters: BTreeMap<String, Filter>,
}

impl Asked<'_> {
    pub fn update(&self, converter: impl Converter<Handle>) -> Result<Managers, Error> {
        let updater = Updater { converter, filters: self.filters.clone(), lease: &Lease::of_server() };
        updater.update(&self.live, &self.object, self.version, self.managers.clone(), self.manager)
    }

    pub fn apply(&self, converter: impl Converter<Handle>) -> Result<Applied<'static, Handle>, Error> {
        let updater = Updater { converter, filters: self.filters.clone(), lease: &Lease::of_server() };
        updater.apply(&self.live, &self.object, self.version, self.managers.clone(), self.manager, self.force)
    }
}

/// A schema without the type that is asked for.
fn no_such_type(record: &Value) -> Answer {
    same(&true, &record["error"].is_string())
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, wanted: &T) -> Answer {
    if found == wanted { Ok(()) } else { Err(format!("{found:?} is not {wanted:?}")) }
}

/// What is wrong is said in upstream's words, but where these show what a Go program's values are made of.
fn with_error<T, E: std::fmt::Display>(
    record: &Value,
    found: Result<T, E>,
    and: impl FnOnce(T) -> Answer,
) -> Answer {
    let shows_go =
        |text: &str| ["interface {}", "&{map[", "&{[", "schema error"].iter().any(|go| text.contains(go));
    match (found, record["error"].as_str()) {
        (Ok(found), None) => and(found),
        (Err(_), Some(wanted)) if shows_go(wanted) => Ok(()),
        // Upstream looks at the fields of an object in the order of a map, and stops at the first one.
        (Err(found), Some(wanted)) if wanted.contains(UNDECLARED) => {
            same(&found.to_string().contains(UNDECLARED), &true)
        }
        (Err(found), Some(wanted)) => same(&sorted_lines(&found.to_string()), &sorted_lines(wanted)),
        (Err(found), None) => Err(format!("unexpected: {found}")),
        (Ok(_), Some(wanted)) => Err(format!("no error, but upstream: {wanted}")),
    }
}

const UNDECLARED: &str = "field not declared in schema";

/// Upstream looks at the fields of an object in the order of a map.
fn sorted_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn set(value: &Value) -> Set {
    Set::of_json(value).expect("a set")
}

fn path(value: &Value) -> Vec<Element<'_>> {
    let elements = value.as_array().expect("a path").iter();
    let element = |text: &Value| Element::of_serial(text.as_str()?).ok()?.map(Element::into_owned);
    elements.map(|text| element(text).expect("an element")).collect()
}

fn operation(record: &Value) -> Answer {
    let (a, b) = (set(&record["a"]), &record["b"]);
    let found = match record["operation"].as_str().unwrap_or_default() {
        "union" => a.union(&set(b)),
        "intersection" => a.intersection(&set(b)),
        "difference" => a.difference(&set(b)),
        "recursiveDifference" => a.recursive_difference(&set(b)),
        _ => a.leaves(),
    };
    same(&found, &set(&record["result"]))
}

fn order(record: &Value) -> Answer {
    let element =
        |name: &str| Element::of_serial(record[name].as_str().expect("text")).expect("one").expect("known");
    let (a, b) = (element("a"), element("b"));
    same(&(a.cmp(&b) as i64), &record["result"].as_i64().expect("a number"))?;
    same(
        &vec![a.to_string(), b.to_string()],
        &serde_json::from_value(record["texts"].clone()).expect("texts"),
    )
}

fn value_order(record: &Value) -> Answer {
    let (a, b) = (&record["a"], &record["b"]);
    let (of_a, of_b) = (Element::value(a), Element::value(b));
    if let Some(order) = record["order"].as_i64() {
        same(&(of_a.cmp(&of_b) as i64), &order)?;
    }
    if let Some(equal) = record["equal"].as_bool() {
        same(&forebay_merge::equal(a, b), &equal)?;
    }
    for (element, value, text) in [(of_a, a, &record["texts"][0]), (of_b, b, &record["texts"][1])] {
        // Upstream shows an object in the order of a map.
        if has_one_order(value) {
            same(&element.to_string(), &format!("[={}]", text.as_str().unwrap_or_default()))?;
        }
    }
    Ok(())
}

fn has_one_order(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(has_one_order),
        Value::Object(members) => members.len() < 2 && members.values().all(has_one_order),
        _ => true,
    }
}

fn write(record: &Value) -> Answer {
    let paths = record["paths"].as_array().expect("paths").iter().map(path);
    let set = Set::of_paths(paths);
    let wanted = record["result"].as_str().expect("JSON");
    same(&String::from_utf8(set.to_json()).expect("text").as_str(), &wanted)?;
    same(&Set::of_text(wanted.as_bytes()), &Ok(set.clone()))?;
    same(&set.to_string().as_str(), &record["text"].as_str().expect("text"))?;
    same(&(set.size() as u64), &record["size"].as_u64().expect("a size"))
}

fn read(record: &Value) -> Answer {
    let text = record["text"].as_str().expect("text");
    let failed = record["failed"] == true;
    let read = match forebay_apimachinery::json::read(text.as_bytes()) {
        Ok(tree) => Set::of_json(&tree).map_err(|why| why.to_string()),
        Err(why) => Err(why.to_string()),
    };
    match (read, failed) {
        (Err(_), true) => Ok(()),
        (Ok(read), false) => same(&read, &set(&record["result"])),
        (read, _) => Err(format!("{read:?}, but upstream failed: {failed}")),
    }
}

fn matcher(value: &Value) -> Matcher {
    let Value::Array(members) = value else { return Matcher::Any };
    let element = |value: &Value| {
        let text = value.as_str()?;
        Element::of_serial(text).expect("one").map(Element::into_owned)
    };
    Matcher::Elements(members.iter().map(|member| (element(&member[0]), matcher(&member[1]))).collect())
}

fn filter(value: &Value) -> Option<Filter> {
    match (value.get("exclude"), value.get("include")) {
        (Some(excluded), _) => Some(Filter::Exclude(set(excluded))),
        (_, Some(pattern)) => Some(Filter::Include(matcher(pattern))),
        _ => None,
    }
}

fn managers(value: &Value) -> Managers {
    let of = |owned: &Value| Owned {
        fields: Set::of_text(owned["set"].as_str().expect("a set").as_bytes()).expect("a set"),
        version: owned["version"].as_str().unwrap_or_default().to_owned(),
        applied: owned["applied"] == true,
    };
    value.as_object().into_iter().flatten().map(|(name, owned)| (name.clone(), of(owned))).collect()
}

/// Byte for byte, as they are written.
fn same_managers(found: &Managers, wanted: &Value) -> Answer {
    let written = |owned: &Owned| {
        let fields = String::from_utf8(owned.fields.to_json()).expect("text");
        serde_json::json!({ "set": fields, "version": owned.version, "applied": owned.applied })
    };
    let found: BTreeMap<&String, Value> = found.iter().map(|(name, owned)| (name, written(owned))).collect();
    let wanted =
        wanted.as_object().into_iter().flatten().map(|(name, owned)| (name, owned.clone())).collect();
    same(&found, &wanted)
}

/// Whose, and which, and what is said.
fn conflicts(found: &Conflicts, record: &Value) -> Answer {
    let mut all = Vec::new();
    found.for_each(|manager, path| {
        let path: Vec<String> = path.iter().map(Element::serial).collect();
        all.push(serde_json::json!([manager, path]));
    });
    same(&all.len(), &found.count())?;
    same(&Value::Array(all), &record["conflicts"])?;
    same(&found.to_string().as_str(), &record["error"].as_str().unwrap_or_default())
}

/// Converts what was converted.
struct Recorded<'r> {
    replay: &'r Replay,
    calls: &'r [Value],
}

impl Converter<Handle> for Recorded<'_> {
    fn convert<'v>(
        &self,
        object: &'v TypedValue<'_, Handle>,
        version: &str,
    ) -> Result<TypedValue<'v, Handle>, ConvertError> {
        let is_it = |call: &&Value| call["version"] == version && call["from"]["value"] == *object.value;
        let Some(call) = self.calls.iter().find(is_it) else {
            return Err(ConvertError::Failed(format!(
                "nobody asked to convert {} to {version}",
                object.value
            )));
        };
        if call["missing"] == true {
            return Err(ConvertError::MissingVersion);
        }
        if let Some(why) = call["error"].as_str() {
            return Err(ConvertError::Failed(why.to_owned()));
        }
        let ty = self.replay.schemas.handle(&call["to"]["type"]).expect("a type");
        Ok(TypedValue { value: std::borrow::Cow::Owned(call["to"]["value"].clone()), ty })
    }
}
