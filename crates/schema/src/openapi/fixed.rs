//! Definitions of what documents name and the table lacks.

use serde_json::{Map, Value, json};

use super::dialect::Dialect;

/// A definition of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// Any patch.
    Patch,
    /// The answer of `/version`.
    VersionInfo,
}

impl Fixed {
    pub fn name(self) -> &'static str {
        match self {
            Fixed::Patch => "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
            Fixed::VersionInfo => "io.k8s.apimachinery.pkg.version.Info",
        }
    }

    pub fn definition(self, dialect: Dialect) -> Value {
        const ALWAYS: [&str; 9] = [
            "major",
            "minor",
            "gitVersion",
            "gitCommit",
            "gitTreeState",
            "buildDate",
            "goVersion",
            "compiler",
            "platform",
        ];
        const SOMETIMES: [&str; 4] =
            ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];
        match self {
            Fixed::Patch => json!({ "type": "object" }),
            Fixed::VersionInfo => {
                let always = match dialect {
                    Dialect::V2 => json!({ "type": "string" }),
                    Dialect::V3 => json!({ "type": "string", "default": "" }),
                };
                let mut properties: Map<_, _> =
                    ALWAYS.map(|name| (name.to_string(), always.clone())).into_iter().collect();
                properties.extend(SOMETIMES.map(|name| (name.to_string(), json!({ "type": "string" }))));
                json!({ "type": "object", "required": ALWAYS, "properties": properties })
            }
        }
    }
}
