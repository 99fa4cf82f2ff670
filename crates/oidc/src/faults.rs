//! What is wrong with a configuration, in the words of Kubernetes' field errors.
//!
//! In: paths, values, reasons. Out: lines. Never: decides what is wrong.

use forebay_apimachinery::json::go_quote;

/// What was found so far, in order.
#[derive(Debug, Default)]
pub struct ConfigFaults(Vec<String>);

impl ConfigFaults {
    pub fn push(&mut self, line: String) {
        self.0.push(line);
    }

    /// - `why`: empty where the path says it all.
    pub fn required(&mut self, path: &str, why: &str) {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        self.0.push(format!("{path}: Required value{why}"));
    }

    pub fn invalid(&mut self, path: &str, value: &str, why: &str) {
        self.0.push(format!("{path}: Invalid value: {}: {why}", go_quote(value)));
    }

    pub fn duplicate(&mut self, path: &str, value: &str) {
        self.0.push(format!("{path}: Duplicate value: {}", go_quote(value)));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them as one line, each once, as Go joins several errors.
    pub fn told(self) -> String {
        let mut told: Vec<String> = Vec::with_capacity(self.0.len());
        let mut seen = std::collections::BTreeSet::new();
        for line in self.0 {
            if seen.insert(line.clone()) {
                told.push(line);
            }
        }
        match told.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    }
}
