//! The scenarios: one a file, each a function of a [`Lab`] and a [`Contender`].
//!
//! In: who is measured, and how much. Out: an [`Results`], a sample a run.
//! Never: what one contender gets and the other does not.

mod avalanche;
mod conversion;
mod create;
mod curve;
mod envtest;
mod fairness;
mod fanout;
mod hostile;
mod idle;
mod informer;
mod informer_paths;
mod kep;
mod lanes;
mod list;
mod memory;
mod million;
mod outcome;
mod owners;
mod prices;
mod readers;
mod resident;
mod restart;
mod start;
mod storm;
mod watchlist;
mod webhooks;
mod whole_lists;

use crate::contender::Contender;
use crate::lab::Lab;
use crate::report::{Unit, add};
use crate::{Error, proc};
pub use avalanche::Wave;
pub use curve::{objects_name, watchers_name};
pub use outcome::Results;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    Start,
    Create,
    Restart,
    Resident,
    Owners,
    List,
    Prices,
    Storm,
    Readers,
    Watchlist,
    Envtest,
    Fanout,
    Crowd,
    Lanes,
    Idle,
    Curve,
    Million,
    Kep3157,
    Kep2340,
    Hostile,
    Informer,
    InformerPaths,
    Avalanche,
    Fairness,
    Webhooks,
    Conversion,
}

impl Scenario {
    pub const ALL: [Scenario; 26] = [
        Scenario::Start,
        Scenario::Create,
        Scenario::Restart,
        Scenario::Resident,
        Scenario::Owners,
        Scenario::List,
        Scenario::Prices,
        Scenario::Storm,
        Scenario::Readers,
        Scenario::Watchlist,
        Scenario::Envtest,
        Scenario::Fanout,
        Scenario::Crowd,
        Scenario::Lanes,
        Scenario::Idle,
        Scenario::Curve,
        Scenario::Million,
        Scenario::Kep3157,
        Scenario::Kep2340,
        Scenario::Hostile,
        Scenario::Informer,
        Scenario::InformerPaths,
        Scenario::Avalanche,
        Scenario::Fairness,
        Scenario::Webhooks,
        Scenario::Conversion,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Scenario::Start => "start",
            Scenario::Create => "create",
            Scenario::Restart => "restart",
            Scenario::Resident => "resident",
            Scenario::Owners => "owners",
            Scenario::List => "list",
            Scenario::Prices => "prices",
            Scenario::Storm => "storm",
            Scenario::Readers => "readers",
            Scenario::Watchlist => "watchlist",
            Scenario::Envtest => "envtest",
            Scenario::Fanout => "fanout",
            Scenario::Crowd => "crowd",
            Scenario::Lanes => "lanes",
            Scenario::Idle => "idle",
            Scenario::Curve => "curve",
            Scenario::Million => "million",
            Scenario::Kep3157 => "kep3157",
            Scenario::Kep2340 => "kep2340",
            Scenario::Hostile => "hostile",
            Scenario::Informer => "informer",
            Scenario::InformerPaths => "informer-paths",
            Scenario::Avalanche => "avalanche",
            Scenario::Fairness => "fairness",
            Scenario::Webhooks => "webhooks",
            Scenario::Conversion => "conversion",
        }
    }

    /// What is measured, in a line.
    pub fn about(self, lab: &Lab) -> String {
        match self {
            Scenario::Start => start::about(lab),
            Scenario::Create => create::about(lab),
            Scenario::Restart => restart::about(lab),
            Scenario::Resident => resident::about(lab),
            Scenario::Owners => owners::about(lab),
            Scenario::List => list::about(lab),
            Scenario::Prices => prices::about(lab),
            Scenario::Storm => storm::about(lab),
            Scenario::Readers => readers::about(lab),
            Scenario::Watchlist => watchlist::about(lab),
            Scenario::Envtest => envtest::about(lab),
            Scenario::Fanout => fanout::about(lab),
            Scenario::Crowd => fanout::about_crowd(lab),
            Scenario::Lanes => lanes::about(lab),
            Scenario::Idle => idle::about(lab),
            Scenario::Curve => curve::about(lab),
            Scenario::Million => million::about(lab),
            Scenario::Kep3157 => kep::about_3157(lab),
            Scenario::Kep2340 => kep::about_2340(lab),
            Scenario::Hostile => hostile::about(lab),
            Scenario::Informer => informer::about(lab),
            Scenario::InformerPaths => informer_paths::about(lab),
            Scenario::Avalanche => avalanche::about(lab),
            Scenario::Fairness => fairness::about(lab),
            Scenario::Webhooks => webhooks::about(lab),
            Scenario::Conversion => conversion::about(lab),
        }
    }

    /// Measures `who`, all runs, and how much of the machine others took meanwhile.
    pub async fn run(self, lab: &Lab, who: &Contender) -> Result<Results, Error> {
        let others = proc::Others::begin()?;
        let mut outcome = match self {
            Scenario::Start => start::run(lab, who).await?.into(),
            Scenario::Create => create::run(lab, who).await?.into(),
            Scenario::Restart => restart::run(lab, who).await?.into(),
            Scenario::Resident => resident::run(lab, who).await?.into(),
            Scenario::Owners => owners::run(lab, who).await?.into(),
            Scenario::List => list::run(lab, who).await?.into(),
            Scenario::Prices => prices::run(lab, who).await?.into(),
            Scenario::Storm => storm::run(lab, who).await?,
            Scenario::Readers => readers::run(lab, who).await?.into(),
            Scenario::Watchlist => watchlist::run(lab, who).await?.into(),
            Scenario::Envtest => envtest::run(lab, who).await?.into(),
            Scenario::Fanout => fanout::run(lab, who).await?.into(),
            Scenario::Crowd => fanout::run_crowd(lab, who).await?.into(),
            Scenario::Lanes => lanes::run(lab, who).await?.into(),
            Scenario::Idle => idle::run(lab, who).await?.into(),
            Scenario::Curve => curve::run(lab, who).await?.into(),
            Scenario::Million => million::run(lab, who).await?.into(),
            Scenario::Kep3157 => kep::run_3157(lab, who).await?.into(),
            Scenario::Kep2340 => kep::run_2340(lab, who).await?.into(),
            Scenario::Hostile => hostile::run(lab, who).await?,
            Scenario::Informer => informer::run(lab, who).await?.into(),
            Scenario::InformerPaths => informer_paths::run(lab, who).await?.into(),
            Scenario::Avalanche => avalanche::run(lab, who).await?,
            Scenario::Fairness => fairness::run(lab, who).await?,
            Scenario::Webhooks => webhooks::run(lab, who).await?.into(),
            Scenario::Conversion => conversion::run(lab, who).await?.into(),
        };
        add(&mut outcome.metrics, "CPU taken by others", Unit::Cores, others.cores()?);
        Ok(outcome)
    }
}
