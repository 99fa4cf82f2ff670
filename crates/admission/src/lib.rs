//! What stands between a valid write and the store: plugins that fill in what a client leaves out and refuse
//! what is valid and yet may not be.
//!
//! In: a write's attributes, its object, and what may be read by a trait. Out: the object filled in, causes,
//! or a refusal. A plugin is one file in `plugins/` and one line in their list. Never: commits; knows a
//! registry, a store, HTTP.

mod chain;
mod elsewhere;
mod optional;
mod plugin;
mod plugins;
mod ranges_looked_for;
mod settings;

pub use chain::Admission;
pub use elsewhere::KindsElsewhere;
pub use forebay_pod_security::SecurityConfiguration;
pub use forebay_quota::LimitedResources;
pub use plugin::{
    AdmissionStep, Admitted, KindServed, Lookup, Note, Plugin, PluginTimes, ReadFrom, Switch, Tools,
    WriteAttributes,
};
pub use plugins::event_rates::EventRates;
pub use plugins::namespace_lifecycle::judge_namespace;
pub use ranges_looked_for::RangesLookedFor;
pub use settings::{DefaultTolerations, LostNodes, NodeSelectors, PluginSettings};
