//! When a factory's informers ask, and in which order: a server that refuses, in the test's own time.
//!
//! In: what is refused how. Out: who asked when.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forebay_informer::{Factory, Informer, Options, Rate, Watched};
use forebay_rt::{Clock, Instant, Random};
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;

/// Who asked, by namespace, and when.
type Asked = Arc<Mutex<Vec<(String, Duration)>>>;

/// A factory of a server that answers everything with a code, and perhaps when to come back.
fn factory(
    rate: Option<Rate>,
    refuses: impl Fn(&str) -> (u16, Option<u64>) + Clone + Send + 'static,
) -> (Factory, Asked) {
    let (clock, asked) = (Clock::system(), Asked::default());
    let (began, seen, now): (Instant, _, _) = (clock.now(), asked.clone(), clock.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let namespace = request.uri().path().split('/').nth(4).unwrap_or_default().to_string();
        let (code, retry) = refuses(&namespace);
        seen.lock().expect("sound").push((namespace, now.now().duration_since(began)));
        let mut answer = Response::builder().status(code);
        if let Some(seconds) = retry {
            answer = answer.header("Retry-After", seconds);
        }
        let answer = answer.body(Body::from(b"{}".to_vec())).expect("an answer");
        async move { Ok::<_, Infallible>(answer) }
    });
    let client = kube::Client::new(service, "here");
    let options = Options { random: Random::seeded(7), rate, clock, ..Options::default() };
    (Factory::new(client, options), asked)
}

fn informer(factory: &Factory, namespace: &str) -> Informer<ConfigMap> {
    factory.informer(&Watched::<ConfigMap>::all().namespace(namespace)).expect("no index")
}

/// Lets time pass until so many have asked.
async fn until(asked: &Asked, count: usize) -> Vec<(String, Duration)> {
    loop {
        let seen = asked.lock().expect("sound").clone();
        if seen.len() >= count {
            return seen;
        }
        Clock::system().sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_waits_for_is_asked_for_before_the_rest() {
    // A token a second, of which the first goes to whoever comes first; who is refused comes back much later.
    let (factory, asked) = factory(Some(Rate { qps: 1.0, burst: 1 }), |_| (429, Some(300)));
    let informers = ["first", "idle", "handled", "awaited", "idle-too"].map(|name| informer(&factory, name));
    let _handling = informers[2].handle("a handler", |_| async {});
    let awaited = informers[3].clone();
    let waiter = tokio::spawn(async move { awaited.synced().await });
    // It waits before anybody asks.
    tokio::task::yield_now().await;
    let seen = until(&asked, 5).await;
    let order: Vec<&str> = seen.iter().map(|(namespace, _)| namespace.as_str()).collect();
    assert_eq!(order[0], "first");
    assert_eq!(order[3..], ["idle", "idle-too"], "{order:?}");
    assert!(order[1..3].contains(&"handled") && order[1..3].contains(&"awaited"), "{order:?}");
    waiter.abort();
}

#[tokio::test(start_paused = true)]
async fn each_comes_back_in_its_own_slot_and_holds_up_no_other() {
    let slots = |namespace: &str| match namespace {
        "soon" => (429, Some(2)),
        "late" => (429, Some(20)),
        _ => (429, Some(9)),
    };
    let (factory, asked) = factory(None, slots);
    let _informers = ["late", "soon", "between"].map(|name| informer(&factory, name));
    let seen = until(&asked, 30).await;
    for (name, slot) in [("soon", 2), ("between", 9), ("late", 20)] {
        let times: Vec<Duration> = seen.iter().filter(|(of, _)| of == name).map(|(_, at)| *at).collect();
        assert!(times.len() >= 2, "{name}: {seen:?}");
        for pair in times.windows(2) {
            let wait = pair[1] - pair[0];
            let slot = Duration::from_secs(slot);
            // A timer may ring a millisecond late.
            let latest = slot + Duration::from_millis(1_005);
            assert!((slot..latest).contains(&wait), "{name}: {wait:?}");
        }
    }
}
