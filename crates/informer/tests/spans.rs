//! The spans of a sync and of a watch that goes on, as somebody who listens has them.
//!
//! A program of its own: what `tracing` remembers of who listens is the process's, and other tests run beside
//! one another.

#[allow(dead_code, reason = "tests/bounds asks more of it")]
#[path = "bounds/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use forebay_informer::{Options, Revision};
use forebay_rt::Clock;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use server::{DATA_BYTES, Server, informer};

type Fields = BTreeMap<&'static str, String>;

/// A span: its level and name, its parent, and its fields.
#[derive(Clone, Debug, Default)]
struct Span {
    name: String,
    parent: Option<u64>,
    fields: Fields,
}

/// Those of the informer, in the order in which they began.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Span>>>);

struct Into<'a>(&'a mut Fields);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == "forebay_informer"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Into(&mut fields));
        let metadata = span.metadata();
        let name = format!("{} {}", metadata.level(), metadata.name());
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(Span { name, parent: span.parent().map(Id::into_u64), fields });
        Id::from_u64(heard.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.record(&mut Into(&mut heard[span.into_u64() as usize - 1].fields));
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn event(&self, _event: &Event<'_>) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

async fn until(mut done: impl FnMut() -> bool) {
    let clock = Clock::system();
    let end = clock.now() + Duration::from_secs(600);
    while !done() {
        assert!(clock.now() < end, "it never comes");
        clock.sleep(Duration::from_millis(50)).await;
    }
}

fn revision(number: u64) -> Revision {
    Revision::new(number).expect("not 0")
}

#[tokio::test(start_paused = true)]
async fn a_sync_and_a_watch_that_goes_on_are_spans_of_their_collection() {
    let heard = Heard::default();
    let _listens = tracing::subscriber::set_default(heard.clone());
    let server = Server::new(3);
    let factory = server.factory(Options::default());
    let maps = informer(&factory, "a");
    maps.synced().await.expect("it syncs");
    maps.wait_for(revision(server.put("map-00001"))).await.expect("it comes");
    server.be_gone(true);
    until(|| maps.health().failing.is_some()).await;
    server.be_gone(false);
    maps.wait_until(revision(server.put("map-00002")), Clock::system().now() + Duration::from_secs(60))
        .await
        .expect("it goes on");
    drop((maps, factory));
    tokio::task::yield_now().await;
    let spans = || heard.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    until(|| spans().iter().skip(1).all(|span| span.fields.contains_key("outcome"))).await;
    let spans = spans();
    assert_eq!((spans[0].name.as_str(), spans[0].parent), ("INFO informer", None));
    assert_eq!(spans[0].fields["collection"], "/api/v1/namespaces/a/configmaps");
    assert_eq!(spans[0].fields["namespace"], "a");
    assert!(spans[1..].iter().all(|span| span.parent == Some(1)), "{spans:?}");
    let told: Vec<String> = spans[1..]
        .iter()
        .map(|Span { name, fields, .. }| {
            let field = |name| fields.get(name).map_or("?", |text| text.as_str());
            format!("{name}: {}, {} objects, {}", field("why"), field("objects"), field("outcome"))
        })
        .collect();
    assert_eq!(told[0], "INFO watch_list: first, 3 objects, whole");
    assert_eq!(told[1], "DEBUG watch: whole, 1 objects, fault Reset");
    assert_eq!(told[2], "DEBUG watch: fault Reset, 0 objects, fault Refused");
    assert_eq!(told.last().map(String::as_str), Some("DEBUG watch: fault Refused, 1 objects, dropped"));
    let bytes: u64 = spans[1].fields["bytes"].parse().expect("a number");
    assert!(bytes > 3 * DATA_BYTES as u64, "{bytes}");
    assert!(spans[1..].iter().all(|span| span.fields["seconds"].parse::<f64>().is_ok()), "{spans:?}");
}
