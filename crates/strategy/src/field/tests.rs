//! How causes are said, and how many are told.
//!
//! In: paths and values. Out: causes. Never: an object.

use serde_json::json;

use super::*;

#[test]
fn no_more_is_told_than_a_client_reads() {
    let (long, root) = ("k".repeat(100_000), Path::root("spec"));
    let at = root.key(&long);
    let mut causes = Causes::default();
    (0..100_000).for_each(|number| causes.invalid(&at.index(number), long.as_str(), "bad"));
    assert!(causes.is_full() && causes.len() == 6, "{}", causes.len());
    let mut many = Causes::default();
    (0..100_000).for_each(|number| many.required(&root.index(number), ""));
    assert_eq!(many.len(), CAUSES_MAX);
}

#[test]
fn causes_are_said_in_upstreams_words() {
    let at = Path::root("x");
    let object = json!({"b": 1, "a": "<"});
    let mut causes = Causes::default();
    causes.required(&at, "");
    causes.required(&at, "why");
    causes.forbidden(&at, "no");
    causes.invalid(&at, "a\"b", "bad");
    causes.invalid(&at, 7, "");
    causes.invalid(&at, &object, "bad");
    causes.invalid(&at, None, "bad");
    causes.duplicate(&at, true);
    causes.not_found(&at, "y");
    causes.not_supported(&at, "y", &["a", "b"]);
    causes.too_long(&at, 63);
    causes.too_many(&at, 2, 1);
    let messages: Vec<String> = causes.into_vec().into_iter().map(|cause| cause.message).collect();
    assert_eq!(
        messages,
        [
            "Required value",
            "Required value: why",
            "Forbidden: no",
            r#"Invalid value: "a\"b": bad"#,
            "Invalid value: 7",
            r#"Invalid value: {"a":"\u003c","b":1}: bad"#,
            "Invalid value: null: bad",
            "Duplicate value: true",
            r#"Not found: "y""#,
            r#"Unsupported value: "y": supported values: "a", "b""#,
            "Too long: may not be more than 63 bytes",
            "Too many: 2: must have at most 1 item",
        ]
    );
}
