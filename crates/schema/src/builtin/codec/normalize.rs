//! Checks an incoming JSON value as Go's decoder into the typed struct would, and makes it canonical.
//!
//! In: a value as a client sent it. Out: the same value with `null`s and unknown fields gone, and quantities,
//! times and base64 in canonical form; the unknown fields by path. Never: defaults, validation of contents.
//!
//! Members are visited in the order of the value's map, not of the document, so of several mistakes another
//! one may be named first than kube-apiserver would.

use std::borrow::Cow;

use forebay_apimachinery::quantity::{self, Precision, QuantityError};
use serde_json::{Map, Value};

use super::super::empty_lists::is_told_empty;
use super::super::table::{Field, Table, TypeId, TypeKind};
use super::base64;
use super::text::write_float;
use super::time::{canonical_micro_time, canonical_time};
use super::{DEPTH_MAX, FieldProblem, PROBLEMS_MAX, UnmarshalError};

/// Makes `value` canonical for the type and returns the fields that the type does not have.
///
/// Lists and maps that are empty count as absent for types that kube-apiserver stores as protobuf, which does
/// not keep them; elements that are `null` become the zero value, as in Go.
///
/// - `ty`: the type of the whole object, a kind's.
/// - `value`: left half canonical when an error is returned.
///
/// Cost: one walk; allocates only for what changes.
///
/// # Errors
/// [`UnmarshalError`] for the first value that Go could not decode.
pub fn normalize(ty: TypeId, value: &mut Value) -> Result<Vec<FieldProblem>, UnmarshalError> {
    walk(ty, value, Empty::Dropped)
}

/// As [`normalize`], but for empty lists and maps of which it matters that they are there: they are until the
/// object is stored.
///
/// # Errors
/// As [`normalize`].
pub fn normalize_as_sent(ty: TypeId, value: &mut Value) -> Result<Vec<FieldProblem>, UnmarshalError> {
    walk(ty, value, Empty::KeptIfTold)
}

fn walk(ty: TypeId, value: &mut Value, empty: Empty) -> Result<Vec<FieldProblem>, UnmarshalError> {
    let table = super::super::table();
    let empty = if table.stored_as_json(ty) { Empty::Kept } else { empty };
    let mut walk = Walk { table, empty, problems: Vec::new(), saved: None };
    if value.is_null() {
        *value = table.zero(ty, false);
        return Ok(Vec::new());
    }
    let root = Path { parent: None, step: Step::Root };
    walk.value(ty, value, &root, 0)?;
    walk.saved.map_or(Ok(walk.problems), Err)
}

struct Walk<'t> {
    table: &'t Table,
    empty: Empty,
    problems: Vec<FieldProblem>,
    /// Go goes on after a value of the wrong type and reports the first one, unless a type that decodes
    /// itself (a quantity, a time) fails later: that ends decoding. So an `Err` in this file is the latter.
    saved: Option<UnmarshalError>,
}

/// What becomes of an empty list or map.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Kept,
    KeptIfTold,
    Dropped,
}

/// Whether a struct's member stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    /// It means the same as being absent.
    Drop,
}

/// Where a value is, as a list on the stack that is only followed when something is wrong.
#[derive(Clone, Copy)]
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field {
        owner: TypeId,
        name: &'a str,
    },
    Key(&'a str),
    Index(usize),
    /// From here on another decoder runs that is not strict: a CRD's schema inside a schema-or-something.
    Nested,
}

impl Walk<'_> {
    /// Checks a value that is not `null`.
    fn value(
        &mut self,
        ty: TypeId,
        value: &mut Value,
        at: &Path<'_>,
        depth: usize,
    ) -> Result<Fate, UnmarshalError> {
        if depth > DEPTH_MAX {
            return Err(UnmarshalError::TooDeep);
        }
        let fits = match (self.table.ty(ty).kind, &mut *value) {
            (TypeKind::Struct, Value::Object(map)) => return self.object(ty, map, at, depth),
            (TypeKind::List, Value::Array(items)) => return self.list(ty, items, at, depth),
            (TypeKind::Map, Value::Object(map)) => return self.map(ty, map, at, depth),
            (TypeKind::String, Value::String(_)) | (TypeKind::Bool, Value::Bool(_)) => true,
            (TypeKind::Int32, Value::Number(n)) => n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
            (TypeKind::Int64, Value::Number(n)) => n.is_i64(),
            (TypeKind::Double, Value::Number(_)) => true,
            (TypeKind::Bytes, Value::String(text)) => {
                match base64::canonical(text) {
                    Ok(Cow::Borrowed(_)) => {}
                    Ok(Cow::Owned(canonical)) => *text = canonical,
                    Err(offset) => self.save(UnmarshalError::Base64(offset)),
                }
                true
            }
            (TypeKind::Bytes, Value::Array(_)) => {
                self.byte_list(value, at);
                true
            }
            (TypeKind::Any | TypeKind::RawExtension | TypeKind::FieldsV1 | TypeKind::Json, _) => true,
            (TypeKind::Quantity, _) => return quantity(value),
            (TypeKind::IntOrString, Value::String(_)) => true,
            (TypeKind::IntOrString, Value::Number(n))
                if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) =>
            {
                true
            }
            (TypeKind::Time, Value::String(text)) => return time(text, canonical_time),
            (TypeKind::MicroTime, Value::String(text)) => return time(text, canonical_micro_time),
            (TypeKind::SchemaOrBool | TypeKind::SchemaOrArray | TypeKind::SchemaOrStrings, _) => {
                return self.schema_or(ty, value, at, depth);
            }
            // These decode themselves, by way of the plain type.
            (TypeKind::Time | TypeKind::MicroTime, _) => {
                return Err(self.mismatch_as("string".into(), value, at));
            }
            (TypeKind::IntOrString, _) => return Err(self.mismatch_as("int32".into(), value, at)),
            _ => false,
        };
        if !fits {
            let error = self.mismatch(ty, value, at);
            self.save(error);
        }
        Ok(Fate::Keep)
    }

    fn object(
        &mut self,
        ty: TypeId,
        map: &mut Map<String, Value>,
        at: &Path<'_>,
        depth: usize,
    ) -> Result<Fate, UnmarshalError> {
        let table = self.table;
        let members = table.member_indexes(ty);
        let mut near = 0;
        let mut dropped = false;
        for (key, value) in map.iter_mut() {
            let fate = match table.seek(ty, &mut near, key) {
                Some(position) if !value.is_null() => {
                    let field = table.field_at(members[position]);
                    let path = Path { parent: Some(at), step: Step::Field { owner: ty, name: field.name } };
                    match self.value(field.ty, value, &path, depth + 1)? {
                        Fate::Drop if self.keeps(ty, field) => Fate::Keep,
                        fate => fate,
                    }
                }
                Some(_) => Fate::Drop,
                None => {
                    self.unknown(key, at);
                    Fate::Drop
                }
            };
            if fate == Fate::Drop {
                *value = Value::Null;
                dropped = true;
            }
        }
        if dropped {
            map.retain(|_, value| !value.is_null());
        }
        Ok(Fate::Keep)
    }

    fn list(
        &mut self,
        ty: TypeId,
        items: &mut [Value],
        at: &Path<'_>,
        depth: usize,
    ) -> Result<Fate, UnmarshalError> {
        let elem = self.table.elem(ty);
        let pointer = self.table.ty(ty).elem_pointer;
        for (index, item) in items.iter_mut().enumerate() {
            let path = Path { parent: Some(at), step: Step::Index(index) };
            self.element(elem, pointer, item, &path, depth)?;
        }
        Ok(self.unless_empty(items.is_empty()))
    }

    fn map(
        &mut self,
        ty: TypeId,
        map: &mut Map<String, Value>,
        at: &Path<'_>,
        depth: usize,
    ) -> Result<Fate, UnmarshalError> {
        let elem = self.table.elem(ty);
        let pointer = self.table.ty(ty).elem_pointer;
        for (key, value) in map.iter_mut() {
            let path = Path { parent: Some(at), step: Step::Key(key) };
            self.element(elem, pointer, value, &path, depth)?;
        }
        Ok(self.unless_empty(map.is_empty()))
    }

    /// An element cannot be absent: where a member would be dropped it is the zero value.
    fn element(
        &mut self,
        ty: TypeId,
        pointer: bool,
        value: &mut Value,
        at: &Path<'_>,
        depth: usize,
    ) -> Result<(), UnmarshalError> {
        if value.is_null() || self.value(ty, value, at, depth + 1)? == Fate::Drop {
            *value = self.table.zero(ty, pointer);
        }
        Ok(())
    }

    /// A schema inside such a value is decoded by a decoder of its own, whose error ends ours.
    fn schema_or(
        &mut self,
        ty: TypeId,
        value: &mut Value,
        at: &Path<'_>,
        depth: usize,
    ) -> Result<Fate, UnmarshalError> {
        let outer = self.saved.take();
        let fate = self.nested(ty, value, at, depth)?;
        match self.saved.take() {
            Some(error) => Err(error),
            None => {
                self.saved = outer;
                Ok(fate)
            }
        }
    }

    fn nested(
        &mut self,
        ty: TypeId,
        value: &mut Value,
        at: &Path<'_>,
        depth: usize,
    ) -> Result<Fate, UnmarshalError> {
        let schema = self.table.elem(ty);
        let path = Path { parent: Some(at), step: Step::Nested };
        match (self.table.ty(ty).kind, value) {
            (_, value @ Value::Object(_)) => return self.value(schema, value, &path, depth + 1),
            (TypeKind::SchemaOrBool, Value::Bool(_)) => {}
            (TypeKind::SchemaOrBool, _) => return Err(UnmarshalError::SchemaOrBool),
            (TypeKind::SchemaOrArray, Value::Array(items)) if !items.is_empty() => {
                for item in items.iter_mut() {
                    self.element(schema, false, item, &path, depth)?;
                }
            }
            (TypeKind::SchemaOrStrings, Value::Array(items)) if !items.is_empty() => {
                for item in items.iter_mut().filter(|item| !item.is_string()) {
                    if !item.is_null() {
                        let error = self.mismatch_as("string".into(), item, &path);
                        self.save(error);
                    }
                    *item = Value::String(String::new());
                }
            }
            // Go keeps neither a schema nor a list, and would write null.
            _ => return Ok(Fate::Drop),
        }
        Ok(Fate::Keep)
    }

    fn unless_empty(&self, empty: bool) -> Fate {
        if empty && self.empty != Empty::Kept { Fate::Drop } else { Fate::Keep }
    }

    /// Of a member that is dropped because it is an empty list or map.
    fn keeps(&self, owner: TypeId, field: &Field) -> bool {
        self.empty == Empty::KeptIfTold && is_told_empty(self.table, owner, field)
    }

    fn unknown(&mut self, key: &str, at: &Path<'_>) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        if let Some(path) = at.strict(key) {
            self.problems.push(FieldProblem { path });
        }
    }

    #[cold]
    fn mismatch(&self, ty: TypeId, value: &Value, at: &Path<'_>) -> UnmarshalError {
        self.mismatch_as(self.table.go_type(ty), value, at)
    }

    fn save(&mut self, error: UnmarshalError) {
        self.saved.get_or_insert(error);
    }

    /// Go also takes a list of numbers for bytes.
    fn byte_list(&mut self, value: &mut Value, at: &Path<'_>) {
        let Value::Array(items) = &*value else { return };
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::Null => bytes.push(0),
                Value::Number(n) if n.as_u64().is_some_and(|n| n < 256) => {
                    bytes.push(n.as_u64().unwrap_or_default() as u8);
                }
                other => {
                    let error = self.mismatch_as("uint8".into(), other, at);
                    self.save(error);
                    return;
                }
            }
        }
        *value = Value::String(base64::encoded(&bytes));
    }

    #[cold]
    fn mismatch_as(&self, ty: String, value: &Value, at: &Path<'_>) -> UnmarshalError {
        let value = match value {
            Value::Null => "null".into(),
            Value::Bool(_) => "bool".into(),
            Value::Array(_) => "array".into(),
            Value::Object(_) => "object".into(),
            Value::String(_) => "string".into(),
            Value::Number(n) if matches!(ty.as_str(), "int32" | "int64" | "uint8") => format!("number {n}"),
            Value::Number(_) => "number".into(),
        };
        UnmarshalError::Type { value, place: at.place(self.table), ty }
    }
}

impl Path<'_> {
    /// The path of a member as strict decoding writes it; `None` where decoding is not strict.
    fn strict(&self, key: &str) -> Option<String> {
        let mut path = String::new();
        self.write_strict(&mut path)?;
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        Some(path)
    }

    fn write_strict(&self, path: &mut String) -> Option<()> {
        if let Some(parent) = self.parent {
            parent.write_strict(path)?;
        }
        match self.step {
            Step::Root => {}
            Step::Nested => return None,
            Step::Index(index) => path.push_str(&format!("[{index}]")),
            Step::Field { name, .. } | Step::Key(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
        }
        Some(())
    }

    /// `value`, or `struct field ` with the innermost struct and the fields down from the root. Go names
    /// neither indexes nor map keys, but does name embedded structs.
    fn place(&self, table: &Table) -> String {
        let mut fields: Vec<&str> = Vec::new(); // innermost first
        let mut owner = None;
        let mut step = Some(self);
        while let Some(path) = step {
            match path.step {
                Step::Field { owner: ty, name } => {
                    fields.push(name);
                    fields.extend(embedding(table, ty, name).into_iter().rev());
                    owner = owner.or(Some(ty));
                }
                Step::Nested => owner = None, // the outer decoder puts its own struct's name in
                Step::Root | Step::Key(_) | Step::Index(_) => {}
            }
            step = path.parent;
        }
        let Some(owner) = owner else { return "value".into() };
        fields.push(table.ty(owner).name);
        fields.reverse();
        format!("struct field {}", fields.join("."))
    }
}

/// The embedded structs between a struct and its member, outermost first.
fn embedding(table: &Table, owner: TypeId, member: &str) -> Vec<&'static str> {
    let mut chain = Vec::new();
    let mut ty = owner;
    loop {
        let fields = table.fields(ty);
        if fields.iter().any(|field| field.name == member) {
            return chain;
        }
        let inline = |ty: TypeId| table.member(ty, member).is_some();
        let Some(field) = fields.iter().find(|field| field.name.is_empty() && inline(field.ty)) else {
            return chain;
        };
        chain.push(table.ty(field.ty).name);
        ty = field.ty;
    }
}

impl Table {
    /// What Go's zero value of an element looks like in JSON.
    fn zero(&self, ty: TypeId, pointer: bool) -> Value {
        if pointer {
            return Value::Null;
        }
        match self.ty(ty).kind {
            TypeKind::Struct | TypeKind::Map => Value::Object(Map::new()),
            TypeKind::List => Value::Array(Vec::new()),
            TypeKind::String | TypeKind::Bytes => Value::String(String::new()),
            TypeKind::Bool => Value::Bool(false),
            TypeKind::Int32 | TypeKind::Int64 | TypeKind::Double | TypeKind::IntOrString => Value::from(0),
            TypeKind::Quantity => Value::String("0".into()),
            TypeKind::SchemaOrBool => Value::Bool(false),
            _ => Value::Null,
        }
    }
}

fn quantity(value: &mut Value) -> Result<Fate, UnmarshalError> {
    let canonical = match &*value {
        Value::String(text) => {
            let canonical = quantity::canonical(text, Precision::Nano)?;
            if canonical == *text {
                return Ok(Fate::Keep);
            }
            canonical.into_owned()
        }
        Value::Number(number) => {
            let text = match (number.as_i64(), number.as_f64()) {
                (None, Some(float)) => {
                    let mut text = Vec::new();
                    write_float(float, &mut text);
                    text.into_iter().map(char::from).collect()
                }
                _ => number.to_string(),
            };
            quantity::canonical(&text, Precision::Nano)?.into_owned()
        }
        _ => return Err(QuantityError::Format.into()),
    };
    *value = Value::String(canonical);
    Ok(Fate::Keep)
}

type Canonical = for<'a> fn(&'a str) -> Result<Option<Cow<'a, str>>, super::TimeError>;

fn time(text: &mut String, canonical: Canonical) -> Result<Fate, UnmarshalError> {
    let owned = match canonical(text)? {
        None => return Ok(Fate::Drop),
        Some(Cow::Borrowed(_)) => return Ok(Fate::Keep),
        Some(Cow::Owned(owned)) => owned,
    };
    *text = owned;
    Ok(Fate::Keep)
}
