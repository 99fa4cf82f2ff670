//! What a Table is made of: column definitions, rows, and the printer of one kind that pairs them.
//!
//! In: nothing. Out: the types that `endpoints` writes as `meta.k8s.io/v1` Table. Never: bytes, HTTP, clocks.

use jiff::Timestamp;
use serde_json::Value;

use crate::member::Member;
use crate::reads::{self, Reads};

/// One `columnDefinitions` entry of a Table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    /// OpenAPI type of the cells as kube-apiserver declares it; cells do not always keep to it.
    pub type_: &'static str,
    /// `name` for the identifier column, else empty.
    pub format: &'static str,
    /// Our own short words; kube-apiserver puts field documentation here, or nothing.
    pub description: &'static str,
    /// 0 is always shown, 1 only with `kubectl get -o wide`.
    pub priority: i32,
}

/// One entry of a row's `conditions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableRowCondition {
    pub type_: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: &'static str,
}

/// The cells and conditions of one object; the object itself is the caller's to add.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// As many as there are columns, the wide ones included. `IPAddress` has one more, as in kube-apiserver.
    pub cells: Vec<Value>,
    /// Empty but for pods that will not run again.
    pub conditions: Vec<TableRowCondition>,
}

/// How one kind is printed. Look it up once for a list, then call [`Printer::row`] for each item.
#[derive(Debug)]
pub struct Printer {
    columns: &'static [Column],
    cells: fn(Member<'_>, Timestamp) -> Vec<Value>,
    conditions: fn(Member<'_>) -> &'static [TableRowCondition],
    reads: Reads,
}

impl Printer {
    pub(crate) const fn new(
        columns: &'static [Column],
        cells: fn(Member<'_>, Timestamp) -> Vec<Value>,
    ) -> Self {
        Self { columns, cells, conditions: |_| &[], reads: reads::UNMANAGED }
    }

    pub(crate) const fn with_conditions(
        mut self,
        conditions: fn(Member<'_>) -> &'static [TableRowCondition],
    ) -> Self {
        self.conditions = conditions;
        self
    }

    /// Its cells and conditions are made of no other members than these.
    pub(crate) const fn reading(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// The column definitions, in order, wide ones included.
    pub fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// Reads as much of an object as [`Printer::row`] needs.
    ///
    /// Cost: of a pod of 8 KB a fifth of what reading all of it does.
    ///
    /// # Errors
    /// `json` is none.
    pub fn read(&self, json: &[u8]) -> serde_json::Result<Value> {
        self.reads.read(json)
    }

    /// Prints one object.
    ///
    /// - `object`: the object as the API shows it, in the version it is stored in.
    /// - `now`: what ages are counted to; a row is only good for the moment it was made for.
    ///
    /// Cost: a few microseconds for a pod of 4 KB; linear in the object.
    pub fn row(&self, object: &Value, now: Timestamp) -> TableRow {
        let object = Member::of(object);
        TableRow { cells: (self.cells)(object, now), conditions: (self.conditions)(object).to_vec() }
    }
}

/// The identifier column.
pub(crate) const NAME: Column = Column {
    name: "Name",
    type_: "string",
    format: "name",
    description: "Name of the object, unique among its kind in its namespace.",
    priority: 0,
};

/// Time since creation, for people.
pub(crate) const AGE: Column = string("Age", "Time since the object was created.");

/// Container names, image names: what controllers with a pod template show in the wide view.
pub(crate) const CONTAINERS: Column = string("Containers", "Container names of the pod template.").wide();
pub(crate) const IMAGES: Column = string("Images", "Container images of the pod template.").wide();

pub(crate) const fn string(name: &'static str, description: &'static str) -> Column {
    Column { name, type_: "string", format: "", description, priority: 0 }
}

pub(crate) const fn integer(name: &'static str, description: &'static str) -> Column {
    Column { name, type_: "integer", format: "", description, priority: 0 }
}

pub(crate) const fn boolean(name: &'static str, description: &'static str) -> Column {
    Column { name, type_: "boolean", format: "", description, priority: 0 }
}

impl Column {
    pub(crate) const fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    pub(crate) const fn format(mut self, format: &'static str) -> Self {
        self.format = format;
        self
    }

    pub(crate) const fn type_(mut self, type_: &'static str) -> Self {
        self.type_ = type_;
        self
    }
}

/// The cells of a row from anything a JSON value can be made of.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(::serde_json::Value::from($cell)),*] };
}
pub(crate) use cells;
