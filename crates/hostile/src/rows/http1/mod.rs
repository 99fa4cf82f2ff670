//! Rows on HTTP/1.1: heads and bodies that are slow, malformed or ambiguous.

mod all_seats_taken;
mod blank_lines;
mod body_too_large;
mod chunk_extensions;
mod chunk_sizes;
mod chunks_of_a_byte;
mod codings_obscured;
mod expectations;
mod hosts;
mod idle_connections;
mod length_and_chunks;
mod length_too_long;
mod lengths_that_differ;
mod malformed_heads;
mod odd_methods;
mod pipelined;
mod pipelined_into_a_watch;
mod readers_of_nothing;
mod slow_bodies;
mod slow_heads;
mod slow_large_bodies;
mod trailers;
mod upgrades;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    all_seats_taken,
    blank_lines,
    body_too_large,
    chunk_extensions,
    chunk_sizes,
    chunks_of_a_byte,
    codings_obscured,
    expectations,
    hosts,
    idle_connections,
    length_and_chunks,
    length_too_long,
    lengths_that_differ,
    malformed_heads,
    odd_methods,
    pipelined,
    pipelined_into_a_watch,
    readers_of_nothing,
    slow_bodies,
    slow_heads,
    slow_large_bodies,
    trailers,
    upgrades,
];
