//! What expressions may say of the objects of a kind.
//!
//! In: what is served. Out: a type for the checker. Never: an estimate: how much there may be of anything is
//! not asked.
//!
//! Source: apiserver v0.36.3 `pkg/cel/common/schemas.go`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use forebay_catalog::Served;
use forebay_cel::Type;
use forebay_cel::decl::{Decl, DeclField, DeclKind, ListKind, escape};
use forebay_schema::builtin::{TypeId, TypeKind, table};

/// The type of a kind's objects; `None` for one of which nothing is known.
pub(super) fn of(served: &Served) -> Option<Type> {
    let decl = match (served.kind.schema(), served.ty()) {
        (Some(schema), _) => schema.declared()?,
        (None, Some(ty)) => BuiltIn::default().of(ty)?,
        (None, None) => return None,
    };
    Some(decl.checked(&served.gvk.kind))
}

/// Declarations of the table's types, each made once.
#[derive(Default)]
struct BuiltIn(HashMap<TypeId, Option<Arc<Decl>>>);

impl BuiltIn {
    /// What a type declares. What is being declared has nothing in itself: a CRD's schema has schemas in it.
    fn of(&mut self, ty: TypeId) -> Option<Arc<Decl>> {
        if let Some(known) = self.0.get(&ty) {
            return known.clone();
        }
        self.0.insert(ty, Some(Arc::new(plain(DeclKind::Object(BTreeMap::new())))));
        let decl = self.make(ty).map(Arc::new);
        self.0.insert(ty, decl.clone());
        decl
    }

    fn make(&mut self, ty: TypeId) -> Option<Decl> {
        Some(plain(match table().ty(ty).kind {
            TypeKind::Struct => {
                let mut fields = BTreeMap::new();
                for field in table().members(ty) {
                    let (Some(name), Some(decl)) = (escape(field.name), self.of(field.ty)) else { continue };
                    fields.insert(name.into(), DeclField { key: field.name.into(), decl });
                }
                if table().has_type_meta(ty) {
                    for name in ["apiVersion", "kind"] {
                        let decl = Arc::new(plain(DeclKind::String));
                        fields.insert(name.into(), DeclField { key: name.into(), decl });
                    }
                }
                DeclKind::Object(fields)
            }
            TypeKind::List => DeclKind::List { items: self.of(table().elem(ty))?, kind: ListKind::Atomic },
            TypeKind::Map => DeclKind::Map(self.of(table().elem(ty))?),
            TypeKind::String => DeclKind::String,
            TypeKind::Bool => DeclKind::Bool,
            TypeKind::Int32 | TypeKind::Int64 => DeclKind::Int,
            TypeKind::Double => DeclKind::Double,
            TypeKind::Bytes => DeclKind::Bytes,
            TypeKind::Time | TypeKind::MicroTime => DeclKind::Timestamp,
            TypeKind::RawExtension | TypeKind::FieldsV1 => DeclKind::Object(BTreeMap::new()),
            // Upstream's schema of one says no type.
            TypeKind::Quantity => return None,
            // Judged when they are evaluated.
            _ => DeclKind::IntOrString,
        }))
    }
}

fn plain(kind: DeclKind) -> Decl {
    Decl { kind, elements_max: 0, bytes_min: 0, nullable: false }
}
