//! `/version`: which Kubernetes this is compatible with, and who it really is.

use serde_json::json;

use crate::metrics::Text;

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

/// What it was built with; clients only show it.
const GO_VERSION: &str = "none (Rust)";
const COMPILER: &str = "rustc";
const TREE_STATE: &str = "clean";

impl VersionInfo {
    /// Major and minor.
    fn numbers(&self) -> [String; 2] {
        [0, 1].map(|place| {
            let number = self.kubernetes.trim_start_matches('v').split('.').nth(place).unwrap_or("0");
            number.chars().take_while(char::is_ascii_digit).collect()
        })
    }

    fn git_version(&self) -> String {
        format!("{}+forebay-{}", self.kubernetes, self.forebay)
    }

    /// Appends it as `kubernetes_build_info`.
    pub fn write(&self, text: &mut Text) {
        let ([major, minor], git_version) = (self.numbers(), self.git_version());
        let name = "kubernetes_build_info";
        text.family(name, "gauge", "What it is compatible with, and what it is; always 1.");
        let labels = [
            ("build_date", &*self.build_date),
            ("compiler", COMPILER),
            ("git_commit", &*self.git_commit),
            ("git_tree_state", TREE_STATE),
            ("git_version", &*git_version),
            ("go_version", GO_VERSION),
            ("major", &*major),
            ("minor", &*minor),
            ("platform", &*self.platform),
        ];
        text.value(name, &labels, 1);
    }
}

/// The document, indented, as kube-apiserver has it.
pub fn document(version: &VersionInfo) -> Vec<u8> {
    let [major, minor] = version.numbers();
    let oldest = minor.parse::<u32>().map_or(minor.clone(), |minor| minor.saturating_sub(1).to_string());
    let members = [
        ("major", major.clone()),
        ("minor", minor.clone()),
        ("emulationMajor", major.clone()),
        ("emulationMinor", minor),
        ("minCompatibilityMajor", major),
        ("minCompatibilityMinor", oldest),
        ("gitVersion", version.git_version()),
        ("gitCommit", version.git_commit.clone()),
        ("gitTreeState", TREE_STATE.to_string()),
        ("buildDate", version.build_date.clone()),
        ("goVersion", GO_VERSION.to_string()),
        ("compiler", COMPILER.to_string()),
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
        let mut text = Text::default();
        version.write(&mut text);
        let line = "kubernetes_build_info{build_date=\"1970-01-01T00:00:00Z\",compiler=\"rustc\",git_commit=\"abc\",\
                    git_tree_state=\"clean\",git_version=\"v1.36.3+forebay-0.1.0\",go_version=\"none (Rust)\",major=\"1\",\
                    minor=\"36\",platform=\"linux/amd64\"} 1";
        assert_eq!(text.finish().lines().last(), Some(line));
    }
}
