//! Links within HTML, as it passes.
//!
//! In: a document, a piece at a time. Out: the same, in which the attributes that have URLs lead back through
//! this server. Never: holds more than one tag, or more than [`TAG_BYTES_MAX`] of that; reads styles or
//! scripts; more work for a byte than a look.
//!
//! Source: apimachinery v0.36.3 `pkg/util/proxy/transport.go`; WHATWG HTML, tokenization.

use std::ops::Range;

use crate::limits::TAG_BYTES_MAX;
use crate::links::Links;

/// The attributes that have a URL, by tag.
const ATTRIBUTES: [(&str, &[&str]); 25] = [
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// Elements in which there are no tags but their own end.
const RAW: [&str; 9] =
    ["iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"];

/// See the module's doc.
pub struct HtmlLinks {
    links: Links,
    at: At,
    // The tag that is being read; <= TAG_BYTES_MAX
    tag: Vec<u8>,
}

enum At {
    Text,
    Tag {
        /// What ends the value that is being read.
        quote: Option<u8>,
        /// The last byte that is no space.
        before: u8,
    },
    /// How many dashes there were just now.
    Comment {
        dashes: usize,
    },
    /// `</` and the name of what has to end, and how much of it there was just now.
    Raw {
        end: Vec<u8>,
        met: usize,
    },
}

impl HtmlLinks {
    pub fn new(links: Links) -> HtmlLinks {
        HtmlLinks { links, at: At::Text, tag: Vec::new() }
    }

    /// What becomes of `piece`, behind what there was.
    pub fn pass(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        for byte in piece {
            self.take(*byte, out);
        }
    }

    /// What is left at the end.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.tag);
        self.at = At::Text;
    }

    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        match &mut self.at {
            At::Text if byte == b'<' => {
                self.tag.push(byte);
                self.at = At::Tag { quote: None, before: byte };
            }
            At::Text => out.push(byte),
            At::Tag { .. } => self.in_tag(byte, out),
            At::Comment { dashes } => {
                out.push(byte);
                match byte {
                    b'-' => *dashes += 1,
                    b'>' if *dashes >= 2 => self.at = At::Text,
                    _ => *dashes = 0,
                }
            }
            At::Raw { end, met } => {
                out.push(byte);
                *met = match byte.to_ascii_lowercase() {
                    lower if lower == end[*met] => *met + 1,
                    b'<' => 1,
                    _ => 0,
                };
                if *met == end.len() {
                    self.at = At::Text;
                }
            }
        }
    }

    fn in_tag(&mut self, byte: u8, out: &mut Vec<u8>) {
        let At::Tag { quote, before } = &mut self.at else { return };
        let is_first = self.tag.len() == 1;
        if is_first && !(byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'!' | b'?')) {
            // It was no tag.
            self.finish(out);
            return self.take(byte, out);
        }
        self.tag.push(byte);
        match *quote {
            Some(end) if end == byte => (*quote, *before) = (None, b' '),
            Some(_) => {}
            None if byte == b'>' => return self.tag_ends(out),
            None if matches!(byte, b'"' | b'\'') && *before == b'=' => *quote = Some(byte),
            None if !byte.is_ascii_whitespace() => *before = byte,
            None => {}
        }
        if self.tag == b"<!--" {
            self.finish(out);
            // What begins with dashes may end with them: `<!-->` is whole.
            self.at = At::Comment { dashes: 2 };
        } else if self.tag.len() >= TAG_BYTES_MAX {
            // Of what is so long nothing is changed.
            self.finish(out);
        }
    }

    fn tag_ends(&mut self, out: &mut Vec<u8>) {
        let tag = std::mem::take(&mut self.tag);
        self.at = At::Text;
        let name_end = tag[1..].iter().position(|byte| !byte.is_ascii_alphanumeric());
        let name_end = 1 + name_end.unwrap_or(tag.len() - 1);
        let name = String::from_utf8_lossy(&tag[1..name_end]).to_ascii_lowercase();
        let known = ATTRIBUTES.binary_search_by(|(known, _)| (*known).cmp(&name));
        match known {
            Ok(at) => self.rewrite(&tag, name_end, ATTRIBUTES[at].1, out),
            Err(_) => out.extend_from_slice(&tag),
        }
        // Few: there are nine.
        if RAW.contains(&&*name) {
            self.at = At::Raw { end: format!("</{name}").into_bytes(), met: 0 };
        }
        self.tag = tag;
        self.tag.clear();
    }

    fn rewrite(&self, tag: &[u8], name_end: usize, wanted: &[&str], out: &mut Vec<u8>) {
        let (mut from, mut at) = (0, name_end);
        while let Some(attribute) = next_attribute(tag, at) {
            at = attribute.end;
            let name = String::from_utf8_lossy(&tag[attribute.name]).to_ascii_lowercase();
            // Few: a tag has at most four.
            if !wanted.contains(&&*name) {
                continue;
            }
            let Ok(url) = std::str::from_utf8(&tag[attribute.value.clone()]) else { continue };
            if let Some(rewritten) = self.links.rewritten(url) {
                out.extend_from_slice(&tag[from..attribute.value.start]);
                escape(&rewritten, url, out);
                from = attribute.value.end;
            }
        }
        out.extend_from_slice(&tag[from..]);
    }
}

/// Where the parts of an attribute are.
struct Attribute {
    name: Range<usize>,
    /// Without its quotes.
    value: Range<usize>,
    end: usize,
}

/// The next one at or behind `at`; `None` where there is none.
fn next_attribute(tag: &[u8], at: usize) -> Option<Attribute> {
    let find = |from: usize, is_it: &dyn Fn(u8) -> bool| {
        let rest = tag.get(from..)?;
        rest.iter().position(|byte| is_it(*byte)).map(|found| from + found)
    };
    let start = find(at, &|byte| !byte.is_ascii_whitespace() && byte != b'/')?;
    if tag[start] == b'>' {
        return None;
    }
    // A name may begin with what ends others.
    let is_end = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'=' | b'>');
    let name_end = find(start + 1, &is_end)?;
    let next = find(name_end, &|byte| !byte.is_ascii_whitespace())?;
    if tag[next] != b'=' {
        return Some(Attribute { name: start..name_end, value: name_end..name_end, end: name_end });
    }
    let first = find(next + 1, &|byte| !byte.is_ascii_whitespace())?;
    let (value, end) = match tag[first] {
        quote @ (b'"' | b'\'') => {
            let end = find(first + 1, &|byte| byte == quote)?;
            (first + 1..end, end + 1)
        }
        _ => {
            let end = find(first, &|byte| byte.is_ascii_whitespace() || byte == b'>')?;
            (first..end, end)
        }
    };
    Some(Attribute { name: start..name_end, value, end })
}

/// What came of `url`, whose own bytes are escaped as they have to be.
fn escape(rewritten: &str, url: &str, out: &mut Vec<u8>) {
    let same = rewritten.bytes().rev().zip(url.bytes().rev()).take_while(|(one, two)| one == two).count();
    let (new, old) = rewritten.as_bytes().split_at(rewritten.len() - same);
    for byte in new {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b' ' => out.extend_from_slice(b"%20"),
            byte => out.push(*byte),
        }
    }
    out.extend_from_slice(old);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(document: &str, pieces: usize) -> String {
        let mut html = HtmlLinks::new(Links {
            prefix: "/p".to_owned(),
            host: "10.0.0.1:80".to_owned(),
            asked_host: "s".to_owned(),
        });
        let mut out = Vec::new();
        document.as_bytes().chunks(pieces.max(1)).for_each(|piece| html.pass(piece, &mut out));
        html.finish(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn attributes_with_urls_lead_back_and_all_else_stays_as_it_is() {
        for (document, want) in [
            ("<a href=\"/x\">/x</a>", "<a href=\"/p/x\">/x</a>"),
            ("<A class=b HREF='/x?a=1&amp;b=2'>", "<A class=b HREF='/p/x?a=1&amp;b=2'>"),
            ("<img src=/x.png usemap = \"/m\"/>", "<img src=/p/x.png usemap = \"/p/m\"/>"),
            ("<a href=\"http://10.0.0.1:80/x\">", "<a href=\"/p/x\">"),
            ("<a href=\"https://other/x\" name=\"/x\">", "<a href=\"https://other/x\" name=\"/x\">"),
            ("<a title=\"a > b\" href=\"/x\">", "<a title=\"a > b\" href=\"/p/x\">"),
            ("<p href=\"/x\"> 1 < 2 <b>", "<p href=\"/x\"> 1 < 2 <b>"),
            ("<!-- <a href=\"/x\"> --><a href=/y>", "<!-- <a href=\"/x\"> --><a href=/p/y>"),
            (
                "<script src=/s.js>if (a<b) '<a href=\"/x\">'</script><a href=/y>",
                "<script src=/p/s.js>if (a<b) '<a href=\"/x\">'</script><a href=/p/y>",
            ),
            ("<title><a href=/x></title>", "<title><a href=/x></title>"),
            ("<a href>", "<a href>"),
            ("<a href=\"/x", "<a href=\"/x"),
            ("<", "<"),
            ("<form action=/>", "<form action=/p/>"),
        ] {
            for pieces in [1, 3, 1_000] {
                assert_eq!(passed(document, pieces), want, "{document} by {pieces}");
            }
        }
    }

    #[test]
    fn a_tag_without_an_end_passes_as_it_is() {
        let document = format!("<a href=\"/x\" {}><a href=\"/y\">", "b ".repeat(TAG_BYTES_MAX));
        let passed = passed(&document, 64 << 10);
        assert!(passed.starts_with("<a href=\"/x\" b") && passed.ends_with("><a href=\"/p/y\">"));
        assert_eq!(passed.len(), document.len() + 2);
    }

    #[test]
    fn tags_are_in_the_order_that_they_are_looked_up_by() {
        assert!(ATTRIBUTES.is_sorted_by_key(|(name, _)| *name));
    }
}
