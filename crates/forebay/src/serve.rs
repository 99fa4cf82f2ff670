//! `forebay serve`, once everything it needs is prepared: store, cache, registry and endpoints are put together.

use crate::error::Error;
use crate::prepare::Prepared;

/// Serves until told to stop.
///
/// # Errors
/// What kept it from serving.
pub fn run(prepared: &Prepared) -> Result<(), Error> {
    tracing::info!(address = %prepared.config.listen(), "prepared");
    Err(Error::Serve("serving is not wired yet".to_owned()))
}
