//! Schedules of CronJobs, read.
//!
//! In: text. Out: what is wrong with it. Never: a clock.

use super::*;

#[test]
fn schedules_are_read_as_cron_reads_them() {
    for text in [
        "* * * * *",
        "*/5 0-6 1,15 jan-MAR ?",
        "5/15 * * * sun",
        "@hourly",
        "@every 1h30m",
        "TZ=UTC 0 0 * * *",
    ] {
        assert_eq!(parse(text), Ok(()), "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_told_in_crons_words() {
    for (text, message) in [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("a * * * *", r#"failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax"#),
        ("-1 * * * *", r#"failed to parse int from : strconv.Atoi: parsing "": invalid syntax"#),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("@never", "unrecognized descriptor: @never"),
        ("@every x", r#"failed to parse duration @every x: time: invalid duration "x""#),
    ] {
        assert_eq!(parse(text), Err(message.into()), "{text}");
    }
}

#[test]
fn time_zones_must_be_well_made() {
    assert_eq!(time_zone_fault("Europe/Zurich"), None);
    assert_eq!(time_zone_fault("a b"), Some("unknown time zone a b".into()));
    assert!(time_zone_fault("").is_some() && time_zone_fault("local").is_some());
}

#[test]
fn fuzz_schedules() {
    let inputs: &[&[u8]] =
        &[b"*/5 0-23/2 1,15 JAN-DEC mon", b"@every 1h30m", b"CRON_TZ=Europe/Berlin 0 0 * * ?", b"@daily"];
    let words = &["*/", "-", ",", "@every ", "TZ=", "60", "sun", "?", " "];
    let corpus = forebay_fuzz::Corpus { inputs, words, bytes_max: 256, ..Default::default() };
    forebay_fuzz::run("schedules", &corpus, |input| {
        parse(&String::from_utf8_lossy(input)).map_err(forebay_fuzz::gist)
    });
}
