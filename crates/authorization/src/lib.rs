//! Who is asked for decisions, and what webhooks are asked: as pure data.
//!
//! In: an AuthorizationConfiguration as a tree, questions, what webhooks answered. Out: the chain that it
//! asks for or what is wrong with it in upstream's words; reviews as bytes, what an answer says, answers that
//! are kept, what is counted. Never: does IO or async, reads a clock, decides.
//!
//! Source: apiserver v0.36.3 `pkg/apis/apiserver`, `pkg/authorization`, `plugin/pkg/authorizer/webhook`.

mod answers;
mod conditions;
mod configuration;
pub mod limits;
mod metrics;
mod review;
mod strict;
mod validation;

pub use answers::{KeptAnswers, ReviewStatus};
pub use conditions::MatchConditions;
pub use configuration::{
    ABAC_REFUSED, AuthorizationConfiguration, AuthorizerKind, ConfiguredAuthorizer, OnWebhookError,
    ReviewVersion, WebhookAuthorizerConfig,
};
pub use metrics::{
    AuthorizationCounted, AuthorizationMetrics, CALL_BOUNDS, CONDITION_BOUNDS, DecisionCounts, Took,
    WebhookCall,
};
pub use review::{SubjectReview, status_of_answer};
pub use validation::IsFile;
