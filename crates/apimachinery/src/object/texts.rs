//! Short texts in one allocation: an object's labels, its fields.
//!
//! Each is its length and its bytes, one behind the other; whoever wants one walks past those before it. There are some
//! ten of them at most, of some ten bytes each.

/// Appends `text`, or that there is none.
pub(super) fn push(texts: &mut Vec<u8>, text: Option<&str>) {
    let mut len = text.map_or(0, |text| text.len() + 1);
    while len >= 0x80 {
        texts.push(len as u8 | 0x80);
        len >>= 7;
    }
    texts.push(len as u8);
    texts.extend_from_slice(text.unwrap_or("").as_bytes());
}

/// A walk over texts that [`push`] made.
#[derive(Clone)]
pub(super) struct Texts<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Texts<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        let (mut len, mut shift, mut at) = (0, 0, 0);
        loop {
            let byte = *self.0.get(at)?;
            at += 1;
            len |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (text, rest) = self.0[at..].split_at(len.saturating_sub(1));
        self.0 = rest;
        Some((len > 0).then_some(text))
    }
}

/// What [`push`] was given.
pub(super) fn as_str(text: &[u8]) -> &str {
    std::str::from_utf8(text).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_in_order() {
        let long = "é".repeat(20_000);
        for given in [
            vec![],
            vec![None],
            vec![Some(""), None, Some("a"), Some("")],
            vec![Some(&long[..]), Some(&long[..126]), Some(&long[..128]), None, Some("z")],
        ] {
            let mut texts = Vec::new();
            given.iter().for_each(|text| push(&mut texts, *text));
            let back: Vec<Option<&str>> = Texts(&texts).map(|text| text.map(as_str)).collect();
            assert_eq!(back, given);
        }
    }
}
