//! `/version`: which Kubernetes this is compatible with, and who it really is.

use serde_json::json;

/// What `/version` says.
#[derive(Clone, Debug)]
pub struct VersionInfo {
    /// The Kubernetes release whose API is served: `v1.36.3`.
    pub kubernetes: String,
    /// This program's own: `0.1.0`.
    pub forebay: String,
    pub git_commit: String,
    /// RFC 3339.
    pub build_date: String,
    /// `linux/amd64`.
    pub platform: String,
}

/// The document, indented, as kube-apiserver has it.
pub fn document(version: &VersionInfo) -> Vec<u8> {
    let number = |place: usize| {
        let number = version.kubernetes.trim_start_matches('v').split('.').nth(place).unwrap_or("0");
        number.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    let (major, minor) = (number(0), number(1));
    let oldest = minor.parse::<u32>().map_or(minor.clone(), |minor| minor.saturating_sub(1).to_string());
    let members = [
        ("major", major.clone()),
        ("minor", minor.clone()),
        ("emulationMajor", major.clone()),
        ("emulationMinor", minor),
        ("minCompatibilityMajor", major),
        ("minCompatibilityMinor", oldest),
        ("gitVersion", format!("{}+forebay-{}", version.kubernetes, version.forebay)),
        ("gitCommit", version.git_commit.clone()),
        ("gitTreeState", "clean".to_string()),
        ("buildDate", version.build_date.clone()),
        // What it was built with; clients only show it.
        ("goVersion", "none (Rust)".to_string()),
        ("compiler", "rustc".to_string()),
        ("platform", version.platform.clone()),
    ];
    let lines: Vec<String> =
        members.iter().map(|(name, value)| format!("  \"{name}\": {}", json!(value))).collect();
    format!("{{\n{}\n}}", lines.join(",\n")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_it_is_and_what_it_is_like() {
        let version = VersionInfo {
            kubernetes: "v1.36.3".into(),
            forebay: "0.1.0".into(),
            git_commit: "abc".into(),
            build_date: "1970-01-01T00:00:00Z".into(),
            platform: "linux/amd64".into(),
        };
        let document: serde_json::Value = serde_json::from_slice(&document(&version)).expect("JSON");
        for (member, want) in [
            ("major", "1"),
            ("minor", "36"),
            ("minCompatibilityMinor", "35"),
            ("gitVersion", "v1.36.3+forebay-0.1.0"),
            ("compiler", "rustc"),
        ] {
            assert_eq!(document[member], want);
        }
    }
}
