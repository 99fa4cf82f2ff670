//! What an update and an apply of a Deployment of 8 KB cost:
//! `cargo run --release -p forebay-merge --example cost`.
//!
//! In: what upstream is asked in `go/merge/deployment_test.go`, recorded. Out: microseconds, the least of
//! many rounds, and what the sets of who owns what take. Never: a judgement. Upstream's own figures:
//! `BenchmarkDeployment` beside it.

#[path = "../tests/upstream/recorded.rs"]
mod recorded;
#[allow(dead_code, reason = "the tests ask more")]
#[path = "../tests/upstream/replay.rs"]
mod replay;
#[path = "../tests/upstream/types.rs"]
mod types;

use std::time::{Duration, Instant};

use forebay_merge::{ConvertError, Converter, Set, TypedValue};
use serde_json::Value;

const ROUNDS: usize = 300;

/// Every version is the same.
struct Same;

impl<T: Copy> Converter<T> for Same {
    fn convert<'v>(
        &self,
        object: &'v TypedValue<'_, T>,
        _version: &str,
    ) -> Result<TypedValue<'v, T>, ConvertError> {
        Ok(TypedValue { value: std::borrow::Cow::Borrowed(&object.value), ty: object.ty })
    }
}

#[allow(clippy::disallowed_methods, reason = "it measures")]
fn least(mut what: impl FnMut()) -> Duration {
    let round = |_| {
        let begin = Instant::now();
        what();
        begin.elapsed()
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

fn main() {
    let tests = ["./merge", "-run", "TestRecordDeployment"];
    let Some(records) = recorded::of(&tests, &[("RECORD_ONLY", "updater")]) else { return };
    let mut replayed = replay::Replay::default();
    for line in records.lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        let _ = replayed.ask(&record);
        if record["kind"] != "updater" {
            continue;
        }
        let asked = replayed.asked(&record).expect("a type");
        let is_update = record["operation"] == "update";
        let took = least(|| {
            let done = if is_update { asked.update(Same).map(drop) } else { asked.apply(Same).map(drop) };
            std::hint::black_box(done.is_ok());
        });
        println!(
            "{:>6} by {:<10} {:>6} B of JSON {:>8.1} us",
            record["operation"].as_str().unwrap_or_default(),
            record["manager"].as_str().unwrap_or_default(),
            record["object"]["value"].to_string().len(),
            took.as_secs_f64() * 1e6,
        );
        for (name, owned) in record["managers"].as_object().into_iter().flatten() {
            let text = owned["set"].as_str().unwrap_or_default();
            let set = Set::of_text(text.as_bytes()).expect("a set");
            let read = least(|| drop(std::hint::black_box(Set::of_text(text.as_bytes()))));
            let written = least(|| drop(std::hint::black_box(set.to_json())));
            let (read, written) = (read.as_secs_f64() * 1e6, written.as_secs_f64() * 1e6);
            println!(
                "         {name}: {} B of fieldsV1, {} B as a set; read {read:.1} us, written {written:.1} us",
                text.len(),
                set.bytes()
            );
        }
    }
}
