//! Rows on WebSocket: frames after the upgrade.

mod fragments;
mod frame_too_long;
mod half_open;
mod long_pings;
mod malformed_frames;
mod malformed_requests;
mod ping_flood;
mod token_protocol;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    fragments,
    frame_too_long,
    half_open,
    long_pings,
    malformed_frames,
    malformed_requests,
    ping_flood,
    token_protocol,
];
