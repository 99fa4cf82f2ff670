//! The fields of each struct in the order of their protobuf numbers.
//!
//! In: the table. Out: lookups by number. Never: changed after it was built.

use std::sync::OnceLock;

use super::super::table::{Field, Table, TypeId, TypeKind};

/// By type: positions in [`Table::fields`], ordered by protobuf number; fields without one are left out.
pub(super) struct Plan {
    table: &'static Table,
    positions: Vec<Box<[u8]>>,
}

/// Returns the plan of the table; the first call builds it.
pub(super) fn plan() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(|| {
        let table = super::super::table();
        let types = 0..table.types.len();
        Plan { table, positions: types.map(|index| order(table, TypeId(index as u16))).collect() }
    })
}

fn order(table: &Table, ty: TypeId) -> Box<[u8]> {
    let fields = table.fields(ty);
    let numbered = fields.iter().enumerate().filter(|(_, field)| field.proto != 0);
    let mut positions: Vec<u8> = numbered.map(|(position, _)| position as u8).collect();
    positions.sort_by_key(|&position| fields[usize::from(position)].proto);
    positions.into()
}

impl Plan {
    /// The fields of a struct, by ascending number.
    pub(super) fn fields(&self, ty: TypeId) -> impl Iterator<Item = &'static Field> {
        let fields = self.table.fields(ty);
        self.positions[usize::from(ty.0)].iter().map(|&position| &fields[usize::from(position)])
    }

    /// The field with a number.
    pub(super) fn find(&self, ty: TypeId, number: u32) -> Option<&'static Field> {
        let fields = self.table.fields(ty);
        let field = |&position: &u8| &fields[usize::from(position)];
        let positions = &self.positions[usize::from(ty.0)];
        let found = positions.binary_search_by_key(&number, |position| u32::from(field(position).proto));
        found.ok().map(|index| field(&positions[index]))
    }
}

/// Whether the type has a protobuf form. What has none (`Table`, in the words of the API a kind that is not
/// acceptable as protobuf) decodes to nothing and is written as nothing.
pub fn is_message(ty: TypeId) -> bool {
    let table = super::super::table();
    match table.ty(ty).kind {
        TypeKind::Struct => {
            let mut own = table.fields(ty).iter().filter(|field| !field.name.is_empty()).peekable();
            own.peek().is_none() || own.any(|field| field.proto != 0)
        }
        TypeKind::List => table.ty(ty).proto_message,
        TypeKind::Quantity
        | TypeKind::IntOrString
        | TypeKind::Time
        | TypeKind::MicroTime
        | TypeKind::RawExtension
        | TypeKind::FieldsV1
        | TypeKind::Json
        | TypeKind::SchemaOrBool
        | TypeKind::SchemaOrArray
        | TypeKind::SchemaOrStrings => true,
        _ => false,
    }
}
