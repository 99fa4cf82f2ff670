//! Addresses, and what is said of those that are none.
//!
//! In: texts. Out: faults. Never: an object.

use super::*;

fn messages(check: impl Fn(&mut Causes)) -> Vec<String> {
    let mut causes = Causes::default();
    check(&mut causes);
    causes.into_vec().into_iter().map(|cause| cause.message).collect()
}

#[test]
fn ranges_need_an_address_and_its_bits() {
    for (text, fits) in [
        ("10.0.0.0/8", true),
        ("10.0.0.1/8", false),
        ("010.0.0.0/8", false),
        ("10.0.0.0/08", false),
        ("::ffff:1.2.3.0/120", false),
        ("2001:DB8::/32", true),
        ("::/0", true),
        ("10.0.0.0", false),
        ("10.0.0.0/33", false),
        ("a/8", false),
        ("10.0.0.0/+8", false),
    ] {
        let at = Path::root("x");
        let found = messages(|causes| {
            legacy_cidr(text, &at, causes);
        });
        assert_eq!(found.is_empty(), fits, "{text}");
    }
}

#[test]
fn a_range_holds_what_begins_like_it() {
    let range = Range::sloppy("10.1.2.3/16").expect("a range");
    assert_eq!(range.to_string(), "10.1.0.0/16");
    for (address, held) in [("10.1.9.9", true), ("10.2.0.0", false), ("::1", false)] {
        assert_eq!(range.contains(address.parse().expect("an address")), held, "{address}");
    }
    assert!(Range::sloppy("0.0.0.0/0").is_some_and(|all| all.contains([1, 2, 3, 4].into())));
}

#[test]
fn some_addresses_are_no_endpoints() {
    let at = Path::root("x");
    for (text, count) in [
        ("10.1.2.3", 0),
        ("127.0.0.1", 1),
        ("0.0.0.0", 1),
        ("169.254.1.1", 1),
        ("224.0.0.9", 1),
        ("fe80::1", 1),
        ("ff02::1", 1),
    ] {
        assert_eq!(messages(|causes| endpoint_ip(text, &at, causes)).len(), count, "{text}");
    }
    assert_eq!(
        messages(|causes| {
            strict_ip("2001:DB8::1", &at, causes);
        }),
        [r#"Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")"#]
    );
}
