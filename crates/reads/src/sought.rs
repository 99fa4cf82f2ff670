//! A list before it is begun: is it one that is read already?
//!
//! In: a plan, what the cache has, what the store says at once. Out: whether a list is what this one would
//! be. Never: waits; a promise, as somebody may write meanwhile.

use std::sync::Arc;

use forebay_catalog::Store;

use crate::limits::SHARED_LIST_BYTES_MIN;
use crate::list::ListBody;
use crate::listed::{Identity, Place, is_table, whole_seconds};
use crate::plan::{Freshness, ListPlan, Planned};
use crate::present::Shown;
use crate::wall_time::timestamp;

/// A list that is yet to be begun, as it will be of the state that the cache has.
pub struct Sought {
    identity: Identity,
    freshness: Freshness,
    store: Arc<Store>,
}

impl Planned<ListPlan, Shown> {
    /// What it will be of the state that the cache has; none of one that is not shared, or of another state.
    pub fn sought(&self) -> Option<Sought> {
        let Planned { plan, interest, served, store, shown, clock, .. } = self;
        let is_current = !matches!(plan.freshness, Freshness::Exact(_));
        if !is_current || self.weight().of.bytes < SHARED_LIST_BYTES_MIN {
            return None;
        }
        let snapshot = store.cacher.snapshot().ok()?;
        let identity = Identity {
            revision: snapshot.revision(),
            snapshot: Place::of(&snapshot),
            served: Place::of(served),
            shown: *shown,
            now: is_table(*shown).then(|| whole_seconds(timestamp(clock))),
            after: plan.after(interest),
            limit: plan.limit,
            interest: interest.clone(),
        };
        Some(Sought { identity, freshness: plan.freshness, store: store.clone() })
    }
}

impl Sought {
    /// Whether `list` is what it would be.
    pub fn is(&self, list: &ListBody) -> bool {
        let list = list.list();
        // Most differ in that.
        self.identity.snapshot.is(&list.reached.snapshot) && self.identity == list.identity()
    }

    /// Whether that state will do, as far as is known at once.
    pub fn is_of_now(&self) -> bool {
        let has = self.identity.revision;
        match self.freshness {
            Freshness::Any => true,
            Freshness::AtLeast(revision) => revision <= has,
            Freshness::Latest => self.store.cacher.is_of_now(has),
            Freshness::Exact(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::options::ListOptions;
    use forebay_apimachinery::selector::LabelSelector;
    use serde_json::json;

    use super::*;
    use crate::present::As;
    use crate::tests::{World, config_maps};

    fn sought(world: &World, options: &ListOptions, what: As) -> Option<Sought> {
        world.planner.list(&world.target, options, what.into()).expect("is in order").sought()
    }

    #[tokio::test]
    async fn a_list_is_known_before_it_is_begun_until_somebody_writes() {
        let world = config_maps(Some("default")).await;
        for number in 0..10 {
            world.put(&format!("o-{number}"), json!({}), json!({ "text": "x".repeat(30_000) })).await;
        }
        let all = ListOptions::default();
        let list = world.list(&all).await.expect("lists");
        let is = |options: &ListOptions, what| sought(&world, options, what).is_some_and(|it| it.is(&list));
        assert!(is(&all, As::Object));
        let label_selector = LabelSelector::parse("!app").expect("a selector");
        let some = ListOptions { label_selector, ..ListOptions::default() };
        let page = ListOptions { limit: 3, ..ListOptions::default() };
        assert!(!is(&all, As::PartialMetadata) && !is(&some, As::Object) && !is(&page, As::Object));
        let any = ListOptions { resource_version: "0".into(), ..ListOptions::default() };
        let now = [&all, &any].map(|options| sought(&world, options, As::Object).expect("long enough"));
        assert!(now.iter().all(Sought::is_of_now));
        world.put("o-a", json!({}), json!({})).await;
        assert!(
            !now[0].is_of_now() && now[1].is_of_now(),
            "there is another, whether or not the cache has it"
        );
        let later = world.list(&all).await.expect("lists");
        assert!(!is(&all, As::Object) && sought(&world, &all, As::Object).is_some_and(|it| it.is(&later)));
        // What is not shared is looked for nowhere.
        let few = ListOptions { limit: 1, ..ListOptions::default() };
        assert!(sought(&world, &few, As::Object).is_none());
    }

    #[tokio::test]
    async fn a_limit_that_leaves_nothing_out_keeps_no_block_from_going_as_it_is() {
        let world = config_maps(Some("default")).await;
        for name in ["a", "b", "c"] {
            world.put(name, json!({}), json!({})).await;
        }
        let is_of_segments = async |limit: i64| {
            let options = ListOptions { limit, ..ListOptions::default() };
            let mut body = world.list(&options).await.expect("lists");
            let (whole, mut text) = (body.is_of_segments(), Vec::new());
            while body.next_chunk(1 << 20, &mut text) {}
            let text = String::from_utf8(text).expect("text");
            (whole, text.matches("\"uid\"").count(), text.contains("\"continue\""))
        };
        assert_eq!(is_of_segments(0).await, (true, 3, false));
        assert_eq!(is_of_segments(4).await, (true, 3, false));
        assert_eq!(is_of_segments(3).await, (true, 3, false));
        assert_eq!(is_of_segments(2).await, (false, 2, true));
    }
}
