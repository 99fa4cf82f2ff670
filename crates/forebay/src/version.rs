//! Who this is, and which Kubernetes it is compatible with.

use std::fmt;
use std::str::FromStr;

/// This program's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The release of Kubernetes whose API is served.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// How to print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
    Yaml,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            _ => Err("--output must be 'yaml' or 'json'".to_owned()),
        }
    }
}

/// The version in a format, with a line end.
#[derive(Debug, Clone, Copy)]
pub struct VersionOutput(pub Format);

impl fmt::Display for VersionOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let platform = platform();
        match self.0 {
            Format::Text => writeln!(f, "forebay {VERSION} (Kubernetes {KUBERNETES_VERSION}, {platform})"),
            Format::Json => writeln!(
                f,
                "{{\n  \"version\": \"{VERSION}\",\n  \"kubernetesVersion\": \"{KUBERNETES_VERSION}\",\n  \
                 \"platform\": \"{platform}\"\n}}"
            ),
            Format::Yaml => writeln!(
                f,
                "version: {VERSION}\nkubernetesVersion: {KUBERNETES_VERSION}\nplatform: {platform}"
            ),
        }
    }
}

/// As Go names it: `linux/amd64`.
pub fn platform() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    format!("{os}/{arch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_says_the_same() {
        let json: serde_json::Value =
            serde_json::from_str(&VersionOutput(Format::Json).to_string()).expect("JSON");
        let yaml: serde_json::Value =
            serde_saphyr::from_str(&VersionOutput(Format::Yaml).to_string()).expect("YAML");
        assert_eq!(json, yaml);
        assert_eq!(json["version"], VERSION);
        let text = VersionOutput(Format::Text).to_string();
        assert_eq!(text, format!("forebay {VERSION} (Kubernetes {KUBERNETES_VERSION}, {})\n", platform()));
    }
}
