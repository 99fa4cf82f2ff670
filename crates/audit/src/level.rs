//! How much of a request is noted, and when.
//!
//! In: the names of a policy. Out: levels in order, sets of stages. Never: anything of a request.
//!
//! Source: apiserver v0.36.3 `pkg/apis/audit/v1/types.go`.

/// How much of a request is noted, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditLevel {
    /// Nothing.
    #[default]
    None,
    /// Who, what, when, and what came of it.
    Metadata,
    /// What was sent as well.
    Request,
    /// What was answered as well.
    RequestResponse,
}

/// When something is noted of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditStage {
    /// As soon as it is known who asks.
    RequestReceived,
    /// Once the head of a long answer is known, before its body.
    ResponseStarted,
    /// Once nothing more is sent.
    ResponseComplete,
    /// The server has failed at it.
    Panic,
}

/// Some of the stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl AuditLevel {
    pub const ALL: [AuditLevel; 4] =
        [AuditLevel::None, AuditLevel::Metadata, AuditLevel::Request, AuditLevel::RequestResponse];

    pub fn named(name: &str) -> Option<AuditLevel> {
        AuditLevel::ALL.into_iter().find(|level| level.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            AuditLevel::None => "None",
            AuditLevel::Metadata => "Metadata",
            AuditLevel::Request => "Request",
            AuditLevel::RequestResponse => "RequestResponse",
        }
    }
}

impl AuditStage {
    pub const ALL: [AuditStage; 4] = [
        AuditStage::RequestReceived,
        AuditStage::ResponseStarted,
        AuditStage::ResponseComplete,
        AuditStage::Panic,
    ];

    pub fn named(name: &str) -> Option<AuditStage> {
        AuditStage::ALL.into_iter().find(|stage| stage.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            AuditStage::RequestReceived => "RequestReceived",
            AuditStage::ResponseStarted => "ResponseStarted",
            AuditStage::ResponseComplete => "ResponseComplete",
            AuditStage::Panic => "Panic",
        }
    }
}

impl Stages {
    pub fn has(self, stage: AuditStage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    /// Those of either.
    #[must_use]
    pub fn and(self, others: Stages) -> Stages {
        Stages(self.0 | others.0)
    }
}

impl FromIterator<AuditStage> for Stages {
    fn from_iter<I: IntoIterator<Item = AuditStage>>(stages: I) -> Stages {
        stages.into_iter().fold(Stages::default(), |all, stage| Stages(all.0 | 1 << stage as u8))
    }
}
