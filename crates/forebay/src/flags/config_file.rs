//! The file that `--config` names: a YAML mapping from the names of flags to their values.
//!
//! Lists may be sequences, `feature-gates` a mapping. Unknown names are errors, so that a slip is never
//! ignored.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::layers::{Layer, Origin};
use super::nearest::nearest;
use super::spec::{Flag, FlagType};
use super::table;
use crate::error::Error;

/// A page of flags is a few KiB; more than this is another file.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Reads the file as a layer.
///
/// # Errors
/// It cannot be read, is not such a mapping, or names an unknown flag.
pub fn read(path: &Path) -> Result<Layer, Error> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(Error::file("read configuration file", path))?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Layer, Error> {
    let wrong = |reason: String| Error::ConfigFile { path: path.to_owned(), reason };
    if text.len() as u64 > CONFIG_BYTES_MAX {
        return Err(wrong(format!("larger than {CONFIG_BYTES_MAX} bytes")));
    }
    let entries: Entries = if is_blank(text) {
        Entries::default()
    } else {
        serde_saphyr::from_str(text).map_err(|cause| wrong(first_line(&cause.to_string())))?
    };
    let mut layer = Layer::new(Origin::File(path.to_owned()));
    for (name, values) in entries.0 {
        let flag = known(&name).map_err(wrong)?;
        for value in spelled(flag, values).map_err(wrong)? {
            layer.add(flag, value);
        }
    }
    Ok(layer)
}

/// Nothing but comments is an empty mapping, not a null.
fn is_blank(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#') || line == "---")
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn known(name: &str) -> Result<&'static Flag, String> {
    if name == "config" {
        return Err("config cannot be set in the file that it names".to_owned());
    }
    table::find(name).ok_or_else(|| {
        let near = nearest(name, table::all().map(|flag| flag.name).filter(|near| *near != "config"));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        format!("unknown flag: {name}{hint}")
    })
}

/// The values as they would be typed. An empty sequence sets the flag to nothing.
fn spelled(flag: &'static Flag, values: Values) -> Result<Vec<String>, String> {
    match (values, flag.kind) {
        (Values::One(value), _) => Ok(vec![value]),
        (Values::Many(values), FlagType::List) => {
            Ok(if values.is_empty() { vec![String::new()] } else { values })
        }
        (Values::Many(values), FlagType::Each) => Ok(values),
        (Values::Pairs(pairs), FlagType::List) => {
            Ok(pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
        }
        (Values::Pairs(_), FlagType::Each) => Err(format!("{}: not a mapping", flag.name)),
        (Values::Many(_) | Values::Pairs(_), FlagType::Bool | FlagType::One) => {
            Err(format!("{}: takes one value", flag.name))
        }
    }
}

/// The file's entries in its own order.
#[derive(Default)]
struct Entries(Vec<(String, Values)>);

enum Values {
    One(String),
    Many(Vec<String>),
    Pairs(Vec<(String, String)>),
}

/// A scalar as the text that a flag would have.
struct Scalar(String);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping from the names of flags to their values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValuesVisitor)
    }
}

struct ValuesVisitor;

macro_rules! visit_scalars {
    ($wrap:expr) => {
        fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
            Ok($wrap(value.to_string()))
        }
        fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
            Ok($wrap(value.to_string()))
        }
        fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
            Ok($wrap(value.to_string()))
        }
        fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
            Ok($wrap(value.to_string()))
        }
        fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
            Ok($wrap(value.to_owned()))
        }
    };
}

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a sequence of values or a mapping of values")
    }

    visit_scalars!(Values::One);

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Values, A::Error> {
        let mut values = Vec::new();
        while let Some(Scalar(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Values::Many(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
        let mut pairs = Vec::new();
        while let Some((name, Scalar(value))) = map.next_entry()? {
            pairs.push((name, value));
        }
        Ok(Values::Pairs(pairs))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value")
    }

    visit_scalars!(Scalar);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let got = match parse(Path::new("c.yaml"), text) {
            Ok(layer) => {
                let words: Vec<_> =
                    layer.iter().map(|(name, given)| format!("{name}={}", given.values.join("|"))).collect();
                words.join(" ")
            }
            Err(error) => {
                assert_eq!(error.exit_code(), 2, "{text}");
                format!("ERROR {error}")
            }
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn every_shape_of_value_is_read_as_if_typed() {
        let rows = [
            ("", ""),
            ("# nothing\n---\n", ""),
            ("data-dir: ./x\nsecure-port: 0\n", "data-dir=./x secure-port=0"),
            ("data-dir: ''\n", "data-dir="),
            ("anonymous-auth: false\nv: 4\n", "anonymous-auth=false v=4"),
            ("event-ttl: 1h\ntoken-auth-file: \"a b\"\n", "event-ttl=1h token-auth-file=a b"),
            ("api-audiences: [a, 'b,c']\n", "api-audiences=a|b|c"),
            ("api-audiences: a,b\n", "api-audiences=a|b"),
            ("api-audiences: []\n", "api-audiences="),
            ("service-account-key-file:\n- a,b\n- c\n", "service-account-key-file=a,b|c"),
            (
                "feature-gates:\n  WatchList: true\n  AllAlpha: false\n",
                "feature-gates=WatchList=true|AllAlpha=false",
            ),
            (
                "tls-sni-cert-key:\n- a.crt,a.key:a.test,*.b.test\n- b.crt,b.key\ntls-curve-preferences: [23, 29]\n",
                "tls-curve-preferences=23|29 tls-sni-cert-key=a.crt,a.key:a.test,*.b.test|b.crt,b.key",
            ),
            ("tls-sni-cert-key: []\nallow-privileged: false\n", "allow-privileged=false"),
            (
                "strict-transport-security-directives: max-age=1,preload\n",
                "strict-transport-security-directives=max-age=1|preload",
            ),
            ("{\"data-dir\": \"x\"}", "data-dir=x"),
        ];
        for (text, want) in rows {
            check(text, want);
        }
    }

    #[test]
    fn what_is_no_mapping_of_flags_is_an_error() {
        let rows = [
            (
                "data-dri: x\n",
                "ERROR configuration file c.yaml: unknown flag: data-dri; did you mean data-dir?",
            ),
            (
                "dataDir: x\n",
                "ERROR configuration file c.yaml: unknown flag: dataDir; did you mean data-dir?",
            ),
            ("zzz: x\n", "ERROR configuration file c.yaml: unknown flag: zzz"),
            (
                "config: x\n",
                "ERROR configuration file c.yaml: config cannot be set in the file that it names",
            ),
            ("data-dir: [a]\n", "ERROR configuration file c.yaml: data-dir: takes one value"),
            ("data-dir: {a: b}\n", "ERROR configuration file c.yaml: data-dir: takes one value"),
            (
                "service-account-issuer: {a: b}\n",
                "ERROR configuration file c.yaml: service-account-issuer: not a mapping",
            ),
        ];
        for (text, want) in rows {
            check(text, want);
        }
        for text in [
            "- a\n",
            "x",
            "data-dir: x\ndata-dir: y\n",
            "data-dir: [\n",
            "api-audiences: [[a]]\n",
            "data-dir:\n",
            "v: ~\n",
        ] {
            let error = parse(Path::new("c.yaml"), text).expect_err(text);
            assert!(matches!(error, Error::ConfigFile { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused() {
        let text = format!("data-dir: {}\n", "x".repeat(CONFIG_BYTES_MAX as usize));
        let error = parse(Path::new("c.yaml"), &text).expect_err("too large");
        assert_eq!(error.to_string(), "configuration file c.yaml: larger than 1048576 bytes");
    }
}
