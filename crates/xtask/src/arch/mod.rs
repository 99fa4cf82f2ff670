//! The architecture, checked: which crate may use which, and what a crate's source may not name.
//!
//! In: `cargo metadata` and the sources. Out: every finding, each with the file and the rule.
//! Never: a judgement that needs more than a line of text; the compiler and clippy have the rest.

mod arrows;
mod ceilings;
mod codes;
mod comments;
mod modules;
mod picture;
mod tokens;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::arrows::{ARROWS, CODELESS, NO_DEPENDENCY, NO_WORD};
use crate::robustness;
use crate::run::{self, Done};

/// Longest file that is still one concept.
const LINES_MAX: usize = 600;

/// A source file, read.
struct Source {
    /// Below `crates/`, with `/`.
    path: String,
    text: String,
}

/// Whether what can be drawn is written, or compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Drawing {
    Write,
    Check,
}

/// Runs every check and fails with all findings.
pub fn check(drawing: Drawing) -> Done {
    let metadata = run::metadata()?;
    let sources = sources(&run::root().join("crates"))?;
    let mut findings = packages(&metadata);
    findings.extend(sources.iter().flat_map(source));
    let document = run::root().join("docs/robustness.md");
    let document =
        fs::read_to_string(&document).map_err(|e| format!("cannot read {}: {e}", document.display()))?;
    let texts: Vec<(&str, &str)> = sources.iter().map(|it| (it.path.as_str(), it.text.as_str())).collect();
    findings.extend(robustness::findings(&document, &texts));
    findings.extend(picture(&metadata, drawing)?);
    findings.extend(ceilings::findings(&by_crate(&texts))?);
    let shipped: Vec<(&str, &str)> = texts.iter().copied().filter(|(path, _)| !is_test(path)).collect();
    findings.extend(codes::findings(CODELESS, &shipped));
    match findings.is_empty() {
        true => Ok(()),
        false => Err(format!("{} findings\n  {}", findings.len(), findings.join("\n  "))),
    }
}

/// That ARCHITECTURE.md has another picture of the crates than is drawn now; or writes that.
fn picture(metadata: &Value, drawing: Drawing) -> Result<Option<String>, String> {
    let path = run::root().join("ARCHITECTURE.md");
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let document = fs::read_to_string(&path).map_err(failed)?;
    let chain = fs::read_to_string(run::root().join(picture::CHAIN)).map_err(|error| error.to_string())?;
    let drawn = picture::drawn(&document, metadata, &chain)?;
    if drawn == document {
        return Ok(None);
    }
    match drawing {
        Drawing::Write => fs::write(&path, drawn).map_err(failed).map(|()| None),
        Drawing::Check => {
            Ok(Some("ARCHITECTURE.md: its crates are drawn otherwise: `cargo xtask arch --write`".into()))
        }
    }
}

/// Findings about the crates' manifests.
fn packages(metadata: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = short(text(package, "name"));
        if package["features"].as_object().is_some_and(|features| !features.is_empty()) {
            findings
                .push(format!("{name}: has cargo features; a choice is a field of Config, checked at start"));
        }
        if !has_workspace_lints(text(package, "manifest_path")) {
            findings.push(format!("{name}: Cargo.toml lacks `[lints] workspace = true`"));
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(of, _)| *of == name) else {
            findings.push(format!(
                "{name}: not in the table of arrows (crates/xtask/src/arch.rs); a new crate needs an ADR"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if dependency["kind"].as_str() != Some("dev") {
                findings.extend(arrow(
                    name,
                    allowed,
                    text(dependency, "name"),
                    dependency["path"].is_string(),
                ));
            }
        }
    }
    findings
}

fn arrow(name: &str, allowed: &[&str], dependency: &str, in_workspace: bool) -> Option<String> {
    if in_workspace {
        let to = short(dependency);
        return (!allowed.contains(&to) && !allowed.contains(&"*"))
            .then(|| format!("{name} -> {to}: no such arrow in design"));
    }
    NO_DEPENDENCY
        .iter()
        .find(|(crates, banned, _)| crates.contains(&name) && banned.contains(&dependency))
        .map(|(_, _, why)| format!("{name} -> {dependency}: {why}"))
}

/// Findings in one file.
fn source(file: &Source) -> Vec<String> {
    let Source { path, text } = file;
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.push(format!("{path}: {lines} lines; more than {LINES_MAX} is more than one concept"));
    }
    if !text.trim_start().starts_with("//!") && !path.ends_with("build.rs") {
        findings.push(format!("{path}: does not open with `//!`, what it owns, in, out, never"));
    }
    findings.extend(comments::findings(path, text));
    let (name, inside) = path.split_once('/').unwrap_or((path, ""));
    if inside.starts_with("src/") && !is_test(inside) {
        findings.extend(words(name, path, text));
        findings.extend(searches(path, text));
    }
    let ignored = text.lines().position(|line| line.trim_start().starts_with("#[ignore"));
    findings
        .extend(ignored.map(|at| {
            format!("{path}:{}: an ignored test proves nothing; a flaky one is a red one", at + 1)
        }));
    findings
}

/// Uses of banned words in code that is neither comment nor test.
fn words(name: &str, path: &str, text: &str) -> Vec<String> {
    let rules: Vec<_> =
        NO_WORD.iter().filter(|(crates, _, except, _)| crates.contains(&name) && path != *except).collect();
    let code = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).enumerate();
    code.filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(at, line)| {
            rules.iter().filter_map(move |(_, banned, _, why)| {
                let word = banned.iter().find(|word| line.contains(**word))?;
                Some(format!("{path}:{}: names `{word}`: {why}", at + 1))
            })
        })
        .collect()
}

/// Where lists are as long as a client makes them.
const CLIENT_LISTS: &[&str] = &[
    "strategy/src/",
    "admission/src/",
    "registry/src/kubernetes_service/",
    "registry/src/services.rs",
    "service-claims/src/",
    "crd/src/",
    "schema/src/strategic/",
    "merge/src/",
    "fieldmanager/src/",
];

/// Searches through a list.
const SEARCHES: &[&str] = &[
    ".contains(&",
    ".iter().any(|",
    ".iter().find(|",
    ".iter().position(|",
    ".iter().rfind(|",
    ".iter().rposition(|",
    ".remove(0)",
    ".insert(0,",
];

/// What allows a search, with a reason behind it: of a list that is short, or that is searched once for a
/// whole object.
const SEARCH_ALLOWED: [&str; 2] = ["// Few: ", "// Once: "];

/// Searches through lists in code that judges what a client sends: in a loop each costs as much as the list
/// is long, and 120,000 scheduling gates were 13 s. Constants may be searched, and whatever says why.
fn searches(path: &str, text: &str) -> Vec<String> {
    if !CLIENT_LISTS.iter().any(|part| path.starts_with(part)) || path.ends_with("/linear.rs") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut reason = false;
    for (at, line) in text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).enumerate() {
        let allowed = reason || SEARCH_ALLOWED.iter().any(|reason| line.contains(reason));
        reason = allowed && line.trim_start().starts_with("//");
        let found = SEARCHES.iter().find(|search| line.find(**search).is_some_and(|at| is_list(&line[..at])));
        if let Some(search) = found.filter(|_| !allowed && !line.trim_start().starts_with("//")) {
            findings.push(format!(
                "{path}:{}: `{search}` searches through a list: look it up with `Seen` or `Firsts`, or say why not in a \
                 line above, `// Few: …` or `// Once: …`",
                at + 1
            ));
        }
    }
    findings
}

/// Whether what stands before a search can be a list of a client: a name that is no constant, or a part of a
/// list.
fn is_list(before: &str) -> bool {
    if let Some(indexed) = before.strip_suffix(']') {
        return indexed.rsplit_once('[').is_some_and(|(_, index)| index.contains(".."));
    }
    let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
    before[start..].contains(|c: char| c.is_lowercase())
}

fn is_test(inside: &str) -> bool {
    inside.ends_with("/tests.rs") || inside.contains("/tests/") || inside.ends_with("_tests.rs")
}

/// Every Rust file below `dir`, sorted by path.
fn sources(dir: &Path) -> Result<Vec<Source>, String> {
    let failed = |path: &Path, e: std::io::Error| format!("cannot read {}: {e}", path.display());
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).map_err(|e| failed(&next, e))? {
            let path = entry.map_err(|e| failed(&next, e))?.path();
            match path.is_dir() {
                true if path.ends_with("target") => {}
                true => open.push(path),
                false if path.extension().is_some_and(|is| is == "rs") => {
                    let text = fs::read_to_string(&path).map_err(|e| failed(&path, e))?;
                    found.push(Source { path: below(dir, &path), text });
                }
                false => {}
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The files of each crate outside of tests.
fn by_crate<'a>(sources: &[(&'a str, &'a str)]) -> Vec<ceilings::Crate<'a>> {
    let mut crates: Vec<ceilings::Crate> = Vec::new();
    for (path, text) in sources {
        let Some((name, inside)) = path.split_once("/src/") else { continue };
        if is_test(&format!("src/{inside}")) {
            continue;
        }
        match crates.last_mut() {
            Some((last, files)) if *last == name => files.push((inside, text)),
            _ => crates.push((name, vec![(inside, text)])),
        }
    }
    crates
}

fn below(dir: &Path, path: &Path) -> String {
    let relative: PathBuf = path.strip_prefix(dir).unwrap_or(path).to_owned();
    relative.to_string_lossy().replace('\\', "/")
}

fn has_workspace_lints(manifest: &str) -> bool {
    fs::read_to_string(manifest).is_ok_and(|toml| {
        let mut lines = toml.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
        lines.next() == Some("workspace = true")
    })
}

fn short(package: &str) -> &str {
    package.strip_prefix("forebay-").unwrap_or(package)
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_in(path: &str, text: &str) -> Vec<String> {
        source(&Source { path: path.into(), text: text.into() })
    }

    #[test]
    fn an_arrow_is_allowed_only_where_the_table_has_it() {
        let allowed = |name: &str, to: &str, in_workspace| {
            let (_, allowed) = ARROWS.iter().find(|(of, _)| *of == name).unwrap();
            arrow(name, allowed, to, in_workspace).is_none()
        };
        assert!(allowed("backend", "forebay-revlog", true));
        assert!(!allowed("backend", "forebay-embedded", true));
        assert!(!allowed("revlog", "forebay-apimachinery", true));
        assert!(allowed("forebay", "forebay-embedded", true));
        assert!(allowed("endpoints", "hyper", false));
        assert!(!allowed("registry", "http", false));
        assert!(!allowed("watchcache", "redb", false));
        assert!(allowed("embedded", "redb", false));
    }

    #[test]
    fn features_and_unknown_crates_are_found() {
        let metadata = serde_json::json!({"packages": [
            {"name": "forebay-rt", "features": {"fast": []}, "dependencies": [], "manifest_path": ""},
            {"name": "forebay-novel", "features": {}, "dependencies": [], "manifest_path": ""},
        ]});
        let findings = packages(&metadata).join("\n");
        assert!(findings.contains("rt: has cargo features"), "{findings}");
        assert!(findings.contains("novel: not in the table of arrows"), "{findings}");
        assert!(findings.contains("rt: Cargo.toml lacks"), "{findings}");
    }

    #[test]
    fn tests_may_use_any_crate() {
        let metadata = serde_json::json!({"packages": [{"name": "forebay-revlog", "features": {}, "manifest_path": "",
            "dependencies": [{"name": "forebay-embedded", "path": "/x", "kind": "dev"}]}]});
        assert!(!packages(&metadata).join("\n").contains("no such arrow"));
    }

    #[test]
    fn a_banned_word_is_found_in_code_but_not_in_comments_or_tests() {
        let text = "//! Owns.\n// StatusCode is elsewhere\nuse http::StatusCode;\n#[cfg(test)]\nmod tests { use http::StatusCode; }\n";
        assert_eq!(
            findings_in("registry/src/verbs.rs", text),
            ["registry/src/verbs.rs:3: names `StatusCode`: HTTP statuses are chosen in endpoints only"]
        );
        assert!(findings_in("endpoints/src/status.rs", text).is_empty());
        assert!(findings_in("registry/src/verbs/tests.rs", text).is_empty());
    }

    #[test]
    fn a_loose_task_is_found_where_a_server_runs_but_not_in_its_tests() {
        let text = "//! Owns.\nlet task = tokio::spawn(work);\n";
        assert_eq!(findings_in("endpoints/src/serve.rs", text).len(), 1);
        assert!(findings_in("endpoints/tests/serve.rs", text).is_empty());
        assert!(findings_in("rt/src/tasks.rs", text).is_empty());
    }

    #[test]
    fn a_search_through_a_list_of_a_client_has_a_reason() {
        let findings = |line: &str| {
            findings_in("strategy/src/a.rs", &format!("//! Owns.\nfor a in b {{\n    {line}\n}}\n"))
        };
        for line in [
            "if names.contains(&name) {",
            "if names[..i].contains(name) || names[i + 1..].contains(&name) {",
            "let old = old_ports.iter().find(|old| same(old, port));",
            "self.left.remove(0);",
            "// Other: words\n    if names.contains(&name) {",
        ] {
            assert_eq!(findings(line).len(), 1, "{line}");
            assert!(
                findings_in("registry/src/verbs.rs", &format!("//! Owns.\n{line}\n")).is_empty(),
                "{line}"
            );
        }
        for line in [
            "if NAMES.contains(&name) {",
            "if [\"a\", OTHER].contains(&name) || (1..=9).contains(&number) || known.has(&name) {",
            "// Few: names of protocols.\n    if names.contains(&name) {",
            "// Once: for the whole object.\n    // It says more.\n    if names.contains(&name) {",
            "// names.contains(&name)",
        ] {
            assert_eq!(findings(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn only_the_plan_reads_options() {
        let text = "//! Owns.\nlet rv = options.resource_version_match;\n";
        assert!(findings_in("reads/src/plan.rs", text).is_empty());
        assert_eq!(findings_in("reads/src/list.rs", text).len(), 1);
        assert_eq!(findings_in("watchcache/src/watcher.rs", text).len(), 1);
    }

    #[test]
    fn long_headless_and_ignored_files_are_found() {
        let long = format!("//! Owns.\n{}", "\n".repeat(LINES_MAX));
        assert!(findings_in("rt/src/a.rs", &long)[0].contains("601 lines"));
        assert!(findings_in("rt/src/a.rs", "fn a() {}\n")[0].contains("does not open with"));
        assert!(
            findings_in("rt/tests/a.rs", "//! Owns.\n    #[ignore]\n")[0].contains("a.rs:2: an ignored test")
        );
    }
}
