//! What a signer says of its keys, judged.
//!
//! In: an answer as it was read. Out: keys to verify tokens by, all of them or none; or why not, in
//! upstream's words.
//!
//! Source: kubernetes v1.36.3 `externaljwt/plugin/keycache.go`; protobuf v1.36 `timestamppb`.

use forebay_apimachinery::json::go_quote;
use forebay_auth::tokens::{ExternalKey, ToldToOthers};
use forebay_rt::Duration;

use crate::limits;
use crate::messages::FetchedKeys;

/// Keys that can be used.
#[derive(Debug)]
pub struct JudgedKeys {
    /// At least one, in the signer's order.
    pub keys: Vec<ExternalKey>,
    /// When the signer had read them, in seconds since 1970.
    pub at_seconds: f64,
    /// After that they are to be asked for again; not zero.
    pub refresh_hint: Duration,
}

/// Whether all of an answer can be used.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn judge(fetched: FetchedKeys) -> Result<JudgedKeys, String> {
    let hint = fetched.refresh_hint_seconds;
    let Some(seconds) = u64::try_from(hint).ok().filter(|seconds| *seconds > 0) else {
        return Err(format!("found invalid refresh hint ({hint}s)"));
    };
    let refresh_hint = Duration::from_secs(seconds).min(limits::REFRESH_HINT_MAX);
    if fetched.keys.is_empty() {
        return Err("found no keys".to_owned());
    }
    if fetched.keys.len() > limits::KEYS_MAX {
        return Err(format!("found more than {} keys", limits::KEYS_MAX));
    }
    let at_seconds = seconds_of(fetched.at).map_err(|why| format!("invalid data timestamp: proto: {why}"))?;
    let mut keys = Vec::with_capacity(fetched.keys.len());
    for key in fetched.keys {
        if key.id.is_empty() || key.id.len() > limits::KEY_ID_BYTES_MAX {
            let said: String = key.id.chars().take(limits::SAID_CHARS_MAX).collect();
            return Err(format!("found invalid public key id {}", go_quote(&said)));
        }
        if key.der.is_empty() {
            return Err("found empty public key".to_owned());
        }
        let told = if key.is_excluded { ToldToOthers::No } else { ToldToOthers::Yes };
        let made = ExternalKey::new(key.id, &key.der, told);
        keys.push(made.map_err(|why| format!("while parsing external public keys: the answer {why}"))?);
    }
    Ok(JudgedKeys { keys, at_seconds, refresh_hint })
}

/// A timestamp of protobuf, from year 1 to year 9999.
fn seconds_of(at: Option<(i64, i32)>) -> Result<f64, String> {
    const FIRST: i64 = -62_135_596_800;
    const LAST: i64 = 253_402_300_799;
    let Some((seconds, nanos)) = at else { return Err("invalid nil Timestamp".to_owned()) };
    let said = format!("timestamp (seconds:{seconds} nanos:{nanos})");
    match (seconds, nanos) {
        (..FIRST, _) => Err(format!("{said} before 0001-01-01")),
        (FIRST..=LAST, 0..1_000_000_000) => Ok(seconds as f64 + f64::from(nanos) / 1e9),
        (FIRST..=LAST, _) => Err(format!("{said} has out-of-range nanos")),
        _ => Err(format!("{said} after 9999-12-31")),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::messages::FetchedKey;
    use crate::tests::POINT;

    fn fetched() -> FetchedKeys {
        let key = FetchedKey { id: "a".into(), der: Bytes::from_static(&POINT), is_excluded: true };
        FetchedKeys { keys: vec![key], at: Some((5, 500_000_000)), refresh_hint_seconds: 60 }
    }

    #[test]
    fn all_of_an_answer_counts_or_nothing_of_it() {
        let good = judge(fetched()).expect("keys");
        assert_eq!((good.keys[0].id(), good.keys[0].told, good.keys.len()), ("a", ToldToOthers::No, 1));
        assert_eq!((good.at_seconds, good.refresh_hint), (5.5, Duration::from_secs(60)));
        let far = judge(FetchedKeys { refresh_hint_seconds: i64::MAX, ..fetched() }).expect("keys");
        assert_eq!(far.refresh_hint, limits::REFRESH_HINT_MAX);
        type Change = fn(&mut FetchedKeys);
        let rows: &[(Change, &str)] = &[
            (|said| said.refresh_hint_seconds = 0, "found invalid refresh hint (0s)"),
            (|said| said.refresh_hint_seconds = -7, "found invalid refresh hint (-7s)"),
            (|said| said.keys.clear(), "found no keys"),
            (
                |said| said.keys = vec![said.keys[0].clone(); limits::KEYS_MAX + 1],
                "found more than 1024 keys",
            ),
            (|said| said.at = None, "invalid data timestamp: proto: invalid nil Timestamp"),
            (
                |said| said.at = Some((-62_135_596_801, 0)),
                "invalid data timestamp: proto: timestamp (seconds:-62135596801 nanos:0) before 0001-01-01",
            ),
            (
                |said| said.at = Some((253_402_300_800, 0)),
                "invalid data timestamp: proto: timestamp (seconds:253402300800 nanos:0) after 9999-12-31",
            ),
            (
                |said| said.at = Some((0, -1)),
                "invalid data timestamp: proto: timestamp (seconds:0 nanos:-1) has out-of-range nanos",
            ),
            (|said| said.keys[0].id.clear(), "found invalid public key id \"\""),
            (
                |said| said.keys[0].id = "k".repeat(1025),
                "found invalid public key id \"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\"",
            ),
            (|said| said.keys[0].der.clear(), "found empty public key"),
            (
                |said| said.keys[0].der = Bytes::from_static(b"no key"),
                "while parsing external public keys: the answer holds a key that is neither RSA of at least 2048 bits nor ECDSA on P-256, P-384 or P-521",
            ),
        ];
        for (change, want) in rows {
            let mut said = fetched();
            change(&mut said);
            assert_eq!(judge(said).map(drop), Err((*want).to_owned()));
        }
        let longest = |said: &mut FetchedKeys| said.keys[0].id = "k".repeat(1024);
        let mut said = fetched();
        longest(&mut said);
        assert!(judge(said).is_ok());
    }
}
