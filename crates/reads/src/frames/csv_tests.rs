//! A media type of watches that nobody asks for: what a stranger writes to add one, and what comes of it.

use std::sync::Arc;

use forebay_apimachinery::accept::{Drops, MetaVersion};
use forebay_apimachinery::options::{ListOptions, Query};
use forebay_apimachinery::{Reason, Revision, Status};
use forebay_catalog::Served;
use forebay_object::Object;
use forebay_watchcache::EventKind;
use jiff::Timestamp;
use serde_json::json;

use super::form::word;
use super::*;
use crate::tests::{World, config_maps};
use crate::watch::{Now, Step, Wait, WatchSession};

/// From here to the next comment it is the file; its line is a place in [`FORMATS`].
static CSV: EventFormat = EventFormat {
    media_type: "text/csv",
    content_type: "text/csv",
    has_tables: false,
    has_custom_objects: true,
    can_drop: false,
    has_stored_form: false,
    writer: |_served: Arc<Served>, _form: EventForm| Box::new(Csv),
    message: |frames| {
        let end = frames.iter().position(|byte| *byte == b'\n')? + 1;
        Some((FrameMessage::Text(&frames[..end]), &frames[end..]))
    },
};

struct Csv;

impl EventWriter for Csv {
    fn event(&mut self, kind: EventKind, object: &Object, at: Revision, _: Timestamp, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{},{},{at}\n", word(kind), object.name()).as_bytes());
    }

    fn bookmark(&mut self, at: Revision, initial_end: bool, _: Timestamp, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("BOOKMARK,{initial_end},{at}\n").as_bytes());
    }

    fn error(&mut self, status: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"ERROR,");
        out.extend_from_slice(status);
        out.push(b'\n');
    }
}

// The tests.

fn write_reason(status: &Status, out: &mut Vec<u8>) {
    out.extend_from_slice(status.reason.as_str().as_bytes());
}

fn form() -> EventForm {
    EventForm { what: As::Object, meta: MetaVersion::V1, drops: Drops::default(), format: &CSV }
}

/// A watch of ConfigMaps in CSV, and the world that they are of.
async fn watched(query: &str) -> (World, WatchSession) {
    let world = config_maps(Some("default")).await;
    world.put("a", json!({}), json!({})).await;
    let options = ListOptions::from_query(&Query::parse(query)).expect("options");
    let planned = world.plan_watch(&options, form()).expect("is in order");
    let begun = planned.run((), write_reason).await.expect("begins");
    (world, begun.body.into_session())
}

#[tokio::test]
async fn a_media_type_is_one_file_and_one_line() {
    let (world, mut session) = watched("watch=1&allowWatchBookmarks=true").await;
    let mut out = Vec::new();
    assert_eq!(session.step(&Now::of(&world.clock), 1 << 10, &mut out), Step::Frames);
    let text = String::from_utf8(std::mem::take(&mut out)).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("ADDED,a,") && lines[1].starts_with("BOOKMARK,true,"), "{text}");
    assert_eq!(CSV.messages(text.as_bytes()).count(), lines.len());
    world.delete("a").await;
    std::future::poll_fn(|cx| session.poll_event(cx)).await;
    assert_eq!(session.step(&Now::of(&world.clock), 1 << 10, &mut out), Step::Frames);
    assert!(out.starts_with(b"DELETED,a,"));
    let mut events = EventFrames::new(world.target.served, form(), write_reason);
    out.clear();
    events.error(&Status::new(Reason::Expired, "too old"), &mut out);
    assert_eq!(out, b"ERROR,Expired\n");
}

#[tokio::test]
async fn a_session_says_what_it_waits_for_and_a_step_too_soon_does_no_harm() {
    let (world, mut session) =
        watched("watch=1&allowWatchBookmarks=true&timeoutSeconds=600&sendInitialEvents=false&resourceVersionMatch=NotOlderThan").await;
    let clock = world.clock.clone();
    let mut out = Vec::new();
    let step = |session: &mut WatchSession, out: &mut Vec<u8>| session.step(&Now::of(&clock), 1 << 10, out);
    // So long a watch has a bookmark at once, of what the store says is current.
    let Step::Wait(Wait::Proof { deadline }) = step(&mut session, &mut out) else { panic!("it is due") };
    assert_eq!(step(&mut session, &mut out), Step::Wait(Wait::Proof { deadline }), "nothing is proved");
    assert!(out.is_empty());
    session.settled(deadline).await;
    session.prove();
    assert_eq!(step(&mut session, &mut out), Step::Frames);
    assert!(out.starts_with(b"BOOKMARK,false,"));
    out.clear();
    let until = session.alarm_at();
    for _ in 0..3 {
        assert_eq!(step(&mut session, &mut out), Step::Wait(Wait::Event { until }));
    }
    session.prove();
    assert_eq!(step(&mut session, &mut out), Step::Wait(Wait::Event { until }), "nobody had asked");
    session.end_by(world.clock.now());
    assert_eq!((step(&mut session, &mut out), out.len()), (Step::End, 0));
}
