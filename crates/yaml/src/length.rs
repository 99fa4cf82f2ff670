//! How long a JSON text becomes as YAML, before it is made.
//!
//! In: JSON. Out: bytes, from above. Never: exact.

use forebay_apimachinery::json::weight;

/// How long a JSON text may be as YAML, where a text has several lines. Cost: one pass.
pub fn of_json(json: &[u8]) -> usize {
    weight::on_lines(json, text)
}

/// By how much a text may grow as YAML: it is folded at spaces, which is at each of them where it is deep,
/// and some of its characters are escaped.
fn text(text: &[u8], depth: usize) -> usize {
    // A longer name, or one of several lines, has a mark of its own, and its value another.
    const NAME_BYTES: usize = 128;
    let line = 2 * depth + 4;
    let marks = if text.len() > NAME_BYTES || text.contains(&b'\\') { 2 * line } else { 0 };
    let next = text.iter().copied().skip(1).chain([b'"']);
    let more = text.iter().copied().zip(next).map(|pair| match pair {
        (b' ', _) | (b'\\', b'n' | b'u') => line,
        (b'\'', _) => 1,
        (0x7f, _) => 3,
        (0x80.., _) => 2,
        _ => 0,
    });
    marks + more.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_weighed_no_shorter_than_it_becomes() {
        let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(100), "]".repeat(100));
        let words = serde_json::to_string(&"a b ".repeat(5_000)).expect("a string");
        let lines = serde_json::to_string(&"a\n".repeat(5_000)).expect("a string");
        let odd = format!("{{{:?}:\"\u{7f}'\u{80}\u{1f600} #\",\"a\\nb\":[[],{{}},\"|\"]}}", "k".repeat(200));
        let plain = r#"{"a":[],"b":{"c":[1,"x y,{[\"",null,{"d":"1"}]},"e":"\n x\n"}"#;
        let (words, lines) = (nested(&words), nested(&lines));
        for json in [plain, "{}", "[\"\"]", &odd, &nested(&odd), &words, &lines, &nested("0,0,{\"a\":[0,0]}")]
        {
            let made = crate::from_json(json.as_bytes()).expect("JSON").len();
            let weighed = of_json(json.as_bytes());
            assert!(made <= weighed, "{made} as {weighed}: {}", &json[..json.len().min(300)]);
        }
        assert!(of_json(words.as_bytes()) > 40 * words.len(), "each space is a line at that depth");
    }
}
