//! `apiserver_externaljwt_*`: what is counted of an external signer of service accounts' tokens.
//!
//! In: what was asked of it, and what came of that. Out: upstream's families, none before there is something
//! to tell. Every label has a bounded set of values: methods, and names of gRPC's statuses.
//!
//! Source: kubernetes v1.36.3 `pkg/serviceaccount/externaljwt/metrics`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_catalog::histogram::{Bounds, Histogram};

use super::Text;

#[rustfmt::skip]
const SECONDS: Bounds = &[
    ("0.001", 0.001), ("0.005", 0.005), ("0.01", 0.01), ("0.025", 0.025), ("0.05", 0.05), ("0.1", 0.1),
    ("0.25", 0.25), ("0.5", 0.5), ("1", 1.0), ("2.5", 2.5), ("5", 5.0), ("10", 10.0), ("30", 30.0), ("60", 60.0),
];

/// How something went that a signer was asked for: the name of a gRPC status.
pub type SignerCode = &'static str;

/// What failed although the signer has answered.
pub const NOT_OF_GRPC: SignerCode = "unknown-non-grpc";

/// See the module's doc.
#[derive(Debug, Default)]
pub struct SignerMetrics(Mutex<SignerSeries>);

#[derive(Debug, Default)]
struct SignerSeries {
    fetched: BTreeMap<SignerCode, u64>,
    signed: BTreeMap<SignerCode, u64>,
    // method, code
    calls: BTreeMap<(&'static str, SignerCode), Histogram>,
    // Of the last keys that were taken, in seconds since 1970: when, and when the signer had read them.
    taken: Option<(f64, f64)>,
}

impl SignerMetrics {
    /// - `method`: the path of the call.
    pub fn called(&self, method: &'static str, code: SignerCode, took: Duration) {
        let mut series = self.series();
        let histogram = series.calls.entry((method, code)).or_insert_with(|| Histogram::new(SECONDS));
        histogram.observe(took.as_secs_f64());
    }

    pub fn signed(&self, code: SignerCode) {
        *self.series().signed.entry(code).or_default() += 1;
    }

    /// - `taken`: when its keys were taken, in ms since 1970, and when it had read them, in seconds.
    pub fn fetched(&self, code: SignerCode, taken: Option<(u64, f64)>) {
        let mut series = self.series();
        *series.fetched.entry(code).or_default() += 1;
        if let Some((unix_ms, read)) = taken {
            series.taken = Some((unix_ms as f64 / 1e3, read));
        }
    }

    /// Appends all of it.
    pub fn write(&self, text: &mut Text) {
        let series = self.series();
        if let Some((taken, read)) = series.taken {
            let name = "apiserver_externaljwt_fetch_keys_data_timestamp";
            text.single(
                name,
                "gauge",
                "When the external signer had read the keys that count, in seconds.",
                read,
            );
            let name = "apiserver_externaljwt_fetch_keys_success_timestamp";
            text.single(
                name,
                "gauge",
                "When keys of the external signer were last taken, in seconds.",
                taken,
            );
        }
        let counters = [
            (
                "fetch_keys_request_total",
                "How often the external signer was asked for its keys.",
                &series.fetched,
            ),
            ("sign_request_total", "How often the external signer was asked to sign.", &series.signed),
        ];
        for (name, help, counts) in counters.into_iter().filter(|(_, _, counts)| !counts.is_empty()) {
            let name = format!("apiserver_externaljwt_{name}");
            text.family(&name, "counter", help);
            for (code, count) in counts {
                text.value(&name, &[("code", *code)], count);
            }
        }
        if !series.calls.is_empty() {
            let name = "apiserver_externaljwt_request_duration_seconds";
            text.family(name, "histogram", "How long the external signer took, in seconds.");
            for ((method, code), histogram) in &series.calls {
                text.histogram(name, &[("code", *code), ("method", *method)], histogram);
            }
        }
    }

    fn series(&self) -> MutexGuard<'_, SignerSeries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(metrics: &SignerMetrics) -> String {
        let mut text = Text::default();
        metrics.write(&mut text);
        text.finish()
    }

    #[test]
    fn nothing_is_told_of_a_signer_before_it_is_asked_and_then_by_upstreams_names() {
        let metrics = SignerMetrics::default();
        assert_eq!(written(&metrics), "");
        metrics.fetched("Unavailable", None);
        metrics.fetched("OK", Some((1_500, 1.25)));
        metrics.signed(NOT_OF_GRPC);
        metrics.called("/v1.ExternalJWTSigner/Sign", "OK", Duration::from_millis(3));
        let text = written(&metrics);
        for line in [
            "apiserver_externaljwt_fetch_keys_data_timestamp 1.25",
            "apiserver_externaljwt_fetch_keys_success_timestamp 1.5",
            "apiserver_externaljwt_fetch_keys_request_total{code=\"OK\"} 1",
            "apiserver_externaljwt_fetch_keys_request_total{code=\"Unavailable\"} 1",
            "apiserver_externaljwt_sign_request_total{code=\"unknown-non-grpc\"} 1",
            "apiserver_externaljwt_request_duration_seconds_bucket{code=\"OK\",method=\"/v1.ExternalJWTSigner/Sign\",le=\"0.001\"} 0",
            "apiserver_externaljwt_request_duration_seconds_bucket{code=\"OK\",method=\"/v1.ExternalJWTSigner/Sign\",le=\"0.005\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
