//! `apiserver_audit_*`: what is counted of noting requests.
//!
//! In: counts, if anything is noted. Out: families. Never: counts.

use forebay_audit::AuditCounts;
use forebay_documents::metrics::Text;

/// Appends all of them. Where nothing is noted there is nothing by level and plugin.
pub fn write(text: &mut Text, counts: Option<&AuditCounts>) {
    let of = |count: fn(&AuditCounts) -> u64| counts.map_or(0, count);
    let help = "Events that were made and handed to what keeps them.";
    text.single("apiserver_audit_event_total", "counter", help, of(AuditCounts::events));
    let name = "apiserver_audit_error_total";
    text.family(name, "counter", "Events that were lost, by what lost them.");
    for (plugin, lost) in counts.into_iter().flat_map(AuditCounts::errors) {
        text.value(name, &[("plugin", plugin.name())], lost);
    }
    let name = "apiserver_audit_level_total";
    text.family(name, "counter", "Requests, by how much of them the policy has noted.");
    for (level, requests) in counts.into_iter().flat_map(AuditCounts::levels) {
        text.value(name, &[("level", level.name())], requests);
    }
    let help = "Requests that were refused because they could not be noted.";
    text.single("apiserver_audit_requests_rejected_total", "counter", help, of(AuditCounts::rejected));
}
