//! What is configured, and who has how many seats and bytes of it.
//!
//! In: objects, demand, the limit. Out: levels and schemas as they are from now on. Never: lets anybody run.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::builtin;
use crate::config::{CATCH_ALL, PriorityLevel};
use crate::configuration::Configuration;
use crate::dispatcher::Dispatcher;
use crate::level::Level;
use crate::limits::AT_STORE_MAX;
use crate::matching::Schemas;
use crate::price::{Moment, Seat};
use crate::request::State;
use crate::shares;

impl Dispatcher {
    /// These are the objects now. A level that is not among them goes once it is empty; until then it keeps
    /// its share.
    pub(crate) fn configure(&mut self, configuration: Configuration, now: Moment) {
        let Configuration { mut schemas, levels } = configuration;
        let mut wanted: BTreeMap<Arc<str>, PriorityLevel> =
            levels.into_iter().map(|level| (level.name.clone(), level)).collect();
        for level in builtin::mandatory_levels() {
            wanted.entry(level.name.clone()).or_insert(level);
        }
        schemas.retain(|schema| wanted.contains_key(&schema.level));
        for mandatory in builtin::mandatory_schemas() {
            // Few: once for each of two, when objects change.
            if !schemas.iter().any(|schema| schema.name == mandatory.name) {
                schemas.push(mandatory);
            }
        }
        self.schemas = Schemas::new(schemas);
        self.set_levels(wanted, now);
    }

    fn set_levels(&mut self, wanted: BTreeMap<Arc<str>, PriorityLevel>, now: Moment) {
        self.levels.retain(|name, level| {
            level.quiescing = !wanted.contains_key(name);
            !level.quiescing || !level.is_idle()
        });
        for (name, config) in wanted {
            match self.levels.get_mut(&name) {
                Some(level) => level.configure(config),
                None => drop(self.levels.insert(name, Level::new(config, now))),
            }
        }
        self.rehome();
        for level in self.levels.values_mut() {
            // What is counted of schemas that are gone goes with the last of their requests.
            let known: Vec<&str> = self.schemas.iter().map(|schema| &*schema.name).collect();
            level
                .tally
                .schemas
                .retain(|name, tally| tally.waiting + tally.running > 0 || known.contains(&&**name));
        }
        self.share(now);
    }

    /// Those at the door whose level went meanwhile are of the one that is always there.
    pub(crate) fn rehome(&mut self) {
        for request in self.requests.values_mut().filter(|request| matches!(request.state, State::AtDoor)) {
            if !self.levels.contains_key(&request.arrival.flow.level) {
                request.arrival.flow.level = CATCH_ALL.into();
            }
        }
    }

    /// Shares are computed anew: there are other levels, or another total.
    pub(crate) fn share(&mut self, now: Moment) {
        let configs: Vec<&PriorityLevel> = self.levels.values().map(|level| &level.config).collect();
        let bounds = shares::bounds(&configs, self.total);
        let at_store = shares::bounds(&configs, AT_STORE_MAX);
        for (level, (bounds, at_store)) in self.levels.values_mut().zip(bounds.into_iter().zip(at_store)) {
            (level.bounds, level.at_store_max) = (bounds, at_store.nominal);
        }
        self.divide();
        self.levels.values_mut().for_each(|level| level.note(self.seat, now));
    }

    /// A period ends: current limits follow demand.
    pub(crate) fn adjust(&mut self, now: Moment) {
        (self.adjusted, self.adjusted_early) = (now, now);
        for level in self.levels.values_mut() {
            level.integrator.take(&mut level.demand, now);
        }
        self.divide();
    }

    /// A level wants back what it lent before a period has ended.
    pub(crate) fn adjust_early(&mut self, now: Moment) {
        self.adjusted_early = now;
        self.divide();
    }

    fn divide(&mut self) {
        let wishes: Vec<shares::Wish> = self.levels.values().map(Level::wish).collect();
        let division = shares::divide(&wishes);
        self.fair_fraction = division.fair_fraction;
        for ((level, current), target) in self.levels.values_mut().zip(division.current).zip(division.targets)
        {
            (level.current, level.target) = (current, target);
        }
        self.pools();
    }

    /// Bytes by level, as its seats are of all seats; and with them what a seat is.
    pub(crate) fn pools(&mut self) {
        let bytes = self.limiter.bytes();
        let seats = |level: &Level| level.current.max(level.bounds.nominal).max(1);
        let all: u64 = self.levels.values().map(seats).sum();
        self.seat = Seat { bytes: (bytes / all.max(1)).max(1) };
        for level in self.levels.values_mut() {
            // Who is exempt is bound by the memory law alone.
            level.holding.resize(if level.is_exempt() { bytes } else { seats(level) * self.seat.bytes });
        }
    }
}
