//! Admission webhooks as data: who is called for what, what is asked, what an answer says, and the words for
//! what goes wrong.
//!
//! In: configurations as they are stored; requests, objects as text; answers. Out: webhooks that match, the
//! bytes of reviews, judgements, refusals in upstream's words. Never: does IO, reads a clock, knows who
//! stores a configuration. Who carries a review is [`Calls`], which others implement.
//!
//! ```text
//! stored configuration ─Webhook::read_all─► rules, conditions (policy::Predicates)
//! request, objects ─Review─► parts ─Calls─► Answered ─judge─► Judgement, or CallFailure
//! ```

mod answer;
mod call;
mod configuration;
pub mod conversion;
mod failure;
pub mod limits;
mod metrics;
mod plugin_metrics;
mod policy_metrics;
mod reading;
mod reinvoked;
mod review;
mod status;
mod typed;

pub use answer::{Decided, Judgement, judge};
pub use call::{Answered, Calling, Calls, NoAnswer, NobodyCalls, too_late};
pub use configuration::{ClientConfig, Destination, ReviewVersion, SideEffects, Webhook, WebhookSort};
pub use failure::{CROWDED, CallFailure, dry_run_unsupported, not_modifiable};
pub use metrics::{
    BOUNDS, CONDITION_BOUNDS, CallOutcome, Conditions, ConditionsOf, Counted, Durations, WebhookMetrics,
};
pub use plugin_metrics::{PLUGIN_BOUNDS, PluginCounted, PluginMetrics, PluginStep};
pub use policy_metrics::{POLICY_BOUNDS, PoliciesCounted, PolicyDurations, PolicyMetrics};
pub use reinvoked::Reinvoked;
pub use review::Review;
