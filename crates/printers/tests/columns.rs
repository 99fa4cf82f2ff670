//! The column definitions of every kind against those of Kubernetes v1.36.3: name, type, format, priority,
//! order. Descriptions are our own, and empty where kube-apiserver has none.

use std::cmp::Ordering;

use forebay_printers::{Column, columns, list_order, row};
use jiff::Timestamp;
use serde_json::{Value, json};

/// `Name:string(name), Ready:string, IP:string*` with a star for wide columns.
fn text(columns: &[Column]) -> String {
    let column = |column: &Column| {
        let format = if column.format.is_empty() { String::new() } else { format!("({})", column.format) };
        format!("{}:{}{format}{}", column.name, column.type_, if column.priority == 0 { "" } else { "*" })
    };
    columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Group, kind, columns of each kind there is.
fn kinds() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    include_str!("cases/columns.txt").lines().map(|line| {
        let (kind, columns) = line.split_once(" = ").unwrap();
        let (group, kind) = kind.split_once(' ').unwrap();
        (if group == "core" { "" } else { group }, kind, columns)
    })
}

#[test]
fn columns_are_those_of_kube_apiserver() {
    for (group, kind, expected) in kinds() {
        assert_eq!(text(columns(group, kind)), expected, "{group}/{kind}");
    }
    assert_eq!(kinds().count(), 71);
}

#[test]
fn priorities_are_zero_or_one() {
    for (group, kind, _) in kinds() {
        assert!(columns(group, kind).iter().all(|column| matches!(column.priority, 0 | 1)), "{group}/{kind}");
    }
}

#[test]
fn only_ip_addresses_have_more_cells_than_columns() {
    for (group, kind, _) in kinds() {
        let more = if kind == "IPAddress" { 1 } else { 0 };
        let row = row(group, kind, &Value::Null, Timestamp::UNIX_EPOCH);
        assert_eq!(row.cells.len(), columns(group, kind).len() + more, "{group}/{kind}");
    }
}

#[test]
fn only_flow_schemas_are_sorted() {
    let ordered: Vec<_> = kinds().filter(|(group, kind, _)| list_order(group, kind).is_some()).collect();
    assert_eq!(ordered.iter().map(|(_, kind, _)| *kind).collect::<Vec<_>>(), ["FlowSchema"]);
    let order = list_order("flowcontrol.apiserver.k8s.io", "FlowSchema").unwrap();
    let schema = |name: &str, precedence: i64| json!({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}});
    assert_eq!(order(&schema("b", 1), &schema("a", 2)), Ordering::Less);
    assert_eq!(order(&schema("b", 2), &schema("a", 2)), Ordering::Greater);
    assert_eq!(order(&schema("a", 0), &schema("a", 1000)), Ordering::Equal);
}
