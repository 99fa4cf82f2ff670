//! From the options of a LIST or WATCH to a plan: the one place that reads them.
//!
//! In: raw options and what the path named. Out: [`ListPlan`], [`WatchPlan`], an [`Interest`]. Below this nobody sees
//! a resourceVersion string, a match, a limit or a continue token again.
//!
//! Source: reference §1.1 (validation and defaulting), §1.2 (LIST), §1.4 (WATCH); apiserver v1.36.3
//! `storage/cacher/delegator`, apimachinery `internalversion/validation`.

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::continue_token::{ContinueAt, ContinueToken};
use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::options::{ListOptions, field_forbidden, field_not_supported};
use forebay_apimachinery::{Cause, Revision, Status};
use forebay_watchcache::Interest;

use crate::request::Target;
use crate::store::Store;

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
    /// The page goes on with what is there now (a token of revision -1), and so does the next one.
    pub continues_latest: bool,
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
    /// Whether a bookmark follows as soon as everything was sent. To client-go a watch that ends within its first second
    /// without an event is a fault, after which it lists: this is its event.
    pub prompt_bookmark: bool,
    /// When the stream ends.
    pub timeout: Duration,
}

/// What the path and the selectors are about.
///
/// # Errors
/// 400 for a field that cannot be selected by, naming it.
pub fn interest(target: &Target, store: &Store, options: &ListOptions) -> Result<Interest, Status> {
    let served = &target.served;
    let fields = served.field_terms(&options.field_selector).map_err(Status::bad_request)?;
    // A name or a namespace that a selector pins narrows the keys to look at.
    let pinned = |path: &str| options.field_selector.exact(path).map(str::to_string);
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

/// Objects that are asked for, at most.
pub fn limit(options: &ListOptions) -> Option<usize> {
    usize::try_from(options.limit).ok().filter(|limit| *limit > 0)
}

/// The plan of a LIST.
///
/// # Errors
/// 400 and 422 of reference §1.1.
pub fn list(options: &ListOptions) -> Result<ListPlan, Status> {
    validate(options, Verb::List)?;
    let limit = limit(options);
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
    Ok(ListPlan { freshness, limit, start_after: None, continues_latest: false })
}

fn continued(options: &ListOptions, limit: Option<usize>) -> Result<ListPlan, Status> {
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    let token = ContinueToken::decode(&options.continue_token).map_err(|error| error.to_status())?;
    // The token names the last key with a zero byte behind it, which no key has: what comes after it is the rest.
    let start_after = Some(token.start);
    Ok(match token.at {
        ContinueAt::Latest => {
            ListPlan { freshness: Freshness::Latest, limit, start_after, continues_latest: true }
        }
        ContinueAt::Revision(rv) => {
            ListPlan { freshness: Freshness::Exact(rv), limit, start_after, continues_latest: false }
        }
    })
}

/// The plan of a WATCH.
///
/// - `timeout_min`: a stream that names no timeout ends after this to twice this.
/// - `random`: draws below its argument.
/// - `path_form`: the deprecated `/watch/` paths, for which nothing is filled in.
///
/// # Errors
/// 400, 422 and 500 of reference §1.1.
pub fn watch(
    options: &ListOptions,
    timeout_min: Duration,
    random: impl FnOnce(u64) -> u64,
    path_form: bool,
) -> Result<WatchPlan, Status> {
    validate(options, Verb::Watch)?;
    let rv = parse_watch_rv(&options.resource_version)?;
    // Since 1.34 a watch without any of the three is a consistent start (reference §1.1, "Defaulting").
    let plain = options.send_initial_events.is_none() && options.resource_version_match.is_empty();
    let filled_in = plain && !path_form && !matches!(rv, Rv::At(_));
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
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()),
        // It is over before it begins.
        Some(seconds) if seconds < 0 => Duration::ZERO,
        _ => timeout_min + Duration::from_millis(random(timeout_min.as_millis() as u64)),
    };
    let bookmarks = options.allow_watch_bookmarks;
    let prompt_bookmark = bookmarks && options.timeout_seconds >= Some(LONG_SECONDS_MIN);
    Ok(WatchPlan {
        start,
        bookmarks,
        end_bookmark: bookmarks && initial == Some(true),
        prompt_bookmark,
        timeout,
    })
}

/// Who asks for a watch this long, as informers do for 5 to 10 minutes, means to keep it.
const LONG_SECONDS_MIN: i64 = 60;

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

/// Which options go together.
fn validate(options: &ListOptions, verb: Verb) -> Result<(), Status> {
    let rv_match = options.resource_version_match.as_str();
    let mut causes: Vec<Cause> = Vec::new();
    let watches = verb == Verb::Watch;
    if options.send_initial_events.is_some() {
        if !watches {
            causes.push(field_forbidden(INITIAL, "sendInitialEvents is forbidden for list"));
        } else if rv_match != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(field_forbidden(MATCH, why));
        }
    }
    if !rv_match.is_empty() {
        if watches && options.send_initial_events.is_none() {
            causes.push(field_forbidden(
                MATCH,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if !watches && options.resource_version.is_empty() {
            causes.push(field_forbidden(
                MATCH,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !options.continue_token.is_empty() {
            causes
                .push(field_forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
        let known: &[&str] = if watches { &["NotOlderThan"] } else { &["Exact", "NotOlderThan"] };
        if !known.contains(&rv_match) {
            let listed: &[&str] = if watches { &["NotOlderThan"] } else { &["Exact", "NotOlderThan", ""] };
            causes.push(field_not_supported(MATCH, &go_quote(rv_match), listed));
        }
        if rv_match == "Exact" && options.resource_version == "0" {
            causes.push(field_forbidden(
                MATCH,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", "ListOptions", "", causes)) }
}

const MATCH: &str = "resourceVersionMatch";
const INITIAL: &str = "sendInitialEvents";

fn parse_list_rv(text: &str) -> Result<Rv, Status> {
    parse_rv(text).map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))
}

/// kube-apiserver answers 500 here; a number that is none is the client's fault, so this says 400. COMPAT lists it.
fn parse_watch_rv(text: &str) -> Result<Rv, Status> {
    parse_list_rv(text)
}

fn parse_rv(text: &str) -> Result<Rv, String> {
    if text.is_empty() {
        return Ok(Rv::Unset);
    }
    match text.parse::<u64>() {
        Ok(number) => Ok(Revision::new(number).map_or(Rv::Zero, Rv::At)),
        Err(_) => Err(format!(
            "resourceVersion: Invalid value: {0}: strconv.ParseUint: parsing {0}: invalid syntax",
            go_quote(text)
        )),
    }
}

/// The minimum resourceVersion of a GET.
///
/// # Errors
/// 400 for what is no number.
pub fn get(resource_version: &str) -> Result<Freshness, Status> {
    Ok(match parse_list_rv(resource_version)? {
        Rv::Unset => Freshness::Latest,
        Rv::Zero => Freshness::Any,
        Rv::At(rv) => Freshness::AtLeast(rv),
    })
}
