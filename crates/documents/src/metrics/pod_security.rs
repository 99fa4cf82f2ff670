//! `pod_security_*`: what is counted of what pods may, as text.
//!
//! In: what was counted. Out: families. Never: counts.

use forebay_pod_security::{Evaluation, JudgedWrite, SecurityCounted};

use super::text::Text;

/// Appends all of them; of some there may be nothing yet.
pub fn write(text: &mut Text, counted: &SecurityCounted) {
    let name = "pod_security_evaluations_total";
    text.family(name, "counter", "Judgements of pods, and of what makes pods, by a level.");
    for (Evaluation { is_allowed, level, version, mode, write }, count) in &counted.evaluations {
        let version = version.to_string();
        let of = [
            ("decision", if *is_allowed { "allow" } else { "deny" }),
            ("mode", mode.as_str()),
            ("policy_level", level.as_str()),
            ("policy_version", &*version),
        ];
        text.value(name, &of.into_iter().chain(labels(write)).collect::<Vec<_>>(), *count);
    }
    let name = "pod_security_exemptions_total";
    text.family(name, "counter", "Pods, and what makes pods, that an administrator lets be.");
    for (write, count) in &counted.exemptions {
        text.value(name, &labels(write), *count);
    }
    let name = "pod_security_errors_total";
    text.family(name, "counter", "Pods, and what makes pods, whose level is not known.");
    for ((is_fatal, write), count) in &counted.errors {
        let of = [("fatal", if *is_fatal { "true" } else { "false" })];
        text.value(name, &of.into_iter().chain(labels(write)).collect::<Vec<_>>(), *count);
    }
}

fn labels(write: &JudgedWrite) -> [(&'static str, &'static str); 3] {
    [("request_operation", write.operation), ("resource", write.resource), ("subresource", write.subresource)]
}
