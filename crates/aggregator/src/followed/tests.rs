//! Who follows a kind, over a way that answers what a test says, on tokio's paused time.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use forebay_client::reflector::Refusal;
use forebay_rt::Bell;

use super::*;

/// What a request is answered with.
enum Reply {
    /// Pieces of a body, and what comes behind them.
    Body(Vec<String>, End),
    Refused(u16),
    Failed,
}

#[derive(Clone, Copy)]
enum End {
    Stays,
    Ends,
    Breaks,
}

/// Answers in their order; after the last one, nothing.
struct Script {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<String>>,
    bell: Bell,
}

struct Body(VecDeque<String>, End);

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WayElsewhere for Arc<Script> {
    fn ask(&self, target: String, _: bool) -> BoxFuture<'static, AskedElsewhere> {
        locked(&self.asked).push(target);
        let reply = locked(&self.replies).pop_front();
        Box::pin(async move {
            match reply {
                Some(Reply::Body(pieces, end)) => AskedElsewhere::Answer(Box::new(Body(pieces.into(), end))),
                Some(Reply::Refused(code)) => AskedElsewhere::Refused(Refusal { code, ..Refusal::default() }),
                Some(Reply::Failed) => AskedElsewhere::Failed(Fault::Refused),
                None => std::future::pending().await,
            }
        })
    }

    fn renew(&self) {}

    fn is_there(&self) -> bool {
        true
    }

    fn ear(&self) -> Ear {
        self.bell.ear()
    }
}

impl Pieces for Body {
    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        match (self.0.pop_front(), self.1) {
            (Some(piece), _) => Poll::Ready(Ok(Some(piece.into()))),
            (None, End::Stays) => Poll::Pending,
            (None, End::Ends) => Poll::Ready(Ok(None)),
            (None, End::Breaks) => Poll::Ready(Err("reset".to_owned())),
        }
    }
}

fn following(replies: impl IntoIterator<Item = Reply>) -> (FollowedObjects<Arc<Script>>, Arc<Script>) {
    let script = Arc::new(Script {
        replies: Mutex::new(replies.into_iter().collect()),
        asked: Mutex::default(),
        bell: Bell::new(1),
    });
    let of = KindElsewhere {
        group: "a.io".into(),
        version: "v1".into(),
        resource: "flunders".into(),
        kind: "Flunder".into(),
        is_namespaced: true,
        is_followed: true,
    };
    let by = (Clock::system(), Arc::new(Random::seeded(7)));
    let followed = FollowedObjects::new(script.clone(), by, HeldBytes::default().share(), Arc::new(of));
    (followed, script)
}

/// What is told within `seconds`.
async fn told(followed: &mut FollowedObjects<Arc<Script>>, seconds: u64) -> String {
    let (mut told, clock) = (Vec::new(), Clock::system());
    let end = clock.now() + Duration::from_secs(seconds);
    loop {
        tokio::select! {
            biased;
            notice = std::future::poll_fn(|cx| followed.poll_next(cx)) => told.push(match notice {
                NoticeElsewhere::Put(object) => format!("+{}:{}", object.uid, object.owners.len()),
                NoticeElsewhere::Gone(uid) => format!("-{uid}"),
                NoticeElsewhere::Synced => "synced".to_owned(),
                NoticeElsewhere::LetGo => "none".to_owned(),
            }),
            () = clock.sleep_until(end) => return told.join(" "),
        }
    }
}

/// `a`, or `a<b` with an owner.
fn object(text: &str, revision: u32) -> String {
    let (uid, owner) = text.split_once('<').map_or((text, None), |(uid, owner)| (uid, Some(owner)));
    let owners = owner.map(|owner| {
        format!(r#","ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"{owner}"}}]"#)
    });
    let owners = owners.unwrap_or_default();
    format!(
        r#"{{"metadata":{{"name":"{uid}","namespace":"x","uid":"{uid}","resourceVersion":"{revision}"{owners}}}}}"#
    )
}

fn frame(kind: &str, text: &str, revision: u32) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", object(text, revision))
}

fn end_of_state(revision: u32) -> String {
    let annotations = r#"{"k8s.io/initial-events-end":"true"}"#;
    let metadata = format!(r#"{{"resourceVersion":"{revision}","annotations":{annotations}}}"#);
    format!("{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{metadata}}}}}\n")
}

fn page(items: &[&str], revision: u32) -> String {
    let items: Vec<String> = items.iter().map(|item| object(item, revision)).collect();
    format!(
        r#"{{"kind":"FlunderList","apiVersion":"a.io/v1","metadata":{{"resourceVersion":"{revision}"}},"items":[{}]}}"#,
        items.join(",")
    )
}

#[tokio::test(start_paused = true)]
async fn a_state_is_told_and_then_what_changes_of_it() {
    let state = [frame("ADDED", "a", 1), frame("ADDED", "b<a", 2), end_of_state(5)];
    let later = [frame("ADDED", "c<a", 6), frame("MODIFIED", "b", 7), frame("DELETED", "a", 8)];
    // One byte at a time where it matters least where it is cut.
    let whole = state.concat() + &later.concat();
    let pieces = whole.chars().map(String::from).collect();
    let (mut followed, script) = following([Reply::Body(pieces, End::Stays)]);
    assert_eq!(told(&mut followed, 5).await, "+b:1 synced +c:1 +b:0 -a");
    let asked = locked(&script.asked).clone();
    assert!(asked[0].starts_with("/apis/a.io/v1/flunders?watch=true&"), "{asked:?}");
    assert_eq!(asked.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_off_in_the_middle_goes_on_where_it_was_and_nothing_is_gone() {
    let mut half = frame("DELETED", "b<a", 9);
    half.truncate(half.len() / 2);
    let first = [frame("ADDED", "b<a", 2), end_of_state(5), frame("ADDED", "c", 8), half].concat();
    let (mut followed, script) = following([
        Reply::Body(vec![first], End::Breaks),
        Reply::Failed,
        Reply::Failed,
        Reply::Body(vec![frame("DELETED", "c", 10)], End::Stays),
    ]);
    assert_eq!(told(&mut followed, 60).await, "+b:1 synced -c");
    let asked = locked(&script.asked).clone();
    assert_eq!(asked.len(), 4);
    assert!(asked[1..].iter().all(|target| target.contains("&resourceVersion=8&")), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn half_of_a_list_makes_nothing_go_and_a_whole_one_what_it_does_not_have() {
    let mut half = page(&["b<a", "c"], 20);
    half.truncate(half.len() - 10);
    let (mut followed, script) = following([
        // It knows no watch-lists.
        Reply::Refused(400),
        Reply::Body(vec![page(&["a", "b<a", "c"], 5)], End::Ends),
        Reply::Refused(410),
        Reply::Body(vec![half], End::Breaks),
        Reply::Failed,
        Reply::Body(vec![page(&["b<a"], 21)], End::Ends),
    ]);
    let all = told(&mut followed, 300).await;
    let (first, rest) = all.split_once(" synced ").expect("a state");
    assert_eq!(first, "+b:1");
    let (puts, rest) = rest.split_at(rest.find('-').expect("some are gone"));
    assert!(puts.split_whitespace().all(|put| put == "+b:1"), "{all}");
    assert!(matches!(rest, "-a -c synced" | "-c -a synced"), "{all}");
    assert!(locked(&script.asked).last().is_some_and(|target| target.contains("watch=true")));
}

#[tokio::test(start_paused = true)]
async fn of_more_objects_than_are_followed_none_counts_and_they_are_asked_for_again_much_later() {
    let mut many = frame("ADDED", "first<a", 1);
    for number in 0..=FOLLOWED_OBJECTS_MAX {
        write!(many, r#"{{"type":"ADDED","object":{}}}"#, object(&format!("u{number}"), 2)).expect("a text");
    }
    let pieces = many.as_bytes().chunks(1 << 16).map(|piece| String::from_utf8_lossy(piece).into()).collect();
    let (mut followed, script) = following([Reply::Body(pieces, End::Stays)]);
    assert_eq!(told(&mut followed, 50).await, "+first:1 none");
    assert_eq!((followed.heard.len(), locked(&script.asked).len()), (0, 1));
    assert_eq!(told(&mut followed, 100).await, "");
    assert!(locked(&script.asked).len() >= 2, "they are");
}

#[tokio::test(start_paused = true)]
async fn an_object_without_an_end_is_not_read_to_its_end() {
    let begun = format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"{}"#, "x".repeat(1 << 20));
    let more = vec!["x".repeat(1 << 20); 64];
    let pieces = std::iter::once(begun).chain(more).collect();
    let (mut followed, script) = following([Reply::Body(pieces, End::Stays)]);
    assert_eq!(told(&mut followed, 5).await, "");
    let asked = locked(&script.asked).len();
    assert!(asked >= 2, "it is given up: {asked}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_asked_ever_more_seldom_and_at_once_when_it_is_there() {
    let (mut followed, script) = following(std::iter::repeat_with(|| Reply::Failed).take(1_000));
    assert_eq!(told(&mut followed, 600).await, "");
    let asked = locked(&script.asked).len();
    assert!((10..60).contains(&asked), "{asked}");
    locked(&script.replies).clear();
    let state = [frame("ADDED", "b<a", 2), end_of_state(5)].concat();
    locked(&script.replies).push_back(Reply::Body(vec![state], End::Stays));
    script.bell.ring();
    assert_eq!(told(&mut followed, 0).await, "+b:1 synced");
}
