//! Rows on HTTP/2: floods of frames, and frames that should not be.

mod bodies_that_never_come;
mod continuations;
mod continuations_empty;
mod continuations_of_a_byte;
mod dribbled_windows;
mod empty_data;
mod empty_names;
mod frame_sizes;
mod frames_out_of_place;
mod goaway_by_the_client;
mod header_bomb;
mod header_lists;
mod lengths_that_differ;
mod lists_with_a_window_of_zero;
mod malformed_blocks;
mod malformed_requests;
mod no_preface;
mod padded_data;
mod ping_flood;
mod pings_keep_seats;
mod prefaces;
mod priority_cycles;
mod priority_flood;
mod rapid_reset;
mod rapid_reset_of_lists;
mod reset_flood;
mod resets_by_the_server;
mod settings_flood;
mod settings_of_windows;
mod settings_out_of_range;
mod streams_beyond_the_limit;
mod table_sizes;
mod unknown_frames;
mod window_of_zero;
mod window_overflows;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    bodies_that_never_come,
    continuations,
    continuations_empty,
    continuations_of_a_byte,
    dribbled_windows,
    empty_data,
    empty_names,
    frame_sizes,
    frames_out_of_place,
    goaway_by_the_client,
    header_bomb,
    header_lists,
    lengths_that_differ,
    lists_with_a_window_of_zero,
    malformed_blocks,
    malformed_requests,
    no_preface,
    padded_data,
    ping_flood,
    pings_keep_seats,
    prefaces,
    priority_cycles,
    priority_flood,
    rapid_reset,
    rapid_reset_of_lists,
    reset_flood,
    resets_by_the_server,
    settings_flood,
    settings_of_windows,
    settings_out_of_range,
    streams_beyond_the_limit,
    table_sizes,
    unknown_frames,
    window_of_zero,
    window_overflows,
];
