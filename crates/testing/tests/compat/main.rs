//! COMPAT.md against a server: what it says of paths, verbs, options, flags and metrics is asked for.
//!
//! Each row of its tables is claimed in `claims.rs`, or belongs to a table that is held as a whole here. A
//! row that is new, or whose first cell is worded otherwise, fails until it is.

mod ask;
mod claims;
mod document;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ask::{Ask, Asked, get};
use claims::{CLAIMS, Held, PREPARED, UNCHECKED_MAX};
use document::Row;
use forebay::flags::spec::Class;
use forebay::flags::table;
use forebay_testing::{StartError, TestServer};

const GROUPS: &str = "Groups and resources";
const FLAGS: &str = "Flags";
const CONTROLLERS: &str = "Controllers";

fn rows_of(section: &str) -> Vec<Row> {
    let mut rows = document::rows(&document::text());
    rows.retain(|row| row.section == section);
    assert!(!rows.is_empty(), "no rows in {section}");
    rows
}

#[test]
fn every_row_is_claimed_and_every_claim_has_a_row() {
    let rows = document::rows(&document::text());
    let claimed = rows.iter().filter(|row| ![GROUPS, FLAGS, CONTROLLERS].contains(&&*row.section));
    let said: Vec<(&str, &str)> = claimed.map(|row| (&*row.section, row.first())).collect();
    let held: Vec<(&str, &str)> = CLAIMS.iter().map(|claim| (claim.section, claim.row)).collect();
    let missing: Vec<_> = said.iter().filter(|row| !held.contains(row)).collect();
    let idle: Vec<_> = held.iter().filter(|claim| !said.contains(claim)).collect();
    assert!(missing.is_empty() && idle.is_empty(), "without a claim: {missing:#?}\nwithout a row: {idle:#?}");
    assert_eq!(said.len(), held.len(), "one claim a row");
    let unchecked = CLAIMS.iter().filter_map(|claim| match claim.held {
        Held::Unchecked(why) => Some((claim.row, why)),
        _ => None,
    });
    let unchecked: Vec<_> = unchecked.collect();
    assert!(unchecked.len() <= UNCHECKED_MAX, "{unchecked:#?}");
    assert!(unchecked.iter().all(|(_, why)| !why.is_empty()), "{unchecked:#?}");
}

#[test]
fn every_test_that_is_said_to_hold_a_row_is_there() {
    let mut missing: BTreeSet<&str> = BTreeSet::new();
    for claim in CLAIMS {
        if let Held::Tests(tests) | Held::Partly(_, tests) = claim.held {
            assert!(!tests.is_empty(), "{}", claim.row);
            missing.extend(tests);
        }
    }
    let mut left = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(place) = left.pop() {
        for entry in std::fs::read_dir(&place).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                missing.retain(|name| !text.contains(&format!("fn {name}(")));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The codes of refusals that a row names, but for those that kube-apiserver is said to answer.
fn refusals_in(said: &str) -> BTreeSet<u16> {
    let words = said.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_code = |word: &&str| word.len() == 3 && (word.starts_with('4') || word.starts_with('5'));
    words.filter(is_code).filter_map(|word| word.parse().ok()).collect()
}

#[tokio::test]
async fn what_a_row_says_of_a_request_is_what_is_answered() {
    let server = Asked::start().await;
    let mut faults = Vec::new();
    for ask in PREPARED {
        faults.extend(server.fault(ask).await);
    }
    assert!(faults.is_empty(), "nothing can be asked: {faults:#?}");
    for claim in CLAIMS {
        let (asks, is_whole): (&[Ask], bool) = match claim.held {
            Held::Asked(asks) => (asks, true),
            Held::Partly(asks, _) => (asks, false),
            Held::Tests(_) | Held::Unchecked(_) => continue,
        };
        for ask in asks {
            faults.extend(server.fault(ask).await.map(|fault| format!("{}: {fault}", claim.row)));
        }
        let rows = document::rows(&document::text());
        let row = rows.iter().find(|row| (&*row.section, row.first()) == (claim.section, claim.row));
        let Some(row) = row.filter(|_| is_whole) else { continue };
        let said = row.said();
        let asked: BTreeSet<u16> = asks.iter().map(|ask| ask.code).collect();
        let unasked: Vec<u16> = refusals_in(&said).difference(&asked).copied().collect();
        if !unasked.is_empty() {
            faults.push(format!("{}: says {unasked:?}, which nothing asks for: {said}", claim.row));
        }
        if said.starts_with("yes") && asked.iter().all(|code| *code >= 400) {
            faults.push(format!("{}: says yes, and nothing was answered: {said}", claim.row));
        }
        if said.starts_with("no") && asked.iter().all(|code| *code < 400) {
            faults.push(format!("{}: says no, and everything was answered: {said}", claim.row));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn without_parentheses(text: &str) -> String {
    let parts = text.split('(').enumerate();
    let parts = parts.map(|(number, part)| match number {
        0 => part,
        _ => part.split_once(')').map_or("", |(_, rest)| rest),
    });
    parts.collect()
}

#[tokio::test]
async fn what_is_served_are_the_groups_and_resources_that_are_said() {
    let mut said: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows_of(GROUPS).iter().filter(|row| row.first() != "yours") {
        // What follows says more of them.
        let said_of = row.said();
        let names = without_parentheses(&said_of);
        let names = names.split([';', ':']).next().unwrap_or_default();
        let names: BTreeSet<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
        for version in document::quoted(row.first()) {
            said.insert(version.to_owned(), names.clone());
        }
    }
    let server = Asked::start().await;
    let mut served: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let list = async |path: String| {
        let path: &'static str = path.leak();
        let (code, text) = server.send(&get(path, 200)).await;
        assert_eq!(code, 200, "{path}");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
    };
    let groups = list("/apis".to_owned()).await;
    let versions = groups["groups"].as_array().into_iter().flatten().flat_map(|group| {
        let versions = group["versions"].as_array().into_iter().flatten();
        versions.filter_map(|version| version["groupVersion"].as_str()).collect::<Vec<_>>()
    });
    let places = versions.map(|version| (version, format!("/apis/{version}")));
    for (version, path) in places.chain([("v1", "/api/v1".to_owned())]) {
        let resources = list(path).await;
        let names = resources["resources"].as_array().into_iter().flatten();
        let names = names.filter_map(|resource| resource["name"].as_str()).filter(|name| !name.contains('/'));
        served.insert(version.to_owned(), names.map(str::to_owned).collect());
    }
    assert_eq!(said, served, "said, and served");
}

#[test]
fn every_flag_is_of_the_class_that_is_said() {
    let rows = rows_of(FLAGS);
    let row = |name: &str| {
        let row = rows.iter().find(|row| row.first().starts_with(name));
        row.unwrap_or_else(|| panic!("no row {name}")).said()
    };
    let named =
        |text: &str| -> BTreeSet<String> { document::quoted(text).into_iter().map(str::to_owned).collect() };
    let served: BTreeSet<String> = table::served().map(|flag| flag.name.to_owned()).collect();
    assert_eq!(named(&row("served")), served, "served: said, and so");
    assert!(named(&row("of those")).is_subset(&served));
    // A pattern stands for all that begin so, and has some. What is in parentheses is no flag.
    let text = row("refused");
    let text = without_parentheses(&text);
    let patterns = document::quoted(&text);
    let covers = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    };
    let is_refused = |class: &Class| matches!(class, Class::Refused(_));
    for flag in table::all() {
        let said = patterns.iter().any(|pattern| covers(pattern, flag.name));
        assert_eq!(said, is_refused(&flag.class), "--{}: said to be refused, and is", flag.name);
    }
    for pattern in patterns {
        assert!(table::all().any(|flag| covers(pattern, flag.name)), "{pattern}: no flag is called so");
    }
}

#[tokio::test]
async fn every_controller_is_called_as_it_is_said() {
    let refused = TestServer::builder().flag("--controllers=none-of-them").start().await;
    let Err(StartError::Server(why)) = refused else { panic!("{refused:?}") };
    let known = why.line().rsplit("there are: ").next().unwrap_or_default().to_owned();
    let known: Vec<&str> = known.split(", ").map(str::trim).collect();
    let rows = rows_of(CONTROLLERS);
    let said: Vec<&str> = rows.iter().flat_map(|row| document::quoted(row.first())).collect();
    assert_eq!(said, known, "said, and known");
}

#[tokio::test]
async fn metrics_are_called_as_it_is_said() {
    let text = document::text();
    let said = document::quoted(document::section(&text, "Metrics"));
    let is_name = |name: &&str| name.contains('_') && !name.contains(['*', ' ', '/']);
    let said: BTreeSet<&str> = said.into_iter().filter(is_name).collect();
    let server = Asked::start().await;
    for ask in PREPARED {
        server.send(ask).await;
    }
    let (_, metrics) = server.send(&get("/metrics", 200)).await;
    let families = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let served: BTreeSet<&str> = families.filter_map(|line| line.split(' ').next()).collect();
    let unsaid: Vec<_> =
        served.iter().filter(|name| !said.contains(*name) && !name.starts_with("process_")).collect();
    // What only etcd has.
    let of_etcd = [
        "forebay_storage_requests_sent_total",
        "forebay_storage_barriers_total",
        "forebay_storage_feeds_reopened_total",
    ];
    let missing: Vec<_> =
        said.iter().filter(|name| !served.contains(*name) && !of_etcd.contains(*name)).collect();
    assert!(unsaid.is_empty() && missing.is_empty(), "not said: {unsaid:#?}\nnot served: {missing:#?}");
}
