//! Every parser of the edge withstands any input, and what it read it can say again.

use forebay_apimachinery::Lease;
use forebay_apimachinery::options::Query;
use forebay_fuzz::{Corpus, gist, paid, peak_of, run};
use http::Method;
use serde_json::Value;

use crate::request_info::RequestInfo;
use crate::tokens::jwt::Token;
use crate::{pretty, yaml};

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

#[test]
fn fuzz_yaml() {
    let inputs: &[&[u8]] = &[
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {x: 'y', \"z\": 1}\ndata:\n- |\n  text\n  more\n- >-\n  folded\n",
        b"a: &x [1, 2.5, 0x1F, 0o17, ~, yes, 2026-11-21]\nb: *x\n<<: {c: d}\n",
        b"--- # comment\n? a\n: b\n...\n---\nsecond\n",
        b"{\"a\": [1, {\"b\": null}]}",
        b"- &a [1]\n- &b [*a]\n- &a [*b]\n- {<<: [{c: 1}, {d: 2}], e: 3}\n",
    ];
    let words = &[
        "&a ", "*a", "<<: ", "- ", ": ", "? ", "|\n", ">+\n", "!!str ", "---\n", "...", "\t", "~", ".inf",
        "#",
    ];
    // Long ones as well: what is repeated may be chained.
    let corpus = Corpus { inputs, words, bytes_max: 16 << 10, one_in: 2, ..Corpus::default() };
    run("yaml", &corpus, |input| {
        let lease = Lease::of_one_tree();
        let (json, peak) = peak_of(|| yaml::to_json(input, &lease));
        // A text of 1 KiB may be a key, and is a row of tokens until that is known; collections in it have a stack each.
        paid(input.len(), peak, lease.peak(), 1 << 20);
        let json = json.map_err(gist)?;
        if json.len() > 64 << 10 {
            // Aliases make more of it than may be read when it is written out.
            return Ok((false, json.len().ilog2()));
        }
        let value: Value = serde_json::from_slice(&json).expect("what is read is JSON");
        let said = yaml::from_json(&json).expect("JSON is said in YAML");
        let again = yaml::to_json(&said, &Lease::of_one_tree()).expect("what is said is read");
        let again: Value = serde_json::from_slice(&again).expect("as JSON");
        assert_eq!(again, value, "{}", text(&said));
        Ok::<_, String>((value.is_object(), json.len().ilog2()))
    });
}

#[test]
fn fuzz_json_as_yaml() {
    let inputs: &[&[u8]] = &[
        br##"{"a":"yes","b":"1.0","c":"- x","d":"multi\nline\n","e":" pad ","f":"~","g":[[],{},[{"h":null}]],"2":"0x1","":"#"}"##,
    ];
    let words = &[
        "\"on\"",
        "\"null\"",
        "\"1e3\"",
        "\\n",
        "\\t",
        ": ",
        "\"2026-11-21\"",
        "\\u2028",
        "\"%\"",
        "\"!x\"",
        "\"&a\"",
    ];
    run("json as yaml", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let value: Value = serde_json::from_slice(input).map_err(gist)?;
        let Value::Object(_) = value else { return Err("no object".to_owned()) };
        let said = yaml::from_json(input).map_err(gist)?;
        let again = yaml::to_json(&said, &Lease::of_one_tree())
            .unwrap_or_else(|error| panic!("{}: {error}", text(&said)));
        let again: Value = serde_json::from_slice(&again).expect("JSON");
        assert_eq!(again, value, "{}", text(&said));
        // Indented and not, it is the same.
        let indented = pretty::indent(value.to_string().as_bytes());
        assert_eq!(serde_json::from_slice::<Value>(&indented).map_err(gist), Ok(value));
        Ok(said.len().ilog2())
    });
}

#[test]
fn fuzz_paths() {
    let inputs: &[&[u8]] = &[
        b"/api/v1/namespaces/default/pods/a/status?watch=true",
        b"/apis/apps/v1/deployments",
        b"/api/v1/watch/namespaces/default/pods/a",
        b"/apis/a.b/v1/namespaces/x%2Fy/cs//",
        b"/api/v1/proxy/nodes/a/b/c",
        b"/healthz/etcd?verbose",
    ];
    let words = &[
        "/",
        "//",
        "..",
        "%2e",
        "%2F",
        "%",
        "namespaces",
        "watch",
        "status",
        "finalize",
        "?",
        "fieldSelector=metadata.name%3Da",
    ];
    run("paths", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let input = text(input);
        let (path, query) = input.split_once('?').unwrap_or((&input, ""));
        [Method::GET, Method::POST, Method::DELETE].map(|method| {
            let info = RequestInfo::parse(&method, path, &Query::parse(query)).map_err(gist)?;
            assert!(info.is_resource || info.resource.is_empty());
            Ok::<_, String>((
                info.verb,
                info.is_resource,
                info.is_malformed,
                info.path_form,
                info.name.is_empty(),
            ))
        })
    });
}

#[test]
fn fuzz_tokens() {
    let inputs: &[&[u8]] = &[
        b"eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.eyJpc3MiOiJhIiwic3ViIjoiYiIsImF1ZCI6WyJjIl0sImV4cCI6MX0.c2ln",
        b"a.b.c",
    ];
    run("tokens", &Corpus { inputs, words: &["e30", ".", "bnVsbA", "="], ..Corpus::default() }, |input| {
        let input = text(input);
        let token = Token::parse(&input);
        // Nothing that is made up was signed by a key that does not exist.
        token.map(|token| token.verify(&[]).expect_err("no key signed it").len())
    });
}
