//! CPU time of a read, by what is inflated, made and deflated for it.
//!
//! In: what it weighs, and how it is answered. Out: time on one core. Never: what it holds.
//!
//! Figures are in picoseconds, as the release build took them on a machine of two cores for ConfigMaps of
//! 0.2, 2 and 20 kB and pods of 2.7 kB; `price_table.rs` of endpoints has them.

use std::time::Duration;

use forebay_watchcache::Estimate;

use crate::weight::{FoundBy, Weight};

/// To look at an object that a selector may want.
const LOOK: u64 = 14_000;
/// To inflate what becomes of one byte at rest.
const INFLATED_BYTE: u64 = 3_300;
/// To deflate what becomes one byte of it.
const DEFLATED_BYTE: u64 = 11_200;
/// To send a byte: to copy it, and to encrypt it.
const SENT_BYTE: u64 = 250;
/// The same of a message, which lies by itself; and to find the message of an object that others stand
/// between.
const MESSAGE_BYTE: u64 = 440;
const MESSAGE_APART: u64 = 300_000;
/// To make a message: for each, for each byte of JSON that it is made of, and for each that is no text. Pods
/// of 7.2 kB took 40 us each, ConfigMaps of one text of 20 kB 13 us: of these more is foreseen.
const MADE_MESSAGE: u64 = 800_000;
const MADE_MESSAGE_BYTE: u64 = 600;
const MADE_MESSAGE_STRUCTURE_BYTE: u64 = 5_400;
/// What a list of messages takes besides.
const MESSAGES: Duration = Duration::from_micros(14);
/// The same of a block that goes as it is, with what it takes to put blocks together.
const BLOCK_BYTE: u64 = 450;
/// A row of a Table, and what is left of an object that is shown by its metadata: about so many bytes.
const ROW_BYTES: usize = 300;

/// How a list is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rendering {
    pub making: Making,
    /// From how many bytes on it is deflated, if it is.
    pub gzip_bytes_min: Option<usize>,
}

/// What is made of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Making {
    /// Nothing: it goes as it is stored.
    Stored,
    /// A part of it is left out.
    Trimmed,
    Row,
    Metadata,
    Protobuf,
    Yaml,
    Indented,
}

/// What that takes for an object, and for each byte of it that is no text. What repeats itself is names and
/// brackets: so many bytes as deflate leaves out.
struct Rate {
    object: u64,
    structure_byte: u64,
}

impl Rendering {
    pub const STORED: Rendering = Rendering { making: Making::Stored, gzip_bytes_min: None };
}

impl Making {
    fn rate(self) -> Rate {
        let (object, structure_byte) = match self {
            Making::Stored => (0, 0),
            Making::Trimmed => (1_000_000, 0),
            Making::Row => (950_000, 750),
            Making::Metadata => (0, 0),
            Making::Protobuf => (50_000, 0),
            Making::Yaml => (1_400_000, 19_000),
            Making::Indented => (0, 2_700),
        };
        Rate { object, structure_byte }
    }

    /// How long it becomes, from what it is as JSON, and in deflate.
    fn bytes(self, objects: usize, json: usize, deflated: usize) -> usize {
        match self {
            Making::Stored | Making::Trimmed | Making::Yaml | Making::Indented => json,
            Making::Row | Making::Metadata => objects * ROW_BYTES,
            // Names are left out: two fifths of what does not repeat itself remain.
            Making::Protobuf => json / 5 * 2 + deflated * 13 / 10,
        }
    }

    /// How long that is in deflate.
    fn zipped(self, bytes: usize, deflated: usize) -> usize {
        match self {
            // Rows are alike.
            Making::Row | Making::Metadata => bytes / 5,
            Making::Stored | Making::Trimmed | Making::Yaml | Making::Indented | Making::Protobuf => deflated,
        }
    }
}

/// To find what is shown, to make what is answered of it, and to send that.
pub fn cpu(weight: Weight, Rendering { making, gzip_bytes_min }: Rendering) -> Duration {
    let Weight { of, found, .. } = weight;
    let bytes = making.bytes(of.selected, of.selected_bytes, of.deflated_bytes);
    let gzip_bytes_min = gzip_bytes_min.filter(|min| bytes >= *min);
    if let Some(ahead) = gzip_bytes_min.filter(|_| found == FoundBy::Whole && making == Making::Stored) {
        return from_blocks(of, ahead);
    }
    let deflating = match gzip_bytes_min {
        None => Duration::ZERO,
        Some(_) => nanos(making.zipped(bytes, of.deflated_bytes), DEFLATED_BYTE),
    };
    let looks = if of.selected < of.objects { nanos(of.objects, LOOK) } else { Duration::ZERO };
    looks
        + deflating
        + if making == Making::Protobuf { messages(weight, bytes) } else { made(of, making, bytes) }
}

/// How many bytes are sent of it.
pub fn sent_bytes(Weight { of, .. }: Weight, Rendering { making, gzip_bytes_min }: Rendering) -> usize {
    let bytes = making.bytes(of.selected, of.selected_bytes, of.deflated_bytes);
    let is_zipped = gzip_bytes_min.is_some_and(|min| bytes >= min);
    if is_zipped { making.zipped(bytes, of.deflated_bytes) } else { bytes }
}

fn made(of: Estimate, making: Making, bytes: usize) -> Duration {
    let Rate { object, structure_byte } = making.rate();
    let structure = of.selected_bytes.saturating_sub(of.deflated_bytes);
    nanos(of.inflated_bytes, INFLATED_BYTE)
        + nanos(of.selected, object)
        + nanos(structure, structure_byte)
        + nanos(bytes, SENT_BYTE)
}

/// Messages are there, as a rule: nothing is inflated for them. Those that are not are made.
fn messages(Weight { of, unmade, .. }: Weight, bytes: usize) -> Duration {
    let object = Making::Protobuf.rate().object + if of.selected < of.objects { MESSAGE_APART } else { 0 };
    let there = MESSAGES + nanos(of.selected, object) + nanos(bytes, MESSAGE_BYTE);
    if unmade == 0 {
        return there;
    }
    let part = |count: usize| (count as u128 * unmade as u128 / of.selected.max(1) as u128) as usize;
    there
        + nanos(unmade, MADE_MESSAGE)
        + nanos(part(of.selected_bytes), MADE_MESSAGE_BYTE)
        + nanos(part(of.selected_bytes.saturating_sub(of.deflated_bytes)), MADE_MESSAGE_STRUCTURE_BYTE)
        + nanos(part(of.inflated_bytes), INFLATED_BYTE)
}

/// The first of it is read ahead to know whether it is worth it, and deflated, as is what is not at rest yet;
/// the rest is there.
fn from_blocks(of: Estimate, ahead: usize) -> Duration {
    let (bytes, deflated) = (of.selected_bytes, of.deflated_bytes);
    let read = deflated as u128 * bytes.min(ahead) as u128 / bytes.max(1) as u128;
    let loose = deflated.saturating_sub(of.inflated_bytes);
    nanos(deflated, BLOCK_BYTE)
        + nanos(read as usize, INFLATED_BYTE + DEFLATED_BYTE)
        + nanos(loose, DEFLATED_BYTE)
}

fn nanos(count: usize, each_picos: u64) -> Duration {
    Duration::from_nanos((count as u64).saturating_mul(each_picos) / 1_000)
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::options::ListOptions;
    use serde_json::json;

    use super::*;
    use crate::present::{As, Encoding, Shown};
    use crate::tests::{World, config_maps};

    /// 600 kB of ConfigMaps, at rest.
    async fn at_rest() -> World {
        let world = config_maps(None).await;
        for number in 0..150 {
            let words: String = (0..400).map(|word| format!("word-{} ", word * number % 97)).collect();
            world.put(&format!("o-{number:03}"), json!({}), json!({ "text": words })).await;
        }
        // From here on time passes only here.
        tokio::time::pause();
        for _ in 0..1_000 {
            let of = weight(&world, As::Object).of;
            if of.inflated_bytes == of.deflated_bytes {
                return world;
            }
            world.hand.advance_ms(1_000);
            world.clock.sleep(Duration::from_secs(1)).await;
            forebay_rt::background(|| ()).finished().await.expect("no panic");
        }
        panic!("nothing comes to rest");
    }

    fn weight(world: &World, shown: impl Into<Shown>) -> Weight {
        let options = ListOptions { resource_version: "0".into(), ..ListOptions::default() };
        world.planner.list(&world.target, &options, shown.into()).expect("is in order").weight()
    }

    #[tokio::test]
    async fn a_list_in_gzip_from_blocks_is_foreseen_as_cheap() {
        let world = at_rest().await;
        let weight = weight(&world, As::Object);
        assert!(
            weight.found == FoundBy::Whole && weight.of.selected == 150 && weight.of.bytes > 400_000,
            "{weight:?}"
        );
        assert_eq!(weight.of.inflated_bytes, weight.of.deflated_bytes, "all of it is at rest");
        let gzip = |making| Rendering { making, gzip_bytes_min: Some(16 << 10) };
        let from_blocks = cpu(weight, gzip(Making::Stored));
        assert!(4 * from_blocks < cpu(weight, gzip(Making::Trimmed)), "{from_blocks:?}");
        assert!(from_blocks < cpu(weight, Rendering::STORED), "{from_blocks:?}");
        // What nobody has deflated yet is not there.
        let of = Estimate { inflated_bytes: 0, ..weight.of };
        assert!(cpu(Weight { of, ..weight }, gzip(Making::Stored)) > 2 * from_blocks);
    }

    #[tokio::test]
    async fn messages_are_foreseen_where_they_are_not_there_yet() {
        let world = at_rest().await;
        let shown = Shown { encoding: Encoding::Protobuf, ..As::Object.into() };
        let rendering = Rendering { making: Making::Protobuf, gzip_bytes_min: None };
        let first = weight(&world, shown);
        assert_eq!((first.unmade, weight(&world, As::Object).unmade), (150, 0));
        let options = ListOptions { resource_version: "0".into(), ..ListOptions::default() };
        let planned = world.planner.list(&world.target, &options, shown).expect("is in order");
        let mut body = planned.run(()).await.expect("lists").body;
        while body.next_chunk(64 << 10, &mut Vec::<u8>::new()) {}
        let again = weight(&world, shown);
        assert_eq!(again.unmade, 0);
        assert!(cpu(first, rendering) > 4 * cpu(again, rendering));
    }
}
