//! `docs/robustness.md`, checked: every test that it names is there, where it says.
//!
//! In: the document, and the sources by path. Out: a line for each test that is not. A name in backticks that
//! reads as a test's is one; a crate or a file in backticks with a colon after it says where the names after
//! it on that line are, and one in a table's head does so for the table. Never: a judgement of what a test
//! proves.

/// What names of tests have at least, and names of other things not: so many underscores.
const UNDERSCORES_MIN: usize = 3;

/// Every name in `document` that no source has.
pub fn findings(document: &str, sources: &[(&str, &str)]) -> Vec<String> {
    let mut of_table = String::new();
    let mut findings = Vec::new();
    for (number, line) in document.lines().enumerate() {
        let heads = line.starts_with('#') || line.starts_with("| ") && line.contains("| tests");
        let mut place = of_table.clone();
        if heads {
            of_table.clear();
        }
        for (token, after) in tokens(line) {
            let is_place = is_crate(token, sources) || token.ends_with(".rs");
            if is_place && heads {
                of_table = token.to_owned();
            } else if is_place && after.starts_with(':') {
                place = token.to_owned();
            } else if is_test(token) && !is_there(token, &place, sources) {
                findings.push(format!("docs/robustness.md:{}: no test {token} in {place:?}", number + 1));
            }
        }
    }
    findings
}

/// What is in backticks, and what comes after it.
fn tokens(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (_, begun) = rest.split_once('`')?;
        let (token, after) = begun.split_once('`')?;
        rest = after;
        Some((token, after))
    })
}

fn is_crate(token: &str, sources: &[(&str, &str)]) -> bool {
    !token.is_empty() && sources.iter().any(|(path, _)| path.split('/').next() == Some(token))
}

fn is_test(token: &str) -> bool {
    let is_name = token.chars().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_');
    is_name && token.matches('_').count() >= UNDERSCORES_MIN
}

fn is_there(test: &str, place: &str, sources: &[(&str, &str)]) -> bool {
    let head = format!("fn {test}(");
    sources.iter().any(|(path, text)| {
        let is_place = match place.ends_with(".rs") {
            true => *path == place,
            false => place.is_empty() || path.split('/').next() == Some(place),
        };
        is_place && text.contains(&head)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_not_where_the_document_says_is_found() {
        let sources = [
            ("cache/src/tests.rs", "async fn an_event_is_told_once() {}"),
            ("server/tests/a.rs", "fn a_watch_goes_on_there() {}"),
        ];
        let found = |document: &str| findings(document, &sources).join("\n");
        for good in [
            "| 1 | `cache`: `an_event_is_told_once`; `server/tests/a.rs`: `a_watch_goes_on_there` |",
            "`an_event_is_told_once`, `kill -9`, `a_name`, `410`",
            "| failure | tests (`server`) |\n|---|---|\n| it ends | `a_watch_goes_on_there` |",
        ] {
            assert_eq!(found(good), "", "{good}");
        }
        for (bad, why) in [
            ("x\n`cache`: `a_watch_goes_on_there`", ":2: no test a_watch_goes_on_there in \"cache\""),
            (
                "`server/tests/b.rs`: `a_watch_goes_on_there`",
                ":1: no test a_watch_goes_on_there in \"server/tests/b.rs\"",
            ),
            (
                "| failure | tests (`cache`) |\n| it ends | `a_watch_goes_on_there` |",
                ":2: no test a_watch_goes_on_there in \"cache\"",
            ),
            ("`an_event_is_told_twice`", ":1: no test an_event_is_told_twice in \"\""),
        ] {
            assert_eq!(found(bad), format!("docs/robustness.md{why}"), "{bad}");
        }
    }
}
