//! Every list and every map of every built-in kind, filled.
//!
//! In: the table of types; from a seed, what stands in the items. Out: nothing. Steps grow as the items do,
//! and one copy at most is made of what is judged: it is charged where it is. Never: a kind or a list that
//! somebody has to remember to add.
//!
//! `FOREBAY_FUZZ_INPUTS` is how often each list is filled, a thousandth of it at the least once;
//! `FOREBAY_FUZZ_SEED` where it begins.

use std::collections::HashMap;

use forebay_apimachinery::{FAULT_BYTES_MAX, json};
use forebay_fuzz::{peak_of, setting};
use forebay_rt::Random;
use forebay_schema::builtin::{Field, Resource, TypeId, TypeKind, table};

use super::*;

/// Items at first, and four times as many: what looks at pairs takes sixteen times the steps.
const ITEMS: usize = 128;
/// Members between the object and a list: deeper ones are of types that stand higher elsewhere.
const DEPTH_MAX: usize = 9;
/// Kinds that each list is filled in: the same type in another one is judged by the same function.
const KINDS_MAX: usize = 2;
/// Steps that do not depend on the items.
const FREE_STEPS: u64 = 8_192;
/// Of the lists that are long, one in so many is of long texts as well, which is slow: so long, in items so
/// many.
const HEAVY_ONE_IN: u64 = 16;
const HEAVY_TEXT_BYTES: usize = 128 << 10;
const HEAVY_ITEMS: usize = 64;
/// What is held besides copies: the faults that are told, and two objects that are shown in one, while they
/// are put together.
const FREE_BYTES: usize = 32 * FAULT_BYTES_MAX;

/// Where a list stands: the members down to it.
type Way = Vec<&'static Field>;

/// What the items of a list are made of.
struct Make<'r> {
    random: &'r Random,
    count: usize,
    /// How long each text is at least.
    text_bytes: usize,
    /// Of each member by its name: what its texts look like.
    looks: HashMap<&'static str, u64>,
}

impl Make<'_> {
    /// A value of type `ty` for the item at `index`; members are left out where `depth` is used up.
    fn value(&mut self, name: &'static str, ty: TypeId, index: usize, depth: usize) -> Value {
        let table = table();
        match table.ty(ty).kind {
            TypeKind::Struct => {
                let mut members = serde_json::Map::new();
                for field in table.members(ty) {
                    let is_scalar =
                        !matches!(table.ty(field.ty).kind, TypeKind::Struct | TypeKind::List | TypeKind::Map);
                    // The same ones in all items.
                    let look = self.look(field.name);
                    if depth > 0
                        && (is_scalar && !look.is_multiple_of(4) || look % 8 > 5 || field.flags.required())
                    {
                        members.insert(field.name.into(), self.value(field.name, field.ty, index, depth - 1));
                    }
                }
                Value::Object(members)
            }
            TypeKind::List => json!([self.value(name, table.elem(ty), index, depth)]),
            TypeKind::Map => {
                json!({ self.text(name, index): self.value(name, table.elem(ty), index, depth) })
            }
            TypeKind::String => match table.enum_values(ty).map(Iterator::collect::<Vec<_>>) {
                Some(values) if !values.is_empty() => values[index % values.len()].into(),
                _ => self.text(name, index).into(),
            },
            TypeKind::Bool => self.look(name).is_multiple_of(2).into(),
            TypeKind::Int32 | TypeKind::Int64 | TypeKind::Double => (index % 60_000 + 1).into(),
            TypeKind::IntOrString => (index + 1).into(),
            TypeKind::Bytes => "AAAA".into(),
            TypeKind::Quantity => format!("{}Mi", index + 1).into(),
            TypeKind::Time => "2026-01-01T00:00:00Z".into(),
            TypeKind::MicroTime => "2026-01-01T00:00:00.000000Z".into(),
            TypeKind::Any | TypeKind::RawExtension | TypeKind::FieldsV1 | TypeKind::Json => json!({}),
            TypeKind::SchemaOrBool => true.into(),
            TypeKind::SchemaOrArray => json!({ "type": "string" }),
            TypeKind::SchemaOrStrings => json!([self.text(name, index)]),
        }
    }

    fn look(&mut self, name: &'static str) -> u64 {
        let random = self.random;
        *self.looks.entry(name).or_insert_with(|| random.next_u64())
    }

    /// The last ones first, so that who searches from the front finds each late; now and then all the same.
    fn text(&mut self, name: &'static str, index: usize) -> String {
        let index = self.count - index;
        let text = match self.look(name) / 8 % 8 {
            0 => format!("10.{}.{}.1", index / 250, index % 250),
            1 => format!("10.{}.{}.0/24", index / 250, index % 250),
            2 => format!("example.com/x{index}"),
            3 => index.to_string(),
            4 => "x".to_owned(),
            5 => format!("/a/x{index}"),
            _ => format!("x{index}"),
        };
        let len = text.len();
        text + &"x".repeat(self.text_bytes.saturating_sub(len))
    }
}

/// How an object is filled.
#[derive(Clone, Copy)]
struct Size {
    items: usize,
    text_bytes: usize,
}

/// Every way to a list or a map below `ty`.
fn ways(ty: TypeId, way: &mut Way, seen: &mut HashMap<(TypeId, &'static str), usize>, out: &mut Vec<Way>) {
    let table = table();
    for field in table.members(ty) {
        let mut inner = field.ty;
        let kind = table.ty(inner).kind;
        if way.len() >= DEPTH_MAX || field.name == "managedFields" {
            continue;
        }
        way.push(field);
        if matches!(kind, TypeKind::List | TypeKind::Map) {
            let times = seen.entry((ty, field.name)).or_default();
            *times += 1;
            if *times <= KINDS_MAX {
                out.push(way.clone());
            }
            inner = table.elem(inner);
        }
        let is_known = way.iter().rev().skip(1).any(|field| item_of(field) == inner);
        if table.ty(inner).kind == TypeKind::Struct && !is_known {
            ways(inner, way, seen, out);
        }
        way.pop();
    }
}

/// The type of a member, or of its items.
fn item_of(field: &Field) -> TypeId {
    match table().ty(field.ty).kind {
        TypeKind::List | TypeKind::Map => table().elem(field.ty),
        _ => field.ty,
    }
}

/// An object of `resource` whose list at the end of `way` has so many items, and all above it one.
fn filled(resource: &Resource, way: &[&'static Field], size: Size, seed: u64) -> Value {
    let random = Random::seeded(seed);
    let Size { items: count, text_bytes } = size;
    let mut make = Make { random: &random, count, text_bytes, looks: HashMap::new() };
    let (last, above) = way.split_last().expect("a member");
    let mut value = list_of(&mut make, last, count);
    for field in above.iter().rev() {
        // The member below it is in; whatever else its struct asks for is there, too.
        let below = way.iter().skip_while(|other| !std::ptr::eq(**other, *field)).nth(1).expect("one below");
        let mut whole = make.value(field.name, item_of(field), 0, 2);
        if let Some(members) = whole.as_object_mut() {
            members.insert(below.name.into(), value);
        }
        value = match table().ty(field.ty).kind {
            TypeKind::List => json!([whole]),
            TypeKind::Map => json!({ "x": whole }),
            _ => whole,
        };
    }
    let kind = table().kind(resource.group, resource.version, resource.kind).expect("its kind");
    let mut object = json!({});
    for field in table().members(kind.ty) {
        if !matches!(field.name, "kind" | "apiVersion" | "metadata" | "status") {
            object[field.name] = make.value(field.name, field.ty, 0, 2);
        }
    }
    object["metadata"] = json!({ "name": "x", "namespace": "n", "resourceVersion": "1", "uid": "u" });
    match (way[0].name, value) {
        ("metadata", Value::Object(members)) => {
            object["metadata"].as_object_mut().expect("members").extend(members);
        }
        (name, value) => object[name] = value,
    }
    object
}

fn list_of(make: &mut Make<'_>, field: &'static Field, count: usize) -> Value {
    let item = item_of(field);
    match table().ty(field.ty).kind {
        TypeKind::List => {
            Value::Array((0..count).map(|index| make.value(field.name, item, index, 3)).collect())
        }
        _ => {
            let one = |index: usize| (format!("k{}", count - index), make.value(field.name, item, index, 3));
            Value::Object((0..count).map(one).collect())
        }
    }
}

/// What judging it takes, as a new one or as a change of what it was the other way round: steps, and bytes
/// beyond the object and the one before; and how many bytes the object has.
fn cost_of(resource: &Resource, way: &[&'static Field], size: Size, seed: u64) -> (u64, usize, usize) {
    let object = filled(resource, way, size, seed);
    let weight = json::weight::of(&object);
    let old = seed.is_multiple_of(2).then(|| {
        let mut old = object.clone();
        let at = way.iter().enumerate().fold(&mut old, |at, (index, field)| {
            let at = &mut at[field.name];
            let is_last = index + 1 == way.len();
            match table().ty(field.ty).kind {
                TypeKind::List if !is_last => &mut at[0],
                TypeKind::Map if !is_last => &mut at["x"],
                _ => at,
            }
        });
        *at = if at.is_array() { turned(at) } else { json!({}) };
        old
    });
    let old_weight = old.as_ref().map_or(0, json::weight::of);
    let in_status = way[0].name == "status";
    let kind = GroupKind::built_in(resource.group, resource.kind);
    let row = Row {
        what: "",
        kind,
        subresource: (in_status && old.is_some()).then_some("status"),
        write: Box::new(move |_| (object.clone(), old.clone())),
    };
    let (steps, peak) = peak_of(|| row.steps(size.items));
    (steps, peak.saturating_sub(weight + old_weight), weight)
}

#[test]
fn fuzz_filled_lists_of_every_kind() {
    let (first, inputs) = (setting("FOREBAY_FUZZ_SEED", 1), setting("FOREBAY_FUZZ_INPUTS", 1));
    let (mut seen, mut over, mut seed) = (HashMap::new(), Vec::new(), first);
    for resource in table().resources() {
        let Some(kind) = table().kind(resource.group, resource.version, resource.kind) else { continue };
        let mut all = Vec::new();
        ways(kind.ty, &mut Vec::new(), &mut seen, &mut all);
        for (way, _) in all.iter().flat_map(|way| (0..inputs.div_ceil(1_000)).map(move |round| (way, round)))
        {
            seed += 1;
            let names: Vec<&str> = way.iter().map(|field| field.name).collect();
            let what = format!("{} {} (seed {seed})", resource.plural, names.join("."));
            let [few, many] = [ITEMS, 4 * ITEMS].map(|items| {
                let (steps, ..) = cost_of(resource, way, Size { items, text_bytes: 0 }, seed);
                steps
            });
            if many > 5 * few + FREE_STEPS {
                over.push(format!("{what}: {few} steps for {ITEMS}, {many} for {}", 4 * ITEMS));
            }
            if seed.is_multiple_of(HEAVY_ONE_IN) {
                let heavy = Size { items: HEAVY_ITEMS, text_bytes: HEAVY_TEXT_BYTES };
                let (_, held, weight) = cost_of(resource, way, heavy, seed);
                if held > weight + FREE_BYTES {
                    over.push(format!("{what}: {held} B are held besides the {weight} of the object"));
                }
            }
        }
    }
    assert!(seed - first > 400, "{} lists", seed - first);
    assert!(over.is_empty(), "{}", over.join("\n"));
}
