//! The kinds of `batch`.
//!
//! In: objects. Out: rows for [`rules`](super::rules). Never: another group's kinds.

mod cron_job;
mod indexes;
mod job;
mod policies;
mod schedule;
mod spec;
mod status;
#[cfg(test)]
mod tests;

use super::lifecycle::{begin, status_apart};
use super::names::NameRule;
use super::rule::DefaultPropagation;
use super::rule::{Flags, NONE, Rules};

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "Job",
        name: Some(NameRule::Subdomain),
        defaults: job::defaults,
        labels_by_default: job::labels_by_default,
        prepare_create: job::prepare_create,
        prepare_update: job::prepare_update,
        validate_create: job::validate_create,
        validate_update: job::validate_update,
        warnings: job::warn,
        flags: Flags { propagation: DefaultPropagation::Orphan, ..Flags::PLAIN },
        ..NONE
    },
    Rules {
        kind: "CronJob",
        name: Some(NameRule::Subdomain),
        defaults: cron_job::defaults,
        prepare_create: begin,
        prepare_update: status_apart,
        validate_create: cron_job::validate_create,
        validate_update: cron_job::validate_update,
        warnings: cron_job::warn,
        ..NONE
    },
];
