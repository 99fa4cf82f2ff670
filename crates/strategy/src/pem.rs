//! PEM, as Go reads it.
//!
//! In: text. Out: its blocks in order; what is around them, and blocks that are malformed, are passed over.
//! Never: looks into a block.
//!
//! Source: Go 1.25 `encoding/pem`.

use super::core::base64;

/// What stands between a BEGIN and its END.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<'t> {
    /// `CERTIFICATE REQUEST`
    pub label: &'t str,
    pub has_headers: bool,
    pub bytes: Vec<u8>,
}

/// The blocks of `text`.
pub fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut lines = text.split('\n').map(str::trim_end);
    let mut begun = None;
    std::iter::from_fn(move || {
        loop {
            let label = match begun.take() {
                Some(label) => label,
                None => lines.find_map(|line| between(line, "-----BEGIN "))?,
            };
            let (mut has_headers, mut body) = (false, String::new());
            let end = loop {
                let line = lines.next()?;
                if let Some(end) = between(line, "-----END ") {
                    break Some(end);
                }
                begun = between(line, "-----BEGIN ");
                if begun.is_some() {
                    break None;
                }
                match body.is_empty() && line.contains(':') {
                    true => has_headers = true,
                    false => body.push_str(line.trim()),
                }
            };
            if end == Some(label) && is_base64(&body) {
                return Some(Block { label, has_headers, bytes: base64::decode(&body) });
            }
        }
    })
}

/// `X` of `-----BEGIN X-----`.
fn between<'t>(line: &'t str, begin: &str) -> Option<&'t str> {
    line.strip_prefix(begin)?.strip_suffix("-----")
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_among_other_text() {
        let block = |label, has_headers, bytes: &[u8]| Block { label, has_headers, bytes: bytes.to_vec() };
        let rows = [
            ("", vec![]),
            ("-----BEGIN A-----\nYWJj\n-----END A-----", vec![block("A", false, b"abc")]),
            ("x\r\n-----BEGIN A-----\r\nYW\r\nJj\r\n-----END A-----\r\ny", vec![block("A", false, b"abc")]),
            ("-----BEGIN A-----\nk: v\n\nYQ==\n-----END A-----\n", vec![block("A", true, b"a")]),
            ("-----BEGIN A-----\n-----END A-----\n", vec![block("A", false, b"")]),
            (
                "-----BEGIN A-----\nYQ==\n-----END A-----\n-----BEGIN B-----\nYg==\n-----END B-----\n",
                vec![block("A", false, b"a"), block("B", false, b"b")],
            ),
            (
                "-----BEGIN A-----\nYQ==\n-----BEGIN B-----\nYg==\n-----END B-----\n",
                vec![block("B", false, b"b")],
            ),
            ("-----BEGIN A-----\nYQ==\n-----END B-----\n", vec![]),
            ("-----BEGIN A-----\nY*==\n-----END A-----\n", vec![]),
            ("-----BEGIN A-----\nYQ==\n", vec![]),
            (" -----BEGIN A-----\nYQ==\n-----END A-----\n", vec![]),
        ];
        for (text, expected) in rows {
            assert_eq!(blocks(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }
}
