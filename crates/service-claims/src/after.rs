//! What follows the delete of a Service, or of a claim.
//!
//! In: what was deleted. Out: claims given back, or made again. Never: fails; what could not be done the next
//! repair does.

use forebay_apimachinery::Revision;
use forebay_object::Object;

use crate::claim::{MakesAddresses, Owner, give_back, holdings_of, item_of, read_claim};
use crate::repair::claim_missing;
use crate::server::ServerClaims;

/// Claims an address again whose claim was deleted by hand, if its Service has it still.
pub async fn after_address(server: &ServerClaims, object: &Object, makes: &impl MakesAddresses) {
    let Some(item) = item_of(object.name(), false) else { return };
    let claimed = async {
        match read_claim(item, object)?.owner {
            Some(owner) => claim_missing(server, item, &owner, makes).await,
            None => Ok(false),
        }
    };
    if let Err(status) = claimed.await {
        tracing::warn!(item = object.name(), why = status.message, "not claimed again yet");
    }
}

/// Gives back what a Service had that was deleted at `revision`.
pub async fn after_service(server: &ServerClaims, object: &Object, revision: Revision) {
    let owner = Owner::of(object);
    let holdings = match holdings_of(object) {
        Ok(holdings) => holdings,
        Err(status) => return tracing::warn!(why = status.message, "a deleted Service cannot be read"),
    };
    for item in holdings {
        give_back(server, item, &owner, revision).await;
    }
}
