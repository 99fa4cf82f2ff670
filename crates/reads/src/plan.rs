//! From the options of a LIST or WATCH to a plan: the one place that reads them.
//!
//! In: raw options and what the path named. Out: [`Planned`], once for a request: a [`ListPlan`] or a
//! [`WatchPlan`], an [`Interest`], and the [`Weight`] that it is admitted by. Below this nobody sees a
//! resourceVersion string, a match, a limit or a continue token again.
//!
//! Source: reference §1.1 (validation and defaulting), §1.2 (LIST), §1.4 (WATCH); apiserver v1.36.3
//! `storage/cacher/delegator`, apimachinery `internalversion/validation`.

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::continue_token::{ContinueAt, ContinueToken};
use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::options::{ListOptions, field_forbidden, field_not_supported};
use forebay_apimachinery::{Cause, Key, Reason, Revision, Status};
use forebay_catalog::{Served, Store, Target};
use forebay_rt::{Clock, Random};
use forebay_watchcache::Interest;

use crate::frames::{EventForm, Frames};
use crate::gathering::Gatherings;
use crate::limits::{LONG_WATCH_SECONDS_MIN, WATCH_SECONDS_MAX};
use crate::listed::SharedLists;
use crate::page_start;
use crate::present::{As, Encoding, Shown};
use crate::weight::{Weight, unmade};

/// A LIST or a WATCH that was found to be in order, and has read nothing yet. Whoever admits requests sees
/// what it weighs, and runs it on a lease for that, which the answer holds.
pub struct Planned<Plan, Form> {
    pub(crate) plan: Plan,
    pub(crate) interest: Interest,
    pub(crate) served: Arc<Served>,
    pub(crate) store: Arc<Store>,
    pub(crate) shown: Form,
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: Clock,
    pub(crate) weight: Weight,
}

/// The body of an answer that has begun, and the lease that it was begun on: who sends the one holds the
/// other.
pub struct Begun<Body, Lease> {
    pub body: Body,
    pub lease: Lease,
}

/// How new the state must be that a read shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Every commit acknowledged before the request.
    Latest,
    /// Whatever the cache has.
    Any,
    /// At least this revision.
    AtLeast(Revision),
    /// Exactly this revision.
    Exact(Revision),
}

/// What a LIST reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPlan {
    pub freshness: Freshness,
    /// Objects at most; `None` is all.
    pub limit: Option<usize>,
    /// Key below the prefix after which the page begins.
    pub start_after: Option<String>,
}

impl ListPlan {
    /// The place behind which it begins.
    pub(crate) fn after(&self, interest: &Interest) -> Option<Key> {
        self.start_after.as_deref().map(|start| page_start::place(interest, start))
    }

    /// Everything that is there.
    pub const EVERYTHING: ListPlan =
        ListPlan { freshness: Freshness::Latest, limit: None, start_after: None };
}

/// Where a WATCH begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// Events after this revision.
    After(Revision),
    /// Events after what is current in the store.
    Now,
    /// Events after what the cache has.
    AnyNow,
    /// The state that the cache has, then events.
    StateAny,
    /// The state with every acknowledged commit, then events.
    StateLatest,
    /// The state at this revision or later, then events.
    StateAtLeast(Revision),
}

/// What a WATCH sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchPlan {
    pub start: WatchStart,
    pub bookmarks: bool,
    /// Whether the initial state ends with a bookmark that says so.
    pub end_bookmark: bool,
    /// Whether a bookmark follows as soon as everything was sent. To client-go a watch that ends within its
    /// first second without an event is a fault, after which it lists: this is its event.
    pub prompt_bookmark: bool,
    /// When the stream ends.
    pub timeout: Duration,
}

/// What readers of the same share: the frames of watches, and lists.
pub(crate) struct Shared {
    pub frames: Arc<Frames>,
    pub lists: SharedLists,
    pub gatherings: Gatherings,
}

/// Makes plans. One for the whole server: its readers share what they read.
pub struct Planner {
    pub(crate) shared: Arc<Shared>,
    clock: Clock,
    random: Arc<Random>,
    min_request_timeout: Duration,
}

impl Planner {
    /// - `frame_lead_bytes`: before each shared frame of a watch, for whoever sends it.
    /// - `min_request_timeout`: a watch that names no timeout ends after this to twice this.
    pub fn new(
        clock: Clock,
        random: Arc<Random>,
        frame_lead_bytes: usize,
        min_request_timeout: Duration,
    ) -> Planner {
        let frames = Arc::new(Frames::new(frame_lead_bytes));
        let (lists, gatherings) = (SharedLists::default(), Gatherings::default());
        let shared = Shared { frames, lists, gatherings };
        Planner { shared: Arc::new(shared), clock, random, min_request_timeout }
    }

    /// A LIST.
    ///
    /// # Errors
    /// 400, 405 and 422.
    pub fn list(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: Shown,
    ) -> Result<Planned<ListPlan, Shown>, Status> {
        let store = target.served.stored()?;
        let (plan, interest) = list(target, &store, options)?;
        let mut weight = Weight::of(&store, &interest, plan.after(&interest).as_ref(), plan.limit);
        if (shown.what, shown.encoding) == (As::Object, Encoding::Protobuf) {
            weight.unmade = unmade(target, &store, &interest, weight);
        }
        Ok(self.planned(target, store, (plan, interest, weight), shown))
    }

    /// A WATCH. It weighs what its initial state does.
    ///
    /// - `path_form`: the deprecated `/watch/` paths.
    ///
    /// # Errors
    /// 400, 405, 422 and 500.
    pub fn watch(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: EventForm,
        path_form: bool,
    ) -> Result<Planned<WatchPlan, EventForm>, Status> {
        let store = target.served.stored()?;
        let draw = |bound| self.random.below(bound);
        let (plan, interest) = watch(target, &store, options, self.min_request_timeout, draw, path_form)?;
        let mut weight = Weight::default();
        if plan.has_state() {
            weight = Weight::of(&store, &interest, None, None);
            if shown.what == As::Object && !shown.format.has_stored_form {
                weight.unmade = unmade(target, &store, &interest, weight);
            }
        }
        Ok(self.planned(target, store, (plan, interest, weight), shown))
    }

    fn planned<Plan, Form>(
        &self,
        target: &Target,
        store: Arc<Store>,
        (plan, interest, weight): (Plan, Interest, Weight),
        shown: Form,
    ) -> Planned<Plan, Form> {
        let (served, shared, clock) = (target.served.clone(), self.shared.clone(), self.clock.clone());
        Planned { plan, interest, served, store, shown, shared, clock, weight }
    }
}

/// What the DELETE of a collection takes in.
#[derive(Clone, Debug)]
pub struct DeletionPlan {
    pub plan: ListPlan,
    pub interest: Interest,
    /// What it is to be admitted by.
    pub weight: Weight,
    /// How what was deleted is shown.
    pub shown: Shown,
}

/// What a LIST of these options reads, for the DELETE of a collection.
///
/// # Errors
/// 400, 405 and 422 of reference §1.1.
pub fn deletion(target: &Target, options: &ListOptions) -> Result<DeletionPlan, Status> {
    let store = target.served.stored()?;
    let (plan, interest) = list(target, &store, options)?;
    let weight = Weight::of(&store, &interest, plan.after(&interest).as_ref(), plan.limit);
    Ok(DeletionPlan { plan, interest, weight, shown: As::Object.into() })
}

impl<Form> Planned<ListPlan, Form> {
    /// How new a state it shows.
    pub fn freshness(&self) -> Freshness {
        self.plan.freshness
    }

    /// Whether it goes on behind another page.
    pub fn is_continued(&self) -> bool {
        self.plan.start_after.is_some()
    }
}

impl<Plan, Form> Planned<Plan, Form> {
    /// What it is to be admitted by.
    pub fn weight(&self) -> Weight {
        self.weight
    }
}

impl Planned<WatchPlan, EventForm> {
    /// Whether it begins with state, for which it holds a snapshot.
    pub fn has_state(&self) -> bool {
        self.plan.has_state()
    }
}

impl WatchPlan {
    /// Whether the state comes first; not of one that is over before it begins.
    fn has_state(&self) -> bool {
        let is_of_state = match self.start {
            WatchStart::StateAny | WatchStart::StateLatest | WatchStart::StateAtLeast(_) => true,
            WatchStart::After(_) | WatchStart::Now | WatchStart::AnyNow => false,
        };
        is_of_state && !self.timeout.is_zero()
    }
}

/// What the path and the selectors are about.
///
/// # Errors
/// 400 for a field that cannot be selected by, naming it, and for fields that are not about the name in the
/// path.
pub fn interest(target: &Target, store: &Store, options: &ListOptions) -> Result<Interest, Status> {
    let served = &target.served;
    let fields = served.field_terms(&options.field_selector).map_err(Status::bad_request)?;
    if target.name.is_some()
        && !options.field_selector.is_everything()
        && options.field_selector.exact("metadata.name") != target.name.as_deref()
    {
        return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
    }
    // A name or a namespace that a selector pins narrows the keys to look at.
    let pinned = |path: &str| options.field_selector.exact(path).map(str::to_string);
    if let Some(name) = &target.name
        && !options.field_selector.is_everything()
        && pinned("metadata.name").as_ref() != Some(name)
    {
        return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
    }
    let name = target.name.clone().or_else(|| pinned("metadata.name"));
    let namespace = match (&target.namespace, served.namespaced) {
        (Some(namespace), true) => Some(namespace.clone()),
        (None, true) => pinned("metadata.namespace").filter(|namespace| !namespace.is_empty()),
        (_, false) => None,
    };
    let reach = store
        .reach(namespace.as_deref(), name.as_deref().filter(|name| !name.is_empty() && !name.contains('/')));
    Ok(Interest { reach, labels: Arc::new(options.label_selector.clone()), fields: fields.into() })
}

/// What a LIST, or the DELETE of a collection, reads, and how.
///
/// # Errors
/// 400 and 422 of reference §1.1, the one that kube-apiserver comes upon first.
fn list(target: &Target, store: &Store, options: &ListOptions) -> Result<(ListPlan, Interest), Status> {
    validate(options, Verb::List)?;
    let interest = interest(target, store, options)?;
    Ok((list_plan(options)?, interest))
}

fn list_plan(options: &ListOptions) -> Result<ListPlan, Status> {
    let limit = usize::try_from(options.limit).ok().filter(|limit| *limit > 0);
    if !options.continue_token.is_empty() {
        return continued(options, limit);
    }
    let rv = parse_list_rv(&options.resource_version)?;
    let exact = options.resource_version_match == "Exact";
    let (freshness, limit) = match (rv, exact) {
        (Rv::Unset, _) => (Freshness::Latest, limit),
        // "Any" is answered whole, whatever the limit.
        (Rv::Zero, _) => (Freshness::Any, None),
        (Rv::At(rv), true) => (Freshness::Exact(rv), limit),
        // A limit without a match means Exact, as it did before there were matches.
        (Rv::At(rv), false) if limit.is_some() && options.resource_version_match.is_empty() => {
            (Freshness::Exact(rv), limit)
        }
        (Rv::At(rv), false) => (Freshness::AtLeast(rv), limit),
    };
    Ok(ListPlan { freshness, limit, start_after: None })
}

fn continued(options: &ListOptions, limit: Option<usize>) -> Result<ListPlan, Status> {
    let token = ContinueToken::decode(&options.continue_token).map_err(|error| error.to_status())?;
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    // The token names the last key with a zero byte behind it, which no key has: what comes after it is the
    // rest.
    let freshness = match token.at {
        // Where the state of the first page is gone: the pages from here on show one state again.
        ContinueAt::Latest => Freshness::Latest,
        ContinueAt::Revision(rv) => Freshness::Exact(rv),
    };
    Ok(ListPlan { freshness, limit, start_after: Some(token.start) })
}

/// What a WATCH reads, and how.
///
/// - `timeout_min`: a stream that names no timeout ends after this to twice this.
/// - `random`: draws below its argument.
/// - `path_form`: the deprecated `/watch/` paths.
///
/// # Errors
/// 400, 422 and 500 of reference §1.1, the one that kube-apiserver comes upon first.
fn watch(
    target: &Target,
    store: &Store,
    options: &ListOptions,
    timeout_min: Duration,
    random: impl FnOnce(u64) -> u64,
    path_form: bool,
) -> Result<(WatchPlan, Interest), Status> {
    // The options of a `/watch/` path are taken for a LIST's: nothing is filled in, and what a WATCH may say
    // is refused.
    let as_list = path_form && !options.watch;
    validate(options, if as_list { Verb::List } else { Verb::Watch })?;
    let interest = interest(target, store, options)?;
    Ok((watch_plan(options, timeout_min, random, as_list)?, interest))
}

fn watch_plan(
    options: &ListOptions,
    timeout_min: Duration,
    random: impl FnOnce(u64) -> u64,
    as_list: bool,
) -> Result<WatchPlan, Status> {
    let rv = parse_rv(&options.resource_version).map_err(not_a_number)?;
    // Since 1.34 a watch without any of the three is a consistent start (reference §1.1, "Defaulting").
    let plain = options.send_initial_events.is_none() && options.resource_version_match.is_empty();
    let filled_in = plain && !as_list && !matches!(rv, Rv::At(_));
    let initial = if filled_in { Some(true) } else { options.send_initial_events };
    let start = match (rv, initial) {
        (Rv::Unset, Some(true)) => WatchStart::StateLatest,
        (Rv::Unset, Some(false)) => WatchStart::Now,
        (Rv::Unset | Rv::Zero, None) | (Rv::Zero, Some(true)) => WatchStart::StateAny,
        (Rv::Zero, Some(false)) => WatchStart::AnyNow,
        (Rv::At(rv), Some(true)) => WatchStart::StateAtLeast(rv),
        (Rv::At(rv), _) => WatchStart::After(rv),
    };
    let timeout = match options.timeout_seconds {
        // Longer than anybody watches; more would be beyond the clock.
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs().min(WATCH_SECONDS_MAX)),
        // It is over before it begins.
        Some(seconds) if seconds < 0 => Duration::ZERO,
        _ => timeout_min + Duration::from_millis(random(timeout_min.as_millis() as u64)),
    };
    let bookmarks = options.allow_watch_bookmarks;
    let prompt_bookmark = bookmarks && options.timeout_seconds >= Some(LONG_WATCH_SECONDS_MIN);
    Ok(WatchPlan {
        start,
        bookmarks,
        end_bookmark: bookmarks && initial == Some(true),
        prompt_bookmark,
        timeout,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    List,
    Watch,
}

#[derive(Clone, Copy)]
enum Rv {
    Unset,
    Zero,
    At(Revision),
}

/// Which options go together. Faults are told in kube-apiserver's order.
fn validate(options: &ListOptions, verb: Verb) -> Result<(), Status> {
    let causes = match verb {
        Verb::List => list_faults(options),
        Verb::Watch => watch_faults(options),
    };
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", "ListOptions", "", causes)) }
}

const MATCH: &str = "resourceVersionMatch";
const INITIAL: &str = "sendInitialEvents";
const WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

fn list_faults(options: &ListOptions) -> Vec<Cause> {
    let mut causes = Vec::new();
    let rv_match = options.resource_version_match.as_str();
    if !rv_match.is_empty() {
        if options.resource_version.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            causes.push(field_forbidden(MATCH, why));
        }
        if !options.continue_token.is_empty() {
            causes.push(field_forbidden(MATCH, WITH_CONTINUE));
        }
        if !["Exact", "NotOlderThan"].contains(&rv_match) {
            causes.push(field_not_supported(MATCH, &go_quote(rv_match), &["Exact", "NotOlderThan", ""]));
        }
        if rv_match == "Exact" && options.resource_version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(field_forbidden(MATCH, why));
        }
    }
    if options.send_initial_events.is_some() {
        causes.push(field_forbidden(INITIAL, "sendInitialEvents is forbidden for list"));
    }
    causes
}

fn watch_faults(options: &ListOptions) -> Vec<Cause> {
    let mut causes = Vec::new();
    let rv_match = options.resource_version_match.as_str();
    if options.send_initial_events.is_some() && rv_match != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.push(field_forbidden(MATCH, why));
    }
    if !rv_match.is_empty() {
        if options.send_initial_events.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(field_forbidden(MATCH, why));
        }
        if rv_match != "NotOlderThan" {
            causes.push(field_not_supported(MATCH, &go_quote(rv_match), &["NotOlderThan"]));
        }
        if !options.continue_token.is_empty() {
            causes.push(field_forbidden(MATCH, WITH_CONTINUE));
        }
    }
    causes
}

fn parse_list_rv(text: &str) -> Result<Rv, Status> {
    parse_rv(text).map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))
}

/// A GET and a WATCH say it without a reason, which makes it a 500; kube-apiserver does the same.
fn not_a_number(error: String) -> Status {
    Status::new(Reason::Unknown, error)
}

fn parse_rv(text: &str) -> Result<Rv, String> {
    if text.is_empty() {
        return Ok(Rv::Unset);
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(number) if is_number => Ok(Revision::new(number).map_or(Rv::Zero, Rv::At)),
        _ => {
            let why = if is_number { "value out of range" } else { "invalid syntax" };
            let shown = go_quote(text);
            Err(format!("resourceVersion: Invalid value: {shown}: strconv.ParseUint: parsing {shown}: {why}"))
        }
    }
}

/// The minimum resourceVersion of a GET.
///
/// # Errors
/// 500 for what is no number.
pub fn freshness(resource_version: &str) -> Result<Freshness, Status> {
    Ok(match parse_rv(resource_version).map_err(not_a_number)? {
        Rv::Unset => Freshness::Latest,
        Rv::Zero => Freshness::Any,
        Rv::At(rv) => Freshness::AtLeast(rv),
    })
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::options::Query;
    use serde_json::json;

    use super::*;
    use crate::present::As;
    use crate::tests::config_maps;
    use crate::weight::FoundBy;

    fn options(query: &str) -> ListOptions {
        ListOptions::from_query(&Query::parse(query)).expect("options")
    }

    #[tokio::test]
    async fn a_limit_makes_a_request_lighter_only_where_it_counts() {
        let world = config_maps(Some("default")).await;
        for name in ["a", "b", "c", "d"] {
            world.put(name, json!({}), json!({})).await;
        }
        // Then the cache has them.
        world.list(&ListOptions::default()).await.expect("lists");
        let listed = |query: &str| {
            let planned = world.planner.list(&world.target, &options(query), As::Object.into());
            planned.map(|planned| (planned.weight().of.objects, planned.weight().of.bytes))
        };
        let (objects, bytes) = listed("").expect("planned");
        assert!(objects == 4 && bytes > 4 * 50, "{objects} of {bytes} B");
        assert_eq!(listed("limit=1"), Ok((1, bytes / 4)));
        assert_eq!(listed("limit=9"), Ok((4, bytes)));
        assert_eq!(listed("limit=1&resourceVersion=0"), Ok((4, bytes)), "it is answered whole");
        assert!(listed("resourceVersionMatch=Exact").is_err(), "it is refused");
        let watched = world.plan_watch(&options("watch=1&limit=1"), As::Object);
        let watched = watched.map(|planned| planned.weight()).expect("planned");
        assert_eq!((watched.of.objects, watched.of.bytes, watched.found), (4, bytes, FoundBy::Whole));
    }

    #[tokio::test]
    async fn it_is_known_before_whether_a_watch_begins_with_state() {
        let world = config_maps(None).await;
        for (query, want) in [
            ("watch=1", true),
            ("watch=1&resourceVersion=0", true),
            ("watch=1&resourceVersion=1", false),
            ("watch=1&timeoutSeconds=-1", false),
            ("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1", true),
            ("watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", false),
            ("watch=1&resourceVersion=none", false),
        ] {
            let planned = world.plan_watch(&options(query), As::Object);
            assert_eq!(planned.as_ref().is_ok_and(Planned::has_state), want, "{query}");
            if let Ok(planned) = planned {
                let begun = planned.run((), crate::frames::status_without_code).await.expect("begins");
                assert_eq!(begun.body.is_initial(), want, "{query}");
            }
        }
    }
}
