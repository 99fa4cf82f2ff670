//! `Warning` headers: escaped, each once, and not too much of them.
//!
//! In: texts from the verbs. Out: header values `299 - "text"`. Beyond the total, each is cut short and the
//! last ones are left out, as upstream does it.
//!
//! Source: apiserver v1.36.3 `endpoints/filters/warning.go`, apimachinery `util/net/http.go`.

use forebay_apimachinery::Seen;
use http::HeaderValue;

use crate::limits::{WARNING_RUNES_CUT, WARNING_RUNES_MAX};

/// The header values of `warnings`.
pub fn headers(warnings: &[String]) -> Vec<HeaderValue> {
    let mut seen = Seen::default();
    let distinct = warnings.iter().filter(|warning| !warning.is_empty() && !seen.again(warning.as_str()));
    let distinct: Vec<&String> = distinct.collect();
    // The first one that there is no room for has all of them cut, itself too, and the next ones are told for
    // as long as that leaves room.
    let mut whole = 0;
    let too_long = distinct.iter().position(|warning| {
        whole += warning.chars().count();
        whole > WARNING_RUNES_MAX
    });
    let (each_max, told) = too_long.map_or((usize::MAX, distinct.len()), |at| (WARNING_RUNES_CUT, at + 1));
    let (mut runes, mut values) = (0, Vec::new());
    for (at, warning) in distinct.into_iter().enumerate() {
        if at >= told && runes >= WARNING_RUNES_MAX {
            break;
        }
        let cut: String = warning.chars().take(each_max).collect();
        runes += cut.chars().count();
        values.extend(HeaderValue::from_bytes(quoted(&cut).as_bytes()));
    }
    values
}

/// `299 - "text"`. A header has no room for control characters; a space takes their place.
fn quoted(text: &str) -> String {
    let mut value = String::with_capacity(text.len() + 10);
    value.push_str("299 - \"");
    for c in text.chars() {
        match c {
            '"' | '\\' => value.extend(['\\', c]),
            c if c.is_control() => value.push(' '),
            c => value.push(c),
        }
    }
    value.push('"');
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(warnings: &[&str], want: &[&str]) {
        let warnings: Vec<String> = warnings.iter().map(|warning| (*warning).to_string()).collect();
        let got = headers(&warnings);
        let got: Vec<&str> =
            got.iter().map(|value| std::str::from_utf8(value.as_bytes()).expect("UTF-8")).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn warnings_are_quoted_once_each() {
        check(
            &["unknown field \"spec.x\\n\"", "", "é\n", "é\n"],
            &[r#"299 - "unknown field \"spec.x\\n\"""#, "299 - \"é \""],
        );
    }

    #[test]
    fn each_warning_is_a_step() {
        let cost = |count: usize| {
            let warnings: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            forebay_apimachinery::steps::counted(|| drop(headers(&warnings)))
        };
        assert_eq!((cost(2_000), cost(8_000)), (2_000, 8_000));
    }

    #[test]
    fn many_or_long_warnings_are_cut() {
        let long = "x".repeat(WARNING_RUNES_MAX + 1);
        let got = headers(std::slice::from_ref(&long));
        assert_eq!(got[0].len(), WARNING_RUNES_CUT + "299 - \"\"".len());
        let many: Vec<String> = (0..100).map(|n| format!("{n:0300}")).collect();
        let got = headers(&many);
        assert_eq!(got.len(), WARNING_RUNES_MAX / WARNING_RUNES_CUT);
        // The one that is too much is told, too.
        let short: Vec<String> = (0..100).map(|n| format!("{n:0200}")).collect();
        assert_eq!(headers(&short).len(), WARNING_RUNES_MAX / 200 + 1);
    }
}
