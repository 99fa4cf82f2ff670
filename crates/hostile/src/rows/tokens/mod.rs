//! Rows on tokens and reviews.

mod access_extra;
mod access_groups;
mod access_selectors;
mod algorithm_none;
mod bearer_of_a_megabyte;
mod bootstrap_guesses;
mod deep_claims;
mod of_an_issuer;
mod request_audiences;
mod review_audiences;
mod review_of_three_mib;
mod ten_thousand;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    access_extra,
    access_groups,
    access_selectors,
    algorithm_none,
    bearer_of_a_megabyte,
    bootstrap_guesses,
    deep_claims,
    of_an_issuer,
    request_audiences,
    review_audiences,
    review_of_three_mib,
    ten_thousand,
];
