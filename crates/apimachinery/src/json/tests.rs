//! Reading and writing, text in and text out. The expected texts are those of Go's `sigs.k8s.io/json` and
//! `encoding/json`.

use super::*;
use crate::lease::Lease;

#[test]
fn what_was_taken_in_can_be_read_again_however_deep_it_is() {
    for depth in [1, 127, 128, 200, DEPTH_MAX] {
        let text = format!("{}1{}", "{\"a\":[".repeat(depth / 2), "]}".repeat(depth / 2));
        let taken = parse(text.as_bytes(), &Lease::of_server()).expect("not too deep").value;
        assert_eq!(super::read(text.as_bytes()), Ok(taken), "{depth}");
    }
    assert!(super::read("[".repeat(DEPTH_MAX + 1).as_bytes()).is_err());
}

/// What a body becomes when it is read and written: its duplicates behind it, or the error.
fn read(body: &[u8]) -> String {
    match parse(body, &Lease::of_server()) {
        Err(error) => error.to_string(),
        Ok(parsed) => {
            let mut text = to_go_text(&parsed.value);
            for duplicate in parsed.duplicate_fields() {
                text.push_str(" | ");
                text.push_str(&duplicate);
            }
            text
        }
    }
}

fn check(body: &str, want: &str) {
    assert_eq!(read(body.as_bytes()), want, "{body:?}");
}

#[test]
fn values_are_read_and_written_sorted() {
    check(
        " {\"b\" : [ true,false , null ],\n\t\"a\":{}, \"\":[]}\r\n",
        r#"{"":[],"a":{},"b":[true,false,null]}"#,
    );
    check("\"x\"", "\"x\"");
}

#[test]
fn integers_stay_integers_and_the_rest_becomes_floats() {
    for (number, want) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9223372036854776000"),
        ("12345678901234567890", "12345678901234567000"),
        ("1.0", "1"),
        ("1.50", "1.5"),
        ("1e3", "1000"),
        ("1E+20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1.25e-7", "1.25e-7"),
        ("0.000001", "0.000001"),
        ("1e-999", "0"),
    ] {
        check(number, want);
    }
    assert!(parse(b"5", &Lease::of_server()).expect("a number").value.is_i64());
    assert!(parse(b"5.0", &Lease::of_server()).expect("a number").value.is_f64());
}

#[test]
fn a_number_out_of_range_is_told_after_the_syntax() {
    check("[1e400]", "json: cannot unmarshal number 1e400 into Go value of type float64");
    check("[1e400", "unexpected end of JSON input");
}

#[test]
fn strings_are_unescaped_and_escaped_as_go_does() {
    check(r#""\"\\\/\b\f\n\r\t\u0041\u00e9""#, r#""\"\\/\b\f\n\r\tAé""#);
    check(r#""<&>\u2028\u2029\u0001\u007f世""#, "\"\\u003c\\u0026\\u003e\\u2028\\u2029\\u0001\u{7f}世\"");
    check(r#""\ud83d\ude00""#, "\"\u{1f600}\"");
    check(r#""\ud800x\ud800\u0041\udc00""#, "\"\u{fffd}x\u{fffd}A\u{fffd}\"");
    check("\"\u{2027}\u{2030}\u{e2}\"", "\"\u{2027}\u{2030}\u{e2}\"");
}

#[test]
fn invalid_utf8_is_replaced_byte_by_byte() {
    assert_eq!(read(b"\"a\xff\xe2\x82b\""), "\"a\u{fffd}\u{fffd}\u{fffd}b\"");
    assert_eq!(read(b"{\"\xff\":1,\"\xfe\":2}"), "{\"\u{fffd}\":2} | duplicate field \"\u{fffd}\"");
}

#[test]
fn broken_bodies_are_told_in_gos_words() {
    for (body, want) in [
        ("", "unexpected end of JSON input"),
        ("{\"a\":", "unexpected end of JSON input"),
        ("\"abc", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 \"b\":2}", "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{} {}", "invalid character '{' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+", "invalid character ' ' in exponent of numeric literal"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("fa", "invalid character ' ' in literal false (expecting 'l')"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("\"a\nb\"", r"invalid character '\n' in string literal"),
        (r#""\q""#, "invalid character 'q' in string escape code"),
        (r#""\u12g4""#, r"invalid character 'g' in \u hexadecimal character escape"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("'", r"invalid character '\'' looking for beginning of value"),
    ] {
        check(body, want);
    }
}

#[test]
fn an_error_names_byte_and_place_of_the_body_as_sent() {
    let context = "after array element";
    let want = ParseError::InvalidCharacter { byte: 0xe9, context, offset: 7 };
    assert_eq!(parse(b"[\"\xff\xfe\x82\" \xe9]", &Lease::of_server()), Err(want));
}

#[test]
fn duplicates_are_named_by_path_once_and_in_order() {
    check(
        r#"{"spec":{"a":1,"b":[{"c":1},{"c":1,"c":{"d":1,"d":2}}],"a":2,"\u0061":3},"spec":4}"#,
        r#"{"spec":4} | duplicate field "spec.b[1].c" | duplicate field "spec.b[1].c.d" | duplicate field "spec.a" | duplicate field "spec""#,
    );
    check(r#"{"":{"x\"y":1,"x\"y":2}}"#, r#"{"":{"x\"y":2}} | duplicate field ".x\"y""#);
    check(r#"[{"a":1,"a":2}]"#, r#"[{"a":2}] | duplicate field "[0].a""#);
    check(r#"{"a":{"x":1},"b":{"x":1}}"#, r#"{"a":{"x":1},"b":{"x":1}}"#);
}

#[test]
fn the_list_of_duplicates_is_bounded() {
    let twice: String = (0..2 * DUPLICATES_MAX).map(|n| format!("\"{n}\":1,\"{n}\":2,")).collect();
    let body = format!("{{{}\"end\":0}}", twice);
    assert_eq!(parse(body.as_bytes(), &Lease::of_server()).expect("JSON").duplicates.len(), DUPLICATES_MAX);

    let name = "x".repeat(1 << 19);
    let body = format!("{{\"{name}\":{{{}}}}}", vec!["\"a\":1"; 100_000].join(","));
    assert_eq!(parse(body.as_bytes(), &Lease::of_server()).expect("JSON").duplicates, [format!("{name}.a")]);
}

#[test]
fn depth_is_bounded() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(parse(nested(DEPTH_MAX).as_bytes(), &Lease::of_server()).is_ok());
        let byte = char::from(open.as_bytes()[0]);
        check(&nested(DEPTH_MAX + 1), &format!("invalid character '{byte}' exceeded max depth"));
        check(&open.repeat(1_000_000), &format!("invalid character '{byte}' exceeded max depth"));
    }
}

#[test]
fn strings_can_be_written_without_a_value() {
    let mut out = b"[".to_vec();
    write_string("a<b", &mut out);
    go_escape("\"\u{2028}", &mut out);
    assert_eq!(out, br#"["a\u003cb"\"\u2028"#);
}

#[test]
fn how_long_a_text_gets_is_known_before_it_is_written() {
    for (text, more) in [
        ("null", 1),
        (r#"{"a<":"<>&\u2028\u0001\"\\é\n","b":[true,{},[]]}"#, 4),
        (r#"["","aé","<<<<"]"#, 1),
        ("[1,-2.5e-7,18446744073709551615]", 70),
    ] {
        let value = super::read(text.as_bytes()).expect("JSON");
        let (len, foreseen) = (to_go_text(&value).len(), written_len_max(&value));
        assert!((len..=len + more).contains(&foreseen), "{foreseen} for {len}: {text}");
    }
}
