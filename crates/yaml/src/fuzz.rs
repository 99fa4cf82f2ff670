//! YAML withstands any input, and what was read can be said again.

use forebay_apimachinery::Lease;
use forebay_fuzz::{Corpus, gist, paid, peak_of, run};
use serde_json::Value;

use crate::limits::DEPTH_MAX;

/// How deep JSON goes.
fn depth_of(json: &[u8]) -> usize {
    let (mut at, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => at += 1,
            b']' | b'}' if !quoted => at = at.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(at);
    }
    deepest
}

#[test]
fn fuzz_yaml() {
    let inputs: &[&[u8]] = &[
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {x: 'y', \"z\": 1}\ndata:\n- |\n  text\n  more\n- >-\n  folded\n",
        b"a: &x [1, 2.5, 0x1F, 0o17, ~, yes, 2026-11-21]\nb: *x\n<<: {c: d}\n",
        b"--- # comment\n? a\n: b\n...\n---\nsecond\n",
        b"{\"a\": [1, {\"b\": null}]}",
        b"- &a [1]\n- &b [*a]\n- &a [*b]\n- {<<: [{c: 1}, {d: 2}], e: 3}\n",
        // Anchors that are used anew for what another one was before.
        b"- &a [1]\n- &b [*a]\n- &a [*b]\n",
        b"- &a {b: c}\n- &b {<<: *a, d: [*a, *a]}\n- &a {<<: *b, d: [*b, *b]}\n",
    ];
    let words = &[
        "&a ", "*a", "<<: ", "- ", ": ", "? ", "|\n", ">+\n", "!!str ", "---\n", "...", "\t", "~", ".inf",
        "#",
    ];
    // Long ones as well: what is repeated may be chained.
    let corpus = Corpus { inputs, words, bytes_max: 16 << 10, one_in: 2 };
    run("yaml", &corpus, |input| {
        let lease = Lease::of_one_tree();
        let (json, peak) = peak_of(|| crate::to_json(input, &lease));
        // A text of 1 KiB may be a key, and is a row of tokens until that is known; collections in it have a
        // stack each.
        paid(input.len(), peak, lease.peak(), 1 << 20);
        let json = json.map_err(gist)?.text;
        let depth = depth_of(&json);
        assert!(depth <= DEPTH_MAX + 1, "it goes {depth} deep");
        if json.len() > 8 << 10 {
            // Aliases make more of it than may be read when it is written out. Deeper ones lead to deeper
            // ones.
            return Ok((false, json.len().ilog2(), depth / 4));
        }
        let value: Value = serde_json::from_slice(&json).expect("what is read is JSON");
        let said = crate::from_json(&json).expect("JSON is said in YAML");
        let again = crate::to_json(&said, &Lease::of_one_tree()).expect("what is said is read");
        let again: Value = serde_json::from_slice(&again.text).expect("as JSON");
        assert_eq!(again, value, "{}", String::from_utf8_lossy(&said));
        Ok::<_, String>((value.is_object(), json.len().ilog2(), depth / 4))
    });
}
