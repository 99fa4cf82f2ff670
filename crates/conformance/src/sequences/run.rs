//! Sends a sequence to both servers, step by step, and compares.
//!
//! In: a [`Pair`], a kind, a sequence, a name of its own. Out: the first step whose answers differ. The
//! object is gone afterwards. Never: the next step before both answered.

use std::time::Duration;

use forebay_rt::Clock;
use http::Method;
use serde_json::{Value, json};

use super::canonical::{self, Canonical};
use super::kinds::{IN_FORCE, WrittenKind};
use super::request;
use super::step::{Action, Sequence, Step};
use crate::diff;
use crate::pair::{Pair, Peer, RawAnswer, Request};

/// How often a custom kind is looked at until it is served; a look takes half a millisecond.
const LOOKS_MAX: usize = 60_000;
/// Longer than the seconds in which managedFields count.
const PAUSE: Duration = Duration::from_millis(1_100);
/// How often a CRD is written anew while somebody else does.
const WRITES_MAX: usize = 100;
const JSON: &str = "application/json";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

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
                made(peer, DEFINITIONS, &definition).await?;
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

/// Makes each of `kinds` at both servers what it becomes, and waits until that is in force.
///
/// # Errors
/// What one of them did not take.
pub async fn redefine(pair: &Pair, kinds: &[WrittenKind]) -> Result<(), String> {
    for peer in [&pair.ours, &pair.theirs] {
        for kind in kinds {
            let Some(mut definition) = kind.redefinition() else { continue };
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{DEFINITIONS}/{name}");
            // Whoever keeps its status may write it meanwhile.
            let mut answer = None;
            for _ in 0..WRITES_MAX {
                let current = peer.send(Method::GET, &path, None).await?.body;
                definition["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
                let put = peer.send(Method::PUT, &path, Some(&definition)).await?;
                let is_over = put.code != 409;
                answer = Some(put);
                if is_over {
                    break;
                }
            }
            if let Some(refused) = answer.filter(|answer| answer.code != 200) {
                return Err(format!("{path}: {}: {}", refused.code, refused.body));
            }
        }
        for kind in kinds.iter().filter(|kind| kind.redefinition().is_some()) {
            in_force(peer, kind).await?;
        }
    }
    Ok(())
}

/// Waits until new objects get what only the later schema gives them.
async fn in_force(peer: &Peer, kind: &WrittenKind) -> Result<(), String> {
    let path = format!("{}?dryRun=All", kind.collection(0));
    let object = kind.named(&kind.base, 0, "probe");
    for _ in 0..LOOKS_MAX {
        let made = peer.send(Method::POST, &path, Some(&object)).await?;
        if made.body[IN_FORCE].is_string() {
            return Ok(());
        }
    }
    Err(format!("{path} never changes"))
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
    let mut running = Running::begin(pair, kind, sequence, name);
    running.advance(sequence.steps.len()).await?;
    running.end().await
}

/// A sequence on its way.
pub struct Running<'a> {
    sequence: &'a Sequence,
    /// Steps that were sent.
    sent: usize,
    one: Side<'a>,
    other: Side<'a>,
    outcome: Compared,
    /// Whether the objects are not alike any more.
    is_over: bool,
}

impl<'a> Running<'a> {
    /// For an object `name`, which nobody else writes.
    pub fn begin(
        pair: &'a Pair,
        kind: &'a WrittenKind,
        sequence: &'a Sequence,
        name: &'a str,
    ) -> Running<'a> {
        let side = |peer| Side::new(peer, kind, name, sequence.pauses);
        let (one, other) = (side(&pair.ours), side(&pair.theirs));
        Running { sequence, sent: 0, one, other, outcome: Compared::default(), is_over: false }
    }

    /// Sends so many steps more, up to the first whose answers differ.
    ///
    /// # Errors
    /// What kept a request from being answered.
    pub async fn advance(&mut self, steps: usize) -> Result<(), String> {
        let end = self.sent.saturating_add(steps).min(self.sequence.steps.len());
        while self.sent < end && !self.is_over {
            if self.sequence.pauses && self.sent > 0 {
                Clock::system().sleep(PAUSE).await;
            }
            let sequence = self.sequence;
            self.step(&sequence.steps[self.sent]).await?;
            self.sent += 1;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        let (ours, theirs) = tokio::try_join!(self.one.step(step), self.other.step(step))?;
        self.outcome.codes.push(theirs.code);
        self.compare(&step.sort(), ours, theirs);
        // What the answer does not show is asked for.
        let is_last = self.sent + 1 == self.sequence.steps.len();
        let shows_less = step.dry_run || matches!(step.action, Action::Scale(..) | Action::Delete { .. });
        if !self.is_over && (is_last || shows_less) {
            let version = step.version;
            let (ours, theirs) = tokio::try_join!(self.one.look(version), self.other.look(version))?;
            self.compare(&format!("after {}", step.sort()), ours, theirs);
        }
        // One of them has written what the other did not need to: from here on they are counted alike.
        if self.outcome.mismatch.is_some() {
            canonical::align(&mut self.one.canonical, &mut self.other.canonical);
        }
        Ok(())
    }

    fn compare(&mut self, sort: &str, ours: Said, theirs: Said) {
        if ours.text != theirs.text {
            let found = mismatch(sort, self.sent, ours, theirs);
            self.is_over = !self.outcome.goes_on(found);
        }
    }

    /// Takes the object away.
    ///
    /// # Errors
    /// What kept a request from being answered.
    pub async fn end(self) -> Result<Compared, String> {
        tokio::try_join!(self.one.clear(), self.other.clear())?;
        Ok(self.outcome)
    }
}

impl Compared {
    /// Notes a mismatch; whether what comes after can be compared all the same: an object that is alike but
    /// for having been written once more, or less. Of such the first is kept, unless there is a graver one.
    fn goes_on(&mut self, found: Mismatch) -> bool {
        let goes_on = canonical::without_versions(&found.ours) == canonical::without_versions(&found.theirs);
        if !goes_on || self.mismatch.is_none() {
            self.mismatch = Some(found);
        }
        goes_on
    }
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
        let body = body.replace(":<port>", ":\"<port>\"");
        let mut body = serde_json::from_str(&body).unwrap_or_else(|_| body.into());
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
