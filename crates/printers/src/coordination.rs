//! Leases and their candidates.
//!
//! In: v1 Leases, v1beta1 LeaseCandidates. Out: their cells. Never: whether a lease has run out.

use jiff::Timestamp;
use serde_json::Value;

use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static LEASE: Printer =
    Printer::new(&[NAME, string("Holder", "Who holds the lease."), AGE], lease_cells);

pub(crate) static LEASE_CANDIDATE: Printer = Printer::new(
    &[
        NAME,
        string("LeaseName", "Lease it stands for."),
        string("BinaryVersion", ""),
        string("EmulationVersion", ""),
        AGE,
    ],
    lease_candidate_cells,
);

fn lease_cells(lease: Member<'_>, now: Timestamp) -> Vec<Value> {
    cells![lease.name(), lease.get("spec").get("holderIdentity").text(), lease.age(now)]
}

fn lease_candidate_cells(candidate: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = candidate.get("spec");
    cells![
        candidate.name(),
        spec.get("leaseName").text(),
        spec.get("binaryVersion").text(),
        spec.get("emulationVersion").text(),
        candidate.age(now),
    ]
}
