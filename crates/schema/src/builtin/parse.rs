//! Reads the table's text.
//!
//! In: `builtin.txt`, one fact a line:
//!
//! ```text
//! # comment
//! package ALIAS IMPORT-PATH GO-NAME
//! type NAME struct|TYPE|!SPECIAL [ELEM]   <tab>ATTR=VALUE...
//!  JSON-NAME TYPE PROTOBUF-NUMBER FLAGS   <tab>ATTR=VALUE...
//! kind GROUP VERSION KIND ALIAS.NAME [ALIAS.NAME of the list]
//! ```
//!
//! TYPE is a primitive, `[]TYPE`, `{}TYPE` (a map by string), `{KEY}TYPE`, `*TYPE`, a NAME of the same
//! package or ALIAS.NAME. A JSON-NAME of `-` is an inline field, a GROUP of `-` the core group. FLAGS: `e`
//! omitempty, `z` omitzero, `o` +optional, `r` +required, `n` +nullable, `d` +unionDiscriminator, `-` none.
//! Out: a [`Table`]. Never: partial results; the first malformed line is an error.

use std::collections::HashMap;

use super::resources;
use super::table::{
    Field, FieldAttrs, FieldFlags, FieldIndex, Kind, ListType, MapType, NO_PACKAGE, Package, Table, Type,
    TypeId, TypeKind, prefix,
};

/// The table's text is malformed.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TableError {
    /// 1-based; lines of the resource file count from 1 again.
    pub line: usize,
    pub problem: String,
}

type Result<T> = std::result::Result<T, String>;

pub(super) fn parse(
    types: &'static str,
    resource_text: &'static str,
) -> std::result::Result<Table, TableError> {
    let mut parser = Parser::default();
    parser.attrs("").map_err(|problem| TableError { line: 0, problem })?; // index 0
    each_line(types, |line| parser.declare(line))?;
    parser.package = None;
    each_line(types, |line| parser.define(line))?;
    let mut table = parser.finish().map_err(|problem| TableError { line: 0, problem })?;
    each_line(resource_text, |line| resources::parse_line(&mut table, line))?;
    resources::sort(&mut table);
    Ok(table)
}

fn each_line(
    text: &'static str,
    mut f: impl FnMut(&'static str) -> Result<()>,
) -> std::result::Result<(), TableError> {
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        f(line).map_err(|problem| TableError { line: index + 1, problem })?;
    }
    Ok(())
}

/// Two passes over the same lines: the first gives every named type its id, the second reads what they are.
#[derive(Default)]
struct Parser {
    table: Table,
    aliases: HashMap<&'static str, u8>,
    composites: HashMap<(TypeKindKey, TypeId, TypeId, bool), TypeId>,
    attrs: HashMap<&'static str, u16>, // attribute text -> index in table.attrs
    package: Option<u8>,
    current: Option<TypeId>,
}

type TypeKindKey = u8;

impl Parser {
    fn declare(&mut self, line: &'static str) -> Result<()> {
        if let Some(rest) = line.strip_prefix("package ") {
            let [alias, path, go_name] = words(rest)?;
            let index = u8::try_from(self.table.packages.len()).map_err(|_| "too many packages")?;
            self.table.packages.push(Package { alias, path, go_name });
            self.aliases.insert(alias, index);
            self.package = Some(index);
        } else if let Some(rest) = line.strip_prefix("type ") {
            let package = self.package.ok_or("a type before any package")?;
            let name = rest.split(' ').next().unwrap_or_default();
            let id = self.push_type(Type { name, package, ..blank(TypeKind::Struct) })?;
            if self.table.names.insert((package, name), id).is_some() {
                return Err(format!("type {name} appears twice"));
            }
        }
        Ok(())
    }

    fn define(&mut self, line: &'static str) -> Result<()> {
        let (head, attrs) = line.split_once('\t').unwrap_or((line, ""));
        if let Some(rest) = head.strip_prefix(' ') {
            self.field(rest, attrs)
        } else if let Some(rest) = head.strip_prefix("type ") {
            self.define_type(rest, attrs)
        } else if let Some(rest) = head.strip_prefix("kind ") {
            self.kind(rest)
        } else if let Some(rest) = head.strip_prefix("package ") {
            let alias = rest.split(' ').next().unwrap_or_default();
            self.package = self.aliases.get(alias).copied();
            Ok(())
        } else {
            Err("unknown line".into())
        }
    }

    fn define_type(&mut self, rest: &'static str, attrs: &'static str) -> Result<()> {
        let mut words = rest.split(' ');
        let name = words.next().unwrap_or_default();
        let expr = words.next().ok_or("a type without what it is")?;
        let id = self.named(name)?;
        self.current = Some(id);
        if expr == "struct" {
            let start = index16(self.table.fields.len())?;
            self.type_mut(id).fields = (start, 0);
        } else if let Some(special) = expr.strip_prefix('!') {
            let kind = special_kind(special).ok_or_else(|| format!("unknown special type {special}"))?;
            self.type_mut(id).kind = kind;
            if let Some(elem) = words.next() {
                let elem = self.named(elem)?;
                self.type_mut(id).elem = elem;
            }
        } else {
            let (of, _) = self.expr(expr)?;
            let of = self.table.ty(of);
            let (kind, elem, key, elem_pointer) = (of.kind, of.elem, of.key, of.elem_pointer);
            let ty = self.type_mut(id);
            (ty.kind, ty.elem, ty.key, ty.elem_pointer) = (kind, elem, key, elem_pointer);
        }
        self.type_attrs(id, attrs)
    }

    fn type_attrs(&mut self, id: TypeId, attrs: &'static str) -> Result<()> {
        for attr in attrs.split('\t').filter(|attr| !attr.is_empty()) {
            let ty = self.type_mut(id);
            match attr.split_once('=').unwrap_or((attr, "")) {
                ("enum", values) => ty.enum_values = Some(values),
                ("message", _) => ty.proto_message = true,
                ("union", _) => ty.union = true,
                ("structType" | "mapType", value) => ty.map_type = Some(map_type(value)?),
                _ => return Err(format!("unknown attribute {attr} of a type")),
            }
        }
        Ok(())
    }

    fn field(&mut self, rest: &'static str, attrs: &'static str) -> Result<()> {
        let owner = self.current.ok_or("a field before any type")?;
        let [name, expr, proto, flags] = words(rest)?;
        let (ty, pointer) = self.expr(expr)?;
        let mut bits = if pointer { FieldFlags::POINTER } else { 0 };
        for flag in flags.chars() {
            bits |= match flag {
                'e' => FieldFlags::OMIT_EMPTY,
                'z' => FieldFlags::OMIT_ZERO,
                'o' => FieldFlags::OPTIONAL,
                'r' => FieldFlags::REQUIRED,
                'n' => FieldFlags::NULLABLE,
                'd' => FieldFlags::DISCRIMINATOR,
                '-' => 0,
                _ => return Err(format!("unknown flag {flag}")),
            };
        }
        let name = if name == "-" { "" } else { name };
        if name.is_empty() && pointer {
            return Err("an inline pointer".into());
        }
        let proto = proto.parse().map_err(|_| format!("protobuf number {proto}"))?;
        let attrs = self.attrs(attrs)?;
        self.table.fields.push(Field { name, ty, proto, flags: FieldFlags(bits), attrs });
        self.type_mut(owner).fields.1 += 1;
        Ok(())
    }

    fn attrs(&mut self, text: &'static str) -> Result<u16> {
        if let Some(&index) = self.attrs.get(text) {
            return Ok(index);
        }
        let mut attrs = FieldAttrs::default();
        for attr in text.split('\t').filter(|attr| !attr.is_empty()) {
            let (key, value) =
                attr.split_once('=').ok_or_else(|| format!("attribute {attr} without a value"))?;
            match key {
                "patchStrategy" => attrs.patch_strategy = Some(value),
                "patchMergeKey" => attrs.patch_merge_key = Some(value),
                "listType" => attrs.list_type = Some(list_type(value)?),
                "listMapKey" => attrs.list_map_key = Some(value),
                "mapType" | "structType" => attrs.map_type = Some(map_type(value)?),
                "default" => attrs.default = Some(value),
                "featureGate" => attrs.feature_gate = Some(value),
                _ => return Err(format!("unknown attribute {attr} of a field")),
            }
        }
        let index = index16(self.table.attrs.len())?;
        self.table.attrs.push(attrs);
        self.attrs.insert(text, index);
        Ok(index)
    }

    fn kind(&mut self, rest: &'static str) -> Result<()> {
        let mut words = rest.split(' ');
        let mut next = || words.next().ok_or("a kind line is group, version, kind, type and perhaps list");
        let (group, version, kind, ty) = (next()?, next()?, next()?, next()?);
        let group = if group == "-" { "" } else { group };
        let ty = self.named(ty)?;
        let list = words.next().map(|list| self.named(list)).transpose()?;
        self.table.kinds.push(Kind { group, version, kind, ty, list });
        Ok(())
    }

    /// Reads a type expression; the flag says whether it is a pointer.
    fn expr(&mut self, expr: &'static str) -> Result<(TypeId, bool)> {
        if let Some(inner) = expr.strip_prefix('*') {
            return Ok((self.expr(inner)?.0, true));
        }
        if let Some(elem) = expr.strip_prefix("[]") {
            let (elem, pointer) = self.expr(elem)?;
            return Ok((self.composite(TypeKind::List, elem, elem, pointer)?, false));
        }
        if let Some(rest) = expr.strip_prefix('{') {
            let (key, elem) = rest.split_once('}').ok_or("an unclosed map key")?;
            let key = self.expr(if key.is_empty() { "string" } else { key })?.0;
            let (elem, pointer) = self.expr(elem)?;
            return Ok((self.composite(TypeKind::Map, elem, key, pointer)?, false));
        }
        let primitive = match expr {
            "string" => TypeKind::String,
            "bool" => TypeKind::Bool,
            "int32" => TypeKind::Int32,
            "int64" => TypeKind::Int64,
            "double" => TypeKind::Double,
            "bytes" => TypeKind::Bytes,
            "any" => TypeKind::Any,
            _ => return Ok((self.named(expr)?, false)),
        };
        Ok((self.composite(primitive, TypeId(0), TypeId(0), false)?, false))
    }

    fn composite(&mut self, kind: TypeKind, elem: TypeId, key: TypeId, elem_pointer: bool) -> Result<TypeId> {
        let shape = (kind as TypeKindKey, elem, key, elem_pointer);
        if let Some(&id) = self.composites.get(&shape) {
            return Ok(id);
        }
        let id = self.push_type(Type { elem_pointer, ..blank(kind) })?;
        if matches!(kind, TypeKind::List | TypeKind::Map) {
            (self.type_mut(id).elem, self.type_mut(id).key) = (elem, key);
        }
        self.composites.insert(shape, id);
        Ok(id)
    }

    fn named(&self, name: &'static str) -> Result<TypeId> {
        let (package, name) = match name.rsplit_once('.') {
            Some((alias, name)) => (self.aliases.get(alias).copied(), name),
            None => (self.package, name),
        };
        let package = package.ok_or_else(|| format!("type {name} in an unknown package"))?;
        self.table.names.get(&(package, name)).copied().ok_or_else(|| format!("unknown type {name}"))
    }

    fn push_type(&mut self, mut ty: Type) -> Result<TypeId> {
        let id = TypeId(index16(self.table.types.len())?);
        (ty.elem, ty.key) = (id, id);
        self.table.types.push(ty);
        Ok(id)
    }

    fn type_mut(&mut self, id: TypeId) -> &mut Type {
        &mut self.table.types[usize::from(id.0)]
    }

    /// Lays out the JSON members of every struct and shrinks what grew.
    fn finish(mut self) -> Result<Table> {
        for index in 0..self.table.types.len() {
            let id = TypeId(index16(index)?);
            if self.table.ty(id).kind == TypeKind::Struct {
                self.lay_out(id)?;
            }
        }
        self.mark_omitted()?;
        let table = &mut self.table;
        table.kinds.sort_by_key(|k| (k.group, k.version, k.kind));
        table.types.shrink_to_fit();
        table.fields.shrink_to_fit();
        table.members.shrink_to_fit();
        table.sorted.shrink_to_fit();
        table.prefixes.shrink_to_fit();
        Ok(self.table)
    }

    /// omitempty has no effect on structs, and on types that are structs in Go.
    fn mark_omitted(&mut self) -> Result<()> {
        let Table { fields, types, .. } = &mut self.table;
        for field in fields {
            let kind = types[usize::from(field.ty.0)].kind;
            let flags = field.flags;
            let is_struct = !matches!(
                kind,
                TypeKind::List
                    | TypeKind::Map
                    | TypeKind::String
                    | TypeKind::Bytes
                    | TypeKind::Any
                    | TypeKind::Bool
                    | TypeKind::Int32
                    | TypeKind::Int64
                    | TypeKind::Double
            );
            let time = matches!(kind, TypeKind::Time | TypeKind::MicroTime);
            if flags.omit_zero() && is_struct && !time && !flags.pointer() {
                return Err(format!("omitzero of {} needs to know when its struct is zero", field.name));
            }
            if flags.omit_zero() || (flags.omit_empty() && (flags.pointer() || !is_struct)) {
                field.flags.0 |= FieldFlags::OMITTED;
            }
        }
        Ok(())
    }

    fn lay_out(&mut self, id: TypeId) -> Result<()> {
        let mut members = Vec::new();
        collect_members(&self.table, id, &mut members, 0)?;
        let len = u8::try_from(members.len()).map_err(|_| "a struct of more than 255 members")?;
        let mut sorted: Vec<u8> = (0..len).collect();
        let name = |position: u8| self.table.field_at(members[usize::from(position)]).name;
        sorted.sort_by_key(|&position| name(position));
        if let Some(pair) = sorted.windows(2).find(|pair| name(pair[0]) == name(pair[1])) {
            return Err(format!("{} has two members named {}", self.table.ty(id).name, name(pair[0])));
        }
        let prefixes: Vec<u64> = sorted.iter().map(|&position| prefix(name(position))).collect();
        let has_type_meta = self.table.fields(id).first().is_some_and(|first| {
            let ty = self.table.ty(first.ty);
            first.name.is_empty() && ty.name == "TypeMeta"
        });
        let start = index16(self.table.members.len())?;
        self.table.members.extend_from_slice(&members);
        self.table.sorted.extend_from_slice(&sorted);
        self.table.prefixes.extend_from_slice(&prefixes);
        let ty = self.type_mut(id);
        ty.members = (start, u16::from(len));
        ty.has_type_meta = has_type_meta;
        Ok(())
    }
}

fn collect_members(table: &Table, id: TypeId, members: &mut Vec<FieldIndex>, depth: usize) -> Result<()> {
    if depth > 8 {
        return Err(format!("{} is inline in itself", table.ty(id).name));
    }
    let (start, len) = table.ty(id).fields;
    for index in start..start + len {
        let field = table.field_at(index);
        if field.name.is_empty() {
            collect_members(table, field.ty, members, depth + 1)?;
        } else {
            members.push(index);
        }
    }
    Ok(())
}

fn blank(kind: TypeKind) -> Type {
    Type {
        name: "",
        kind,
        elem_pointer: false,
        proto_message: false,
        union: false,
        map_type: None,
        package: NO_PACKAGE,
        has_type_meta: false,
        elem: TypeId(0),
        key: TypeId(0),
        fields: (0, 0),
        members: (0, 0),
        enum_values: None,
    }
}

fn special_kind(word: &str) -> Option<TypeKind> {
    Some(match word {
        "quantity" => TypeKind::Quantity,
        "intorstring" => TypeKind::IntOrString,
        "time" => TypeKind::Time,
        "microtime" => TypeKind::MicroTime,
        "fieldsv1" => TypeKind::FieldsV1,
        "rawextension" => TypeKind::RawExtension,
        "json" => TypeKind::Json,
        "schemaorbool" => TypeKind::SchemaOrBool,
        "schemaorarray" => TypeKind::SchemaOrArray,
        "schemaorstrings" => TypeKind::SchemaOrStrings,
        _ => return None,
    })
}

fn list_type(value: &str) -> Result<ListType> {
    match value {
        "atomic" => Ok(ListType::Atomic),
        "set" => Ok(ListType::Set),
        "map" => Ok(ListType::Map),
        _ => Err(format!("list type {value}")),
    }
}

fn map_type(value: &str) -> Result<MapType> {
    match value {
        "atomic" => Ok(MapType::Atomic),
        "granular" => Ok(MapType::Granular),
        _ => Err(format!("map type {value}")),
    }
}

fn index16(index: usize) -> Result<u16> {
    u16::try_from(index).map_err(|_| "more rows than an index can count".into())
}

/// Splits into exactly `N` words.
pub(super) fn words<const N: usize>(text: &'static str) -> Result<[&'static str; N]> {
    let words: Vec<_> = text.split(' ').collect();
    words.try_into().map_err(|words: Vec<_>| format!("{} words instead of {N}", words.len()))
}
