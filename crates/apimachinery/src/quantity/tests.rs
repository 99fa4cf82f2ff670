//! Quantities in every form, and how upstream reads and writes them.

use super::*;

fn check(precision: Precision, cases: &[(&str, &str)]) {
    for &(text, expected) in cases {
        let got = canonical(text, precision).map_err(|error| error.to_string());
        assert_eq!(got.as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn suffixes_are_the_largest_that_lose_nothing() {
    check(
        Precision::Nano,
        &[
            ("0", "0"),
            ("00", "0"),
            ("0Gi", "0"),
            ("-0", "0"),
            ("1", "1"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("2048Ki", "2Mi"),
            ("1023Ki", "1023Ki"),
            ("100Ki", "100Ki"),
            ("1000Ki", "1000Ki"),
            ("-5Ki", "-5Ki"),
            ("1000", "1k"),
            ("1000k", "1M"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.5", "1500m"),
            ("1500m", "1500m"),
            ("1000m", "1"),
            ("100n", "100n"),
            ("10000000", "10M"),
            ("1E", "1E"),
            ("12345678901234567890", "12345678901234567890"),
            ("1e3", "1e3"),
            ("1e4", "10e3"),
            ("12e-3", "12e-3"),
            ("1000e3", "1e6"),
            ("1E19", "10e18"),
            ("-1.5Gi", "-1536Mi"),
            ("-10m", "-10m"),
        ],
    );
}

#[test]
fn fractions_of_a_binary_unit_read_as_decimals() {
    check(
        Precision::Nano,
        &[
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("0.1Gi", "107374182400m"),
            ("1.0001Ki", "1024102400u"),
            ("0.0001Ki", "102400u"),
        ],
    );
}

#[test]
fn what_is_below_the_precision_is_rounded_away_from_zero() {
    check(
        Precision::Nano,
        &[
            ("0.0000000001", "1n"),
            ("1.0000000001", "1000000001n"),
            ("-0.0000000001", "-1n"),
            ("0.9999999999", "1"),
            ("1e-12", "1e-9"),
        ],
    );
    check(
        Precision::Milli,
        &[
            ("1n", "1m"),
            ("1000000001n", "1001m"),
            ("-1n", "-1m"),
            ("999999999n", "1"),
            ("10u", "1m"),
            ("5m", "5m"),
            ("1e-9", "1e-3"),
            ("1.000001", "1001m"),
        ],
    );
}

#[test]
fn limits_are_those_of_go() {
    check(
        Precision::Nano,
        &[
            ("8Ei", "9223372036854775807"),
            ("9Ei", "9223372036854775807"),
            ("7Ei", "7Ei"),
            ("-16Ei", "-9223372036854775807"),
            ("9223372036854775807.5Ki", "9223372036854775807"),
            ("1000E", "1"),
            ("1e2147483647", "10e2147483646"),
            ("1e4294967296", "1e4294967296"),
            ("1e99999999999", "10e1215752190"),
        ],
    );
}

#[test]
fn some_texts_are_kept_as_written() {
    check(
        Precision::Nano,
        &[
            ("+1", "+1"),
            ("+7", "+7"),
            ("01", "01"),
            ("001Gi", "001Gi"),
            ("1.500", "1.500"),
            ("1.000", "1"),
            ("+8Gi", "8Gi"),
            (" 1 ", "1"),
            (" 5 ", "5"),
        ],
    );
    check(Precision::Milli, &[("1.500", "1.500"), ("1.500000", "1500m")]);
}

#[test]
fn what_lacks_digits_is_zero_where_go_keeps_it_in_64_bits() {
    check(Precision::Nano, &[("m", "0"), (".", "0"), ("-", "0"), ("Ki", "0")]);
    assert_eq!(canonical("Ei", Precision::Nano), Err(QuantityError::Numeric));
}

#[test]
fn bad_quantities_say_what_is_wrong() {
    use QuantityError::{Format, Suffix};
    for (text, want) in [
        ("", Format),
        ("a", Format),
        ("abc", Format),
        ("x", Format),
        ("1x", Format),
        ("1 Gi", Format),
        ("1gi", Format),
        ("1.2.3", Format),
        ("1e5x", Format),
        ("１", Format),
        ("1e", Suffix),
        ("1ee5", Suffix),
        ("1m5", Suffix),
        ("1Kim", Suffix),
        ("1Kii", Suffix),
        ("--1", Suffix),
    ] {
        assert_eq!(canonical(text, Precision::Nano), Err(want), "{text}");
        assert_eq!(nanos(text), Err(want), "{text}");
    }
}

#[test]
fn values_are_read_in_every_form() {
    for (text, value) in [
        ("0", 0),
        ("1", ONE),
        ("500m", ONE / 2),
        ("1n", 1),
        ("-2", -2 * ONE),
        ("1.5", 1_500_000_000),
        ("1Ki", 1024 * ONE),
        ("1.5Gi", 1536 * 1024 * 1024 * ONE),
        ("1e3", 1000 * ONE),
        ("12E", 12_000_000_000_000_000_000 * ONE),
        ("8Ei", i128::from(i64::MAX) * ONE),
        ("1e-12", 1),
        ("1.0000000000000000000000000000000000000000000001", ONE + 1),
        ("1e99", i128::MAX),
        ("-1e99", -i128::MAX),
        ("-99999999999999999999999999999999", -i128::MAX),
        ("0e99", 0),
        ("00000000000000000000e99", 0),
    ] {
        assert_eq!(nanos(text), Ok(value), "{text}");
    }
}

#[test]
fn sums_are_shown_in_the_form_of_their_first_addend() {
    for (nanos, like, text) in [
        (3 * ONE / 2, "1", "1500m"),
        (2000 * ONE, "1", "2k"),
        (2048 * ONE, "1Ki", "2Ki"),
        (1000 * ONE, "1Ki", "1000"),
        (2048 * ONE, "1k", "2048"),
        (0, "1Gi", "0"),
        (1, "1Gi", "1n"),
    ] {
        assert_eq!(shown(nanos, like), text, "{nanos} {like}");
    }
}

#[test]
fn what_is_finer_than_a_thousandth_is_rounded_up() {
    for (text, rounded) in [
        ("1n", Some("1m")),
        ("1500u", Some("2m")),
        ("999001u", Some("1")),
        ("1e-9", Some("1e-3")),
        ("1m", None),
        ("1Gi", None),
        ("x", None),
    ] {
        assert_eq!(rounded_to_milli(text).as_deref(), rounded, "{text}");
    }
}
