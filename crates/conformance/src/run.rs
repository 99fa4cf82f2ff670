//! Sends a kind's rows to both servers and compares.
//!
//! In: a [`Pair`], a [`Fixture`]. Out: a [`Tally`], with each answer that is not equal. Rows are dry runs;
//! only samples are stored.

use futures_util::StreamExt;
use http::Method;
use serde_json::Value;

use crate::cases::{Case, Fixture, WriteVerb};
use crate::edit::edited;
use crate::mutate;
use crate::normal::{Chosen, normal};
use crate::pair::{Answer, Pair, Peer};

/// How often a sample is looked at until a controller of kube-apiserver has judged it; a look takes half a
/// millisecond.
const LOOKS_MAX: usize = 20_000;
/// Requests in flight at each server.
const AT_ONCE: usize = 8;

/// How one kind's rows went.
#[derive(Debug, Default)]
pub struct Tally {
    pub rows: usize,
    /// Rows that kube-apiserver refused.
    pub refused: usize,
    /// Of those, the ones that ours refused in the same words.
    pub refused_alike: usize,
    pub different: Vec<Different>,
}

#[derive(Debug)]
pub struct Different {
    /// `apps/v1 deployments: create spec.replicas=-1`.
    pub case: String,
    pub ours: Answer,
    pub theirs: Answer,
}

/// Sends everything there is about `kind`.
///
/// # Errors
/// What kept a request from being answered, or a sample that kube-apiserver does not take.
pub async fn kind(pair: &Pair, kind: &Fixture) -> Result<Tally, String> {
    let (ours, theirs) = (store(&pair.ours, kind, "").await?, store(&pair.theirs, kind, "").await?);
    if theirs.code != 201 {
        return Err(format!("{}: kube-apiserver does not take the sample: {}", kind.title(), theirs.body));
    }
    settle(&pair.theirs, kind).await?;
    let mut tally = Tally::default();
    let ours_code = ours.code;
    tally.add(kind, "sample".to_owned(), ours, theirs);
    if ours_code != 201 {
        return Ok(tally);
    }
    let rows: Vec<Case> = kind.rows.iter().cloned().chain(mutate::rows(kind)).collect();
    let answers = futures_util::stream::iter(rows.iter().enumerate().map(|(at, row)| async move {
        let (one, other) = tokio::join!(send(&pair.ours, kind, row, at), send(&pair.theirs, kind, row, at));
        Ok::<_, String>((row, one?, other?))
    }));
    let answers: Vec<_> = answers.buffered(AT_ONCE).collect().await;
    for answer in answers {
        let (row, one, other) = answer?;
        tally.add(kind, row.title(), one, other);
    }
    for peer in [&pair.ours, &pair.theirs] {
        let path = format!("{}/{}", kind.collection(), kind.name);
        peer.send(Method::DELETE, &format!("{path}?gracePeriodSeconds=0"), None).await?;
    }
    Ok(tally)
}

impl Tally {
    fn add(&mut self, kind: &Fixture, row: String, mut ours: Answer, mut theirs: Answer) {
        for answer in [&mut ours, &mut theirs] {
            if kind.settles.is_some()
                && answer.code < 400
                && let Some(object) = answer.body.as_object_mut()
            {
                object.remove("status");
            }
        }
        let stored = |answer: &Answer| Chosen::of(&answer.body);
        let (ours, theirs) = (normal(ours.clone(), &stored(&ours)), normal(theirs.clone(), &stored(&theirs)));
        let (refused, alike) = (theirs.code >= 400, ours == theirs);
        self.rows += 1;
        self.refused += usize::from(refused);
        self.refused_alike += usize::from(refused && alike);
        if !alike {
            let case = format!("{}: {row}", kind.title());
            self.different.push(Different { case, ours, theirs });
        }
    }
}

/// Stores the sample, edited by `before`.
async fn store(peer: &Peer, kind: &Fixture, before: &str) -> Result<Answer, String> {
    let object = edited(&kind.sample, before)?;
    peer.send(Method::POST, &kind.collection(), Some(&object)).await
}

/// Looks until kube-apiserver's controller has judged the sample: what may be changed depends on it.
async fn settle(peer: &Peer, kind: &Fixture) -> Result<(), String> {
    let Some(condition) = &kind.settles else { return Ok(()) };
    let path = format!("{}/{}", kind.collection(), kind.name);
    for _ in 0..LOOKS_MAX {
        let stored = peer.send(Method::GET, &path, None).await?.body;
        let conditions = stored["status"]["conditions"].as_array().into_iter().flatten();
        let mut shown = conditions
            .filter_map(|found| Some(format!("{}={}", found["type"].as_str()?, found["status"].as_str()?)));
        if shown.any(|shown| shown == *condition) {
            return Ok(());
        }
    }
    Err(format!("{}: kube-apiserver never says {condition}", kind.title()))
}

async fn send(peer: &Peer, kind: &Fixture, row: &Case, at: usize) -> Result<Answer, String> {
    let collection = kind.collection();
    let subresource = match &row.operation {
        WriteVerb::Create => {
            let mut object = edited(&kind.sample, &row.edits)?;
            let is_own = object["metadata"]["name"] == kind.name.as_str();
            // The sample has that name already, and a conflict would hide what else is wrong.
            if is_own && kind.name == "conf" {
                object["metadata"]["name"] = format!("conf-{at}").into();
            }
            let path = format!("{collection}?dryRun=All&fieldValidation=Strict");
            return peer.send(Method::POST, &path, Some(&object)).await;
        }
        WriteVerb::Update(subresource) => subresource.as_deref().map(|name| format!("/{name}")),
    };
    let subresource = subresource.unwrap_or_default();
    if row.before.is_empty() {
        // Controllers of the server may have written to it since.
        let path = format!("{collection}/{}", kind.name);
        let stored = peer.send(Method::GET, &path, None).await?.body;
        let path = format!("{path}{subresource}?dryRun=All");
        let answer = peer.send(Method::PUT, &path, Some(&edited(&stored, &row.edits)?)).await?;
        return Ok(about(answer, &stored));
    }
    let name = format!("before-{at}");
    let before = format!("{};metadata.name=\"{name}\"", row.before);
    let made = store(peer, kind, &before).await?;
    if made.code != 201 {
        return Ok(made);
    }
    let path = format!("{collection}/{name}{subresource}");
    let answer =
        peer.send(Method::PUT, &format!("{path}?dryRun=All"), Some(&edited(&made.body, &row.edits)?)).await?;
    peer.send(Method::DELETE, &format!("{path}?gracePeriodSeconds=0"), None).await?;
    Ok(about(answer, &made.body))
}

/// Names what the server chose when it stored the object.
fn about(answer: Answer, stored: &Value) -> Answer {
    normal(answer, &Chosen::of(stored))
}
