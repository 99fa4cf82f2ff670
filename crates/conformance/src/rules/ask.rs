//! Sends a definition and its cases to both servers and compares.
//!
//! In: a [`Pair`], a definition, cases. Out: what differs, as lines. Objects are written in dry runs, but for
//! those that others take the place of; the definition is gone afterwards.

use http::Method;
use serde_json::{Value, json};

use super::search::Case;
use crate::diff;
use crate::normal::{Chosen, normal};
use crate::pair::{Answer, Pair, Peer};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACE: &str = "default";
/// How often it is looked whether a definition is served, or gone; a look takes half a millisecond.
const LOOKS_MAX: usize = 40_000;

/// A definition that both servers serve.
pub struct Served<'a> {
    pair: &'a Pair,
    definition: &'a Value,
}

/// One write's answers.
pub struct Compared {
    /// Of kube-apiserver.
    pub code: u16,
    pub lines: Vec<String>,
}

impl<'a> Served<'a> {
    /// Has both define it; what they answer differently comes back, or that both refuse.
    ///
    /// # Errors
    /// What kept a request from being answered.
    pub async fn define(
        pair: &'a Pair,
        definition: &'a Value,
    ) -> Result<Result<Served<'a>, Vec<String>>, String> {
        let send = |peer: &'a Peer| peer.send(Method::POST, DEFINITIONS, Some(definition));
        let (ours, theirs) = tokio::join!(send(&pair.ours), send(&pair.theirs));
        let (mut ours, mut theirs) = (ours?, theirs?);
        let codes = (ours.code, theirs.code);
        for answer in [&mut ours, &mut theirs].into_iter().filter(|answer| answer.code == 201) {
            // Controllers may have been there already.
            answer.body["status"] = Value::Null;
        }
        let lines = compared(ours, theirs).lines;
        let served = Served { pair, definition };
        if codes == (201, 201) && lines.is_empty() {
            served.wait().await?;
            return Ok(Ok(served));
        }
        served.remove().await?;
        Ok(Err(lines))
    }

    fn collection(&self, version: usize) -> String {
        let spec = &self.definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let version = text(&spec["versions"][version]["name"]);
        match spec["scope"] == "Namespaced" {
            true => format!("/apis/{group}/{version}/namespaces/{NAMESPACE}/{plural}"),
            false => format!("/apis/{group}/{version}/{plural}"),
        }
    }

    async fn wait(&self) -> Result<(), String> {
        let versions = self.definition["spec"]["versions"].as_array().into_iter().flatten().enumerate();
        for (at, _) in versions.filter(|(_, version)| version["served"] == true) {
            for peer in [&self.pair.ours, &self.pair.theirs] {
                until(peer, &self.collection(at), 200).await?;
            }
        }
        Ok(())
    }

    /// # Errors
    /// What kept a request from being answered.
    pub async fn remove(self) -> Result<(), String> {
        let path = format!("{DEFINITIONS}/{}", self.definition["metadata"]["name"].as_str().unwrap_or(""));
        for peer in [&self.pair.ours, &self.pair.theirs] {
            peer.send(Method::DELETE, &path, None).await?;
        }
        for peer in [&self.pair.ours, &self.pair.theirs] {
            until(peer, &path, 404).await?;
        }
        Ok(())
    }

    /// Sends a case of `version` under a name of its own.
    ///
    /// # Errors
    /// What kept a request from being answered.
    pub async fn ask(&self, version: usize, case: &Case, name: &str) -> Result<Compared, String> {
        let collection = self.collection(version);
        let (ours, theirs) = tokio::join!(
            answered(&self.pair.ours, &collection, case, name),
            answered(&self.pair.theirs, &collection, case, name)
        );
        Ok(compared(ours?, theirs?))
    }
}

async fn until(peer: &Peer, path: &str, code: u16) -> Result<(), String> {
    for _ in 0..LOOKS_MAX {
        if peer.send(Method::GET, path, None).await?.code == code {
            return Ok(());
        }
    }
    Err(format!("{path} never answers {code}"))
}

async fn answered(peer: &Peer, collection: &str, case: &Case, name: &str) -> Result<Answer, String> {
    let Some(stored) = &case.stored else {
        let path = format!("{collection}?dryRun=All");
        return peer.send(Method::POST, &path, Some(&case.object)).await;
    };
    let mut stored = stored.clone();
    stored["metadata"]["name"] = name.into();
    let mut answer = peer.send(Method::POST, collection, Some(&stored)).await?;
    let path = format!("{collection}/{name}");
    let status = format!("{path}/status");
    if answer.code == 201 && case.status {
        stored["metadata"]["resourceVersion"] = answer.body["metadata"]["resourceVersion"].clone();
        answer = peer.send(Method::PUT, &status, Some(&stored)).await?;
    }
    if answer.code >= 300 {
        return Ok(answer);
    }
    let mut object = case.object.clone();
    object["metadata"] = answer.body["metadata"].clone();
    let path = format!("{}?dryRun=All", if case.status { &status } else { &path });
    let after = peer.send(Method::PUT, &path, Some(&object)).await?;
    Ok(normal(after, &Chosen::of(&answer.body)))
}

/// What differs between two answers, where causes have no order.
fn compared(ours: Answer, theirs: Answer) -> Compared {
    let code = theirs.code;
    let [ours, theirs] = [ours, theirs].map(|answer| {
        let chosen = Chosen::of(&answer.body);
        let mut answer = normal(answer, &chosen);
        let causes = answer.body.pointer_mut("/details/causes").and_then(Value::as_array_mut);
        let count = causes.map_or(0, |causes| {
            causes.sort_by_key(Value::to_string);
            causes.len()
        });
        if count > 1 {
            // It has the causes in their order.
            answer.body["message"] = Value::Null;
        }
        answer.warnings.sort();
        json!({ "code": answer.code, "warnings": answer.warnings, "body": answer.body })
    });
    Compared { code, lines: diff::lines("", &ours, &theirs) }
}
