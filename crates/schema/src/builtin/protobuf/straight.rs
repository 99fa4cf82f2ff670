//! Writes a message as the JSON that is stored, without a value between the two.
//!
//! In: the bytes of a message of an object. Out: what [`decode`](super::decode) and [`codec::encode`] make of
//! it, byte for byte, or nothing: what no encoder of Go's writes (a field that comes twice, a map out of
//! order), what is no message, and a few rare types are left to those two. Never: an error; a result that
//! they would not have.
//!
//! A server that starts on an etcd of 20,000 pods reads as many messages before it is ready, and one for each
//! event after that.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::Lease;
use serde_json::Value;

use super::super::codec::{self, Part, Slot, write_int, write_string, write_utf8};
use super::super::table::{Field, Table, TypeId, TypeKind};
use super::decode::{Decoder, UnknownFields, wire_type};
use super::reader::{BYTES, FIXED64, Reader, VARINT};

/// Levels of nesting; what is deeper is left to others, who allow more.
const DEPTH_MAX: usize = 48;

/// Members of a struct; what has more is left to others. None has as many.
const MEMBERS_MAX: usize = 64;

const RESOURCE_VERSION: &str = "resourceVersion";

/// Appends a stored object of a built-in kind in the form of [`codec::encode`], if its message is of the
/// usual kind.
///
/// - `ty`: a type for which [`super::is_message`] holds.
/// - `unknown`: a message with fields that are refused is left to others as well.
///
/// Cost: each byte is looked at once for every level that it is below, and copied once.
pub fn stored_json(ty: TypeId, message: &[u8], unknown: UnknownFields, out: &mut Vec<u8>) -> Option<Slot> {
    let start = out.len();
    let mut writer = Writer {
        table: super::super::table(),
        plan: plan(),
        unknown,
        // What is stored was charged when it was written.
        special: Decoder::of(message, &Lease::of_server()),
        out,
        start,
        slot: None,
        found: Vec::with_capacity(128),
        base: 0,
    };
    let slot = writer.object(ty, message, Part::Stored, 0).and(writer.slot);
    if slot.is_none() {
        out.truncate(start);
    }
    slot
}

/// Where a field of a message stands in JSON.
struct Place {
    number: u32,
    wire: u8,
    is_repeated: bool,
    to: To,
}

enum To {
    /// Among the members of the struct that is written.
    Member(u8),
    /// Nowhere: its own fields are members of the struct. An index into [`Places`].
    Inline(usize),
}

/// By type, its fields that have a number, in that order; and behind all types, those of structs that are
/// inline in another.
struct Places(Vec<Box<[Place]>>);

/// A type's members in Go order, as an object is written.
struct Shape {
    /// What each begins with, the comma not with it: `"name":`.
    heads: Box<[Box<[u8]>]>,
    /// Those that are looked at although a message has none of them, a bit each.
    always: u64,
}

/// What there is to know of each type, made once.
struct Plan {
    places: Places,
    shapes: Vec<Shape>,
}

fn plan() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(|| {
        let table = super::super::table();
        let types = (0..table.types.len()).map(|index| TypeId(index as u16));
        let mut places = Places(types.clone().map(|_| Box::default()).collect());
        for ty in types.clone() {
            places.0[usize::from(ty.index())] = places.of(table, ty, ty);
        }
        Plan { places, shapes: types.map(|ty| Shape::of(table, ty)).collect() }
    })
}

impl Shape {
    fn of(table: &'static Table, ty: TypeId) -> Shape {
        let members = || table.member_indexes(ty).iter().map(|&index| table.field_at(index));
        let is_looked_at =
            |field: &Field| !field.flags.omitted_when_absent() || field.name == RESOURCE_VERSION;
        let always = members().enumerate().filter(|(_, field)| is_looked_at(field));
        Shape {
            heads: members().map(|field| format!("\"{}\":", field.name).into_bytes().into()).collect(),
            always: always.fold(0, |all, (position, _)| all | bit(position)),
        }
    }
}

/// A member's bit; none beyond [`MEMBERS_MAX`].
fn bit(position: usize) -> u64 {
    1_u64.checked_shl(position as u32).unwrap_or(0)
}

impl Places {
    /// Where the fields of `ty` stand among the members of `owner`.
    fn of(&mut self, table: &'static Table, owner: TypeId, ty: TypeId) -> Box<[Place]> {
        let (first, _) = table.ty(ty).fields;
        let mut places = Vec::new();
        for (offset, field) in table.fields(ty).iter().enumerate().filter(|(_, field)| field.proto != 0) {
            let to = if field.name.is_empty() {
                let inline = self.of(table, owner, field.ty);
                self.0.push(inline);
                To::Inline(self.0.len() - 1)
            } else {
                let index = first + offset as u16;
                let member = table.member_indexes(owner).iter().position(|&member| member == index);
                // A member hides none of another struct's that is inline beside it: a test says so.
                let Some(member) = member else { continue };
                To::Member(member as u8)
            };
            let kind = table.ty(field.ty).kind;
            let is_list = kind == TypeKind::List && !table.ty(field.ty).proto_message;
            let wire = if is_list { wire_type(table.ty(table.elem(field.ty)).kind) } else { wire_type(kind) };
            let is_repeated = is_list || kind == TypeKind::Map;
            places.push(Place { number: field.proto.into(), wire, is_repeated, to });
        }
        places.sort_by_key(|place| place.number);
        places.into()
    }
}

/// What a message has of a member.
#[derive(Clone, Copy)]
enum Found<'m> {
    Nothing,
    Varint(u64),
    Bytes(&'m [u8]),
    /// The rest of the message from the first of its elements on, which stand one behind the other.
    Run(&'m [u8]),
}

struct Writer<'m, 'o> {
    table: &'static Table,
    plan: &'static Plan,
    unknown: UnknownFields,
    // Of types that are no object in JSON.
    special: Decoder,
    out: &'o mut Vec<u8>,
    start: usize,
    slot: Option<Slot>,
    // One stretch per open struct, its members in Go order: those that are present, beside what others have
    // left.
    found: Vec<Found<'m>>,
    // Where the next struct's begins.
    base: usize,
}

impl<'m> Writer<'m, '_> {
    /// Writes a struct's members and the closing brace, and the opening one unless the object is stored.
    fn object(&mut self, ty: TypeId, message: &'m [u8], part: Part, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let table = self.table;
        let members = table.member_indexes(ty);
        let base = self.base;
        if members.len() > MEMBERS_MAX {
            return None;
        }
        let end = base + members.len();
        if self.found.len() < end {
            self.found.resize(end, Found::Nothing);
        }
        let shape = &self.plan.shapes[usize::from(ty.index())];
        let mut present = 0;
        self.scan(usize::from(ty.index()), message, base, &mut present)?;
        self.base = end;
        let mut left = present | shape.always;
        if part != Part::Stored {
            self.out.push(b'{');
        } else if table.has_type_meta(ty) {
            left &= !(bit(0) | bit(1));
        }
        let (mut is_first, mut after_rv) = (true, false);
        while left != 0 {
            let position = left.trailing_zeros() as usize;
            left &= left - 1;
            let field = table.field_at(members[position]);
            if part == Part::Metadata && field.name == RESOURCE_VERSION {
                after_rv = true;
                continue;
            }
            let found =
                if present & bit(position) == 0 { Found::Nothing } else { self.found[base + position] };
            if matches!(found, Found::Nothing) && field.flags.omitted_when_absent() {
                continue;
            }
            let before = self.out.len();
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            let begins = self.out.len() - self.start;
            self.out.extend_from_slice(&shape.heads[position]);
            let inner = match part {
                Part::Stored if field.name == "metadata" => Part::Metadata,
                _ => Part::Other,
            };
            if self.member(field, found, inner, depth + 1)? {
                if after_rv && self.slot.is_none() {
                    self.slot = Some(begins);
                }
            } else {
                is_first = self.out[before] != b',';
                self.out.truncate(before);
            }
        }
        self.base = base;
        self.out.push(b'}');
        Some(())
    }

    /// Finds the members of a struct, those that stand in `message` by the places at `index`.
    ///
    /// - `present`: those that were found, a bit each.
    fn scan(&mut self, index: usize, message: &'m [u8], base: usize, present: &mut u64) -> Option<()> {
        self.special.count_object()?;
        let all: &'static [Place] = &self.plan.places.0[index];
        let mut reader = Reader::new(message);
        let (mut at, mut last) = (0, 0);
        loop {
            let here = reader.rest();
            let Some(tag) = reader.tag("").ok()? else { return Some(()) };
            if all.get(at).is_none_or(|place| place.number > tag.number) {
                at = 0;
            }
            while all.get(at).is_some_and(|place| place.number < tag.number) {
                at += 1;
            }
            let is_next = std::mem::replace(&mut last, tag.number) == tag.number;
            let Some(place) = all.get(at).filter(|place| place.number == tag.number) else {
                if self.unknown == UnknownFields::Refused {
                    return None;
                }
                reader.skip(tag.wire).ok()?;
                continue;
            };
            if place.wire != tag.wire {
                return None;
            }
            let found = match place.wire {
                VARINT => Found::Varint(reader.varint().ok()?),
                BYTES => Found::Bytes(reader.bytes().ok()?),
                _ => return None,
            };
            match (&place.to, found) {
                (To::Inline(inner), Found::Bytes(inline)) => self.scan(*inner, inline, base, present)?,
                (To::Inline(_), _) => return None,
                (To::Member(member), found) => {
                    let slot = &mut self.found[base + usize::from(*member)];
                    if *present & bit(usize::from(*member)) == 0 {
                        *present |= bit(usize::from(*member));
                        *slot = if place.is_repeated { Found::Run(here) } else { found };
                    } else if !is_next || !matches!(slot, Found::Run(_)) {
                        return None;
                    }
                }
            }
        }
    }

    /// Writes the value of a member. Whether it has one that is to be seen.
    fn member(&mut self, field: &'static Field, found: Found<'m>, part: Part, depth: usize) -> Option<bool> {
        let kind = self.table.ty(field.ty).kind;
        let omits_empty = field.flags.omit_empty() && !field.flags.pointer();
        match (kind, found) {
            (_, Found::Nothing) => return self.absent(field, depth),
            (_, Found::Varint(value)) if omits_empty && is_zero(kind, value) => {
                return self.absent(field, depth);
            }
            (TypeKind::String | TypeKind::Bytes, Found::Bytes([])) if omits_empty => {
                return self.absent(field, depth);
            }
            (TypeKind::Map, Found::Run(run)) => self.map(field.ty, run, depth)?,
            (_, Found::Run(run)) => self.list(field.ty, run, depth)?,
            (TypeKind::Struct, Found::Bytes(message)) => self.object(field.ty, message, part, depth)?,
            (_, found) => {
                if !self.single(field.ty, found, depth)? {
                    return self.absent(field, depth);
                }
            }
        }
        Some(true)
    }

    /// Writes one value, unless it is Go's `null`.
    fn single(&mut self, ty: TypeId, found: Found<'m>, depth: usize) -> Option<bool> {
        match (self.table.ty(ty).kind, found) {
            (TypeKind::String, Found::Bytes(text)) => write_utf8(text, self.out)?,
            (TypeKind::Bool, Found::Varint(value)) => {
                self.out.extend_from_slice(if value != 0 { b"true" } else { b"false" });
            }
            (TypeKind::Int32, Found::Varint(value)) => write_int((value as i32).into(), self.out),
            (TypeKind::Int64, Found::Varint(value)) => write_int(value as i64, self.out),
            (TypeKind::Bytes, Found::Bytes(bytes)) => {
                self.out.push(b'"');
                let begins = self.out.len();
                self.out.resize(begins + bytes.len().div_ceil(3) * 4, 0);
                STANDARD.encode_slice(bytes, &mut self.out[begins..]).ok()?;
                self.out.push(b'"');
            }
            (TypeKind::Struct, Found::Bytes(message)) => self.object(ty, message, Part::Other, depth)?,
            (
                kind @ (TypeKind::Quantity
                | TypeKind::IntOrString
                | TypeKind::Time
                | TypeKind::MicroTime
                | TypeKind::FieldsV1),
                Found::Bytes(message),
            ) => match self.special.merge(ty, message, None, depth).ok()? {
                Some(Value::String(text)) => write_string(&text, self.out),
                Some(value) if kind == TypeKind::FieldsV1 => codec::write_fields(&value, self.out).ok()?,
                Some(Value::Number(number)) => write_int(number.as_i64()?, self.out),
                Some(_) => return None,
                None => return Some(false),
            },
            _ => return None,
        }
        Some(true)
    }

    fn list(&mut self, ty: TypeId, run: &'m [u8], depth: usize) -> Option<()> {
        let elem = self.table.elem(ty);
        self.out.push(b'[');
        let (mut reader, mut number) = (Reader::new(run), None);
        while let Some(tag) = reader.tag("").ok()? {
            match number {
                None => number = Some(tag.number),
                Some(number) if number == tag.number => self.out.push(b','),
                Some(_) => break,
            }
            let found = match tag.wire {
                VARINT => Found::Varint(reader.varint().ok()?),
                _ => Found::Bytes(reader.bytes().ok()?),
            };
            if !self.single(elem, found, depth + 1)? {
                return None;
            }
        }
        self.out.push(b']');
        Some(())
    }

    /// Writes a map, whose entries stand in the order of their keys.
    fn map(&mut self, ty: TypeId, run: &'m [u8], depth: usize) -> Option<()> {
        let elem = self.table.elem(ty);
        let wire = wire_type(self.table.ty(elem).kind);
        self.out.push(b'{');
        let (mut reader, mut number) = (Reader::new(run), None);
        let mut before: Option<&[u8]> = None;
        while let Some(tag) = reader.tag("").ok()? {
            if *number.get_or_insert(tag.number) != tag.number {
                break;
            }
            let mut entry = Reader::new(reader.bytes().ok()?);
            let tag = entry.tag("").ok()?.filter(|tag| (tag.number, tag.wire) == (1, BYTES));
            let key = tag.and_then(|_| entry.bytes().ok())?;
            if before.is_some_and(|before| before >= key) {
                return None;
            }
            if before.replace(key).is_some() {
                self.out.push(b',');
            }
            write_utf8(key, self.out)?;
            self.out.push(b':');
            entry.tag("").ok()?.filter(|tag| (tag.number, tag.wire) == (2, wire))?;
            let found = match wire {
                VARINT => Found::Varint(entry.varint().ok()?),
                FIXED64 => return None,
                _ => Found::Bytes(entry.bytes().ok()?),
            };
            if !self.single(elem, found, depth + 1)? || !entry.is_empty() {
                return None;
            }
        }
        self.out.push(b'}');
        Some(())
    }

    /// Writes Go's zero value where a member is written though it is absent. Whether it is.
    fn absent(&mut self, field: &Field, depth: usize) -> Option<bool> {
        if field.flags.omitted_when_absent() {
            return Some(false);
        }
        match self.table.ty(field.ty).kind {
            TypeKind::Struct if !field.flags.pointer() => self.object(field.ty, &[], Part::Other, depth)?,
            _ => self.out.extend_from_slice(codec::zero(self.table, field)),
        }
        Some(true)
    }
}

/// Whether Go's omitempty leaves a number or a boolean out.
fn is_zero(kind: TypeKind, value: u64) -> bool {
    match kind {
        TypeKind::Int32 => value as i32 == 0,
        _ => value == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::codec::normalize;
    use super::super::super::table;
    use super::super::golden::goldens;
    use super::super::{DecodeError, decode, decode_known, encode};
    use super::*;

    /// What is stored by way of a value.
    fn by_value(ty: TypeId, message: &[u8]) -> Option<(Slot, Vec<u8>)> {
        let mut value = decode(ty, message, &Lease::of_server()).ok()?;
        normalize(ty, &mut value).ok()?;
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        let mut out = Vec::new();
        let slot = codec::encode(ty, &value, &mut out).ok()?;
        Some((slot, out))
    }

    fn straight(ty: TypeId, message: &[u8]) -> Option<(Slot, Vec<u8>)> {
        let mut out = b"before".to_vec();
        let slot = stored_json(ty, message, UnknownFields::PassedOver, &mut out);
        let mut again = Vec::new();
        assert_eq!(
            stored_json(ty, message, UnknownFields::Refused, &mut again),
            slot,
            "all fields are known"
        );
        assert_eq!(&out[..6], b"before");
        if slot.is_none() {
            assert_eq!(out.len(), 6, "nothing is left of what was begun");
        }
        slot.map(|slot| (slot, out.split_off(6)))
    }

    #[test]
    fn every_kind_is_written_as_by_way_of_a_value() {
        let Some(goldens) = goldens() else { return };
        let mut slow = std::collections::BTreeSet::new();
        for golden in goldens {
            let ty = golden.kind.ty;
            let unknown = super::super::decode_envelope(&golden.body).expect("an envelope");
            let by_value = by_value(ty, unknown.raw);
            match straight(ty, unknown.raw) {
                Some(straight) => {
                    let text = String::from_utf8_lossy(&straight.1).into_owned();
                    let wanted =
                        by_value.map(|(slot, out)| (slot, String::from_utf8_lossy(&out).into_owned()));
                    assert_eq!(Some((straight.0, text)), wanted, "{}", golden.name);
                }
                None if by_value.is_some() => drop(slow.insert(golden.kind.kind)),
                None => {}
            }
        }
        // They hold lists that are messages, JSON of any shape, or times of nothing.
        let wanted = [
            "CertificateSigningRequest",
            "ControllerRevision",
            "CustomResourceDefinition",
            "DeviceClass",
            "LocalSubjectAccessReview",
            "PodDisruptionBudget",
            "ResourceClaim",
            "ResourceClaimTemplate",
            "SelfSubjectReview",
            "SubjectAccessReview",
            "TokenReview",
        ];
        assert_eq!(slow, wanted.into(), "what is left to the slower way");
    }

    #[test]
    fn every_field_that_has_a_number_is_a_member() {
        fn expect_members(owner: TypeId, ty: TypeId) {
            let (first, _) = table().ty(ty).fields;
            for (offset, field) in table().fields(ty).iter().enumerate().filter(|(_, field)| field.proto != 0)
            {
                match field.name {
                    "" => expect_members(owner, field.ty),
                    name => {
                        let index = first + offset as u16;
                        assert!(
                            table().member_indexes(owner).contains(&index),
                            "{}: {name}",
                            table().ty(owner).name
                        );
                    }
                }
            }
        }
        for index in 0..table().types.len() {
            let ty = TypeId(index as u16);
            assert!(table().member_indexes(ty).len() <= MEMBERS_MAX, "{}", table().ty(ty).name);
            expect_members(ty, ty);
        }
    }

    #[test]
    fn a_field_that_is_unknown_is_passed_over_or_refused() {
        let ty = table().kind("", "v1", "Pod").expect("a kind").ty;
        let mut message = Vec::new();
        let value = serde_json::json!({ "metadata": { "name": "a", "uid": "u" }, "spec": { "priority": 7 } });
        encode(ty, &value, &mut message).expect("canonical");
        // A pod's 99th, and the same in its spec.
        let (outside, inside) = (b"\x9a\x06\x01x", b"\x12\x04\x9a\x06\x01x");
        for more in [&outside[..], &inside[..]] {
            let newer = [&message, more].concat();
            let mut out = Vec::new();
            assert_eq!(stored_json(ty, &newer, UnknownFields::Refused, &mut out), None);
            let refused = decode_known(ty, &newer, &Lease::of_server());
            assert!(matches!(refused, Err(DecodeError::UnknownField { number: 99, .. })), "{refused:?}");
            assert_eq!(decode(ty, &newer, &Lease::of_server()), decode(ty, &message, &Lease::of_server()));
        }
    }

    #[test]
    fn what_no_encoder_writes_is_left_to_others() {
        let ty = table().kind("", "v1", "Pod").expect("a kind").ty;
        let pod = |labels: [&str; 2]| {
            let labels =
                labels.map(|label| format!("\n\x01{label}\x12\x01v")).map(|entry| format!("Z\x06{entry}"));
            let metadata = format!("\n\x01aB\x08\x08\x01\x10\0\x18\0\x20\0{}", labels.concat());
            let mut out = vec![b'\n', metadata.len() as u8];
            out.extend_from_slice(metadata.as_bytes());
            out
        };
        let usual = pod(["a", "b"]);
        assert_eq!(straight(ty, &usual), by_value(ty, &usual));
        assert!(straight(ty, &usual).is_some());
        let name_again = [&usual[..], b"\n\x03\n\x01b"].concat();
        for unusual in
            [&pod(["b", "a"]), &pod(["a", "a"]), &name_again, &usual[..usual.len() - 1], b"\n\0", b""]
        {
            assert_eq!(straight(ty, unusual), None, "{unusual:?}");
        }
        let mut message = Vec::new();
        let value = serde_json::json!({ "metadata": { "name": "a", "uid": "u" }, "spec": { "priority": 7 } });
        encode(ty, &value, &mut message).expect("canonical");
        assert_eq!(straight(ty, &message), by_value(ty, &message));
    }
}
