//! Makes output comparable: what differs from run to run gets a name.
//!
//! In: what a command printed. Out: the same text with `<uid>`, `<time>`, `<rv>`, `<age>`, `<server>` and
//! `<dir>`. Never: anything else changed; a column of an AGE keeps no more than one space behind it, as its
//! width changes.

/// Replaces what differs from run to run.
pub fn normal(text: &str, port: u16, dir: &str) -> String {
    let text = text.replace(&format!("https://127.0.0.1:{port}"), "<server>").replace(dir, "<dir>");
    let mut out: String = text.lines().map(|line| line_normal(line) + "\n").collect();
    if !text.ends_with('\n') {
        out.pop();
    }
    out
}

fn line_normal(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let at_word = !out.ends_with(is_word);
        let found = match at_word {
            true => uid(rest)
                .map(|len| (len, "<uid>"))
                .or_else(|| time(rest).map(|len| (len, "<time>")))
                .or_else(|| revision(&out, rest).map(|len| (len, "<rv>")))
                .or_else(|| age(&out, rest).map(|len| (len, "<age>"))),
            false => None,
        };
        let Some((len, name)) = found else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        };
        out.push_str(name);
        rest = &rest[len..];
        if name == "<age>" && !rest.is_empty() {
            rest = rest.trim_start();
            out.push(' ');
        }
    }
    out.trim_end().to_owned()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '-'
}

/// Length of the leading text that has the form of `form`: `x` a hex digit, `9` a digit, anything else
/// itself.
fn formed(text: &str, form: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let fits = form.bytes().enumerate().all(|(at, want)| match (bytes.get(at), want) {
        (Some(is), b'x') => is.is_ascii_hexdigit(),
        (Some(is), b'9') => is.is_ascii_digit(),
        (Some(is), want) => *is == want,
        (None, _) => false,
    });
    let end = text.get(form.len()..)?;
    (fits && !end.starts_with(is_word)).then_some(form.len())
}

fn uid(text: &str) -> Option<usize> {
    formed(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

fn time(text: &str) -> Option<usize> {
    formed(text, "9999-99-99T99:99:99Z").or_else(|| formed(text, "9999-99-99T99:99:99.999999Z"))
}

/// A number behind `resourceVersion: "` or `"resourceVersion":"`.
fn revision(before: &str, text: &str) -> Option<usize> {
    let key = before.trim_end_matches(['"', ' ', ':', '=']);
    let len = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (key.ends_with("resourceVersion") && key.len() < before.len() && len > 0).then_some(len)
}

/// `7s` or `2m5s` as a column: behind a space, at the end or before two spaces.
fn age(before: &str, text: &str) -> Option<usize> {
    let len = text.find(' ').unwrap_or(text.len());
    let is_column = before.ends_with(' ') && (text.len() == len || text[len..].starts_with("  "));
    (is_column && is_age(&text[..len])).then_some(len)
}

/// As kubectl shows what is younger than ten minutes: seconds below two minutes, then both.
fn is_age(word: &str) -> bool {
    let number = |text: &str| text.parse::<u32>().ok();
    match word.strip_suffix('s').map(|word| word.split_once('m').ok_or(word)) {
        Some(Ok((minutes, seconds))) => number(minutes).is_some_and(|m| m < 10) && number(seconds).is_some(),
        Some(Err(seconds)) => number(seconds).is_some_and(|s| s < 120),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_gets_a_name() {
        for (text, want) in [
            ("  uid: 0b1e6f64-4f3e-4a4b-8d8e-0123456789ab", "  uid: <uid>"),
            ("x0b1e6f64-4f3e-4a4b-8d8e-0123456789ab", "x0b1e6f64-4f3e-4a4b-8d8e-0123456789ab"),
            ("at \"2026-01-02T03:04:05Z\",", "at \"<time>\","),
            ("renewTime: \"2026-01-02T03:04:05.123456Z\"", "renewTime: \"<time>\""),
            ("  resourceVersion: \"123\"", "  resourceVersion: \"<rv>\""),
            ("{\"resourceVersion\":\"123\",\"a\":\"5\"}", "{\"resourceVersion\":\"<rv>\",\"a\":\"5\"}"),
            ("the resourceVersion 12 is old", "the resourceVersion <rv> is old"),
            ("app    2         7s", "app    2         <age>"),
            ("app    7s     nginx", "app    <age> nginx"),
            ("app    2m5s   nginx", "app    <age> nginx"),
            ("cpu:     100m", "cpu:     100m"),
            ("op=Exists for 300s", "op=Exists for 300s"),
            ("wait 5s then", "wait 5s then"),
            ("sleep  for60s", "sleep  for60s"),
            ("at https://127.0.0.1:4711/x in /tmp/d/f", "at <server>/x in <dir>/f"),
            ("trailing   ", "trailing"),
        ] {
            assert_eq!(normal(text, 4711, "/tmp/d"), want);
        }
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(normal("a\nb\n", 1, "/d"), "a\nb\n");
        assert_eq!(normal("a\n\nb", 1, "/d"), "a\n\nb");
        assert_eq!(normal("", 1, "/d"), "");
    }
}
