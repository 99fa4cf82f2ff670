//! `apiserver_authorization_*`: what is counted of decisions, of webhooks and of configurations, as text.
//!
//! In: what was counted. Out: families. Never: counts.

use forebay_authorization::{AuthorizationCounted, CALL_BOUNDS, CONDITION_BOUNDS, Took};

use super::text::Text;

/// Appends all of them; of some there may be nothing yet.
pub fn write(text: &mut Text, counted: &AuthorizationCounted) {
    let name = "apiserver_authorization_decisions_total";
    text.family(name, "counter", "Decisions that ended the asking, by who decided.");
    for ((kind, of), (allowed, denied)) in &counted.decisions {
        for (decision, count) in [("allowed", *allowed), ("denied", *denied)] {
            if count > 0 {
                text.value(name, &[("decision", decision), ("name", &**of), ("type", *kind)], count);
            }
        }
    }
    webhooks(text, counted);
    conditions(text, counted);
    reloads(text, counted);
}

fn webhooks(text: &mut Text, counted: &AuthorizationCounted) {
    let name = "apiserver_authorization_webhook_evaluations_total";
    text.family(name, "counter", "Calls of webhooks that authorize.");
    for ((of, call), took) in &counted.calls {
        text.value(name, &[("name", &**of), ("result", call.as_str())], took.all);
    }
    let name = "apiserver_authorization_webhook_duration_seconds";
    text.family(name, "histogram", "How long webhooks that authorize took.");
    for ((of, call), took) in &counted.calls {
        histogram(text, name, [("name", &**of), ("result", call.as_str())], &CALL_BOUNDS, took);
    }
    let name = "apiserver_authorization_webhook_evaluations_fail_open_total";
    text.family(name, "counter", "Questions that a webhook did not answer, and that others decided.");
    for ((of, call), count) in &counted.open {
        text.value(name, &[("name", &**of), ("result", call.as_str())], *count);
    }
}

fn conditions(text: &mut Text, counted: &AuthorizationCounted) {
    let labels = |of| [("name", of), ("type", "Webhook")];
    let name = "apiserver_authorization_match_condition_evaluation_seconds";
    text.family(name, "histogram", "How long match conditions of webhooks that authorize took.");
    for (of, conditions) in &counted.conditions {
        histogram(text, name, labels(&**of), &CONDITION_BOUNDS, &conditions.took);
    }
    let name = "apiserver_authorization_match_condition_evaluation_errors_total";
    text.family(name, "counter", "Questions whose match conditions could not be evaluated.");
    for (of, conditions) in counted.conditions.iter().filter(|(_, of)| of.errors > 0) {
        text.value(name, &labels(&**of), conditions.errors);
    }
    let name = "apiserver_authorization_match_condition_exclusions_total";
    text.family(name, "counter", "Questions that match conditions kept from a webhook.");
    for (of, conditions) in counted.conditions.iter().filter(|(_, of)| of.exclusions > 0) {
        text.value(name, &labels(&**of), conditions.exclusions);
    }
}

fn reloads(text: &mut Text, counted: &AuthorizationCounted) {
    let reloads = &counted.reloads;
    let server = ("apiserver_id_hash", &*reloads.server);
    let all = [("success", reloads.succeeded), ("failure", reloads.failed)];
    let told = || all.into_iter().filter(|(_, (count, _))| *count > 0);
    let name = "apiserver_authorization_config_controller_automatic_reloads_total";
    text.family(name, "counter", "How often the configuration of authorization was read again.");
    for (status, (count, _)) in told() {
        text.value(name, &[server, ("status", status)], count);
    }
    let name = "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds";
    text.family(name, "gauge", "When the configuration of authorization was last read again.");
    for (status, (_, at)) in told() {
        text.value(name, &[server, ("status", status)], at);
    }
    let name = "apiserver_authorization_config_controller_last_config_info";
    text.family(name, "gauge", "Which configuration of authorization is in force.");
    if !reloads.in_force.is_empty() {
        text.value(name, &[server, ("hash", &*reloads.in_force)], 1);
    }
}

fn histogram<const N: usize>(
    text: &mut Text,
    name: &str,
    labels: [(&str, &str); 2],
    bounds: &[f64; N],
    took: &Took<N>,
) {
    let bounds = bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(took.counts.into_iter().chain([took.all])) {
        let [one, other] = labels;
        text.value(&format!("{name}_bucket"), &[one, other, ("le", &bound)], count);
    }
    text.value(&format!("{name}_sum"), &labels, took.seconds);
    text.value(&format!("{name}_count"), &labels, took.all);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_authorization::{AuthorizationMetrics, WebhookCall};

    use super::*;

    #[test]
    fn what_is_counted_has_upstreams_names_and_labels() {
        let metrics = AuthorizationMetrics::default();
        metrics.decisions("RBAC", "rbac").allowed();
        metrics.called(&"w".into(), WebhookCall::Success, Duration::from_millis(7));
        metrics.conditions(&"w".into(), Duration::from_millis(2), &Ok(false));
        metrics.began("sha256:1".to_owned(), "sha256:2".to_owned());
        metrics.not_reloaded(5.0);
        let mut text = Text::default();
        write(&mut text, &metrics.counted());
        let text = text.finish();
        for line in [
            r#"apiserver_authorization_decisions_total{decision="allowed",name="rbac",type="RBAC"} 1"#,
            r#"apiserver_authorization_webhook_evaluations_total{name="w",result="success"} 1"#,
            r#"apiserver_authorization_webhook_duration_seconds_bucket{name="w",result="success",le="0.01"} 1"#,
            r#"apiserver_authorization_match_condition_exclusions_total{name="w",type="Webhook"} 1"#,
            r#"apiserver_authorization_config_controller_automatic_reloads_total{apiserver_id_hash="sha256:1",status="failure"} 1"#,
            r#"apiserver_authorization_config_controller_last_config_info{apiserver_id_hash="sha256:1",hash="sha256:2"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
