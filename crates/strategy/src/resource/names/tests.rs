//! Names of devices and what they are of.
//!
//! In: text. Out: causes. Never: a device.

use super::*;

#[test]
fn versions_are_semantic() {
    for good in ["1.2.3", "0.0.0", "1.2.3-a.1.0a", "1.2.3--", "1.2.3+001.b-c", "1.2.3-rc.1+x"] {
        assert!(is_semver(good), "{good}");
    }
    for bad in ["", "1", "1.2", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.3-a..b", "v1.2.3", "1.2.3.4"] {
        assert!(!is_semver(bad), "{bad}");
    }
}

#[test]
fn uuids_are_read_in_every_form_and_wanted_in_one() {
    const GOOD: &str = "123e4567-e89b-12d3-a456-42661417400a";
    let braced = format!("{{{GOOD}}}");
    let urn = format!("urn:uuid:{GOOD}");
    let rows = [
        (GOOD, None),
        (braced.as_str(), None),
        (urn.as_str(), None),
        ("123e4567e89b12d3a45642661417400a", None),
        ("x", Some("invalid UUID length: 1")),
        ("123e4567-e89b-12d3-a456-42661417400g", Some("invalid UUID format")),
        ("123e4567e89b-12d3-a456-42661417400aaa", Some("invalid UUID length: 37")),
    ];
    for (text, fault) in rows {
        assert_eq!(uuid_fault(text).as_deref(), fault, "{text}");
    }
    let mut causes = Causes::default();
    uuid(&braced, &Path::root("uid"), &mut causes);
    uuid(GOOD, &Path::root("uid"), &mut causes);
    assert_eq!(causes.len(), 1);
}

#[test]
fn long_keys_are_cut_in_the_middle() {
    assert_eq!(shown_key("abc", 16), "abc");
    assert_eq!(shown_key(&"ab".repeat(10), 16), "abababa...bababab".replace("bababab", "ababab"));
    assert_eq!(shown_key(&"é".repeat(20), 16).matches("...").count(), 1);
}
