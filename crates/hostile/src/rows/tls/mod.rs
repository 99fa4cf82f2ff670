//! Rows on TLS: handshakes, certificates and records.

mod byte_by_byte;
mod chain_of_copies;
mod chains_kept;
mod empty_certificates;
mod empty_records;
mod half_open;
mod handshakes;
mod hello_without_end;
mod key_updates;
mod long_certificate;
mod messages_after_the_handshake;
mod noise;
mod records_of_a_byte;
mod renegotiations;
mod silent;
mod warning_alerts;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    byte_by_byte,
    chain_of_copies,
    chains_kept,
    empty_certificates,
    empty_records,
    half_open,
    handshakes,
    hello_without_end,
    key_updates,
    long_certificate,
    messages_after_the_handshake,
    noise,
    records_of_a_byte,
    renegotiations,
    silent,
    warning_alerts,
];
