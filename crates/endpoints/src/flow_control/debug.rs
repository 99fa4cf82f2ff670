//! `/debug/api_priority_and_fairness/`: the machine as text, as kube-apiserver prints its own.
//!
//! In: a dump's name and the query. Out: text.

use forebay_apimachinery::options::Query;
use forebay_flow::DetailsShown;

use super::control::FlowControl;

/// The paths of all of them.
pub const DUMPS: [&str; 3] = [
    "/debug/api_priority_and_fairness/dump_priority_levels",
    "/debug/api_priority_and_fairness/dump_queues",
    "/debug/api_priority_and_fairness/dump_requests",
];

/// The dump of that name, if there is one.
pub fn dump(control: &FlowControl, name: &str, query: &Query) -> Option<String> {
    let machine = control.machine();
    match name {
        "dump_priority_levels" => Some(machine.dispatcher.dump_priority_levels()),
        "dump_queues" => Some(machine.dispatcher.dump_queues()),
        "dump_requests" => {
            let asked = query.first("includeRequestDetails").is_some_and(|value| !value.is_empty());
            let details = if asked { DetailsShown::Yes } else { DetailsShown::No };
            Some(machine.dispatcher.dump_requests(control.0.began, details))
        }
        _ => None,
    }
}
