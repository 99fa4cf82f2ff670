//! `/metrics/slis`: how the health checks went, by name and by who asked.
//!
//! In: what each check of `/healthz`, `/livez` and `/readyz` came to. Out: the classic text format. Holds a
//! few numbers for each check and endpoint. Never: runs a check.
//!
//! Source: component-base v0.36.3 `metrics/prometheus/slis`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::metrics::{Text, process};

/// See the module's doc.
#[derive(Debug, Default)]
pub struct Slis(Mutex<BTreeMap<(String, &'static str), Told>>);

/// What a check came to for one endpoint.
#[derive(Debug, Default)]
struct Told {
    is_well: bool,
    well: u64,
    ill: u64,
}

impl Slis {
    /// A check called `name` came to that for `endpoint`.
    pub fn observe(&self, name: &str, endpoint: &'static str, is_well: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = all.entry((name.to_owned(), endpoint)).or_default();
        told.is_well = is_well;
        if is_well {
            told.well += 1;
        } else {
            told.ill += 1;
        }
    }

    /// The text.
    pub fn render(&self) -> String {
        let (last, total) = ("kubernetes_healthcheck", "kubernetes_healthchecks_total");
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Text::default();
        if !all.is_empty() {
            text.family(last, "gauge", "[STABLE] Whether a health check went well the last time.");
            for ((name, endpoint), told) in &*all {
                let labels = [("name", &**name), ("type", *endpoint)];
                text.value(last, &labels, u8::from(told.is_well));
            }
            text.family(total, "counter", "[STABLE] Health checks by what they came to.");
            for ((name, endpoint), told) in &*all {
                for (status, count) in [("error", told.ill), ("success", told.well)] {
                    if count > 0 {
                        let labels = [("name", &**name), ("status", status), ("type", *endpoint)];
                        text.value(total, &labels, count);
                    }
                }
            }
        }
        drop(all);
        if let Some(started) = process::started() {
            process::write_start(&mut text, started);
        }
        text.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_outcome_and_all_of_them_are_told() {
        let slis = Slis::default();
        assert!(!slis.render().contains("kubernetes_"));
        slis.observe("etcd", "livez", false);
        slis.observe("etcd", "livez", true);
        slis.observe("etcd", "livez", true);
        slis.observe("shutdown", "readyz", false);
        let text = slis.render();
        for line in [
            "kubernetes_healthcheck{name=\"etcd\",type=\"livez\"} 1\n",
            "kubernetes_healthcheck{name=\"shutdown\",type=\"readyz\"} 0\n",
            "kubernetes_healthchecks_total{name=\"etcd\",status=\"error\",type=\"livez\"} 1\n",
            "kubernetes_healthchecks_total{name=\"etcd\",status=\"success\",type=\"livez\"} 2\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("status=\"success\",type=\"readyz\""), "nothing that did not happen");
    }
}
