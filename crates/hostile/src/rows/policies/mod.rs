//! Rows on admission policies that cost as much as they may.

mod costly_expressions;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![costly_expressions];
