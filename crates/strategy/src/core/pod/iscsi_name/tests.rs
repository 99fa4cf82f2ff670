//! Names of iSCSI: which are well made.
//!
//! In: names. Out: what they are. Never: a target.

use super::*;

#[test]
fn a_name_is_of_a_scheme_and_well_made_by_it() {
    use IscsiName::{Malformed, OfNoScheme, Well};
    let digits = |scheme: &str, count: usize| format!("{scheme}{}", "0a".repeat(count / 2));
    for (name, expected) in [
        ("iqn.2001-04.com.example:storage.disk1", Well),
        ("iqn.2001-04.com-a.example:a:b", Well),
        ("iqn:iqn.2001-04.a:b", Well),
        ("iqn/iqn.2001-04.a:b", Well),
        ("iqn.2001-04.com.example:", Malformed),
        ("iqn.2001-04.com.example", Malformed),
        ("iqn.2001-04.:b", Malformed),
        ("iqn.2001-4.com.example:a", Malformed),
        ("iqn.2001-04.com_example:a", Malformed),
        ("iqn.2001-04.com.example:a b", Malformed),
        ("iqn.2001-04.com.example:a,b:c", Malformed),
        ("eui.", Malformed),
        (&digits("eui.", 16), Well),
        (&digits("eui\u{e9}", 16), Well),
        (&digits("eui.", 18), Malformed),
        (&digits("naa.", 32), Well),
        (&digits("naa.", 30), Malformed),
        ("", OfNoScheme),
        ("Iqn.2001-04.com.example:a", OfNoScheme),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
}

#[test]
fn a_long_name_takes_as_long_as_it_is() {
    for (part, expected) in [
        ("iqn.2001-04.", IscsiName::Malformed),
        ("iqn.2001-04.a:", IscsiName::Well),
        ("iqn.2001-04.a: ", IscsiName::Malformed),
    ] {
        assert_eq!(of(&part.repeat(200_000)), expected, "{part}");
    }
}
