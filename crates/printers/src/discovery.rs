//! EndpointSlices.
//!
//! In: v1 values. Out: their cells. Never: readiness; all addresses are listed.

use jiff::Timestamp;
use serde_json::Value;

use crate::lists::shortened;
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static ENDPOINT_SLICE: Printer = Printer::new(
    &[
        NAME,
        string("AddressType", "IPv4, IPv6 or FQDN."),
        string("Ports", "Ports of every endpoint."),
        string("Endpoints", "Addresses of the endpoints."),
        AGE,
    ],
    endpoint_slice_cells,
);

fn endpoint_slice_cells(slice: Member<'_>, now: Timestamp) -> Vec<Value> {
    let ports = slice.get("ports").items().map(|port| match port.get("port").int_if_set() {
        Some(number) => number.to_string(),
        // The name is defaulted to "", so that a port without number shows nothing rather than `*`.
        None => port.get("name").text().to_owned(),
    });
    let addresses = slice.get("endpoints").items().flat_map(|endpoint| endpoint.get("addresses").items());
    cells![
        slice.name(),
        slice.get("addressType").text(),
        shortened(ports),
        shortened(addresses.map(|address| address.text().to_owned())),
        slice.age(now),
    ]
}
