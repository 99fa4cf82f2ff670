//! What a sequence is: writes of one object, each by somebody, said without what a server answered before.
//!
//! In: numbers of a kind's fields and values. Out: steps that can be taken away one by one and still be sent.
//! Never: a text of an object; `request.rs` makes it from what the server has.

use std::fmt::Write as _;

use super::kinds::WrittenKind;

/// The writes of one object.
#[derive(Debug, Clone)]
pub struct Sequence {
    pub seed: u64,
    /// The number of its kind.
    pub kind: usize,
    /// Whether the steps are seconds apart, so that times tell them apart and order entries.
    pub pauses: bool,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(super) struct Step {
    pub action: Action,
    pub edits: Vec<Edit>,
    /// Whether it goes to `status`.
    pub status: bool,
    /// The `fieldManager`.
    pub manager: Option<String>,
    /// The User-Agent.
    pub agent: Option<String>,
    /// The number of the version.
    pub version: usize,
    pub dry_run: bool,
    /// The `fieldValidation`.
    pub validation: Option<&'static str>,
    /// What it says of managedFields.
    pub managers: SentManagers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Apply { force: bool, with_base: bool, wrong: Option<Wrong> },
    Put(SentVersion),
    JsonPatch,
    MergePatch,
    StrategicPatch,
    Scale(ScaleVerb, u32),
    Delete { background: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScaleVerb {
    Put,
    Merge,
    Apply { force: bool },
}

/// The resourceVersion that an update names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentVersion {
    Current,
    Stale,
    None,
}

/// What a write says of managedFields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentManagers {
    /// An update what it read, others nothing.
    AsRead,
    /// `[]`.
    Emptied,
    /// `[{}]`.
    EmptyEntry,
    /// Another manager's name in the entry of the first by name; one of its own where there is none.
    Forged,
    /// An entry that cannot be read.
    Broken,
    /// null, or no member.
    LeftOut,
}

/// What is wrong with an apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    ManagerMissing,
    ManagerLong,
    ManagerUnprintable,
    ManagersGiven,
    VersionStale,
    UidOther,
    NameOther,
    NameMissing,
    GenerateName,
    NamespaceOther,
    KindOther,
    KindMissing,
    VersionOther,
    VersionMissing,
    TextBroken,
    MemberTwice,
    MemberUnknown,
    TypeOther,
    List,
    Null,
    MetadataNull,
    Cbor,
    Json,
}

pub(super) const WRONGS: [Wrong; 23] = [
    Wrong::ManagerMissing,
    Wrong::ManagerLong,
    Wrong::ManagerUnprintable,
    Wrong::ManagersGiven,
    Wrong::VersionStale,
    Wrong::UidOther,
    Wrong::NameOther,
    Wrong::NameMissing,
    Wrong::GenerateName,
    Wrong::NamespaceOther,
    Wrong::KindOther,
    Wrong::KindMissing,
    Wrong::VersionOther,
    Wrong::VersionMissing,
    Wrong::TextBroken,
    Wrong::MemberTwice,
    Wrong::MemberUnknown,
    Wrong::TypeOther,
    Wrong::List,
    Wrong::Null,
    Wrong::MetadataNull,
    Wrong::Cbor,
    Wrong::Json,
];

/// A field's new value, or that it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edit {
    pub field: usize,
    pub value: usize,
    pub removes: bool,
}

impl Sequence {
    /// How many steps it has.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The steps in order, a line each.
    pub fn shown(&self, kind: &WrittenKind) -> String {
        self.steps.iter().fold(String::new(), |mut text, step| {
            let _ = writeln!(text, "    {}", step.shown(kind));
            text
        })
    }
}

impl Step {
    /// What sort of write it is: differences are counted by it.
    pub(super) fn sort(&self) -> String {
        let mut text = match self.action {
            Action::Create => "create".to_owned(),
            Action::Apply { wrong: Some(wrong), .. } => format!("apply {wrong:?}"),
            Action::Apply { .. } => "apply".to_owned(),
            Action::Put(_) => "put".to_owned(),
            Action::JsonPatch => "json-patch".to_owned(),
            Action::MergePatch => "merge-patch".to_owned(),
            Action::StrategicPatch => "strategic-patch".to_owned(),
            Action::Scale(ScaleVerb::Put, _) => "put scale".to_owned(),
            Action::Scale(ScaleVerb::Merge, _) => "merge-patch scale".to_owned(),
            Action::Scale(ScaleVerb::Apply { .. }, _) => "apply scale".to_owned(),
            Action::Delete { .. } => "delete".to_owned(),
        };
        if self.status {
            text += " status";
        }
        text
    }

    fn shown(&self, kind: &WrittenKind) -> String {
        let mut text = self.sort();
        match self.action {
            Action::Apply { force, with_base, .. } => {
                text += if force { " force" } else { "" };
                text += if with_base { " +base" } else { "" };
            }
            Action::Put(version) => text += &format!(" version={version:?}"),
            Action::Scale(verb, replicas) => text += &format!(" {verb:?} replicas={replicas}"),
            Action::Delete { background } => text += &format!(" background={background}"),
            _ => {}
        }
        text += &format!(" {} by {:?}/{:?}", kind.versions[self.version], self.manager, self.agent);
        if self.dry_run {
            text += " dryRun";
        }
        if let Some(validation) = self.validation {
            text += &format!(" fieldValidation={validation}");
        }
        if self.managers != SentManagers::AsRead {
            text += &format!(" managedFields={:?}", self.managers);
        }
        for edit in &self.edits {
            let field = &kind.fields[edit.field];
            let value = &field.values[edit.value];
            match edit.removes {
                true => text += &format!("; -{} ({value})", field.text),
                false => text += &format!("; {}={value}", field.text),
            }
        }
        text
    }
}
