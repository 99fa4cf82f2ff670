//! One client's watch held against the model: every event of its selection once, in order, as it happened;
//! bookmarks that cover no event that was not sent; an initial state that is one.
//!
//! In: frames as they are on the wire. Out: what was said, or what is wrong with it.

use std::rc::Rc;

use serde_json::Value;

use crate::history::History;
use crate::resources::Selection;

/// See the module's doc.
pub struct Follower {
    pub selection: Selection,
    /// The newest resourceVersion that this client was told; `None` before the first.
    pub revision: Option<u64>,
    /// Of which past of the store that is.
    pub epoch: u64,
    // Where in the history of the resource the next event is looked for.
    place: usize,
    // Objects of the initial state that came so far, while it is coming.
    initial: Option<Vec<(Rc<str>, u64, Value)>>,
    // The initial state must not be older.
    floor: u64,
}

/// What a frame said.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    Initial,
    InitialEnd,
    /// Whether only the selector made it an ADDED or a DELETED.
    Event {
        transition: bool,
    },
    Bookmark,
    /// The ERROR event: its reason.
    Error(String),
}

impl Follower {
    pub fn new(selection: Selection) -> Follower {
        Follower { selection, revision: None, epoch: 0, place: 0, initial: None, floor: 0 }
    }

    /// A watch begins after `revision`.
    pub fn begin_after(&mut self, history: &History, revision: u64) {
        self.revision = Some(revision);
        self.place = history.place_after(self.selection.resource, revision);
        self.initial = None;
    }

    /// A watch begins with the state at `floor` or later.
    pub fn begin_with_state(&mut self, floor: u64) {
        (self.revision, self.initial, self.floor) = (None, Some(Vec::new()), floor);
    }

    /// Whether there are events that it should have and has not.
    pub fn lags(&self, history: &History) -> Option<String> {
        if self.initial.is_some() {
            return Some(format!("{:?} has no initial state yet", self.selection));
        }
        let (next, _) = history.next(&self.selection, self.place)?;
        Some(format!("{:?} waits for {} {}@{}", self.selection, next.kind, next.key, next.revision))
    }

    /// # Errors
    /// What is wrong with the frame.
    pub fn hear(&mut self, history: &History, frame: &Value) -> Result<Said, String> {
        let (kind, object) = (frame["type"].as_str().unwrap_or(""), &frame["object"]);
        if kind == "ERROR" {
            return Ok(Said::Error(object["reason"].as_str().unwrap_or("").to_string()));
        }
        let revision = revision_of(object).ok_or_else(|| format!("no resourceVersion: {frame}"))?;
        if revision > history.visible() {
            return Err(format!("{kind} of {revision}, the store is at {}", history.visible()));
        }
        match (kind, &mut self.initial) {
            ("BOOKMARK", Some(_)) => {
                let end = &object["metadata"]["annotations"]["k8s.io/initial-events-end"];
                if end != "true" {
                    return Err(format!("a bookmark before the end of the initial state: {frame}"));
                }
                self.end_initial(history, revision).map(|()| Said::InitialEnd)
            }
            ("ADDED", Some(initial)) => {
                let key = key_of(&self.selection, object);
                if initial.last().is_some_and(|(last, ..)| *last >= key) {
                    return Err(format!("the initial state is not in order: {key}"));
                }
                initial.push((key, revision, object.clone()));
                Ok(Said::Initial)
            }
            (_, Some(_)) => Err(format!("{kind} within the initial state")),
            ("BOOKMARK", None) => self.bookmark(history, revision).map(|()| Said::Bookmark),
            (_, None) => self.event(history, kind, revision, object),
        }
    }

    fn end_initial(&mut self, history: &History, revision: u64) -> Result<(), String> {
        if revision < self.floor {
            return Err(format!("the initial state is of {revision}, asked for {} or later", self.floor));
        }
        let got = self.initial.take().unwrap_or_default();
        same_state(history, &self.selection, revision, &got)?;
        self.begin_after(history, revision);
        Ok(())
    }

    fn bookmark(&mut self, history: &History, revision: u64) -> Result<(), String> {
        if let Some((missed, _)) = history.next(&self.selection, self.place)
            && missed.revision <= revision
        {
            return Err(format!(
                "a bookmark of {revision} before {} {}@{}",
                missed.kind, missed.key, missed.revision
            ));
        }
        if self.revision.is_some_and(|before| revision < before) {
            return Err(format!("a bookmark of {revision} after {:?}", self.revision));
        }
        self.begin_after(history, revision);
        Ok(())
    }

    fn event(
        &mut self,
        history: &History,
        kind: &str,
        revision: u64,
        object: &Value,
    ) -> Result<Said, String> {
        let key = key_of(&self.selection, object);
        let Some((expected, behind)) = history.next(&self.selection, self.place) else {
            return Err(format!("{kind} {key}@{revision} where nothing is to come"));
        };
        if (expected.kind, &expected.key, expected.revision) != (kind, &key, revision) {
            return Err(format!(
                "{kind} {key}@{revision} where {} {}@{} is to come",
                expected.kind, expected.key, expected.revision
            ));
        }
        same_object(object, &expected.value, revision)?;
        let entry = &history.entries(self.selection.resource)[behind - 1];
        let whole = match kind {
            "ADDED" => entry.previous.is_none(),
            "DELETED" => entry.current.is_none(),
            _ => true,
        };
        (self.place, self.revision) = (behind, Some(revision));
        Ok(Said::Event { transition: !whole })
    }
}

/// Holds `got` against the state of `selection` at `revision`.
///
/// # Errors
/// What is different.
pub fn same_state(
    history: &History,
    selection: &Selection,
    revision: u64,
    got: &[(Rc<str>, u64, Value)],
) -> Result<(), String> {
    let state = history.state(selection, revision);
    let keys = |keys: Vec<String>| keys.join(" ");
    let shown = keys(got.iter().map(|(key, revision, _)| format!("{key}@{revision}")).collect());
    let real = keys(state.iter().map(|(key, version)| format!("{key}@{}", version.revision)).collect());
    if shown != real {
        return Err(format!("{selection:?} at {revision} is [{real}], not [{shown}]"));
    }
    for ((_, revision, object), version) in got.iter().zip(state.values()) {
        same_object(object, &version.value, *revision)?;
    }
    Ok(())
}

/// Holds an object that was shown against what was stored.
///
/// # Errors
/// Both, when they are not the same.
pub fn same_object(shown: &Value, stored: &Value, revision: u64) -> Result<(), String> {
    let bare = |value: &Value| {
        let mut value = value.clone();
        if let Some(members) = value.as_object_mut() {
            members.remove("kind");
            members.remove("apiVersion");
        }
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        value
    };
    if bare(shown) == bare(stored) && revision_of(shown) == Some(revision) {
        return Ok(());
    }
    Err(format!("shown is {shown}, stored was {stored} at {revision}"))
}

/// `metadata.resourceVersion`.
pub fn revision_of(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// The storage key of an object that was shown.
pub fn key_of(selection: &Selection, object: &Value) -> Rc<str> {
    let part = |name: &str| object["metadata"][name].as_str().unwrap_or("");
    Rc::from(selection.resource.key(part("namespace"), part("name")))
}
