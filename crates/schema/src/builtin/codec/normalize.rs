//! Checks an incoming JSON value as Go's decoder into the typed struct would, and makes it canonical.
//!
//! In: a value as a client sent it. Out: the same value with `null`s and unknown fields gone, and quantities, times
//! and base64 in canonical form; the unknown fields by path. Never: defaults, validation of contents.
//!
//! Members are visited in the order of the value's map, not of the document, so of several mistakes another
//! one may be named first than kube-apiserver would.

use serde_json::{Map, Value};

use super::super::table::{Table, TypeId, TypeKind};
use super::base64;
use super::quantity::canonical_quantity;
use super::text::write_float;
use super::time::{canonical_micro_time, canonical_time};
use super::{DEPTH_MAX, DecodeError, FieldProblem, PROBLEMS_MAX};

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
/// [`DecodeError`] for the first value that Go could not decode.
pub fn normalize(ty: TypeId, value: &mut Value) -> Result<Vec<FieldProblem>, DecodeError> {
    let table = super::super::table();
    let mut walk = Walk { table, keep_empty: table.stored_as_json(ty), problems: Vec::new() };
    if value.is_null() {
        *value = table.zero(ty, false);
        return Ok(Vec::new());
    }
    let root = Path { parent: None, step: Step::Root };
    walk.value(ty, value, &root, 0)?;
    Ok(walk.problems)
}

struct Walk<'t> {
    table: &'t Table,
    keep_empty: bool,
    problems: Vec<FieldProblem>,
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
    ) -> Result<Fate, DecodeError> {
        if depth > DEPTH_MAX {
            return Err(DecodeError::TooDeep);
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
                replace(text, base64::canonical(text).map_err(DecodeError::Base64)?.into_owned());
                return Ok(self.unless_empty(text.is_empty()));
            }
            (TypeKind::Any | TypeKind::RawExtension | TypeKind::FieldsV1 | TypeKind::Json, _) => true,
            (TypeKind::Quantity, _) => return quantity(value),
            (TypeKind::IntOrString, Value::String(_)) => true,
            (TypeKind::IntOrString, Value::Number(n)) => n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
            (TypeKind::Time, Value::String(text)) => return time(text, canonical_time),
            (TypeKind::MicroTime, Value::String(text)) => return time(text, canonical_micro_time),
            (TypeKind::SchemaOrBool | TypeKind::SchemaOrArray | TypeKind::SchemaOrStrings, _) => {
                return self.schema_or(ty, value, at, depth);
            }
            _ => false,
        };
        if fits { Ok(Fate::Keep) } else { Err(self.mismatch(ty, value, at)) }
    }

    fn object(
        &mut self,
        ty: TypeId,
        map: &mut Map<String, Value>,
        at: &Path<'_>,
        depth: usize,
    ) -> Result<Fate, DecodeError> {
        let table = self.table;
        let (members, sorted) = (table.member_indexes(ty), table.sorted(ty));
        let name_at = |position: usize| table.field_at(members[usize::from(sorted[position])]).name;
        let mut next = 0; // position in sorted; keys usually come in the same order
        let mut failed = None;
        map.retain(|key, value| {
            if failed.is_some() {
                return true;
            }
            if next > 0 && name_at(next - 1) >= key.as_str() {
                next = 0;
            }
            while next < sorted.len() && name_at(next) < key.as_str() {
                next += 1;
            }
            if next == sorted.len() || name_at(next) != key {
                self.unknown(key, at);
                return false;
            }
            let field = table.field_at(members[usize::from(sorted[next])]);
            next += 1;
            if value.is_null() {
                return false;
            }
            let path = Path { parent: Some(at), step: Step::Field { owner: ty, name: field.name } };
            match self.value(field.ty, value, &path, depth + 1) {
                Ok(fate) => fate == Fate::Keep,
                Err(error) => {
                    failed = Some(error);
                    true
                }
            }
        });
        failed.map_or(Ok(Fate::Keep), Err)
    }

    fn list(
        &mut self,
        ty: TypeId,
        items: &mut [Value],
        at: &Path<'_>,
        depth: usize,
    ) -> Result<Fate, DecodeError> {
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
    ) -> Result<Fate, DecodeError> {
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
    ) -> Result<(), DecodeError> {
        if value.is_null() || self.value(ty, value, at, depth + 1)? == Fate::Drop {
            *value = self.table.zero(ty, pointer);
        }
        Ok(())
    }

    fn schema_or(
        &mut self,
        ty: TypeId,
        value: &mut Value,
        at: &Path<'_>,
        depth: usize,
    ) -> Result<Fate, DecodeError> {
        let schema = self.table.elem(ty);
        let path = Path { parent: Some(at), step: Step::Nested };
        match (self.table.ty(ty).kind, value) {
            (_, value @ Value::Object(_)) => self.value(schema, value, &path, depth + 1),
            (TypeKind::SchemaOrBool, Value::Bool(_)) => Ok(Fate::Keep),
            (TypeKind::SchemaOrBool, _) => Err(DecodeError::SchemaOrBool),
            (TypeKind::SchemaOrArray, Value::Array(items)) if !items.is_empty() => {
                for item in items.iter_mut() {
                    self.element(schema, false, item, &path, depth)?;
                }
                Ok(Fate::Keep)
            }
            (TypeKind::SchemaOrStrings, Value::Array(items)) if !items.is_empty() => {
                for item in items.iter_mut() {
                    match item {
                        Value::String(_) => {}
                        Value::Null => *item = Value::String(String::new()),
                        other => return Err(self.mismatch_as("string".into(), other, &path)),
                    }
                }
                Ok(Fate::Keep)
            }
            // Go keeps neither a schema nor a list, and would write null.
            _ => Ok(Fate::Drop),
        }
    }

    fn unless_empty(&self, empty: bool) -> Fate {
        if empty && !self.keep_empty { Fate::Drop } else { Fate::Keep }
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
    fn mismatch(&self, ty: TypeId, value: &Value, at: &Path<'_>) -> DecodeError {
        let want = match (self.table.ty(ty).kind, value) {
            (TypeKind::Time | TypeKind::MicroTime, _) => "string".into(),
            // These decode themselves, by way of the plain type.
            (TypeKind::IntOrString, _) => "int32".into(),
            _ => self.table.go_type(ty),
        };
        self.mismatch_as(want, value, at)
    }

    #[cold]
    fn mismatch_as(&self, ty: String, value: &Value, at: &Path<'_>) -> DecodeError {
        let value = match value {
            Value::Null => "null".into(),
            Value::Bool(_) => "bool".into(),
            Value::Array(_) => "array".into(),
            Value::Object(_) => "object".into(),
            Value::String(_) => "string".into(),
            Value::Number(n) if ty == "int32" || ty == "int64" => format!("number {n}"),
            Value::Number(_) => "number".into(),
        };
        DecodeError::Type { value, place: at.place(self.table), ty }
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

    /// `value`, or `struct field ` with the innermost struct and the fields down from the root. Go names neither
    /// indexes nor map keys, but does name embedded structs.
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

fn replace(text: &mut String, canonical: String) {
    if *text != canonical {
        *text = canonical;
    }
}

fn quantity(value: &mut Value) -> Result<Fate, DecodeError> {
    let canonical = match &*value {
        Value::String(text) => {
            let canonical = canonical_quantity(text)?;
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
            canonical_quantity(&text)?.into_owned()
        }
        _ => return Err(super::QuantityError::Format.into()),
    };
    *value = Value::String(canonical);
    Ok(Fate::Keep)
}

type Canonical = for<'a> fn(&'a str) -> Result<Option<std::borrow::Cow<'a, str>>, super::TimeError>;

fn time(text: &mut String, canonical: Canonical) -> Result<Fate, DecodeError> {
    let owned = match canonical(text)? {
        None => return Ok(Fate::Drop),
        Some(std::borrow::Cow::Borrowed(_)) => return Ok(Fate::Keep),
        Some(std::borrow::Cow::Owned(owned)) => owned,
    };
    *text = owned;
    Ok(Fate::Keep)
}
