//! Values in path elements, encoded: the keys of an item of a list, or the item of a set.
//!
//! In: values. Out: bytes that stand for them, their order, their JSON and their text in a path. Never:
//! allocates to compare.
//!
//! A value is a tag and what the tag says: 8 bytes of a number, a length and text. Whole numbers and floats
//! are apart, as what was read from `fieldsV1` is a float there and shows as one, and they compare as
//! numbers.

use std::cmp::Ordering;

use forebay_apimachinery::varint;
use serde_json::Value;

use crate::{gotext, tree};

const FLOAT: u8 = 0;
const INTEGER: u8 = 1;
const TEXT: u8 = 2;
const FALSE: u8 = 3;
const TRUE: u8 = 4;
/// A list or an object, as compact JSON; only what was read from `fieldsV1` has them.
const TREE: u8 = 5;
const NULL: u8 = 6;

/// A value in an element.
#[derive(Clone, Copy, Debug)]
pub enum Leaf<'a> {
    Float(f64),
    Integer(i64),
    Text(&'a str),
    Bool(bool),
    Tree(&'a str),
    Null,
}

/// Appends `value`.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(yes) => out.push(if *yes { TRUE } else { FALSE }),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => {
                out.push(INTEGER);
                out.extend_from_slice(&integer.to_le_bytes());
            }
            None => write_float(number.as_f64().unwrap_or(f64::INFINITY), out),
        },
        Value::String(text) => write_string(text, out),
        Value::Array(_) | Value::Object(_) => write_text(TREE, &gotext::json(value), out),
    }
}

/// Appends `value` as it is read out of `fieldsV1`, where every number is a float.
pub fn write_read(value: &Value, out: &mut Vec<u8>) {
    match value.as_f64() {
        Some(float) => write_float(float, out),
        None => write(value, out),
    }
}

/// Appends a number that was read.
pub fn write_float(float: f64, out: &mut Vec<u8>) {
    out.push(FLOAT);
    out.extend_from_slice(&float.to_le_bytes());
}

/// Appends a text as a value.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    write_text(TEXT, text, out);
}

fn write_text(tag: u8, text: &str, out: &mut Vec<u8>) {
    out.push(tag);
    write_name(text, out);
}

/// Appends a text with its length.
pub fn write_name(text: &str, out: &mut Vec<u8>) {
    varint::write(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Takes a text with its length off the front.
pub fn read_name<'a>(bytes: &mut &'a [u8]) -> &'a str {
    let len = varint::read(bytes).expect("a length that was written here") as usize;
    let (text, rest) = bytes.split_at(len);
    *bytes = rest;
    std::str::from_utf8(text).expect("text that was written here")
}

/// Takes a value off the front.
pub fn read<'a>(bytes: &mut &'a [u8]) -> Leaf<'a> {
    let (&tag, rest) = bytes.split_first().expect("a tag that was written here");
    *bytes = rest;
    match tag {
        FLOAT => Leaf::Float(f64::from_le_bytes(read_eight(bytes))),
        INTEGER => Leaf::Integer(i64::from_le_bytes(read_eight(bytes))),
        TEXT => Leaf::Text(read_name(bytes)),
        FALSE => Leaf::Bool(false),
        TRUE => Leaf::Bool(true),
        TREE => Leaf::Tree(read_name(bytes)),
        _ => Leaf::Null,
    }
}

fn read_eight(bytes: &mut &[u8]) -> [u8; 8] {
    let (eight, rest) = bytes.split_first_chunk().expect("a number that was written here");
    *bytes = rest;
    *eight
}

impl Leaf<'_> {
    /// Numbers, texts, booleans, lists, objects, null; numbers by what they are worth.
    pub fn order(self, other: Leaf<'_>) -> Ordering {
        match (self, other) {
            (Leaf::Integer(a), Leaf::Integer(b)) => a.cmp(&b),
            (Leaf::Float(a), Leaf::Float(b)) => order_floats(a, b),
            (Leaf::Float(a), Leaf::Integer(b)) => order_floats(a, b as f64),
            (Leaf::Integer(a), Leaf::Float(b)) => order_floats(a as f64, b),
            (Leaf::Text(a), Leaf::Text(b)) => a.cmp(b),
            (Leaf::Bool(a), Leaf::Bool(b)) => a.cmp(&b),
            (Leaf::Tree(a), Leaf::Tree(b)) => order_trees(a, b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(self) -> u8 {
        match self {
            Leaf::Float(_) | Leaf::Integer(_) => 0,
            Leaf::Text(_) => 1,
            Leaf::Bool(_) => 2,
            Leaf::Tree(_) => 3,
            Leaf::Null => 4,
        }
    }

    /// Appends its JSON.
    pub fn write_json(self, out: &mut Vec<u8>) {
        match self {
            Leaf::Float(float) => out.extend_from_slice(gotext::json_float(float).as_bytes()),
            Leaf::Integer(integer) => out.extend_from_slice(integer.to_string().as_bytes()),
            Leaf::Text(text) => gotext::write_html_string(text, out),
            Leaf::Bool(yes) => out.extend_from_slice(if yes { b"true" } else { b"false" }),
            Leaf::Tree(json) => out.extend_from_slice(json.as_bytes()),
            Leaf::Null => out.extend_from_slice(b"null"),
        }
    }

    /// How it stands in a path.
    pub fn path_text(self) -> String {
        match self {
            Leaf::Float(float) => gotext::float(float),
            Leaf::Integer(integer) => integer.to_string(),
            Leaf::Text(text) => forebay_apimachinery::json::go_quote(text),
            Leaf::Bool(yes) => yes.to_string(),
            Leaf::Tree(json) => tree::path_text(&read_tree(json)),
            Leaf::Null => "null".to_owned(),
        }
    }
}

fn order_floats(a: f64, b: f64) -> Ordering {
    // JSON has no NaN.
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn order_trees(a: &str, b: &str) -> Ordering {
    tree::order(&read_tree(a), &read_tree(b))
}

fn read_tree(json: &str) -> Value {
    forebay_apimachinery::json::read(json.as_bytes()).expect("a tree that was written here")
}
