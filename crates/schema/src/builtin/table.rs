//! The table's rows and how they are looked up.
//!
//! All rows live in flat vectors and refer to each other by index; every name is a slice of the included
//! text. In: rows from the parser. Out: lookups. Never: changed after parsing.

use std::collections::HashMap;

use super::resources::Resource;

/// All built-in types, kinds and resources.
#[derive(Debug, Default)]
pub struct Table {
    pub(super) packages: Vec<Package>,
    pub(super) types: Vec<Type>,   // named types in file order, then composites
    pub(super) fields: Vec<Field>, // by struct, in Go order
    pub(super) members: Vec<FieldIndex>, // by struct: JSON members in Go order, inline structs spliced in
    pub(super) sorted: Vec<u8>,    // by struct: positions in its members, ordered by JSON name
    pub(super) prefixes: Vec<u64>, // beside `sorted`: the first eight bytes of the name
    pub(super) attrs: Vec<FieldAttrs>, // [0] is the empty one
    pub(super) kinds: Vec<Kind>,   // ordered by group, version, kind
    pub(super) resources: Vec<Resource>, // ordered by group, version, plural
    pub(super) names: HashMap<(u8, &'static str), TypeId>, // package, Go name
}

pub(super) type FieldIndex = u16;

/// A Go package.
#[derive(Debug)]
pub struct Package {
    /// Short name, unique in the table: `core/v1`, `meta/v1`, `api/resource`.
    pub alias: &'static str,
    /// Import path: `k8s.io/api/core/v1`.
    pub path: &'static str,
    /// The name that Go prints before a type's: `v1`.
    pub go_name: &'static str,
}

/// Index of a [`Type`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(super) u16);

impl TypeId {
    /// Its place in the table, which says which type it is and nothing more.
    pub fn index(self) -> u16 {
        self.0
    }
}

/// A Go type: a named one, or a list or map of others.
#[derive(Debug)]
pub struct Type {
    /// Go name without the package; empty for anonymous lists, maps and primitives.
    pub name: &'static str,
    pub kind: TypeKind,
    /// Whether the elements of a list or map are pointers in Go.
    pub elem_pointer: bool,
    /// Whether Go's protobuf writes the named list as a message of its own (`Verbs`, `ExtraValue`).
    pub proto_message: bool,
    /// Whether the struct is a union, in the words of OpenAPI.
    pub union: bool,
    /// How server-side apply merges all values of this type, if the type says so.
    pub map_type: Option<MapType>,
    pub(super) package: u8, // index, or NO_PACKAGE
    pub(super) has_type_meta: bool,
    pub(super) elem: TypeId, // of a list, map or schema-or-...; itself otherwise
    pub(super) key: TypeId,  // of a map; itself otherwise
    pub(super) fields: (FieldIndex, u16), // start, len
    pub(super) members: (u16, u16), // start in `members` and `sorted`, len
    pub(super) enum_values: Option<&'static str>, // joined by |
}

pub(super) const NO_PACKAGE: u8 = u8::MAX;

/// How values of a type look in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeKind {
    Struct,
    /// Elements: [`Table::elem`].
    List,
    /// Keys are strings; values: [`Table::elem`].
    Map,
    String,
    Bool,
    Int32,
    Int64,
    /// A 64-bit float.
    Double,
    /// Base64 in JSON.
    Bytes,
    /// Go's `interface{}`.
    Any,
    Quantity,
    IntOrString,
    /// RFC 3339 in seconds.
    Time,
    /// RFC 3339 with six digits of a second.
    MicroTime,
    /// Any object, with its own `kind` (`runtime.RawExtension`).
    RawExtension,
    /// The field set of managedFields.
    FieldsV1,
    /// Any JSON value in a CRD's schema (`apiextensions.JSON`).
    Json,
    /// A CRD's schema or a boolean; the schema: [`Table::elem`].
    SchemaOrBool,
    /// A CRD's schema or a list of them.
    SchemaOrArray,
    /// A CRD's schema or a list of strings.
    SchemaOrStrings,
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// JSON name; empty when the field is inline (an embedded struct whose members count as the owner's).
    pub name: &'static str,
    pub ty: TypeId,
    /// Protobuf field number; 0 when the field has none.
    pub proto: u16,
    pub flags: FieldFlags,
    pub(super) attrs: u16,
}

/// What is true of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldFlags(pub(super) u8);

impl FieldFlags {
    pub(super) const OMIT_EMPTY: u8 = 1;
    pub(super) const OMIT_ZERO: u8 = 2;
    pub(super) const POINTER: u8 = 4;
    pub(super) const OPTIONAL: u8 = 8;
    pub(super) const REQUIRED: u8 = 16;
    pub(super) const NULLABLE: u8 = 32;
    pub(super) const DISCRIMINATOR: u8 = 64;
    pub(super) const OMITTED: u8 = 128;

    /// `json:",omitempty"`.
    pub fn omit_empty(self) -> bool {
        self.0 & Self::OMIT_EMPTY != 0
    }
    /// `json:",omitzero"`.
    pub fn omit_zero(self) -> bool {
        self.0 & Self::OMIT_ZERO != 0
    }
    /// The Go field is a pointer.
    pub fn pointer(self) -> bool {
        self.0 & Self::POINTER != 0
    }
    /// Marked `+optional`.
    pub fn optional(self) -> bool {
        self.0 & Self::OPTIONAL != 0
    }
    /// Marked `+required`.
    pub fn required(self) -> bool {
        self.0 & Self::REQUIRED != 0
    }
    /// Marked `+nullable`.
    pub fn nullable(self) -> bool {
        self.0 & Self::NULLABLE != 0
    }
    /// Marked `+unionDiscriminator`.
    pub fn union_discriminator(self) -> bool {
        self.0 & Self::DISCRIMINATOR != 0
    }
    /// Go leaves the member out when it has no value. Others are written as a zero: `{}`, `null`, `""`.
    #[inline]
    pub fn omitted_when_absent(self) -> bool {
        self.0 & Self::OMITTED != 0
    }
}

/// What few fields have. Equal sets are shared.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FieldAttrs {
    /// `merge`, `replace`, `retainKeys`; several are joined by a comma.
    pub patch_strategy: Option<&'static str>,
    pub patch_merge_key: Option<&'static str>,
    pub list_type: Option<ListType>,
    /// Joined by commas; see [`FieldAttrs::list_map_keys`].
    pub(super) list_map_key: Option<&'static str>,
    /// `+mapType`, or `+structType` on the field.
    pub map_type: Option<MapType>,
    /// `+default`, as JSON text.
    pub default: Option<&'static str>,
    /// `+featureGate`.
    pub feature_gate: Option<&'static str>,
}

impl FieldAttrs {
    /// The keys of a `listType=map`, in order.
    pub fn list_map_keys(&self) -> impl Iterator<Item = &'static str> {
        self.list_map_key.into_iter().flat_map(|keys| keys.split(','))
    }
}

/// `+listType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    Atomic,
    Set,
    Map,
}

/// `+mapType` and `+structType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapType {
    Atomic,
    Granular,
}

/// A registered kind.
#[derive(Debug)]
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub ty: TypeId,
    /// The type of `<kind>List`, if there is one.
    pub list: Option<TypeId>,
}

/// Kinds of meta/v1 that every group and version registers as its own.
const META_KINDS: [&str; 7] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];

impl Table {
    /// Returns the kind, or `None` if it is not built in. `group` is empty for the core group.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Kind> {
        let key = |k: &Kind| (k.group, k.version, k.kind);
        match self.kinds.binary_search_by(|k| key(k).cmp(&(group, version, kind))) {
            Ok(index) => Some(&self.kinds[index]),
            Err(_) if META_KINDS.contains(&kind) && self.has_group_version(group, version) => {
                self.kind("", "v1", kind)
            }
            Err(_) => None,
        }
    }

    fn has_group_version(&self, group: &str, version: &str) -> bool {
        (group, version) != ("", "v1") && self.kinds.iter().any(|k| k.group == group && k.version == version)
    }

    /// All kinds, ordered by group, version and kind. `DeleteOptions` and its like appear once, in the core
    /// group, though [`Table::kind`] finds them in every group.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The resources served, ordered by group, version and plural name.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Returns the resource, or `None` if it is not served. `group` is empty for the core group.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        let key = |r: &Resource| (r.group, r.version, r.plural);
        let found = self.resources.binary_search_by(|r| key(r).cmp(&(group, version, plural)));
        found.ok().map(|index| &self.resources[index])
    }

    /// The named types, in the order of the file.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        let named = self.types.iter().enumerate().filter(|(_, ty)| !ty.name.is_empty());
        named.map(|(index, ty)| (TypeId(index as u16), ty))
    }

    /// The type at `id`.
    #[inline]
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[usize::from(id.0)]
    }

    /// Returns a named type by package alias and Go name: `("core/v1", "Pod")`.
    pub fn type_named(&self, package: &str, name: &str) -> Option<TypeId> {
        let package = self.packages.iter().position(|p| p.alias == package)?;
        self.names.get(&(package as u8, name)).copied()
    }

    /// The element type of a list or map, the schema of a schema-or-...; the type itself otherwise.
    #[inline]
    pub fn elem(&self, id: TypeId) -> TypeId {
        self.ty(id).elem
    }

    /// The key type of a map, which is a kind of string.
    pub fn key(&self, id: TypeId) -> TypeId {
        self.ty(id).key
    }

    /// The package of a named type.
    pub fn package(&self, id: TypeId) -> Option<&Package> {
        self.packages.get(usize::from(self.ty(id).package))
    }

    /// The fields of a struct in Go order, inline ones as themselves; empty for other types.
    pub fn fields(&self, id: TypeId) -> &[Field] {
        let (start, len) = self.ty(id).fields;
        &self.fields[usize::from(start)..][..usize::from(len)]
    }

    /// The JSON members of a struct in Go order, those of inline structs spliced in.
    pub fn members(&self, id: TypeId) -> impl ExactSizeIterator<Item = &Field> {
        self.member_indexes(id).iter().map(|&index| &self.fields[usize::from(index)])
    }

    /// The same by JSON name.
    pub(super) fn members_by_name(&self, id: TypeId) -> impl Iterator<Item = &Field> {
        let (members, (start, len)) = (self.member_indexes(id), self.ty(id).members);
        let sorted = &self.sorted[usize::from(start)..][..usize::from(len)];
        sorted.iter().map(|&position| self.field_at(members[usize::from(position)]))
    }

    #[inline]
    pub(super) fn member_indexes(&self, id: TypeId) -> &[FieldIndex] {
        let (start, len) = self.ty(id).members;
        &self.members[usize::from(start)..][..usize::from(len)]
    }

    /// Returns the position of a member among [`Table::member_indexes`].
    ///
    /// - `near`: where the last search of this struct ended, 0 at first. Keys that come in byte order are
    ///   found in one pass over the struct.
    ///
    /// Cost: compares eight bytes at a time in one array; reads a name only where those are equal.
    #[inline]
    pub(super) fn seek(&self, id: TypeId, near: &mut usize, key: &str) -> Option<usize> {
        let (start, len) = self.ty(id).members;
        let range = usize::from(start)..usize::from(start) + usize::from(len);
        let (members, sorted) = (&self.members[range.clone()], &self.sorted[range.clone()]);
        let prefixes = &self.prefixes[range];
        let wanted = prefix(key);
        let mut at = *near;
        while at > 0 && prefixes[at - 1] >= wanted {
            at -= 1;
        }
        while at < prefixes.len() && prefixes[at] < wanted {
            at += 1;
        }
        *near = at;
        while at < prefixes.len() && prefixes[at] == wanted {
            let position = usize::from(sorted[at]);
            if self.field_at(members[position]).name == key {
                *near = at + 1;
                return Some(position);
            }
            at += 1;
        }
        None
    }

    #[inline]
    pub(super) fn field_at(&self, index: FieldIndex) -> &Field {
        &self.fields[usize::from(index)]
    }

    /// Returns a struct's member by JSON name.
    pub fn member(&self, id: TypeId, name: &str) -> Option<&Field> {
        let position = self.seek(id, &mut 0, name)?;
        Some(self.field_at(self.member_indexes(id)[position]))
    }

    /// What few fields have; empty for most.
    pub fn attrs(&self, field: &Field) -> &FieldAttrs {
        &self.attrs[usize::from(field.attrs)]
    }

    /// The values of an enum, sorted; `None` if the type is not one.
    pub fn enum_values(&self, id: TypeId) -> Option<impl Iterator<Item = &'static str>> {
        self.ty(id).enum_values.map(|values| values.split('|'))
    }

    /// Whether the struct embeds TypeMeta, so that its first members are `kind` and `apiVersion`.
    pub fn has_type_meta(&self, id: TypeId) -> bool {
        self.ty(id).has_type_meta
    }

    /// Whether kube-apiserver stores objects of this type as JSON rather than protobuf. JSON keeps the
    /// difference between an empty list and none.
    pub fn stored_as_json(&self, id: TypeId) -> bool {
        self.package(id).is_some_and(|package| !package.path.starts_with("k8s.io/api/"))
    }

    /// The OpenAPI name of a named type: `io.k8s.api.core.v1.Pod`; `None` for anonymous types.
    pub fn openapi_name(&self, id: TypeId) -> Option<String> {
        let package = self.package(id)?;
        let (domain, path) = package.path.split_once('/')?;
        let mut name: String = domain.split('.').rev().collect::<Vec<_>>().join(".");
        for part in path.split('/').chain([self.ty(id).name]) {
            name.push('.');
            name.push_str(part);
        }
        Some(name)
    }

    /// The type as Go prints it: `v1.Pod`, `[]v1.Container`, `map[string]string`, `int32`.
    pub fn go_type(&self, id: TypeId) -> String {
        let ty = self.ty(id);
        if let Some(package) = self.package(id) {
            return format!("{}.{}", package.go_name, ty.name);
        }
        let star = if ty.elem_pointer { "*" } else { "" };
        match ty.kind {
            TypeKind::List => format!("[]{star}{}", self.go_type(ty.elem)),
            TypeKind::Map => format!("map[{}]{star}{}", self.go_type(ty.key), self.go_type(ty.elem)),
            TypeKind::Bool => "bool".into(),
            TypeKind::Int32 => "int32".into(),
            TypeKind::Int64 => "int64".into(),
            TypeKind::Double => "float64".into(),
            TypeKind::Bytes => "[]uint8".into(),
            TypeKind::Any => "interface {}".into(),
            _ => "string".into(),
        }
    }
}

/// The first eight bytes as a number that orders as the text does, as far as it goes.
#[inline]
pub(super) fn prefix(name: &str) -> u64 {
    let bytes = name.as_bytes();
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}
