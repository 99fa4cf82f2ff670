//! `apiserver_admission_webhook_*`, `apiserver_admission_match_condition_*`,
//! `apiserver_*conversion_webhook_*` and `apiserver_*_admission_policy_check_*`: what is counted of calls of
//! webhooks, and of policies, as text.
//!
//! In: what was counted. Out: families. Never: counts.

use forebay_webhooks::conversion::{
    CRD_BOUNDS, ConversionCounted, ConversionTimes, FailureSort, REQUEST_BOUNDS,
};
use forebay_webhooks::{
    BOUNDS, CONDITION_BOUNDS, Counted, PLUGIN_BOUNDS, POLICY_BOUNDS, PluginCounted, PluginMetrics,
    PoliciesCounted, PolicyDurations,
};

use super::text::Text;

/// Appends what plugins took, and the steps that they are of.
pub fn write_plugins(text: &mut Text, metrics: &PluginMetrics) {
    let name = "apiserver_admission_step_admission_duration_seconds";
    text.family(name, "histogram", "How long all of an admission step took, in seconds.");
    for counted in metrics.steps() {
        write_plugin(text, name, &counted);
    }
    let name = "apiserver_admission_controller_admission_duration_seconds";
    text.family(name, "histogram", "How long an admission plugin took, in seconds.");
    for counted in metrics.plugins() {
        write_plugin(text, name, &counted);
    }
}

fn write_plugin(text: &mut Text, name: &str, counted: &PluginCounted) {
    let rejected = counted.is_rejected.to_string();
    let all = [
        ("name", counted.name),
        ("operation", counted.operation),
        ("rejected", &*rejected),
        ("type", counted.step),
    ];
    // A step has no name.
    let labels = if counted.name.is_empty() { &all[1..] } else { &all };
    let durations = &counted.durations;
    let bounds = PLUGIN_BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(durations.counts.into_iter().chain([durations.all])) {
        let mut of_bucket = labels.to_vec();
        of_bucket.push(("le", &bound));
        text.value(&format!("{name}_bucket"), &of_bucket, count);
    }
    text.value(&format!("{name}_sum"), labels, durations.seconds);
    text.value(&format!("{name}_count"), labels, durations.all);
}

/// Appends all of them; of some there may be nothing yet.
pub fn write(text: &mut Text, counted: &Counted) {
    let name = "apiserver_admission_webhook_admission_duration_seconds";
    text.family(name, "histogram", "How long webhooks took.");
    for ((webhook, step, operation, rejected), durations) in &counted.durations {
        let rejected = rejected.to_string();
        let labels =
            [("name", &**webhook), ("operation", *operation), ("rejected", &*rejected), ("type", *step)];
        let bounds = BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(durations.counts.into_iter().chain([durations.all])) {
            let [name_of, operation, rejected, step] = labels;
            text.value(
                &format!("{name}_bucket"),
                &[name_of, operation, rejected, step, ("le", &bound)],
                count,
            );
        }
        text.value(&format!("{name}_sum"), &labels, durations.seconds);
        text.value(&format!("{name}_count"), &labels, durations.all);
    }
    let name = "apiserver_admission_webhook_request_total";
    text.family(name, "counter", "Calls of webhooks, by the code of what came of them.");
    for ((webhook, step, operation, number, rejected), count) in &counted.requests {
        let (number, rejected) = (number.to_string(), rejected.to_string());
        let labels = [
            ("code", &*number),
            ("name", &**webhook),
            ("operation", *operation),
            ("rejected", &*rejected),
            ("type", *step),
        ];
        text.value(name, &labels, count);
    }
    let name = "apiserver_admission_webhook_rejection_count";
    text.family(name, "counter", "Writes that webhooks refused, or that failed as one could not be asked.");
    for ((webhook, step, operation, error, number), count) in &counted.rejections {
        let number = number.to_string();
        let labels = [
            ("error_type", *error),
            ("name", &**webhook),
            ("operation", *operation),
            ("rejection_code", &*number),
            ("type", *step),
        ];
        text.value(name, &labels, count);
    }
    let name = "apiserver_admission_webhook_fail_open_count";
    text.family(name, "counter", "Calls of webhooks that failed and did not count.");
    for ((webhook, step), count) in &counted.open {
        text.value(name, &[("name", &**webhook), ("type", *step)], count);
    }
    write_conditions(text, counted);
}

fn write_conditions(text: &mut Text, counted: &Counted) {
    let all = || {
        counted.conditions.iter().map(|((name, kind, step, operation), of)| {
            ([("kind", *kind), ("name", &**name), ("operation", *operation), ("type", *step)], of)
        })
    };
    let name = "apiserver_admission_match_condition_evaluation_seconds";
    text.family(name, "histogram", "How long match conditions took.");
    for (labels, of) in all() {
        let bounds = CONDITION_BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(of.took.counts.into_iter().chain([of.took.all])) {
            let [kind, name_of, operation, step] = labels;
            text.value(&format!("{name}_bucket"), &[kind, name_of, operation, step, ("le", &bound)], count);
        }
        text.value(&format!("{name}_sum"), &labels, of.took.seconds);
        text.value(&format!("{name}_count"), &labels, of.took.all);
    }
    let name = "apiserver_admission_match_condition_evaluation_errors_total";
    text.family(name, "counter", "Match conditions that could not be evaluated.");
    for (labels, of) in all().filter(|(_, of)| of.errors > 0) {
        text.value(name, &labels, of.errors);
    }
}

/// Appends what is counted of conversions.
pub fn write_conversions(text: &mut Text, counted: &ConversionCounted) {
    let name = "apiserver_crd_conversion_webhook_duration_seconds";
    text.family(name, "histogram", "How long webhooks took to convert, by definition and versions.");
    for ((crd, from, to, succeeded), times) in &counted.crds {
        let succeeded = succeeded.to_string();
        let labels = [
            ("crd_name", &**crd),
            ("from_version", &**from),
            ("succeeded", &*succeeded),
            ("to_version", &**to),
        ];
        histogram(text, name, &labels, &CRD_BOUNDS, times);
    }
    let result = |failure: &Option<FailureSort>| match failure {
        None => [("failure_type", ""), ("result", "success")],
        Some(sort) => [("failure_type", sort.as_str()), ("result", "failure")],
    };
    let name = "apiserver_conversion_webhook_request_total";
    text.family(name, "counter", "Calls of webhooks that convert, by what came of them.");
    for (failure, times) in &counted.requests {
        text.value(name, &result(failure), times.counts[REQUEST_BOUNDS.len()]);
    }
    let name = "apiserver_conversion_webhook_duration_seconds";
    text.family(name, "histogram", "How long webhooks took to convert, by what came of them.");
    for (failure, times) in &counted.requests {
        histogram(text, name, &result(failure), &REQUEST_BOUNDS, times);
    }
}

/// Appends what is counted of policies.
pub fn write_policies(text: &mut Text, counted: &PoliciesCounted) {
    let validating: Vec<_> = counted
        .validating
        .iter()
        .map(|((policy, binding, error, action), times)| {
            let labels = vec![
                ("enforcement_action", *action),
                ("error_type", *error),
                ("policy", &**policy),
                ("policy_binding", &**binding),
            ];
            (labels, times)
        })
        .collect();
    let help = ("Validations that failed, by what was done for it.", "How long these policies took.");
    checks(text, "apiserver_validating_admission_policy", help, &validating);
    let mutating: Vec<_> = counted
        .mutating
        .iter()
        .map(|((policy, binding, error), times)| {
            (vec![("error_type", *error), ("policy", &**policy), ("policy_binding", &**binding)], times)
        })
        .collect();
    let help = ("Mutations, by what came of them.", "How long mutations took.");
    checks(text, "apiserver_mutating_admission_policy", help, &mutating);
}

/// What is counted of one kind of policies: what is said of each series, and its times.
type PolicySeries<'c> = (Vec<(&'c str, &'c str)>, &'c PolicyDurations);

fn checks(text: &mut Text, name: &str, help: (&str, &str), all: &[PolicySeries<'_>]) {
    let total = format!("{name}_check_total");
    text.family(&total, "counter", help.0);
    for (labels, times) in all {
        text.value(&total, labels, times.all);
    }
    let took = format!("{name}_check_duration_seconds");
    text.family(&took, "histogram", help.1);
    for (labels, times) in all {
        let bounds = POLICY_BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(times.counts.into_iter().chain([times.all])) {
            let with_bound: Vec<(&str, &str)> = labels.iter().copied().chain([("le", &*bound)]).collect();
            text.value(&format!("{took}_bucket"), &with_bound, count);
        }
        text.value(&format!("{took}_sum"), labels, times.seconds);
        text.value(&format!("{took}_count"), labels, times.all);
    }
}

fn histogram(text: &mut Text, name: &str, labels: &[(&str, &str)], bounds: &[f64], times: &ConversionTimes) {
    let bounds = bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(times.counts) {
        let with_bound: Vec<(&str, &str)> = labels.iter().copied().chain([("le", &*bound)]).collect();
        text.value(&format!("{name}_bucket"), &with_bound, count);
    }
    text.value(&format!("{name}_sum"), labels, times.seconds);
    text.value(&format!("{name}_count"), labels, times.counts[times.counts.len() - 1]);
}
