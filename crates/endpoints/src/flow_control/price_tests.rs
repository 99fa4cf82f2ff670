//! What is cheap is priced as cheap.

use std::time::Duration;

use forebay_flow::Comeback;
use forebay_reads::{Estimate, FoundBy, Making, Rendering, Weight};

use super::learned::ListPrice;
use super::price::{delete_collection, deleted, document, list, list_that_is_made, object, watch, write};
use crate::limits::{DELETE_COLLECTION_BYTES, GZIP_BYTES_MIN};

/// So many pods at rest, or some of them.
fn pods(objects: usize, selected: usize) -> Weight {
    let bytes = |count: usize| count * (8 << 10);
    let of = Estimate {
        objects,
        bytes: bytes(objects),
        selected,
        selected_bytes: bytes(selected),
        deflated_bytes: bytes(selected) / 6,
        inflated_bytes: bytes((8 * selected).min(objects)) / 6,
    };
    let found = if objects == selected { FoundBy::Whole } else { FoundBy::ByLooking };
    Weight { of, found, unmade: 0 }
}

fn price(weight: Weight, rendering: Rendering) -> ListPrice {
    ListPrice::of(list(weight, rendering), weight, rendering)
}

fn gzip() -> Rendering {
    Rendering { gzip_bytes_min: Some(GZIP_BYTES_MIN), ..Rendering::STORED }
}

#[test]
fn what_is_cheap_is_priced_as_cheap() {
    let all = list(pods(20_000, 20_000), Rendering::STORED);
    assert!(all.price.cpu > 1_000 * object(8 << 10).price.cpu, "{all:?}");
    assert!(all.price.bytes < 1 << 20, "it is made as it is read: {all:?}");
    let made = |making| list(pods(20_000, 20_000), Rendering { making, gzip_bytes_min: None }).price.cpu;
    assert!(made(Making::Yaml) > 10 * all.price.cpu);
    assert!(made(Making::Row) > made(Making::Metadata) && made(Making::Protobuf) < all.price.cpu);
    let from_blocks = list(pods(20_000, 20_000), gzip()).price.cpu;
    assert!(4 * from_blocks < all.price.cpu, "{from_blocks:?}");
    let few = list(pods(20_000, 100), Rendering::STORED).price.cpu;
    assert!(20 * few < all.price.cpu && few > list(pods(100, 100), Rendering::STORED).price.cpu, "{few:?}");
    assert_eq!(list(Weight::default(), Rendering::STORED).comeback, Some(Comeback::SmallList));
}

#[test]
fn messages_that_are_not_there_yet_cost_more_than_all_else() {
    let rendering = Rendering { making: Making::Protobuf, gzip_bytes_min: None };
    let cpu = |unmade| list(Weight { unmade, ..pods(20_000, 20_000) }, rendering).price.cpu;
    let [there, half, first] = [0, 10_000, 20_000].map(cpu);
    assert!(first > 4 * there, "{first:?} and {there:?}");
    assert!((first + there).abs_diff(2 * half) < Duration::from_micros(100), "{half:?}");
    // Who is sent what another made pays for no message.
    let bytes = |unmade| price(Weight { unmade, ..pods(20_000, 20_000) }, rendering).bytes;
    assert_eq!(bytes(0), bytes(20_000));
}

#[test]
fn a_watch_that_goes_on_is_as_cheap_as_a_document() {
    assert_eq!(watch(None, Rendering::STORED, false).price, document().price);
    assert_eq!(watch(None, Rendering::STORED, false).comeback, Some(Comeback::Resume));
    let state = watch(Some(pods(20_000, 20_000)), Rendering::STORED, true);
    let all = list(pods(20_000, 20_000), Rendering::STORED);
    assert!(state.price.cpu > all.price.cpu && state.price.bytes == all.price.bytes);
    assert_eq!(state.comeback, Some(Comeback::WatchList));
    assert!(state.watch_bytes > watch(None, Rendering::STORED, false).watch_bytes);
}

#[test]
fn each_object_of_a_collection_that_is_deleted_is_a_write() {
    let three = delete_collection(10, pods(3, 3), 0).price;
    assert!(three.cpu >= write(10, 0).price.cpu + 3 * Duration::from_micros(100), "{three:?}");
    assert_eq!(three.bytes, 10 + 3 * (8 << 10));
    assert!(
        delete_collection(0, pods(1_000, 3), 0).price.cpu < 2 * three.cpu,
        "the others are only looked at"
    );
    assert_eq!(delete_collection(0, pods(20_000, 20_000), 0).price.bytes, DELETE_COLLECTION_BYTES as u64);
    assert_eq!(delete_collection(9, Weight::default(), 7).price, write(9, 0).price);
    assert!(write(1 << 20, 0).price.cpu > 20 * write(1 << 10, 0).price.cpu);
    // More or fewer than were foreseen.
    let of = |objects| deleted(three.cpu, pods(3, 3), 0, objects);
    assert_eq!((of(3), of(0) < three.cpu, of(6) > three.cpu), (three.cpu, true, true));
}

#[test]
fn a_write_costs_what_its_watchers_take() {
    let alone = write(1_000, 0).price.cpu;
    assert!(write(1_000, 1).price.cpu < alone + alone / 10);
    assert!(write(1_000, 1_000).price.cpu > 20 * alone);
    let [unwatched, watched] = [0, 1_000].map(|watchers| delete_collection(0, pods(3, 3), watchers));
    assert!(
        watched.price.cpu >= unwatched.price.cpu + 3 * (write(0, 1_000).price.cpu - write(0, 0).price.cpu)
    );
}

#[test]
fn a_list_that_is_made_costs_what_it_takes_to_send_it() {
    let weight = pods(20_000, 2_000);
    for making in [Making::Stored, Making::Row, Making::Metadata, Making::Protobuf, Making::Yaml] {
        for rendering in [Rendering { making, ..Rendering::STORED }, Rendering { making, ..gzip() }] {
            let price = price(weight, rendering);
            let (all, sent) = (price.cpu, list_that_is_made(price.bytes, 250));
            // Messages are there, as a rule.
            let part = if making == Making::Protobuf { 2 } else { 4 };
            assert!(part * sent < all && sent >= document().price.cpu, "{rendering:?}: {sent:?} of {all:?}");
        }
    }
}
