//! What bounds an informer: the bytes that it holds, and how long it is blind.
//!
//! In: a simulated server, time that passes when nobody has anything to do. Out: what the informer holds,
//! tells and asks for.

mod server;
mod spill;

use std::time::Duration;

use forebay_informer::{
    AtLimit, Error, Fault, Handle, Informer, Notice, Options, Revision, Subscription, Why,
};
use forebay_rt::Clock;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use server::{DATA_BYTES, Server, informer, maps};

/// What a cache that fills has on its way and counts when it is at rest.
const PAGE_BYTES: usize = 4 << 20;

async fn until(mut done: impl FnMut() -> bool) -> Duration {
    let clock = Clock::system();
    let began = clock.now();
    while !done() {
        assert!(clock.now() < began + Duration::from_secs(3600), "it never comes");
        clock.sleep(Duration::from_millis(50)).await;
    }
    clock.now() - began
}

/// The most that it held at rest.
fn peak(informer: &Informer<ConfigMap>) -> usize {
    informer.stats()[0].1.held_bytes_max
}

fn revision(number: u64) -> Revision {
    Revision::new(number).expect("not 0")
}

/// Notices that there are now, by their kind, and how many of each in a row.
fn notices(subscription: &mut Subscription<ConfigMap>) -> Vec<(&'static str, usize)> {
    let mut told: Vec<(&'static str, usize)> = Vec::new();
    while let Some(notice) = subscription.try_next() {
        let kind = match notice {
            Notice::Added(_) => "added",
            Notice::Updated { .. } => "updated",
            Notice::Deleted(_) => "deleted",
            Notice::Synced => "synced",
            Notice::Relisted { .. } => "relisted",
            Notice::LetGo { .. } => "let go",
            Notice::Resync(_) => "resync",
            Notice::Ended => "ended",
        };
        match told.last_mut() {
            Some((last, count)) if *last == kind => *count += 1,
            _ => told.push((kind, 1)),
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn half_a_frame_that_stops_makes_it_blind_for_ten_seconds_and_lists_nothing() {
    let server = Server::new(3);
    let factory = server.factory(Options::default());
    let maps = informer(&factory, "a");
    maps.synced().await.expect("it syncs");
    server.lock().stalls = true;
    let last = server.put("map-00001");
    until(|| {
        server.lock().asked.len() > 1 || !server.lock().stalls || maps.age() > Some(Duration::from_secs(1))
    })
    .await;
    server.lock().stalls = false;
    let blind = until(|| maps.view().is_ok_and(|view| view.revision() == Some(revision(last)))).await;
    assert!(blind < Duration::from_secs(11), "{blind:?}");
    assert_eq!((server.lists(), maps.stats()[0].1.watches_asked), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn once_a_server_that_was_gone_answers_one_informer_the_others_ask_soon() {
    let server = Server::new(2);
    let factory = server.factory(Options { rate: None, ..Options::default() });
    let names: Vec<String> = (0..50).map(|number| format!("ns-{number}")).collect();
    let informers: Vec<Informer<ConfigMap>> = names.iter().map(|name| informer(&factory, name)).collect();
    for informer in &informers {
        informer.synced().await.expect("it syncs");
    }
    let clock = Clock::system();
    server.be_gone(true);
    clock.sleep(Duration::from_secs(300)).await;
    assert!(informers.iter().all(|it| matches!(it.health().failing, Some((Why::Fault(Fault::Refused), _)))));
    server.be_gone(false);
    let back = clock.now();
    let last = revision(server.put("map-00001"));
    until(|| informers.iter().all(|it| it.view().is_ok_and(|view| view.revision() == Some(last)))).await;
    // Each by itself waits for half a minute to a minute: the first of fifty of them for some seconds.
    let blind = clock.now() - back;
    assert!(blind < Duration::from_secs(12), "{blind:?}");
    assert_eq!(server.lists(), 50);
    // They do not come all at once.
    let times: Vec<_> = server.lock().asked.iter().filter(|(at, _)| *at >= back).map(|(at, _)| *at).collect();
    let most = times.iter().map(|from| {
        times.iter().filter(|at| (*from..*from + Duration::from_millis(300)).contains(at)).count()
    });
    assert!(most.max() < Some(25), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_too_much_is_refused_and_taken_in_once_it_fits() {
    let server = Server::new(2_000);
    let factory = server.factory(Options::default());
    let max = 3 << 20;
    let informer = factory.informer(&maps("a").max_bytes(max, AtLimit::Refuse)).expect("no path");
    let mut told = informer.subscribe();
    let refused = informer.synced().await;
    let Err(Error::OverLimit { over }) = refused else { panic!("{refused:?}") };
    assert!(over.held_bytes > over.max_bytes && over.max_bytes == max, "{over:?}");
    assert!(peak(&informer) <= max + PAGE_BYTES, "{}", peak(&informer));
    assert!(!informer.has_synced() && informer.held_bytes() == 0, "{}", informer.held_bytes());
    assert!(matches!(informer.view(), Err(Error::OverLimit { .. })));
    assert!(matches!(informer.wait_for(revision(5)).await, Err(Error::OverLimit { .. })));
    assert!(matches!(informer.health().failing, Some((Why::OverLimit, _))));
    assert!(factory.metrics().contains("informer_refused{collection=\"/api/v1/namespaces/a/configmaps\"} 1"));
    assert_eq!(notices(&mut told), []);
    for number in 0..1_800 {
        server.delete(&format!("map-{number:05}"));
    }
    until(|| informer.has_synced()).await;
    informer.synced().await.expect("it fits");
    assert_eq!((informer.view().expect("synced").len(), informer.health().failing), (200, None));
    assert_eq!(notices(&mut told), [("added", 200), ("synced", 1)]);
    assert!(server.lists() <= 3, "{}", server.lists());
    // It grows while it is followed.
    for number in 0..1_500 {
        server.put(&format!("map-{number:05}"));
    }
    until(|| !informer.has_synced()).await;
    let after = notices(&mut told);
    assert_eq!(after.last(), Some(&("let go", 1)), "{after:?}");
    assert!(after.iter().all(|(kind, _)| ["added", "let go"].contains(kind)), "{after:?}");
    assert_eq!(informer.held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_much_is_held_as_metadata_without_a_second_list() {
    for objects in [2_000, 200] {
        let server = Server::new(objects);
        let factory = server.factory(Options::default());
        let max = 3 << 20;
        let watched = maps("a").index("data.short").max_bytes(max, AtLimit::MetadataOnly);
        let informer = factory.informer(&watched).expect("no path");
        let by_app = informer
            .index_by(|map: &Handle<ConfigMap>| map.label("app").into_iter().map(str::to_owned).collect());
        let mut told = informer.subscribe();
        {
            informer.synced().await.expect("it syncs");
            assert_eq!(by_app.get("web").len(), objects);
            assert_eq!(informer.is_partial(), objects == 2_000);
            assert_eq!(notices(&mut told), [("added", objects), ("synced", 1)]);
            if objects == 200 {
                // It grows while it is followed.
                let whole = informer.view().expect("synced").get("a", "map-00007").expect("it is there");
                assert!(whole.typed().is_ok_and(|map| map.data.is_some()) && !whole.is_partial());
                for number in 200..2_000 {
                    server.put(&format!("map-{number:05}"));
                }
                let last = revision(server.lock().revision);
                until(|| informer.view().is_ok_and(|view| view.revision() == Some(last))).await;
                until(|| informer.is_partial()).await;
                assert_eq!(notices(&mut told), [("added", 1_800)]);
            }
        }
        assert!(peak(&informer) <= max + PAGE_BYTES, "{}", peak(&informer));
        let last = revision(server.put("map-00001"));
        let view = informer.wait_for(last).await.expect("it comes");
        assert_eq!((view.len(), server.lists()), (2_000, 1));
        assert!(informer.held_bytes() < 2_000 * DATA_BYTES / 6, "{}", informer.held_bytes());
        let found = by_app.get("web");
        assert!(found.len() == 2_000 && found.iter().all(Handle::is_partial), "an index holds no object");
        for name in ["map-00001", "map-00007", "map-01999"] {
            let map = view.get("a", name).expect("it is there");
            let error = map.typed().expect_err("it is not all there");
            assert!(map.is_partial() && error.is_partial, "{error}");
            assert!(error.to_string().contains("no more than its metadata is held"), "{error}");
            assert_eq!(map.metadata().expect("metadata").uid, name);
            assert_eq!((map.label("app"), map.kind()), (Some("web"), "ConfigMap"));
            assert!(
                map.field("data.text").is_err()
                    && map.field("metadata.annotations.x").is_ok_and(|it| it.is_none())
            );
            let partial = map.cast::<PartialObjectMeta<ConfigMap>>();
            assert_eq!(partial.typed().expect("metadata").metadata.name.as_deref(), Some(name));
            assert_eq!(view.indexed("data.short", name).expect("an index").count(), 1);
        }
        assert_eq!(notices(&mut told), [("updated", 1)]);
        assert!(informer.health().failing.is_none() && factory.metrics().contains("informer_partial{"));
    }
}

#[tokio::test(start_paused = true)]
async fn where_metadata_is_too_much_as_well_it_is_refused() {
    let server = Server::new(2_000);
    let factory =
        server.factory(Options { max_bytes: Some((256 << 10, AtLimit::MetadataOnly)), ..Options::default() });
    let informer = informer(&factory, "a");
    assert!(matches!(informer.synced().await, Err(Error::OverLimit { .. })));
    assert_eq!((informer.held_bytes(), server.lists()), (0, 1));
    for number in 0..1_900 {
        server.delete(&format!("map-{number:05}"));
    }
    until(|| informer.has_synced()).await;
    assert!(informer.is_partial());
}
