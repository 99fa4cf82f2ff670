//! What requests cost, known before they run: from the index, and the sizes of the snapshot.
//!
//! In: what is to be read or written. Out: a [`Cost`]. Never: looks at an object's content.
//!
//! Those of lists are in `reads`; all are CPU time on one core, as the release build took it:
//! `price_table_tests.rs` holds them against what was measured.

use std::time::Duration;

use forebay_apimachinery::accept::{AsKind, Drops, Media};
use forebay_flow::{Comeback, Price};
use forebay_reads::{Making, Rendering, Weight};

use crate::cost::{self, ListWork};
use crate::limits::{
    DELETE_COLLECTION_BYTES, GZIP_BYTES_MIN, LIST_CHEAP_BYTES, WATCH_CONNECTION_BYTES, WATCH_STREAM_BYTES,
};
use crate::negotiate::{Form, StreamForm};

/// How a list is answered in that form.
pub fn rendering(form: Form, takes_gzip: bool) -> Rendering {
    let making = match (form.as_kind, form.media) {
        (AsKind::Table, _) => Making::Row,
        (AsKind::PartialObjectMetadata | AsKind::PartialObjectMetadataList, _) => Making::Metadata,
        (AsKind::Object, Media::Protobuf) => Making::Protobuf,
        (AsKind::Object, Media::Yaml) => Making::Yaml,
        (AsKind::Object, Media::Json) if form.pretty => Making::Indented,
        (AsKind::Object, Media::Json) if form.drops != Drops::default() => Making::Trimmed,
        (AsKind::Object, Media::Json) => Making::Stored,
    };
    Rendering { making, gzip_bytes_min: takes_gzip.then_some(GZIP_BYTES_MIN) }
}

/// How the initial state of a watch is.
pub fn rendering_of_events(form: StreamForm) -> Rendering {
    let making = match form.as_kind {
        AsKind::Table => Making::Row,
        AsKind::PartialObjectMetadata | AsKind::PartialObjectMetadataList => Making::Metadata,
        AsKind::Object if form.drops != Drops::default() => Making::Trimmed,
        AsKind::Object if form.format.has_stored_form => Making::Stored,
        AsKind::Object => Making::Protobuf,
    };
    Rendering { making, gzip_bytes_min: None }
}

/// A request's price, and what else its turn depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub price: Price,
    /// What it takes for as long as it is open, if it is a watch.
    pub watch_bytes: Option<u64>,
    /// With what it comes to a server that has just started.
    pub comeback: Option<Comeback>,
}

/// Head, authentication, answer.
pub(super) const REQUEST: Duration = Duration::from_micros(20);
/// A write's validation, and its place in the store's queue: the sync is shared with few others. In
/// picoseconds for one of many.
const WRITE: Duration = Duration::from_micros(280);
const WRITE_OF_MANY: u64 = 185_000_000;
/// To read a byte of a body into a tree, and to write it out again, in picoseconds.
const BODY_BYTE: u64 = 12_000;
/// To put a byte of one object on its way, in picoseconds.
const OBJECT_BYTE: u64 = 2_000;
/// To send an event to one of many watchers, in picoseconds: as `bench fanout` has it, of updates of 8 KB.
const SENT_EVENT: u64 = 12_000_000;
/// To make an event of each object of a watch's initial state, in picoseconds.
const INITIAL_EVENT: u64 = 12_000_000;

impl Cost {
    fn of(bytes: usize, cpu: Duration) -> Cost {
        Cost { price: Price { bytes: bytes as u64, cpu }, ..Cost::default() }
    }
}

/// A document of the server's.
pub fn document() -> Cost {
    Cost::of(0, REQUEST)
}

/// What another server answers: what it takes here while it is carried.
///
/// - `is_long`: it lasts as long as its client likes, and takes `watch_bytes`.
pub fn proxied(is_long: bool, bytes: usize, watch_bytes: usize) -> Cost {
    match is_long {
        true => Cost { watch_bytes: Some(watch_bytes as u64), ..Cost::of(0, REQUEST) },
        false => Cost::of(bytes, REQUEST),
    }
}

/// A connection to what runs behind an object, which takes `watch_bytes` for as long as it lasts.
///
/// - `read_bytes`: of the objects that are looked through to find it.
pub fn connection(read_bytes: usize, watch_bytes: usize) -> Cost {
    Cost { watch_bytes: Some(watch_bytes as u64), ..Cost::of(0, REQUEST + nanos(read_bytes, OBJECT_BYTE)) }
}

/// A write with a body of so many bytes, whose event so many watchers are sent.
pub fn write(body_bytes: usize, watchers: usize) -> Cost {
    let events = nanos(watchers, SENT_EVENT);
    Cost::of(body_bytes, REQUEST + WRITE + nanos(body_bytes, BODY_BYTE) + events)
}

/// A GET of an object of so many bytes.
pub fn object(bytes: usize) -> Cost {
    Cost::of(bytes, REQUEST + nanos(bytes, OBJECT_BYTE))
}

/// A DELETE of all that a list shows: each object is a write, and what of them is answered is held.
pub fn delete_collection(body_bytes: usize, weight: Weight, watchers: usize) -> Cost {
    let writes = writes(weight.of.selected, watchers);
    let held = body_bytes + weight.of.selected_bytes.min(DELETE_COLLECTION_BYTES);
    Cost::of(held, write(body_bytes, 0).price.cpu + writes + forebay_reads::cpu(weight, Rendering::STORED))
}

/// So many writes, one of many.
fn writes(count: usize, watchers: usize) -> Duration {
    nanos(count, WRITE_OF_MANY) + nanos(count.saturating_mul(watchers), SENT_EVENT)
}

/// The CPU time of such a DELETE that deleted so many objects, where others were foreseen.
pub fn deleted(foreseen: Duration, weight: Weight, watchers: usize, objects: usize) -> Duration {
    foreseen.saturating_sub(writes(weight.of.selected, watchers)) + writes(objects, watchers)
}

/// A list: what it holds at once, and the time to find and to make it.
pub fn list(weight: Weight, rendering: Rendering) -> Cost {
    let work = ListWork::of(weight, rendering.making == Making::Stored);
    let is_small = work.bytes <= LIST_CHEAP_BYTES;
    let comeback = Some(if is_small { Comeback::SmallList } else { Comeback::WatchList });
    Cost { comeback, ..Cost::of(held(work), REQUEST + forebay_reads::cpu(weight, rendering)) }
}

/// The CPU time of a list of so many bytes that are there: its reader is sent them.
///
/// - `picos`: that it takes to send a byte.
pub(super) fn list_that_is_made(bytes: usize, picos: u64) -> Duration {
    REQUEST + nanos(bytes, picos)
}

/// A watch, by its initial state. `is_connection`: it has one of its own.
pub fn watch(state: Option<Weight>, rendering: Rendering, is_connection: bool) -> Cost {
    let watch_bytes = Some(if is_connection { WATCH_CONNECTION_BYTES } else { WATCH_STREAM_BYTES });
    let Some(weight) = state else {
        return Cost { watch_bytes, comeback: Some(Comeback::Resume), ..Cost::of(0, REQUEST) };
    };
    let mut cost = Cost { watch_bytes, ..list(weight, rendering) };
    cost.price.cpu += nanos(weight.of.selected, INITIAL_EVENT);
    cost
}

fn held(work: ListWork) -> usize {
    cost::list(work).unwrap_or(work.bytes)
}

fn nanos(count: usize, each_picos: u64) -> Duration {
    Duration::from_nanos((count as u64).saturating_mul(each_picos) / 1_000)
}
