//! Selectors, text in and text out. The messages are those of apimachinery v0.36.3.

use serde_json::json;

use super::*;

const LABEL_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                          must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                          regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn look_up<'a>(labels: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<&'a str> {
    move |key| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
}

/// The selector as it prints itself, or the message.
fn label(text: &str, want: &str) {
    let got = LabelSelector::parse(text).map_or_else(|message| message, |selector| selector.to_string());
    assert_eq!(got, want, "{text:?}");
}

#[test]
fn label_selectors_are_read() {
    label("", "");
    label("  ", "");
    label("b, !a ,c=x,d==y,e!=z", "!a,b,c=x,d==y,e!=z");
    label("x in (b,a,b),y notin (c)", "x in (a,b),y notin (c)");
    label("x in (),y in (,a),z in (a,,b),w in (a,)", "w in (,a),x in (),y in (,a),z in (,a,b)");
    label("a=,b", "a=,b");
    label("a>5,b<3", "a>5,b<3");
    label("in,notin=in,x in (notin)", "in,notin=in,x in (notin)");
    label("example.com/App.v1=x_y", "example.com/App.v1=x_y");
    label("a\0b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
}

#[test]
fn what_a_label_selector_says_again_is_kept_once() {
    label("!a,b,!a,b", "!a,b");
    label("a!=2,a=1,a!=2,a==1,a=1", "a!=2,a=1,a==1");
    label("a in (x,y),a in (y,x,x),a in (x)", "a in (x,y),a in (x)");
    let many = LabelSelector::parse(&format!("{}x", "!a,".repeat(20_000))).expect("a selector");
    assert_eq!(many.requirements().len(), 2);
}

#[test]
fn malformed_label_selectors_are_told_in_upstreams_words() {
    for (text, want) in [
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("!a in (b)", "found 'in', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
    ] {
        label(text, want);
    }
}

#[test]
fn bad_keys_and_values_are_told_in_upstreams_words() {
    let prefix = "unable to parse requirement:";
    label("-a", &format!("{prefix} <nil>: Invalid value: \"-a\": name part {NAME_RULE}"));
    label("/a", &format!("{prefix} <nil>: Invalid value: \"/a\": prefix part must be non-empty"));
    label(
        "a/",
        &format!("{prefix} <nil>: Invalid value: \"a/\": name part must be non-empty; name part {NAME_RULE}"),
    );
    label(
        "a/b/c",
        &format!(
            "{prefix} <nil>: Invalid value: \"a/b/c\": a valid label key {NAME_RULE} with an optional DNS subdomain prefix \
             and '/' (e.g. 'example.com/MyName')"
        ),
    );
    label(
        "Ex.com/a",
        &format!(
            "{prefix} <nil>: Invalid value: \"Ex.com/a\": prefix part a lowercase RFC 1123 subdomain must consist of lower \
             case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ),
    );
    label("a=é", &format!("{prefix} values[0][a]: Invalid value: \"é\": {LABEL_RULE}"));
    let long = "x".repeat(64);
    label(
        &format!("a in (a,{long})"),
        &format!("{prefix} values[1][a]: Invalid value: \"{long}\": must be no more than 63 bytes"),
    );
    label(
        "a>-",
        &format!(
            "{prefix} [values[0]: Invalid value: \"-\": for 'Gt', 'Lt' operators, the value must be an integer, \
             values[0][a]: Invalid value: \"-\": {LABEL_RULE}]"
        ),
    );
}

#[test]
fn labels_match() {
    let labels = [("app", "web"), ("size", "5"), ("empty", "")];
    for (text, want) in [
        ("", true),
        ("app", true),
        ("!app", false),
        ("!other", true),
        ("app=web,size==5", true),
        ("app=web,size=6", false),
        ("app!=web", false),
        ("other!=x", true),
        ("other=", false),
        ("empty=", true),
        ("app in (db,web)", true),
        ("app notin (db,web)", false),
        ("other notin (x)", true),
        ("size>4,size<6", true),
        ("size>5", false),
        ("app>1", false),
        ("other<1", false),
    ] {
        let selector = LabelSelector::parse(text).expect(text);
        assert_eq!(selector.matches(look_up(&labels)), want, "{text}");
        assert_eq!(selector.is_everything(), text.is_empty());
    }
    assert!(!LabelSelector::nothing().matches(look_up(&labels)));
    assert!(!LabelSelector::nothing().is_everything());
    assert!(LabelSelector::everything().matches(look_up(&[])));
}

#[test]
fn a_label_selector_tells_what_it_pins() {
    let selector = LabelSelector::parse("a=1,b in (2),c in (3,4),d!=5,e").expect("a selector");
    let pinned: Vec<_> = ["a", "b", "c", "d", "e", "f"].iter().map(|key| selector.exact(key)).collect();
    assert_eq!(pinned, [Some("1"), Some("2"), None, None, None, None]);
    let requirement = &selector.requirements()[2];
    assert_eq!((requirement.key(), requirement.operator()), ("c", LabelOperator::In));
    assert_eq!(requirement.values().collect::<Vec<_>>(), ["3", "4"]);
}

#[test]
fn label_selectors_in_objects_are_read() {
    let exists = |key| json!({"key": key, "operator": "Exists"});
    for (value, want) in [
        (json!({}), ""),
        (json!({"matchLabels": null}), ""),
        (
            json!({"matchLabels": {"b": "1"}, "matchExpressions": [
                {"key": "a", "operator": "NotIn", "values": ["y", "x"]}, exists("c"),
                {"key": "d", "operator": "DoesNotExist", "values": []}]}),
            "a notin (x,y),b=1,c,!d",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Gt"}]}),
            "\"Gt\" is not a valid label selector operator",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["<"]}]}),
            &format!(
                "[values: Invalid value: [\"\\u003c\"]: values set must be empty for exists and does not exist, \
                 values[0][a]: Invalid value: \"<\": {LABEL_RULE}]"
            ),
        ),
        (json!({"matchLabels": {"-": "x"}}), &format!("key: Invalid value: \"-\": name part {NAME_RULE}")),
        (json!({"matchLabels": {"a": 5}}), "matchLabels must hold strings"),
        (json!({"matchExpressions": {}}), "matchExpressions must be an array"),
        (json!([]), "label selector must be an object"),
    ] {
        let got =
            LabelSelector::from_value(&value).map_or_else(|message| message, |selector| selector.to_string());
        assert_eq!(got, want, "{value}");
    }
    assert_eq!(LabelSelector::from_value(&json!(null)), Ok(LabelSelector::nothing()));
}

/// The selector as it prints itself, or the message.
fn field(text: &str, want: &str) {
    let got = FieldSelector::parse(text).map_or_else(|message| message, |selector| selector.to_string());
    assert_eq!(got, want, "{text:?}");
}

#[test]
fn field_selectors_are_read() {
    field("", "");
    field(",,", "");
    field("status.phase!=Failed,metadata.name==a", "metadata.name=a,status.phase!=Failed");
    field(r"a=x\,y\=z\\,b=!", r"a=x\,y\=z\\,b=!");
    field("a=,=b,=", "=b,a=");
    field(" a = é ", " a = é ");
}

#[test]
fn malformed_field_selectors_are_told_in_upstreams_words() {
    field("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'");
    field("a!b", "invalid selector: 'a!b'; can't understand 'a!b'");
    field("a=b=c", "invalid field selector: unescaped character in value: 61");
    field(r"a=\é", r"invalid field selector: invalid escape sequence: \é");
    field(r"a=b\", r"invalid field selector: invalid escape sequence: \");
}

#[test]
fn fields_match() {
    let fields = [("metadata.name", "a"), ("spec.nodeName", "")];
    for (text, want) in [
        ("", true),
        ("metadata.name=a", true),
        ("metadata.name!=a", false),
        ("metadata.name=a,spec.nodeName=", true),
        ("metadata.name=a,spec.nodeName!=", false),
        ("unknown=", true),
        ("unknown=x", false),
        ("unknown!=x", true),
    ] {
        let selector = FieldSelector::parse(text).expect(text);
        assert_eq!(selector.matches(look_up(&fields)), want, "{text}");
        assert_eq!(selector.is_everything(), text.is_empty());
    }
}

#[test]
fn a_field_selector_tells_what_it_pins() {
    let selector = FieldSelector::parse("a!=1,a=2,a=3,b!=4").expect("a selector");
    assert_eq!([selector.exact("a"), selector.exact("b"), selector.exact("c")], [Some("2"), None, None]);
    assert_eq!(FieldSelector::equals("a", "x,y"), FieldSelector::parse(r"a=x\,y").expect("a selector"));
}

#[test]
fn fields_can_be_renamed_dropped_and_refused() {
    let selector = FieldSelector::parse("spec.host=a,drop!=x").expect("a selector");
    let renamed = selector.transform(|path, value| match path {
        "spec.host" => Ok::<_, String>(("spec.nodeName".to_string(), value.to_string())),
        _ => Ok((String::new(), String::new())),
    });
    assert_eq!(renamed.map(|selector| selector.to_string()), Ok("spec.nodeName=a".to_string()));
    let refused = selector.transform(|path, _| Err(format!("no {path}")));
    assert_eq!(refused, Err("no drop".to_string()));
}

#[test]
fn what_a_selector_prints_it_reads() {
    for text in ["!a,b in (x,y),c notin (z),d>5,e", "x in (,a)", r"a=x\,y\=z\\", "a!=b"] {
        if let Ok(selector) = LabelSelector::parse(text) {
            assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }
        if let Ok(selector) = FieldSelector::parse(text) {
            assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
