//! What the tests of this crate share: short ways to say things.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Expect, Feed, FeedStep, Op, Txn, TxnResponse};
use forebay_embedded::Options;
use forebay_rt::Clock;

pub const HISTORY_MS: u64 = 60_000;
pub const MARK_EVERY_MS: u64 = 1_000;
/// Small, so that small stores are made anew as large ones would be.
pub const SLACK_BYTES: u64 = 128 << 10;

pub fn options(clock: &Clock) -> Options {
    Options {
        clock: clock.clone(),
        history_ms: HISTORY_MS,
        mark_every_ms: MARK_EVERY_MS,
        slack_bytes: SLACK_BYTES,
        ..Options::default()
    }
}

pub fn key(text: &str) -> Key {
    Key::new(text)
}

pub fn at(revision: u64) -> Expect {
    Expect::At(Revision::from_log(revision))
}

pub fn put(name: &str, expect: Expect, value: &str) -> Txn {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Txn { key: key(name), expect, op: Op::Put { value, ttl: None } }
}

pub fn put_ttl(name: &str, expect: Expect, value: &str, ttl_ms: u64) -> Txn {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Txn { key: key(name), expect, op: Op::Put { value, ttl: Some(Duration::from_millis(ttl_ms)) } }
}

pub fn del(name: &str, expect: Expect) -> Txn {
    Txn { key: key(name), expect, op: Op::Delete }
}

pub fn show(outcome: &TxnResponse) -> String {
    match outcome {
        TxnResponse::Committed(revision) => format!("committed {revision}"),
        TxnResponse::Conflict(None) => "conflict -".to_string(),
        TxnResponse::Conflict(Some(there)) => {
            format!("conflict {}@{}", String::from_utf8_lossy(&there.value), there.revision)
        }
    }
}

/// Everything a feed has now, as text.
pub fn drain(feed: &mut Feed) -> String {
    let mut out = Vec::new();
    loop {
        let mut changes = Vec::new();
        match feed.take(3, &mut changes).expect("kept") {
            FeedStep::Changes => out.extend(changes.iter().map(|change| {
                let value = change.value.as_ref().map_or("-".into(), |value| String::from_utf8_lossy(value));
                format!("{}={value}@{}", change.key, change.revision)
            })),
            FeedStep::Progress(revision) => out.push(format!("progress {revision}")),
            FeedStep::Idle => return out.join(" "),
        }
    }
}
