//! HTTP codes, found by what they mean: where one is chosen or written, whatever word it is chosen by.
//!
//! In: a file outside of tests. Out: each line that names a code and is not where codes may be named. Never:
//! a client or `transport`, which read codes, and refuse by them what never becomes a request.

/// Files that name codes: the one that chooses them, and the one that says in OpenAPI's words which there
/// are.
const NAMED_IN: &[&str] = &["endpoints/src/status.rs", "documents/src/openapi/responses.rs"];

/// Words beside which a number of three digits is a code.
const BESIDE: [&str; 4] = ["code", "codes", "responses", "status"];

/// - `crates`: those that may not name codes but where [`NAMED_IN`] says so.
/// - `sources`: path below `crates/`, and text, without tests.
pub fn findings(crates: &[&str], sources: &[(&str, &str)]) -> Vec<String> {
    let of_a_crate = |path: &str| {
        crates.iter().any(|name| path.strip_prefix(name).is_some_and(|it| it.starts_with("/src/")))
    };
    let files = sources.iter().filter(|(path, _)| of_a_crate(path) && !NAMED_IN.contains(path));
    files.flat_map(|(path, text)| in_file(path, text)).collect()
}

fn in_file(path: &str, text: &str) -> Vec<String> {
    let code = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).enumerate();
    code.filter(|(_, line)| !line.trim_start().starts_with("//"))
        .filter_map(|(at, line)| {
            let code = named(line)?;
            Some(format!(
                "{path}:{}: names the HTTP code `{code}`: they are chosen in {}",
                at + 1,
                NAMED_IN[0]
            ))
        })
        .collect()
}

/// The code that a line names: `StatusCode::OK`, a number beside a word for codes, or a text that begins with
/// one.
fn named(line: &str) -> Option<String> {
    if let Some((_, constant)) = line.split_once("StatusCode::") {
        let constant = words(constant).next().unwrap_or_default();
        let is_value = constant == "from_u16" || constant.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        if is_value {
            return Some(format!("StatusCode::{constant}"));
        }
    }
    let is_beside = words(line).flat_map(|word| word.split('_')).any(|part| BESIDE.contains(&part));
    let number = words(line).find(|word| is_code(word)).filter(|_| is_beside);
    let texts = line.split('"').skip(1).step_by(2);
    let text =
        texts.map(|text| text.split([' ', ':']).next().unwrap_or_default()).find(|first| is_code(first));
    number.or(text).map(str::to_owned)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Whether it is a code that HTTP has.
fn is_code(word: &str) -> bool {
    let is_number = word.len() == 3 && word.bytes().all(|b| b.is_ascii_digit());
    is_number && matches!(word.parse(), Ok(100..=103 | 200..=208 | 301..=308 | 400..=431 | 451 | 500..=511))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_whatever_it_is_called() {
        for line in [
            "answer::text(StatusCode::NOT_FOUND, why)",
            "StatusCode::from_u16(number)",
            r#"json!({ "kind": "Status", "code": 201 })"#,
            "if matches!(code, 429 | 504) {",
            "route.responses = vec![(200, model)];",
            "let status_code = 404;",
            r#"\"code\":410}}\n""#,
            r#"answer("404 page not found\n")"#,
            r#"responses.insert("401".into(), json!({}));"#,
        ] {
            assert!(named(line).is_some(), "{line}");
        }
    }

    #[test]
    fn a_number_is_no_code_for_its_digits() {
        for line in [
            "pub fn response(code: StatusCode, body: Body)",
            "const POPULAR_FROM: usize = 200;",
            "let year = year + era * 400;",
            "status.message.len() + 1_024",
            "let code = 0x404;",
            r#""system-nodes", "system", 500"#,
            r#"words("a 404")"#,
            r#"warning("299 - \"text\"")"#,
        ] {
            assert_eq!(named(line), None, "{line}");
        }
    }

    #[test]
    fn codes_are_named_where_they_are_chosen_alone() {
        let of = |path, line| findings(&["endpoints", "registry"], &[(path, line)]);
        assert_eq!(of("endpoints/src/status.rs", "code = 200;"), [""; 0]);
        assert!(of("endpoints/src/answer.rs", "code = 200;")[0].contains("answer.rs:1: names"));
        assert_eq!(of("registry/src/a.rs", "code = 200;\ncode = 201;").len(), 2);
        assert_eq!(of("transport/src/a.rs", "code = 200;"), [""; 0]);
    }
}
