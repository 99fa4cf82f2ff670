//! From a file to a configuration: YAML or JSON, strictly, so that a slip in a name is an error.

use forebay_apimachinery::{Lease, go_duration};
use serde_json::{Map, Value};

use super::{EncryptionConfiguration, EncryptionRule, KmsConfiguration, NamedKey, ProviderConfiguration};
use crate::limits;

const VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";

/// Reads a configuration.
///
/// # Errors
/// Why it cannot be read, in upstream's words as far as those are of use.
pub fn decode(file: &[u8]) -> Result<EncryptionConfiguration, String> {
    let read = forebay_yaml::to_json(file, &Lease::of_server());
    let text = read.map_err(|error| error.to_string())?;
    if let Some(repeated) = text.repeated {
        return Err(format!("strict decoding error: {repeated}"));
    }
    let value: Value = serde_json::from_slice(&text.text).map_err(|error| error.to_string())?;
    let Value::Object(root) = value else { return Err("it is no object".to_owned()) };
    is_ours(&root)?;
    let mut reader = Reader { unknown: Vec::new(), entries: 0 };
    let configuration = reader.configuration(root)?;
    if !reader.unknown.is_empty() {
        return Err(format!("strict decoding error: {}", reader.unknown.join(", ")));
    }
    if reader.entries > limits::CONFIG_ENTRIES_MAX {
        return Err(format!("more than {} rules, providers and keys", limits::CONFIG_ENTRIES_MAX));
    }
    Ok(configuration)
}

/// Lets through what says that it is such a configuration. The other name is one that documentation once had.
fn is_ours(root: &Map<String, Value>) -> Result<(), String> {
    let text = |name: &str| root.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        (VERSION, KIND) | ("v1", "EncryptionConfig") => Ok(()),
        (_, "") => Err("Object 'Kind' is missing".to_owned()),
        (version, kind) => Err(format!("no kind \"{kind}\" is registered for version \"{version}\"")),
    }
}

/// Reads members, and notes those that there are not.
struct Reader {
    unknown: Vec<String>,
    entries: usize,
}

type Read<T> = Result<T, String>;

impl Reader {
    fn configuration(&mut self, mut root: Map<String, Value>) -> Read<EncryptionConfiguration> {
        root.remove("apiVersion");
        root.remove("kind");
        let rules = self.list(root.remove("resources"), "resources", Reader::rule)?;
        self.rest(root, "");
        Ok(EncryptionConfiguration { rules })
    }

    fn rule(&mut self, value: Value, at: &str) -> Read<EncryptionRule> {
        let mut members = object(value, at)?;
        let names = format!("{at}.resources");
        let resources =
            self.list(members.remove("resources"), &names, |_, value, at| text(Some(value), at))?;
        let providers =
            self.list(members.remove("providers"), &format!("{at}.providers"), Reader::provider)?;
        self.rest(members, at);
        Ok(EncryptionRule { resources, providers })
    }

    fn provider(&mut self, value: Value, at: &str) -> Read<ProviderConfiguration> {
        let mut members = object(value, at)?;
        let aesgcm = self.keys(members.remove("aesgcm"), &format!("{at}.aesgcm"))?;
        let aescbc = self.keys(members.remove("aescbc"), &format!("{at}.aescbc"))?;
        let secretbox = self.keys(members.remove("secretbox"), &format!("{at}.secretbox"))?;
        let identity = match given(members.remove("identity")) {
            Some(value) => {
                let at = format!("{at}.identity");
                self.rest(object(value, &at)?, &at);
                true
            }
            None => false,
        };
        let kms = match given(members.remove("kms")) {
            Some(value) => Some(self.kms(value, &format!("{at}.kms"))?),
            None => None,
        };
        self.rest(members, at);
        Ok(ProviderConfiguration { aesgcm, aescbc, secretbox, identity, kms })
    }

    fn keys(&mut self, value: Option<Value>, at: &str) -> Read<Option<Vec<NamedKey>>> {
        let Some(value) = given(value) else { return Ok(None) };
        let mut members = object(value, at)?;
        let keys = self.list(members.remove("keys"), &format!("{at}.keys"), |reader, value, at| {
            let mut members = object(value, at)?;
            let name = text(members.remove("name"), &format!("{at}.name"))?;
            let secret = text(members.remove("secret"), &format!("{at}.secret"))?;
            reader.rest(members, at);
            Ok(NamedKey { name, secret })
        })?;
        self.rest(members, at);
        Ok(Some(keys))
    }

    fn kms(&mut self, value: Value, at: &str) -> Read<KmsConfiguration> {
        let (mut members, default) = (object(value, at)?, KmsConfiguration::default());
        let api_version = match text(members.remove("apiVersion"), &format!("{at}.apiVersion"))? {
            version if version.is_empty() => default.api_version,
            version => version,
        };
        let cache_size = match given(members.remove("cachesize")) {
            Some(size) => {
                Some(size.as_i64().ok_or_else(|| not_a(&size, &format!("{at}.cachesize"), "int32"))?)
            }
            None => None,
        };
        let timeout_ns = match given(members.remove("timeout")) {
            Some(timeout) => duration(&timeout, &format!("{at}.timeout"))?,
            None => default.timeout_ns,
        };
        let name = text(members.remove("name"), &format!("{at}.name"))?;
        let endpoint = text(members.remove("endpoint"), &format!("{at}.endpoint"))?;
        self.rest(members, at);
        Ok(KmsConfiguration { api_version, name, cache_size, endpoint, timeout_ns })
    }

    fn list<T>(
        &mut self,
        value: Option<Value>,
        at: &str,
        mut read: impl FnMut(&mut Reader, Value, &str) -> Read<T>,
    ) -> Read<Vec<T>> {
        let items = match given(value) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(not_a(&other, at, "list")),
        };
        self.entries = self.entries.saturating_add(items.len());
        let items = items.into_iter().enumerate();
        items.map(|(place, item)| read(self, item, &format!("{at}[{place}]"))).collect()
    }

    /// Notes what is left of `members`.
    fn rest(&mut self, members: Map<String, Value>, at: &str) {
        for (name, _) in members {
            let dot = if at.is_empty() { "" } else { "." };
            self.unknown.push(format!("unknown field \"{at}{dot}{name}\""));
        }
    }
}

/// `null` is as good as nothing.
fn given(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !value.is_null())
}

fn object(value: Value, at: &str) -> Read<Map<String, Value>> {
    match value {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        other => Err(not_a(&other, at, "object")),
    }
}

fn text(value: Option<Value>, at: &str) -> Read<String> {
    match given(value) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(not_a(&other, at, "string")),
    }
}

fn duration(value: &Value, at: &str) -> Read<i64> {
    let Value::String(text) = value else { return Err(not_a(value, at, "string")) };
    go_duration::parse(text).map_err(|error| error.as_go_says(text))
}

/// The value is not told: it may be a key in the wrong place.
fn not_a(value: &Value, at: &str, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into field {at} of type {wanted}")
}
