//! What memory is used and held, and what gave way.

use std::sync::atomic::Ordering;

use forebay_transport::StalledReaders;

use crate::memory::{Level, Memory};
use crate::rooms::Rooms;
use forebay_documents::metrics::Text;
use forebay_pieces::{EventBlocks, SharedLists};
use forebay_room::Totals;

/// Name, kind, help, and what to read of a room.
type Read = (&'static str, &'static str, &'static str, fn(&Totals) -> u64);

const ROOMS: [Read; 5] = [
    ("forebay_room_held_bytes", "gauge", "Bytes that requests of a class hold.", |room| room.held as u64),
    ("forebay_room_limit_bytes", "gauge", "Bytes that requests of a class may hold at present.", |room| {
        room.limit as u64
    }),
    ("forebay_room_waiting_requests", "gauge", "Requests that wait for room of their class.", |room| {
        room.waiting as u64
    }),
    ("forebay_room_waited_total", "counter", "Requests that had to wait for room of their class.", |room| {
        room.waited
    }),
    ("forebay_room_refused_total", "counter", "Requests that were refused for want of room.", |room| {
        room.refused
    }),
];

/// Writes the metrics of all of them.
pub fn write(
    text: &mut Text,
    memory: &Memory,
    rooms: &Rooms,
    stalled_readers: &StalledReaders,
    (blocks, lists): (&EventBlocks, &SharedLists),
) {
    let told = stalled_readers.totals();
    let help = "Lists, watches and long answers that are being read.";
    text.single("forebay_answers_open", "gauge", help, told.open);
    let help = "Seconds since the oldest answer that is being read was begun.";
    text.single("forebay_answers_oldest_seconds", "gauge", help, told.oldest.as_secs());
    let name = "forebay_answers_reset_total";
    text.family(
        name,
        "counter",
        "Answers that were reset: their readers took nothing, or memory was short and they were the oldest.",
    );
    for (why, count) in [("stalled", told.stalled), ("memory", told.short_of_memory)] {
        text.value(name, &[("reason", why)], count);
    }
    let help = "Bytes of blocks as events, deflated, which watch-lists in gzip share while there are any.";
    text.single("forebay_event_block_bytes", "gauge", help, blocks.bytes());
    let lists = lists.totals();
    let help = "Bytes that are kept of what was made of lists, for who asks for the same.";
    text.single("forebay_shared_list_bytes", "gauge", help, lists.bytes);
    let name = "forebay_shared_list_pieces_total";
    let help = "Pieces of lists that were sent: made for their reader, or shared, as another had them made.";
    text.family(name, "counter", help);
    for (how, count) in [("made", lists.made), ("shared", lists.shared)] {
        text.value(name, &[("how", how)], count);
    }
    let rooms = rooms.totals();
    for (name, kind, help, read) in ROOMS {
        text.family(name, kind, help);
        for (class, totals) in &rooms {
            text.value(name, &[("class", class)], read(totals));
        }
    }
    let limit = memory.limit().unwrap_or(0);
    text.single("forebay_memory_limit_bytes", "gauge", "Memory that may be used; 0 is no limit.", limit);
    if limit == 0 {
        return;
    }
    text.single(
        "forebay_memory_used_bytes",
        "gauge",
        "Memory as it is held against the limit.",
        memory.used(),
    );
    let name = "forebay_memory_level";
    text.family(name, "gauge", "How short memory is: 1 for the level that holds, by what gives way at it.");
    for level in Level::ALL {
        text.value(name, &[("level", level.name())], u8::from(level == memory.level()));
    }
    let name = "forebay_memory_level_entered_total";
    text.family(name, "counter", "Times that memory came to be so short, or so no longer.");
    for level in Level::ALL {
        text.value(name, &[("level", level.name())], memory.entered(level));
    }
    let counts = memory.counts();
    for (name, help, count) in [
        (
            "forebay_memory_readers_reset_total",
            "Readers that were reset for want of memory.",
            &counts.readers_reset,
        ),
        (
            "forebay_memory_windows_shrunk_total",
            "Windows of events that were shrunk for want of memory.",
            &counts.windows_shrunk,
        ),
        (
            "forebay_memory_views_let_go_total",
            "Versions made by webhooks that were not kept any longer for want of memory.",
            &counts.views_let_go,
        ),
        (
            "forebay_memory_creates_refused_total",
            "Creates that were refused for want of memory.",
            &counts.creates_refused,
        ),
    ] {
        text.single(name, "counter", help, count.load(Ordering::Relaxed));
    }
}
