//! What the end-to-end tests share: the real binary in a directory of its own, and a client for it.
//!
//! In: flags of `forebay serve`, requests. Out: answers and events as they came. Never: sleeps, or takes part
//! of the server's own code; every wait is for something to come, and has a deadline.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

pub mod aggregated;
mod client;
mod server;
mod watch;

use std::time::Duration;

use serde_json::Value;

pub use client::{Ask, Client, Identity, Protocol, Reply};
pub use forebay_hook::{AskedReview, Hook, tabs};
pub use forebay_scratch::Scratch;
pub use server::{Refused, Server};
pub use watch::{Event, Watch};

/// Anything that takes longer than this does not come. Generous, as machines that build are busy.
pub const WAIT: Duration = Duration::from_secs(120);

/// `text`, which shows `object`, without what differs from run to run.
pub fn blanked(text: &str, object: &Value) -> String {
    let metadata = &object["metadata"];
    let mut text = text.to_owned();
    for (member, name) in [("uid", "UID"), ("creationTimestamp", "TIME"), ("resourceVersion", "RV")] {
        if let Some(value) = metadata[member].as_str() {
            text = text.replace(&format!("\"{value}\""), &format!("\"{name}\""));
        }
    }
    text
}

/// The resourceVersion of an object or a list.
pub fn rv(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no resourceVersion: {object}"))
}

/// The names of a list's items, in its order.
pub fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("no items: {list}"));
    items.iter().map(|item| text(item, "/metadata/name").to_owned()).collect()
}

/// A string in `value`; empty when it is not there.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// What a Status says: `code reason: message`.
pub fn said(status: &Value) -> String {
    assert_eq!((&status["kind"], &status["apiVersion"]), (&"Status".into(), &"v1".into()), "{status}");
    format!("{} {}: {}", status["code"], text(status, "/reason"), text(status, "/message"))
}

/// The causes of a Status, one a line: `reason field: message`.
pub fn causes(status: &Value) -> String {
    let causes = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |cause: &Value| {
        format!("{} {}: {}\n", text(cause, "/reason"), text(cause, "/field"), text(cause, "/message"))
    };
    causes.iter().map(line).collect()
}
