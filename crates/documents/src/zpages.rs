//! `/statusz` and `/flagz`: what this process is and what it was told, for people and for programs.
//!
//! In: flags, a version, the time of the start; the `Accept` header. Out: text, or JSON of
//! `config.k8s.io`. Never: who may read it; a secret, of which no flag has one.
//!
//! Source: apiserver v0.36.3 `server/statusz`, `server/flagz`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use forebay_apimachinery::accept::{Media, parse_accept};
use jiff::Timestamp;
use serde_json::{Value, json};

/// What both are made of.
#[derive(Clone, Debug, Default)]
pub struct Zpages {
    /// Flags by name, without dashes, each as it counts.
    pub flags: BTreeMap<String, String>,
    /// `1.36.3`
    pub version: String,
    /// `1.36`
    pub emulated: String,
    /// When the process was started, seconds since the Unix epoch.
    pub started: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zpage {
    Statusz,
    Flagz,
}

/// What a client wants of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageForm {
    Text,
    /// JSON or YAML of that version.
    Structured(Media, &'static str),
}

const GROUP: &str = "config.k8s.io";
/// The first is the older one.
const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
/// What the process is called here.
const COMPONENT: &str = "apiserver";
const GO_VERSION: &str = "none (Rust)";
/// The types that a page comes in.
pub const TYPES: [&str; 3] = ["application/json", "application/yaml", "text/plain"];
/// What the text of a page is cut up by: another one each time, so that nobody relies on it.
pub const DELIMITERS: [&str; 4] = [":", ": ", "=", " "];
/// What is the API's and no place to look for faults.
const NOT_FOR_DEBUGGING: [&str; 5] = ["/apis", "/api", "/openid", "/openapi", "/.well-known"];

impl Zpage {
    pub const fn name(self) -> &'static str {
        match self {
            Zpage::Statusz => "statusz",
            Zpage::Flagz => "flagz",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Zpage::Statusz => "Statusz",
            Zpage::Flagz => "Flagz",
        }
    }

    /// The form that a client takes; none if it takes none that there is.
    pub fn wanted(self, accept: Option<&str>) -> Option<PageForm> {
        let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
            return Some(PageForm::Text);
        };
        for clause in parse_accept(accept) {
            if ["stream", "sv"].iter().any(|name| clause.param(name).is_some()) {
                continue;
            }
            let asked = ["as", "g", "v"].map(|name| clause.param(name));
            if let [Some(kind), Some(GROUP), Some(version)] = asked
                && kind == self.kind()
                && let Some(version) = VERSIONS.into_iter().find(|known| *known == version)
                && let Some(media) = [Media::Json, Media::Yaml].into_iter().find(|media| {
                    let (own, subtype) = media.content_type().split_once('/').unwrap_or_default();
                    clause.takes(own, subtype)
                })
            {
                return Some(PageForm::Structured(media, version));
            }
            if clause.takes("text", "plain") && asked == [None; 3] {
                return Some(PageForm::Text);
            }
        }
        None
    }

    /// What a client is told of a version that is on its way out.
    pub fn warning(self, version: &str) -> Option<String> {
        (version == VERSIONS[0]).then(|| {
            format!("This version of the {} endpoint is deprecated. Please use a newer version.", self.name())
        })
    }

    /// As it is sent: `application/json;g=config.k8s.io;v=v1beta1;as=Statusz`.
    pub fn content_type(self, media: Media, version: &str) -> String {
        format!("{};g={GROUP};v={version};as={}", media.content_type(), self.kind())
    }
}

impl Zpages {
    /// The page as JSON.
    ///
    /// - `paths`: all that are served beside the API's.
    pub fn json<'p>(
        &self,
        page: Zpage,
        version: &str,
        now: Timestamp,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Vec<u8> {
        let mut object = json!({
            "kind": page.kind(), "apiVersion": format!("{GROUP}/{version}"), "metadata": { "name": COMPONENT },
        });
        match page {
            Zpage::Statusz => {
                object["startTime"] = json!(self.started().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
                object["uptimeSeconds"] = json!(self.uptime(now));
                object["goVersion"] = json!(GO_VERSION);
                object["binaryVersion"] = json!(self.version);
                object["emulationVersion"] = json!(self.emulated);
                object["paths"] = folders(paths).into_iter().collect::<Value>();
            }
            Zpage::Flagz => object["flags"] = json!(self.flags),
        }
        object.to_string().into_bytes()
    }

    /// The page as text.
    ///
    /// - `delimiter`: one of [`DELIMITERS`].
    pub fn text<'p>(
        &self,
        page: Zpage,
        delimiter: &str,
        now: Timestamp,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> String {
        let mut text = format!(
            "\n{COMPONENT} {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting \
             compatibility guarantees and is for debugging purposes only.\n",
            page.name()
        );
        match page {
            Zpage::Statusz => {
                let up = self.uptime(now);
                let up = format!("{} hr {:02} min {:02} sec", up / 3_600, up / 60 % 60, up % 60);
                let started = self.started().strftime("%a %b %e %H:%M:%S UTC %Y").to_string();
                let paths: Vec<String> = folders(paths).into_iter().collect();
                text.push('\n');
                for (name, value) in [
                    ("Started", &*started),
                    ("Up", &*up),
                    ("Go version", GO_VERSION),
                    ("Binary version", &*self.version),
                    ("Emulation version", &*self.emulated),
                    ("Paths", &*paths.join(" ")),
                ] {
                    // A String takes every write.
                    let _ = writeln!(text, "{name}{delimiter} {value}");
                }
            }
            Zpage::Flagz => {
                for (name, value) in &self.flags {
                    let _ = writeln!(text, "{name}{delimiter}{value}");
                }
            }
        }
        text
    }

    fn started(&self) -> Timestamp {
        Timestamp::from_second(self.started).unwrap_or_default()
    }

    fn uptime(&self, now: Timestamp) -> i64 {
        now.as_second().saturating_sub(self.started).max(0)
    }
}

/// The first part of each path, in order.
fn folders<'p>(paths: impl IntoIterator<Item = &'p str>) -> BTreeSet<String> {
    let first = |path: &'p str| path.split('/').nth(1).filter(|first| !first.is_empty());
    let all = paths.into_iter().filter_map(first).map(|first| format!("/{first}"));
    // Few: five names.
    all.filter(|folder| !NOT_FOR_DEBUGGING.contains(&folder.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Zpages {
        Zpages {
            flags: BTreeMap::from([("v".into(), "0".into()), ("audit-log-path".into(), "-".into())]),
            version: "1.36.3".into(),
            emulated: "1.36".into(),
            started: 1_700_000_000,
        }
    }

    const PATHS: [&str; 6] = ["/", "/apis/apps", "/livez", "/livez/etcd", "/metrics/slis", "/flagz"];

    #[test]
    fn a_page_is_text_unless_its_own_kind_is_asked_for() {
        let wanted = |accept: &str| Zpage::Statusz.wanted(Some(accept));
        let json = |version| Some(PageForm::Structured(Media::Json, version));
        for text in ["", " ", "*/*", "text/plain", "text/*", "application/json, text/plain", "text/html,*/*"]
        {
            assert_eq!(wanted(text), Some(PageForm::Text), "{text}");
        }
        assert_eq!(Zpage::Flagz.wanted(None), Some(PageForm::Text));
        assert_eq!(wanted("application/json;as=Statusz;g=config.k8s.io;v=v1beta1"), json("v1beta1"));
        assert_eq!(wanted("application/json;v=v1alpha1;g=config.k8s.io;as=Statusz"), json("v1alpha1"));
        assert_eq!(wanted("*/*;v=v1alpha1;g=config.k8s.io;as=Statusz"), json("v1alpha1"));
        let yaml = Some(PageForm::Structured(Media::Yaml, "v1beta1"));
        assert_eq!(wanted("application/yaml;v=v1beta1;g=config.k8s.io;as=Statusz"), yaml);
        for none in [
            "application/json",
            "application/json;as=Flagz;g=config.k8s.io;v=v1beta1",
            "application/json;as=Statusz;g=config.k8s.io;v=v1",
            "application/vnd.kubernetes.protobuf",
            "text/plain;as=Statusz;g=config.k8s.io;v=v1beta1",
            "text/html",
        ] {
            assert_eq!(wanted(none), None, "{none}");
        }
    }

    #[test]
    fn pages_say_what_upstream_says() {
        let now = Timestamp::from_second(1_700_000_000 + 3_723).expect("a time");
        assert_eq!(
            pages().text(Zpage::Statusz, "=", now, PATHS),
            "\napiserver statusz\nWarning: This endpoint is not meant to be machine parseable, has no formatting \
             compatibility guarantees and is for debugging purposes only.\n\nStarted= Tue Nov 14 22:13:20 UTC \
             2023\nUp= 1 hr 02 min 03 sec\nGo version= none (Rust)\nBinary version= 1.36.3\nEmulation version= \
             1.36\nPaths= /flagz /livez /metrics\n"
        );
        assert!(pages().text(Zpage::Flagz, ": ", now, []).ends_with("only.\naudit-log-path: -\nv: 0\n"));
        let json = |page| -> Value {
            serde_json::from_slice(&pages().json(page, "v1beta1", now, PATHS)).expect("JSON")
        };
        assert_eq!(
            json(Zpage::Statusz),
            json!({
                "kind": "Statusz", "apiVersion": "config.k8s.io/v1beta1", "metadata": { "name": "apiserver" },
                "startTime": "2023-11-14T22:13:20Z", "uptimeSeconds": 3723, "goVersion": "none (Rust)",
                "binaryVersion": "1.36.3", "emulationVersion": "1.36", "paths": ["/flagz", "/livez", "/metrics"],
            })
        );
        assert_eq!(json(Zpage::Flagz)["flags"], json!({ "audit-log-path": "-", "v": "0" }));
        assert!(Zpage::Flagz.warning("v1beta1").is_none() && Zpage::Flagz.warning("v1alpha1").is_some());
    }
}
