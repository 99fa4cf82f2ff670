//! Short texts in one allocation: an object's labels, its fields.
//!
//! In: texts, one after another. Out: the same, by a walk from the first one on. Never: on disk; the encoding
//! may change at will.
//!
//! Each is its length and its bytes, one behind the other; whoever wants one walks past those before it.
//! There are some ten of them at most, of some ten bytes each.

use forebay_apimachinery::varint;

/// Frequent values of fields, which take one byte each. Only in memory, so the table may be changed at will.
const COMMON: [&str; 24] = [
    "",
    "false",
    "true",
    "default",
    "default-scheduler",
    "Always",
    "Never",
    "OnFailure",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "v1",
    "apps/v1",
    "Pod",
    "Node",
    "ReplicaSet",
    "Normal",
    "Warning",
    "kubelet",
    "Opaque",
    "Active",
    "Scheduled",
    "kube-system",
];

/// The first number that stands for a length: 0 is an absent text, and the numbers up to here are those of
/// COMMON.
const LENGTHS: usize = COMMON.len() + 1;

/// Appends `text`, or that there is none.
pub(crate) fn push(texts: &mut Vec<u8>, text: Option<&str>) {
    let known = |text: &str| COMMON.iter().position(|common| *common == text);
    let (number, text) = match text.map(|text| (text, known(text))) {
        None => (0, ""),
        Some((_, Some(at))) => (at + 1, ""),
        Some((text, None)) => (LENGTHS + text.len(), text),
    };
    varint::write(number as u64, texts);
    texts.extend_from_slice(text.as_bytes());
}

/// A walk over texts that [`push`] made.
#[derive(Clone)]
pub(crate) struct Texts<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Texts<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        let number = varint::read(&mut self.0).ok()? as usize;
        let (text, rest) = self.0.split_at(number.saturating_sub(LENGTHS));
        self.0 = rest;
        Some(match number {
            0 => None,
            common if common < LENGTHS => Some(COMMON[common - 1].as_bytes()),
            _ => Some(text),
        })
    }
}

/// The text that [`push`] was given.
pub(crate) fn as_str(text: &[u8]) -> &str {
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
            vec![Some(""), None, Some("a"), Some(""), Some("Running"), Some("Runnin"), Some("kube-system")],
            vec![Some(&long[..]), Some(&long[..126]), Some(&long[..128]), None, Some("z")],
        ] {
            let mut texts = Vec::new();
            given.iter().for_each(|text| push(&mut texts, *text));
            let back: Vec<Option<&str>> = Texts(&texts).map(|text| text.map(as_str)).collect();
            assert_eq!(back, given);
        }
    }
}
