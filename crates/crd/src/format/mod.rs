//! `format` of strings: which names are known, and whether a text has the form.
//!
//! In: a format name and a text. Out: yes or no. Dashes in a name do not count (`date-time` is `datetime`). A
//! name that is not known is ignored, as Kubernetes ignores it. Never knows the formats of numbers, which the
//! number rules own.

mod codes;
mod mail;
mod net;
mod time;

pub(crate) use forebay_apimachinery::go_url::Url;
pub(crate) use time::{parse_rfc3339, print_rfc3339};

use super::names;

/// The check of a string format, if the name is known.
pub(crate) fn lookup(name: &str) -> Option<fn(&str) -> bool> {
    let name = name.replace('-', "");
    Some(match name.as_str() {
        "bsonobjectid" => codes::is_object_id,
        "uri" => |text| Url::parse_request(text).is_ok(),
        "email" => mail::is_address,
        "hostname" => net::is_hostname,
        "ipv4" => net::is_ipv4,
        "ipv6" => net::is_ipv6,
        "cidr" => net::is_cidr,
        "mac" => net::is_mac,
        "uuid" => |text| codes::is_uuid(text, None),
        "uuid3" => |text| codes::is_uuid(text, Some(3)),
        "uuid4" => |text| codes::is_uuid(text, Some(4)),
        "uuid5" => |text| codes::is_uuid(text, Some(5)),
        "isbn" => |text| codes::is_isbn10(text) || codes::is_isbn13(text),
        "isbn10" => codes::is_isbn10,
        "isbn13" => codes::is_isbn13,
        "creditcard" => codes::is_credit_card,
        "ssn" => codes::is_ssn,
        "hexcolor" => codes::is_hex_color,
        "rgbcolor" => codes::is_rgb_color,
        "byte" => codes::is_base64,
        "password" => |_| true,
        "date" => time::is_date,
        "duration" => time::is_duration,
        "datetime" => time::is_date_time,
        "k8sshortname" => |text| text.len() <= 63 && names::is_label(text),
        "k8slongname" => |text| text.len() <= 253 && names::is_subdomain(text),
        _ => return None,
    })
}

/// Whether a schema of type `kind` may name this format without a warning.
pub(crate) fn is_known(kind: &str, format: &str) -> bool {
    match kind {
        "" | "string" => lookup(format).is_some(),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, valid: &[&str], invalid: &[&str]) {
        let holds = lookup(format).unwrap_or_else(|| panic!("{format} is not known"));
        for text in valid {
            assert!(holds(text), "{format}: {text:?} should be valid");
        }
        for text in invalid {
            assert!(!holds(text), "{format}: {text:?} should be invalid");
        }
    }

    #[test]
    fn names_are_known_with_or_without_dashes() {
        assert!(
            lookup("date-time").is_some()
                && lookup("datetime").is_some()
                && lookup("k8s-short-name").is_some()
        );
        assert!(lookup("int32").is_none() && lookup("float").is_none() && lookup("regex").is_none());
        assert!(is_known("integer", "int32") && !is_known("string", "int32") && !is_known("object", "date"));
    }

    #[test]
    fn times_have_their_forms() {
        check(
            "date",
            &["2024-02-29", "0000-01-01"],
            &["2023-02-29", "2024-1-1", "2024-01-01 ", "", "24-01-01"],
        );
        check(
            "date-time",
            &[
                "2024-01-01T00:00:00Z",
                "2024-01-01t23:59:59.123+01:00",
                "2024-01-01T00:00:00,5z",
                "2024-01-01T00:00:00Zt",
            ],
            &[
                "2024-01-01",
                "2024-01-01T24:00:00Z",
                "2024-01-01T00:60:00Z",
                "2024-01-01 00:00:00Z",
                "2024-01-01T00:00:00",
            ],
        );
        check(
            "duration",
            &[
                "1h",
                "1.5h",
                "-2m3s",
                "0",
                "1.h",
                "22 ns",
                "3 weeks",
                "1µs",
                "10d",
                "9999999999999999h",
                "x 5 sec",
            ],
            &["", "1", "h", ".s", "5 parsecs", "99999999999999999999h"],
        );
    }

    #[test]
    fn network_names_have_their_forms() {
        check(
            "ipv4",
            &["1.2.3.4", "010.001.0.1", "::ffff:1.2.3.4"],
            &["1.2.3", "256.1.1.1", "::1", "1.2.3.4.5", "", "a"],
        );
        check(
            "ipv6",
            &["::1", "2001:db8::1", "::ffff:1.2.3.4"],
            &["1.2.3.4", ":::", "fe80::1%eth0", "12345::", ""],
        );
        check(
            "cidr",
            &["10.0.0.0/8", "010.0.0.1/08", "::/0", "2001:db8::/128"],
            &["10.0.0.0", "10.0.0.0/33", "::/129", "a/8", "1.1.1.1/", "1.1.1.1/8x"],
        );
        check(
            "mac",
            &[
                "01:23:45:67:89:ab",
                "01-23-45-67-89-AB",
                "0123.4567.89ab",
                "0123456789ab",
                "01:23:45:67:89:ab:cd:ef",
            ],
            &["01:23:45:67:89", "01:23-45:67:89:ab", "0123456789abc", "", "g1:23:45:67:89:ab"],
        );
        check(
            "hostname",
            &["a", "a-b", "example.com", "1.example.org", "€.example.com", "a1234", "a-"],
            &["", "-a", "a_b", "example.c", "example.1om", "a..com", "a b", "a-b-c"],
        );
    }

    #[test]
    fn uris_and_addresses_have_their_forms() {
        check(
            "uri",
            &[
                "http://foo.bar/#com",
                "/abs/path",
                "mailto:a@b",
                "http://user:pw@[::1]:80/x?y",
                "*",
                "x:",
                "http://a:",
            ],
            &[
                "",
                "foo.com",
                "./rel",
                ":x",
                "http://a b",
                "http://[::1",
                "http://a:x",
                "/%zz",
                "http://[1.2.3.4]/",
                "http://a:1:2",
            ],
        );
        check(
            "email",
            &[
                "a@b",
                "Barry Gibbs <bg@example.com>",
                "\"a b\"@c.d",
                "a@[1.2.3.4]",
                "a@b (note)",
                "\"x\" y <a@b>",
                "g: a@b;",
                "é@b",
                " a@b ",
            ],
            &[
                "",
                "a",
                "a@",
                "@b",
                "a@b.",
                ".a@b",
                "a..b@c",
                "a@b c",
                "<a@b",
                "a@[x]",
                "g:;",
                "g: a@b, c@d;",
                "a@b (",
                "\"\"@b",
            ],
        );
    }

    #[test]
    fn codes_have_their_forms() {
        let id = "c0ffee00-c0ff-4e00-8000-c0ffee00c0ff";
        check(
            "uuid",
            &[id, "C0FFEE00c0ff4e008000C0FFEE00C0FF"],
            &["", "c0ffee00", "c0ffee00-c0ff-4e00-8000-c0ffee00c0fg"],
        );
        check(
            "uuid4",
            &[id],
            &["c0ffee00-c0ff-3e00-8000-c0ffee00c0ff", "c0ffee00-c0ff-4e00-7000-c0ffee00c0ff"],
        );
        check("uuid3", &["c0ffee00-c0ff-3e00-7000-c0ffee00c0ff"], &[id]);
        check("uuid5", &["c0ffee00-c0ff-5e00-b000-c0ffee00c0ff"], &[id]);
        check(
            "isbn",
            &["3836221195", "978-4-87311-368-5", "3 401 01319 X"],
            &["3423214121", "9783836221190", "foo", ""],
        );
        check(
            "creditcard",
            &["4220 8554 2622 2389", "374953669708156"],
            &["4220855426213389", "credit card", ""],
        );
        check("ssn", &["111-22-3333"], &["111223333", "00aa00aa00", "111-22-33333"]);
        check("hexcolor", &["#fff", "CCccCC"], &["#ff", "fff0", "", "#ff12FG"]);
        check(
            "rgbcolor",
            &["rgb(0, 31,255)", "rgb(  1 ,2,3)"],
            &["rgb(01,31,255)", "rgb(1,349,275)", "rgba(0,31,255)", ""],
        );
        check("byte", &["YQ==", "YWI=", "YWJj"], &["", "YQ", "YQ=", "Y===", "YW_j"]);
        check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77", "507f1f77bcf86cd79943901z"]);
        check("password", &["", "x"], &[]);
        check("k8s-short-name", &["a", "a-1"], &["", "A", "a.b", "-a"]);
        check("k8s-long-name", &["a.b", "a"], &["", "a..b", "A.b"]);
    }
}
