//! The ranges of the ServiceCIDRs.
//!
//! In: the ServiceCIDRs that are stored. Out: what addresses may be taken from. Never: takes one.

use forebay_apimachinery::{Seen, Status};
use forebay_catalog::store::Store;
use forebay_watchcache::Snapshot;
use serde_json::Value;

use crate::claim::typed;
use crate::range::AddressRange;
use crate::server::ServerClaims;

/// The ranges that addresses may be taken from.
///
/// # Errors
/// 429 and 504 when the cache cannot answer.
pub async fn address_ranges(server: &ServerClaims) -> Result<Vec<AddressRange>, Status> {
    let store = server.cidrs()?;
    Ok(ready_ranges(&*store.fresh(&server.clock).await?, store))
}

/// The ranges of the ServiceCIDRs that are ready and to stay. One that nobody says anything of is ready.
pub(crate) fn ready_ranges(cidrs: &Snapshot, store: &Store) -> Vec<AddressRange> {
    let (mut ranges, mut known): (Vec<AddressRange>, Seen<AddressRange>) = (Vec::new(), Seen::default());
    for cidr in cidrs.range(&store.reach(None, None), None).filter_map(|object| typed(object).ok()) {
        let conditions = cidr["status"]["conditions"].as_array();
        // Once: for a ServiceCIDR.
        let ready = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"));
        if ready.is_some_and(|ready| ready["status"] != "True")
            || cidr["metadata"]["deletionTimestamp"].is_string()
        {
            continue;
        }
        let texts = cidr["spec"]["cidrs"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for range in texts.filter_map(|text| text.parse().ok()) {
            if !known.again(range) {
                ranges.push(range);
            }
        }
    }
    ranges
}
