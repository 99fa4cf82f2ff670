//! A TracingConfiguration: where spans go, and of how many requests.
//!
//! Source: apiserver v0.36.3 `server/options/tracing.go`, component-base v0.36.3 `tracing/api/v1`.

use serde_json::Value;

/// What is said in `--tracing-config-file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracingConfiguration {
    pub collector: Collector,
    /// Of a million requests that are part of no trace yet so many are told of.
    pub sampling_rate_per_million: u32,
}

/// Where spans are sent, over gRPC without TLS, as kube-apiserver does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collector {
    /// Host and port.
    Tcp(String),
    /// A socket of this machine.
    Unix(String),
}

const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const DEFAULT: &str = "localhost:4317";
const MILLION: i64 = 1_000_000;
const NO_SCHEME: &str = "Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md";

impl TracingConfiguration {
    /// Reads one, strictly.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words where it has some.
    pub fn of(configuration: &Value) -> Result<TracingConfiguration, String> {
        let text = |name: &str| configuration[name].as_str().unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let is_known = version
            .split_once('/')
            .is_some_and(|(group, version)| group == GROUP && VERSIONS.contains(&version));
        if !is_known || kind != "TracingConfiguration" {
            return Err(format!("no kind {kind:?} is registered for version {version:?}"));
        }
        let known = ["apiVersion", "kind", "endpoint", "samplingRatePerMillion"];
        let mut members = configuration.as_object().into_iter().flatten();
        // Few: four members.
        if let Some((unknown, _)) = members.find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(format!("strict decoding error: unknown field {unknown:?}"));
        }
        let rate = match &configuration["samplingRatePerMillion"] {
            Value::Null => 0,
            rate => rate.as_i64().ok_or("samplingRatePerMillion: must be a number")?,
        };
        let why = match rate {
            ..0 => "sampling rate must be positive",
            0..=MILLION => "",
            _ => "sampling rate per million must be less than or equal to one million",
        };
        if !why.is_empty() {
            return Err(format!("samplingRatePerMillion: Invalid value: {rate}: {why}"));
        }
        let collector = match &configuration["endpoint"] {
            Value::Null => Collector::Tcp(DEFAULT.to_owned()),
            Value::String(endpoint) => Collector::of(endpoint)?,
            _ => return Err("endpoint: must be a text".to_owned()),
        };
        Ok(TracingConfiguration { collector, sampling_rate_per_million: rate as u32 })
    }
}

impl Collector {
    fn of(endpoint: &str) -> Result<Collector, String> {
        let invalid = |why: String| format!("endpoint: Invalid value: {endpoint:?}: {why}");
        match endpoint.split_once("://") {
            None => Ok(Collector::Tcp(endpoint.to_owned())),
            // What stands before a slash would be asked for the address.
            Some(("dns", rest)) => match rest.rsplit_once('/') {
                Some(("", target)) => Ok(Collector::Tcp(target.to_owned())),
                Some(_) => Err(invalid("no name server of its own is asked".to_owned())),
                None => Ok(Collector::Tcp(rest.to_owned())),
            },
            Some(("unix", path)) if path.starts_with('/') => Ok(Collector::Unix(path.to_owned())),
            Some(("unix", _)) => Err(invalid("the path must be absolute".to_owned())),
            Some(("unix-abstract", _)) => Err(invalid("sockets without a path are not served".to_owned())),
            Some((scheme, _)) => Err(invalid(format!("unsupported scheme: {scheme}.  {NO_SCHEME}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(version: &str, more: Value) -> Result<TracingConfiguration, String> {
        let mut said = json!({
            "apiVersion": format!("apiserver.config.k8s.io/{version}"), "kind": "TracingConfiguration",
        });
        for (name, value) in more.as_object().expect("an object") {
            said[name] = value.clone();
        }
        TracingConfiguration::of(&said)
    }

    #[test]
    fn configurations_are_judged_in_upstreams_words() {
        let nothing = read("v1beta1", json!({})).expect("read");
        assert_eq!(nothing.collector, Collector::Tcp("localhost:4317".into()));
        assert_eq!(nothing.sampling_rate_per_million, 0);
        let collector =
            |endpoint: &str| read("v1", json!({ "endpoint": endpoint })).map(|read| read.collector);
        assert_eq!(collector("otel:4317"), Ok(Collector::Tcp("otel:4317".into())));
        assert_eq!(collector("dns:///otel:4317"), Ok(Collector::Tcp("otel:4317".into())));
        assert_eq!(collector("unix:///run/otel.sock"), Ok(Collector::Unix("/run/otel.sock".into())));
        assert_eq!(
            collector("https://otel:4317").expect_err("refused"),
            "endpoint: Invalid value: \"https://otel:4317\": unsupported scheme: https.  Options are none, dns, unix, or \
             unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"
        );
        let rate =
            |rate: i64| read("v1alpha1", json!({ "samplingRatePerMillion": rate })).err().unwrap_or_default();
        assert_eq!((rate(0), rate(1_000_000)), (String::new(), String::new()));
        assert_eq!(rate(-1), "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive");
        assert!(rate(1_000_001).ends_with("must be less than or equal to one million"));
        assert!(read("v2", json!({})).is_err());
        assert_eq!(
            read("v1", json!({ "rate": 1 })).expect_err("refused"),
            "strict decoding error: unknown field \"rate\""
        );
    }
}
