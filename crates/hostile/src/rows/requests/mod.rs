//! Rows on many requests, and bodies that are none.

mod connections;
mod delete_options;
mod discovery;
mod evictions;
mod gzip_bomb;
mod large_bodies_at_once;
mod lists_that_stand_still;
mod methods;
mod metrics;
mod openapi;
mod updates_at_once;
mod user_agents;
mod watches_of_one;
mod watches_without_rights;
mod yaml_at_once;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    connections,
    delete_options,
    discovery,
    evictions,
    gzip_bomb,
    large_bodies_at_once,
    lists_that_stand_still,
    methods,
    metrics,
    openapi,
    updates_at_once,
    user_agents,
    watches_of_one,
    watches_without_rights,
    yaml_at_once,
];
