//! `apiserver_storage_transformation_*`, `apiserver_envelope_encryption_*` and
//! `apiserver_encryption_config_controller_*`: what is counted of encryption at rest, as text.
//!
//! In: what was counted. Out: families. Never: counts.

use forebay_encryption::{
    CALL_BOUNDS, EncryptionCounted, GENERATION_BOUNDS, KeyUse, TRANSFORMATION_BOUNDS, Times,
};

use super::text::{Labels, Text};

/// Appends all of them; of some there may be nothing yet.
pub fn write(text: &mut Text, counted: &EncryptionCounted) {
    transformations(text, counted);
    keys(text, counted);
    reloads(text, counted);
}

fn transformations(text: &mut Text, counted: &EncryptionCounted) {
    let name = "apiserver_storage_transformation_operations_total";
    text.family(name, "counter", "Values that were encrypted or decrypted, by what came of it.");
    for ((resource, direction, prefix, status), count) in &counted.transformations {
        let labels = [
            ("resource", &**resource),
            ("status", *status),
            ("transformation_type", direction.name()),
            ("transformer_prefix", &**prefix),
        ];
        text.value(name, &labels, count);
    }
    let name = "apiserver_storage_transformation_duration_seconds";
    text.family(name, "histogram", "How long it took to encrypt or decrypt values.");
    for ((direction, prefix), times) in &counted.times {
        let labels = [("transformation_type", direction.name()), ("transformer_prefix", &**prefix)];
        histogram(text, name, &labels, &TRANSFORMATION_BOUNDS, times);
    }
    let name = "apiserver_storage_data_key_generation_duration_seconds";
    text.family(name, "histogram", "How long it took to draw seeds.");
    histogram(text, name, &[], &GENERATION_BOUNDS, &counted.generations);
    let name = "apiserver_storage_data_key_generation_failures_total";
    text.single(name, "counter", "Seeds that could not be drawn.", counted.generation_failures);
    let name = "apiserver_storage_envelope_transformation_cache_misses_total";
    text.single(name, "counter", "Data keys that a plugin was asked for.", counted.cache_misses);
}

fn keys(text: &mut Text, counted: &EncryptionCounted) {
    let name = "apiserver_envelope_encryption_kms_operations_latency_seconds";
    text.family(name, "histogram", "How long plugins took, by what came of it.");
    for ((provider, method, status), times) in &counted.calls {
        let labels =
            [("grpc_status_code", *status), ("method_name", *method), ("provider_name", &**provider)];
        histogram(text, name, &labels, &CALL_BOUNDS, times);
    }
    let used = |labels: &mut dyn FnMut(Labels<'_>, &KeyUse)| {
        for ((direction, provider, key), used) in &counted.keys {
            let of = [
                ("apiserver_id_hash", counted.server_hash.as_str()),
                ("key_id_hash", &**key),
                ("provider_name", &**provider),
                ("transformation_type", direction.name()),
            ];
            labels(&of, used);
        }
    };
    let name = "apiserver_envelope_encryption_key_id_hash_total";
    text.family(name, "counter", "How often plugins' keys were used, by the hash of their names.");
    used(&mut |labels, of| text.value(name, labels, of.count));
    let name = "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds";
    text.family(name, "gauge", "When plugins' keys were last used.");
    used(&mut |labels, of| text.value(name, labels, seconds(of.last_unix_ms)));
    let name = "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds";
    text.family(name, "gauge", "When plugins last named a key as theirs.");
    for ((provider, key), unix_ms) in &counted.status_keys {
        let labels = [
            ("apiserver_id_hash", counted.server_hash.as_str()),
            ("key_id_hash", &**key),
            ("provider_name", &**provider),
        ];
        text.value(name, &labels, seconds(*unix_ms));
    }
    let name = "apiserver_envelope_encryption_invalid_key_id_from_status_total";
    text.family(name, "counter", "Names of keys that plugins gave and that cannot be used.");
    for ((provider, error), count) in &counted.invalid_keys {
        text.value(name, &[("error", *error), ("provider_name", &**provider)], count);
    }
    let name = "apiserver_envelope_encryption_dek_source_cache_size";
    text.family(name, "gauge", "Data keys that are known of each plugin.");
    for (provider, count) in &counted.data_keys {
        text.value(name, &[("provider_name", &**provider)], count);
    }
}

fn reloads(text: &mut Text, counted: &EncryptionCounted) {
    let server = counted.server_hash.as_str();
    let labels = |is_taken| {
        let status = if is_taken { "success" } else { "failure" };
        [("apiserver_id_hash", server), ("status", status)]
    };
    let name = "apiserver_encryption_config_controller_automatic_reloads_total";
    text.family(name, "counter", "Encryption configurations that were taken in, or were not.");
    for (is_taken, of) in &counted.reloads {
        text.value(name, &labels(*is_taken), of.count);
    }
    let name = "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds";
    text.family(name, "gauge", "When an encryption configuration was last taken in, or was not.");
    for (is_taken, of) in &counted.reloads {
        text.value(name, &labels(*is_taken), seconds(of.last_unix_ms));
    }
    let name = "apiserver_encryption_config_controller_last_config_info";
    text.family(name, "gauge", "The encryption configuration in force, by the hash of its file.");
    text.value(name, &[("apiserver_id_hash", server), ("hash", &counted.config_hash)], 1);
}

fn seconds(unix_ms: u64) -> f64 {
    unix_ms as f64 / 1e3
}

fn histogram<const N: usize>(
    text: &mut Text,
    name: &str,
    labels: Labels<'_>,
    bounds: &[f64; N],
    times: &Times<N>,
) {
    let bounds = bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(times.counts.into_iter().chain([times.all])) {
        let with_bound: Vec<(&str, &str)> = labels.iter().copied().chain([("le", &*bound)]).collect();
        text.value(&format!("{name}_bucket"), &with_bound, count);
    }
    text.value(&format!("{name}_sum"), labels, times.seconds);
    text.value(&format!("{name}_count"), labels, times.all);
}

#[cfg(test)]
mod tests {
    use forebay_encryption::EncryptionMetrics;

    use super::*;

    #[test]
    fn reloads_are_told_by_the_server_that_did_them() {
        let metrics = EncryptionMetrics::default();
        metrics.belong_to("apiserver-x");
        metrics.in_force("sha256:1");
        metrics.reloaded(true, 1_500);
        let mut text = Text::default();
        write(&mut text, &metrics.counted());
        let text = text.finish();
        let hash = metrics.counted().server_hash;
        assert!(hash.starts_with("sha256:"));
        for line in [
            format!(
                "apiserver_encryption_config_controller_automatic_reloads_total{{apiserver_id_hash=\"{hash}\",status=\"success\"}} 1"
            ),
            format!(
                "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds{{apiserver_id_hash=\"{hash}\",status=\"success\"}} 1.5"
            ),
            format!(
                "apiserver_encryption_config_controller_last_config_info{{apiserver_id_hash=\"{hash}\",hash=\"sha256:1\"}} 1"
            ),
            "apiserver_storage_envelope_transformation_cache_misses_total 0".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
