//! OpenAPI v2 and v3, as far as a definition differs.

/// Which OpenAPI a definition is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `/openapi/v2`: no defaults, no `oneOf`, no `nullable`.
    V2,
    /// `/openapi/v3`.
    V3,
}

impl Dialect {
    /// What a `$ref` to the definition `name` is.
    pub fn reference(self, name: &str) -> String {
        match self {
            Dialect::V2 => format!("#/definitions/{name}"),
            Dialect::V3 => format!("#/components/schemas/{name}"),
        }
    }
}
