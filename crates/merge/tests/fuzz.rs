//! What reads `fieldsV1` withstands any input, what it read it says again, and sets and applies keep their
//! laws.

mod small;

use forebay_apimachinery::{Lease, json, steps};
use forebay_fuzz::{Corpus, gist, peak_of, run, stepped};
use forebay_merge::{Duplicates, Managers, Set, TypedValue, Updater};
use serde_json::Value;
use small::{Same, Ty};

const WORDS: &[&str] = &[
    "\"f:a\":{}",
    "\"k:{\\\"name\\\":\\\"a\\\"}\":{}",
    "\"k:{\\\"b\\\":1,\\\"a\\\":null}\":{}",
    "\"v:1\":{}",
    "\"v:1.0\":{}",
    "\"i:0\":{}",
    "\".\":{}",
    "\"z:x\":{}",
    "\\u003c",
    "{",
    "}",
    ",",
];

#[test]
fn fuzz_fields_v1() {
    let inputs: &[&[u8]] = &[
        br#"{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
        br#"{"f:set":{"v:\"a\"":{},"v:1.5":{},"v:true":{},"v:null":{}},"i:3":{}}"#,
        br#"{"f:b":{},"f:a":{"f:c":{}},"f:a":{}}"#,
    ];
    run("fieldsV1", &Corpus { inputs, words: WORDS, ..Corpus::default() }, |input| {
        let mut read = None;
        let (_, peak) = peak_of(|| stepped(steps::counted(|| read = Some(Set::of_text(input)))));
        assert!(peak <= 704 * input.len() + (64 << 10), "{peak} B for {}", input.len());
        let set = read.expect("it was done").map_err(gist)?;
        let said = set.to_json();
        assert_eq!(set.json_bytes(), said.len());
        assert_eq!(Set::of_text(&said).as_ref(), Ok(&set));
        // By way of a tree it is the same, unless a name comes twice.
        if let Ok(json::Parsed { value, duplicates }) = json::parse(input, &Lease::of_server())
            && duplicates.is_empty()
        {
            assert_eq!(Set::of_json(&value).as_ref(), Ok(&set));
        }
        assert_eq!(set.union(&set), set);
        assert_eq!(set.intersection(&set), set);
        assert!(set.difference(&set).is_empty());
        let leaves = set.leaves();
        assert_eq!(leaves.union(&set.difference(&leaves)), set);
        Ok::<_, String>((set.size().min(20), said.len().ilog2()))
    });
}

#[test]
fn fuzz_apply() {
    let inputs: &[&[u8]] = &[
        br#"[{"items":[{"name":"a","value":"1"},{"name":"b"}],"numbers":[1,2]},{"items":[{"name":"b","items":[{"name":"c"}]}]},{"numbers":[2,3]}]"#,
        br#"[null,{"items":[]},{"items":null,"numbers":[1.0]}]"#,
        br#"[{"items":[{"name":"a"},{"name":"a"}]},{"items":[{"name":"a","value":"x"}]},{}]"#,
    ];
    let words: &[&str] =
        &["{\"name\":\"a\"}", "\"items\":[]", "null", "\"value\":\"y\"", "\"numbers\":[1,1.0]"];
    run("apply", &Corpus { inputs, words, one_in: 2, ..Corpus::default() }, |input| {
        let tree = json::parse(input, &Lease::of_server()).map_err(gist)?.value;
        let [live, first, second] = tree.as_array().map_or(&[][..], Vec::as_slice) else {
            return Err("not three".into());
        };
        let typed = |value, duplicates| TypedValue::new(value, Ty::Root, duplicates).map_err(gist);
        let live = typed(live, Duplicates::Allowed)?;
        let configs = [typed(first, Duplicates::Refused)?, typed(second, Duplicates::Refused)?];
        let lease = Lease::of_one_tree();
        let updater = Updater { converter: Same, filters: Default::default(), lease: &lease };
        let null = Value::Null;
        let managers = updater
            .update(&TypedValue::known(&null, Ty::Root), &live, "v1", Managers::new(), "writer")
            .map_err(gist)?;
        let (mut live, mut managers) = (live, managers);
        for config in configs {
            let apply = |live: &TypedValue<'_, Ty>, managers: &Managers| {
                updater.apply(live, &config, "v1", managers.clone(), "applier", true).map_err(gist)
            };
            // Once it is applied, to apply it again changes nothing; what pruning left as null is made empty
            // first.
            for _ in 0..2 {
                let applied = apply(&live, &managers)?;
                managers = applied.managers;
                live = applied.object.unwrap_or(live);
            }
            let again = apply(&live, &managers)?;
            assert!(again.object.is_none(), "{:?}", live.value);
            assert_eq!(again.managers, managers);
        }
        Ok::<_, String>((managers.len(), live.value.to_string().len().ilog2()))
    });
}
