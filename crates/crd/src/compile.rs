//! From a schema as written to one that is compiled, without the parts of its defaults that it does not know.
//!
//! In: a structural schema. Out: a [`Schema`]. Never: judges it.

use serde_json::Value;

use super::default_check;
use super::props::Props;
use super::schema::{Compiler, Schema};

impl Schema {
    /// Compiles one schema alone; several versions of a CRD share more through one [`Compiler`].
    pub fn compile(schema: &Value) -> Schema {
        Compiler::default().compile(schema)
    }
}

impl Compiler {
    /// Compiles a schema; defaults are served without the fields that the schema does not know.
    pub(crate) fn compile(&mut self, schema: &Value) -> Schema {
        let mut root = self.node(Props::of(schema));
        if let Some(pruned) = default_check::pruned(schema, &root) {
            root = self.node(Props::of(&pruned));
        }
        Schema { root, source: schema.to_string().into() }
    }
}
