//! The built-in objects beside the table of upstream's own source.
//!
//! In: the Go module k8s.io/apiserver, out of Go's module cache. Out: a skip that is loud where Go is missing
//! and, under `CI=true`, a failure. Never: a copy of the file.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use forebay_flow::builtin;
use serde_json::Value;

const MODULE: &str = "k8s.io/apiserver@v0.36.3";
const TABLE: &str = "pkg/apis/flowcontrol/bootstrap/default.go";

/// Upstream's table; `None` after a skip was announced.
fn table() -> Option<String> {
    match read_table() {
        Ok(text) => Some(text),
        Err(why) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("CI=true says that no test may be left out, and this one needs Go: {why}")
        }
        Err(why) => {
            // Past the test runner's capture; without a standard error there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "upstream's table: SKIPPED: needs Go: {why}");
            None
        }
    }
}

fn read_table() -> Result<String, String> {
    let done = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .current_dir(std::env::temp_dir())
        .output()
        .map_err(|error| format!("go: {error}"))?;
    let said: Value =
        serde_json::from_slice(&done.stdout).map_err(|error| format!("go mod download: {error}"))?;
    let dir = said["Dir"].as_str().ok_or_else(|| format!("go mod download: {}", said["Error"]))?;
    fs::read_to_string(Path::new(dir).join(TABLE)).map_err(|error| error.to_string())
}

/// The calls of a function, each from behind its bracket, but for its definition.
fn calls<'a>(text: &'a str, function: &str) -> Vec<&'a str> {
    let parts = text.split(function).skip(1).filter_map(|part| part.strip_prefix('('));
    parts.filter(|part| !part.starts_with("name")).collect()
}

/// An argument as a name: a text, or a constant that says what it is.
fn name(argument: &str) -> String {
    let argument = argument.trim();
    match argument {
        _ if argument.ends_with("CatchAll") => "catch-all".to_string(),
        _ if argument.ends_with("NameExempt") => "exempt".to_string(),
        _ if argument.ends_with("ByUserType") => "ByUser".to_string(),
        _ if argument.ends_with("ByNamespaceType") => "ByNamespace".to_string(),
        _ => argument.trim_matches('"').to_string(),
    }
}

/// The number behind a field's name.
fn number(text: &str, field: &str) -> Option<u64> {
    let (_, behind) = text.split_once(field)?;
    let behind = behind.trim_start().trim_start_matches("ptr.To(int32(");
    behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn the_built_in_objects_are_upstreams() {
    let Some(text) = table() else { return };
    let lines: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let text = lines.join("\n");
    let mut theirs: Vec<String> = calls(&text, "newPriorityLevelConfiguration")
        .into_iter()
        .map(|call| {
            let level = name(call.split(',').next().unwrap());
            let fields = [
                "NominalConcurrencyShares:",
                "LendablePercent:",
                "Queues:",
                "HandSize:",
                "QueueLengthLimit:",
            ];
            let end = call.find("\n\t)").or(call.find("})")).map_or(call, |end| &call[..end]);
            format!("{level} {:?}", fields.map(|field| number(end, field)))
        })
        .collect();
    theirs.extend(calls(&text, "newFlowSchema").into_iter().map(|call| {
        let arguments: Vec<String> = call.split(',').take(4).map(name).collect();
        arguments.join(" ")
    }));
    let mut ours: Vec<String> = builtin::level_objects().map(|(_, it)| our_level(&it)).collect();
    ours.extend(builtin::schema_objects().map(|(_, it)| our_schema(&it)));
    theirs.sort();
    ours.sort();
    assert_eq!(theirs, ours);
}

fn our_level(object: &Value) -> String {
    let spec = &object["spec"];
    let part = if spec["exempt"].is_object() { &spec["exempt"] } else { &spec["limited"] };
    let queuing = &part["limitResponse"]["queuing"];
    let fields = [
        &part["nominalConcurrencyShares"],
        &part["lendablePercent"],
        &queuing["queues"],
        &queuing["handSize"],
        &queuing["queueLengthLimit"],
    ];
    format!("{} {:?}", object["metadata"]["name"].as_str().unwrap(), fields.map(Value::as_u64))
}

fn our_schema(object: &Value) -> String {
    let spec = &object["spec"];
    let by = spec["distinguisherMethod"]["type"].as_str().unwrap_or_default();
    let (name, level) = (&object["metadata"]["name"], &spec["priorityLevelConfiguration"]["name"]);
    format!("{} {} {} {by}", name.as_str().unwrap(), level.as_str().unwrap(), spec["matchingPrecedence"])
}
