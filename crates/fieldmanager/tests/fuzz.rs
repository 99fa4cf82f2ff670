//! What reads entries of managers withstands any input, and what it read it says again.

use forebay_apimachinery::{Lease, json, steps};
use forebay_fieldmanager::Managed;
use forebay_fuzz::{Corpus, gist, peak_of, run, stepped};
use serde_json::Value;

const WORDS: &[&str] = &[
    r#""manager":"a""#,
    r#""operation":"Apply""#,
    r#""operation":"Update""#,
    r#""apiVersion":"v1""#,
    r#""fieldsType":"FieldsV1""#,
    r#""fieldsV1":{"f:a":{}}"#,
    r#""subresource":"status""#,
    r#""time":"2026-01-01T00:00:00Z""#,
    "{",
    "}",
    ",",
    "null",
];

#[test]
fn fuzz_managed_fields() {
    let inputs: &[&[u8]] = &[
        br#"[{"manager":"a","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:a":{}}}},{"manager":"b<","operation":"Apply","apiVersion":"v2","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}},"subresource":"status"}]"#,
        br#"[{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1"},{"operation":"Apply","apiVersion":"v2","fieldsType":"FieldsV1","fieldsV1":{}}]"#,
    ];
    run("managedFields", &Corpus { inputs, words: WORDS, ..Corpus::default() }, |input| {
        let lease = Lease::of_server();
        let value = json::parse(input, &lease).map_err(gist)?.value;
        let entries: &[Value] = value.as_array().map_or(&[], Vec::as_slice);
        let mut read = None;
        let (_, peak) = peak_of(|| stepped(steps::counted(|| read = Some(Managed::of_entries(entries)))));
        assert!(peak <= 704 * input.len() + (64 << 10), "{peak} B for {}", input.len());
        let managed = read.expect("it was done").map_err(gist)?;
        let said = managed.to_entries(&lease).map_err(gist)?;
        let again = Managed::of_entries(&said).map_err(gist)?.to_entries(&lease).map_err(gist)?;
        assert_eq!(said, again);
        Ok::<_, String>(said.len())
    });
}
