//! JSON as it was written: members in their order, texts and numbers in their bytes.
//!
//! In: a body. Out: a [`Tree`], and its text again. Never: a number or an escape read and written anew.

use forebay_apimachinery::json::{Reader, Unexpected};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Object(Vec<(String, Tree)>),
    List(Vec<Tree>),
    /// As it stands, with its quotes.
    Leaf(String),
}

impl Tree {
    /// Reads compact JSON; a newline may follow.
    pub(super) fn read(body: &[u8]) -> Result<Tree, Unexpected> {
        let mut reader = Reader::new(body.trim_ascii_end());
        let tree = read(&mut reader)?;
        match reader.peek() {
            None => Ok(tree),
            Some(_) => reader.fail("more than one value"),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Tree> {
        match self {
            Tree::Object(members) => members.iter().find(|(own, _)| own == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Appends its text.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Tree::Leaf(text) => out.push_str(text),
            Tree::Object(members) => {
                for (at, (name, value)) in members.iter().enumerate() {
                    out.push(if at == 0 { '{' } else { ',' });
                    *out += &serde_json::Value::from(name.as_str()).to_string();
                    out.push(':');
                    value.write(out);
                }
                out.push_str(if members.is_empty() { "{}" } else { "}" });
            }
            Tree::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    out.push(if at == 0 { '[' } else { ',' });
                    item.write(out);
                }
                out.push_str(if items.is_empty() { "[]" } else { "]" });
            }
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }
}

fn read(reader: &mut Reader<'_>) -> Result<Tree, Unexpected> {
    match reader.peek() {
        Some(b'{') => {
            reader.begin(b'{')?;
            let mut members = Vec::new();
            while let Some(name) = reader.member(members.len())? {
                let name = String::from_utf8_lossy(&name).into_owned();
                members.push((name, read(reader)?));
            }
            Ok(Tree::Object(members))
        }
        Some(b'[') => {
            reader.begin(b'[')?;
            let mut items = Vec::new();
            while reader.element(items.len())? {
                items.push(read(reader)?);
            }
            Ok(Tree::List(items))
        }
        _ => {
            let from = reader.at();
            reader.skip()?;
            Ok(Tree::Leaf(String::from_utf8_lossy(&reader.bytes()[from..reader.at()]).into_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_written_as_it_was() {
        let text = r#"{"b":[1.0,"\u003c",{}],"a":{"x":null,"k:{\"n\":1}":[]}}"#;
        assert_eq!(Tree::read(format!("{text}\n").as_bytes()).expect("a tree").text(), text);
        assert!(Tree::read(b"[1] page").is_err());
    }
}
