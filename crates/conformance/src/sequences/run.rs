//! Sends a sequence to both servers, step by step, and compares.
//!
//! In: a [`Pair`], a kind, a sequence, a name of its own. Out: the first step whose answers differ. The
//! object is gone afterwards. Never: the next step before both answered.

use std::time::Duration;

use forebay_rt::Clock;
use http::Method;
use serde_json::{Value, json};

use super::canonical::Canonical;
use super::kinds::WrittenKind;
use super::request;
use super::step::{Action, Sequence, Step};
use crate::diff;
use crate::pair::{Pair, Peer, RawAnswer, Request};

/// How often a custom kind is looked at until it is served; a look takes half a millisecond.
const LOOKS_MAX: usize = 60_000;
/// Longer than the seconds in which managedFields count.
const PAUSE: Duration = Duration::from_millis(1_100);
const JSON: &str = "application/json";

/// What came of one sequence.
#[derive(Debug, Default)]
pub struct Compared {
    pub mismatch: Option<Mismatch>,
    /// The codes of kube-apiserver's answers, a step each: few that are written, or refused, say little.
    pub codes: Vec<u16>,
}

/// Where two servers part.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// `apply: .metadata.managedFields.fieldsV1.f:data`: the sort of the step, the first place that differs.
    pub category: String,
    pub ours: String,
    pub theirs: String,
    /// The request of the step.
    pub request: String,
    /// The number of the step.
    pub(super) step: usize,
}

/// Makes the namespaces and the custom kinds at both servers.
///
/// # Errors
/// What one of them did not take.
pub async fn prepare(pair: &Pair, kinds: &[WrittenKind]) -> Result<(), String> {
    for peer in [&pair.ours, &pair.theirs] {
        for kind in kinds {
            if let Some(definition) = kind.definition() {
                let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
                made(peer, path, &definition).await?;
            }
            if let Some(namespace) = kind.namespace() {
                made(peer, "/api/v1/namespaces", &json!({ "metadata": { "name": namespace } })).await?;
            }
        }
        for kind in kinds {
            for version in 0..kind.versions.len() {
                served(peer, &kind.collection(version)).await?;
            }
        }
    }
    Ok(())
}

async fn made(peer: &Peer, path: &str, object: &Value) -> Result<(), String> {
    match peer.send(Method::POST, path, Some(object)).await? {
        answer if answer.code == 201 => Ok(()),
        answer => Err(format!("{path}: {}: {}", answer.code, answer.body)),
    }
}

async fn served(peer: &Peer, path: &str) -> Result<(), String> {
    for _ in 0..LOOKS_MAX {
        if peer.send(Method::GET, path, None).await?.code == 200 {
            return Ok(());
        }
    }
    Err(format!("{path} is never served"))
}

/// Sends `sequence` for an object `name`, which nobody else writes.
///
/// # Errors
/// What kept a request from being answered.
pub async fn run(
    pair: &Pair,
    kind: &WrittenKind,
    sequence: &Sequence,
    name: &str,
) -> Result<Compared, String> {
    let mut one = Side::new(&pair.ours, kind, name, sequence.pauses);
    let mut other = Side::new(&pair.theirs, kind, name, sequence.pauses);
    let found = steps(&mut one, &mut other, sequence).await;
    tokio::try_join!(one.clear(), other.clear())?;
    found
}

async fn steps(one: &mut Side<'_>, other: &mut Side<'_>, sequence: &Sequence) -> Result<Compared, String> {
    let mut outcome = Compared::default();
    for (at, step) in sequence.steps.iter().enumerate() {
        if sequence.pauses && at > 0 {
            Clock::system().sleep(PAUSE).await;
        }
        let (ours, theirs) = tokio::try_join!(one.step(step), other.step(step))?;
        outcome.codes.push(theirs.code);
        if ours.text != theirs.text {
            outcome.mismatch = Some(mismatch(&step.sort(), at, ours, theirs));
            return Ok(outcome);
        }
        // What the answer does not show is asked for.
        let is_last = at + 1 == sequence.steps.len();
        if is_last || step.dry_run || matches!(step.action, Action::Scale(..) | Action::Delete { .. }) {
            let (ours, theirs) = tokio::try_join!(one.look(step.version), other.look(step.version))?;
            if ours.text != theirs.text {
                outcome.mismatch = Some(mismatch(&format!("after {}", step.sort()), at, ours, theirs));
                return Ok(outcome);
            }
        }
    }
    Ok(outcome)
}

struct Said {
    code: u16,
    text: String,
    request: Request,
}

/// One server in one sequence.
struct Side<'a> {
    peer: &'a Peer,
    kind: &'a WrittenKind,
    name: &'a str,
    canonical: Canonical,
    /// The object as it was shown last, unless it is gone.
    last: Option<Value>,
}

impl<'a> Side<'a> {
    fn new(peer: &'a Peer, kind: &'a WrittenKind, name: &'a str, keeps_order: bool) -> Side<'a> {
        Side { peer, kind, name, canonical: Canonical::new(keeps_order), last: None }
    }

    async fn step(&mut self, step: &Step) -> Result<Said, String> {
        let version = &self.kind.versions[step.version];
        if self.last.as_ref().is_some_and(|last| last["apiVersion"] != version.as_str()) {
            self.look(step.version).await?;
        }
        self.settle(step.version).await?;
        let request = request::of_step(self.kind, step, self.name, self.last.as_ref());
        let is_kept = !step.dry_run && !matches!(step.action, Action::Scale(..));
        self.ask(request, is_kept).await
    }

    /// Waits until the server's cache has what was written last. kube-apiserver judges a write on what is
    /// cached, and what it warned of stays said where it then judges what is there.
    async fn settle(&self, version: usize) -> Result<(), String> {
        let revision = self.last.as_ref().and_then(|last| last["metadata"]["resourceVersion"].as_str());
        let Some(revision) = revision else { return Ok(()) };
        let mut request = request::get(self.kind, version, self.name);
        request.path.push_str(&format!("?resourceVersion={revision}"));
        self.peer.ask(&request, JSON).await.map(drop)
    }

    async fn look(&mut self, version: usize) -> Result<Said, String> {
        let request = request::get(self.kind, version, self.name);
        let said = self.ask(request, true).await?;
        if said.text.starts_with("404") {
            self.last = None;
        }
        Ok(said)
    }

    async fn ask(&mut self, request: Request, is_kept: bool) -> Result<Said, String> {
        let answer = self.peer.ask(&request, JSON).await?;
        if is_kept && answer.code < 300 {
            self.last = object(&answer).filter(|object| object["kind"] == self.kind.kind.as_str());
        }
        Ok(Said { code: answer.code, text: self.canonical.text(&answer), request })
    }

    async fn clear(&self) -> Result<(), String> {
        let answer = self.peer.ask(&request::delete(self.kind, self.name), JSON).await?;
        let finalizers = object(&answer).map(|object| object["metadata"]["finalizers"].is_array());
        if finalizers == Some(true) {
            self.peer.ask(&request::release(self.kind, self.name), JSON).await?;
        }
        Ok(())
    }
}

fn object(answer: &RawAnswer) -> Option<Value> {
    serde_json::from_slice(&answer.body).ok()
}

fn mismatch(sort: &str, step: usize, ours: Said, theirs: Said) -> Mismatch {
    let body = String::from_utf8_lossy(&theirs.request.body).into_owned();
    let request = format!("{} {} {body}", theirs.request.method, theirs.request.path);
    let place = place(&ours.text, &theirs.text);
    Mismatch { category: format!("{sort}: {place}"), ours: ours.text, theirs: theirs.text, request, step }
}

/// Begins and ends the name of an entry, so that it can be told from a field's.
const OWNER: char = '\u{0}';

/// The first place where two answers differ, without the values.
fn place(ours: &str, theirs: &str) -> String {
    let parts = |text: &str| -> Option<(String, String, Value)> {
        let (head, body) = text.split_once("] ")?;
        let (code, warnings) = head.split_once(' ')?;
        let mut body = serde_json::from_str(body).unwrap_or_else(|_| body.into());
        by_manager(&mut body);
        Some((code.to_owned(), warnings.to_owned(), body))
    };
    let (Some(one), Some(other)) = (parts(ours), parts(theirs)) else { return "body".to_owned() };
    if one.0 != other.0 {
        return format!("code {} for {}", one.0, other.0);
    }
    let lines = diff::lines("", &one.2, &other.2);
    match lines.first() {
        Some(line) => {
            let place = line.split_once(": ").map_or(line.as_str(), |(place, _)| place);
            // Whose fields they are does not matter.
            match place.split_once(OWNER) {
                Some((above, rest)) => {
                    format!("{above}{}", rest.split_once(OWNER).map_or("", |(_, rest)| rest))
                }
                None => place.to_owned(),
            }
        }
        None if one.1 != other.1 => "warnings".to_owned(),
        None => "order of members or spelling".to_owned(),
    }
}

/// Makes a map of the entries of managedFields, so that equals are compared.
fn by_manager(body: &mut Value) {
    let Some(Value::Array(entries)) = body.pointer_mut("/metadata/managedFields").map(Value::take) else {
        return;
    };
    let name = |entry: &Value| {
        let parts = ["manager", "operation", "apiVersion", "subresource"];
        let owner = parts.map(|part| entry[part].as_str().unwrap_or_default()).join(" ");
        format!("{OWNER}{owner}{OWNER}")
    };
    let named = entries.iter().map(|entry| (name(entry), entry.clone()));
    body["metadata"]["managedFields"] = Value::Object(named.collect());
}
