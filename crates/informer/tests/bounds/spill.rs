//! What an informer does that puts into a file what is more than it may hold: it serves all of it, and says
//! so where the file fails.

use std::path::{Path, PathBuf};

use forebay_informer::{AtLimit, Error, Informer, Notice, Options, Why};
use k8s_openapi::api::core::v1::ConfigMap;

use crate::server::{DATA_BYTES, Server, maps};
use crate::{notices, peak, revision, until};

const OBJECTS: usize = 8_000;
/// The headers and places of 9,000 objects, which never go into a file, are 2.1 MB of it.
const MAX: usize = 3 << 20;
/// Pages of a cache that fills which are on their way to rest, at rest: they come on top. All of it is twice
/// that.
const MORE: usize = 10 << 20;

/// A directory that is gone with the test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("forebay-bounds-{name}-{}", std::process::id()));
        Dir(path)
    }

    fn spill(&self, max_bytes: u64) -> AtLimit {
        AtLimit::Spill { dir: self.0.clone(), max_bytes }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn informer(
    server: &std::sync::Arc<Server>,
    at_limit: AtLimit,
) -> (forebay_informer::Factory, Informer<ConfigMap>) {
    let factory = server.factory(Options::default());
    let watched = maps("a").index("data.short").max_bytes(MAX, at_limit);
    let informer = factory.informer(&watched).expect("no path");
    (factory, informer)
}

/// Every object whole, by key and by index.
fn all_is_there(informer: &Informer<ConfigMap>, objects: usize) {
    let view = informer.view().expect("synced");
    assert_eq!(view.len(), objects);
    for map in view.iter() {
        let data = map.typed().expect("it is whole").data.as_ref().expect("data");
        assert!(data.get("text").is_some_and(|text| text.len() >= DATA_BYTES), "{}", map.name());
        assert!(!map.is_partial() && map.metadata().expect("metadata").uid == map.name());
    }
    assert_eq!(view.indexed("data.short", "map-00007").expect("an index").count(), 1);
}

/// What is done to a file.
#[cfg(target_os = "linux")]
type Spoil = fn(&std::fs::File);

/// The files below `dir` that this process has open and that have no name.
#[cfg(target_os = "linux")]
fn open_files(dir: &Path) -> Vec<PathBuf> {
    let open = std::fs::read_dir("/proc/self/fd").expect("it is there").flatten();
    let is_below = |fd: &PathBuf| std::fs::read_link(fd).is_ok_and(|to| to.starts_with(dir));
    open.map(|entry| entry.path()).filter(is_below).collect()
}

#[tokio::test(start_paused = true)]
async fn all_is_served_and_no_more_is_held_than_may_be() {
    let (server, dir) = (Server::new(OBJECTS), Dir::new("served"));
    let (factory, informer) = informer(&server, dir.spill(64 << 20));
    let mut told = informer.subscribe();
    informer.synced().await.expect("it syncs");
    assert_eq!(notices(&mut told), [("added", OBJECTS), ("synced", 1)]);
    all_is_there(&informer, OBJECTS);
    assert!(informer.held_bytes() <= MAX && peak(&informer) <= MAX + MORE, "{}", peak(&informer));
    let stats = informer.stats()[0].1.clone();
    assert!(stats.spilled_bytes > 1 << 20 && stats.spill_losses == 0, "{stats:?}");
    assert!(factory.metrics().contains(&format!(
        "informer_spilled_bytes{{collection=\"/api/v1/namespaces/a/configmaps\"}} {}",
        stats.spilled_bytes
    )));
    assert!(std::fs::read_dir(&dir.0).expect("it is there").next().is_none(), "the file has no name");
    // It changes and grows while it is followed: who follows has all of both.
    for number in 7_500..9_000 {
        server.put(&format!("map-{number:05}"));
    }
    server.delete("map-00003");
    let last = revision(server.lock().revision);
    informer.wait_for(last).await.expect("it comes");
    let (mut updated, mut added) = (0, 0);
    while let Some(notice) = told.try_next() {
        match notice {
            Notice::Updated { old, new } => {
                assert_eq!(old.name(), new.name());
                assert!(old.typed().is_ok() && new.typed().is_ok());
                updated += 1;
            }
            Notice::Added(_) => added += 1,
            Notice::Deleted(gone) => {
                assert_eq!(gone.typed().expect("whole").metadata.name.as_deref(), Some("map-00003"))
            }
            _ => panic!("nothing else happened"),
        }
    }
    assert_eq!((updated, added, server.lists()), (500, 1_000, 1));
    until(|| informer.held_bytes() <= MAX + (1 << 20)).await;
    all_is_there(&informer, 8_999);
    assert_eq!(informer.health().failing, None);
    assert_eq!(informer.stats()[0].1.spill_losses, 0);
    drop((told, informer));
    factory.stop(std::time::Duration::from_secs(10)).await;
    #[cfg(target_os = "linux")]
    assert_eq!(open_files(&dir.0), Vec::<PathBuf>::new());
}

#[tokio::test(start_paused = true)]
async fn what_is_more_than_the_file_may_have_is_refused() {
    let (server, dir) = (Server::new(OBJECTS), Dir::new("full"));
    let (_factory, informer) = informer(&server, dir.spill(512 << 10));
    let refused = informer.synced().await;
    let Err(Error::OverLimit { over }) = refused else { panic!("{refused:?}") };
    assert!(over.held_bytes > MAX && peak(&informer) <= MAX + MORE, "{over:?}");
    assert!(matches!(informer.health().failing, Some((Why::OverLimit, _))));
    assert_eq!((informer.held_bytes(), informer.stats()[0].1.spilled_bytes), (0, 0));
    for number in 0..7_500 {
        server.delete(&format!("map-{number:05}"));
    }
    // Into a file that is all free again.
    until(|| informer.has_synced()).await;
    assert_eq!(informer.view().expect("synced").iter().filter(|map| map.typed().is_ok()).count(), 500);
}

#[tokio::test(start_paused = true)]
async fn where_no_file_can_be_made_it_is_refused() {
    let (server, dir) = (Server::new(OBJECTS), Dir::new("none"));
    std::fs::write(&dir.0, "not a directory").expect("a file");
    let (_factory, informer) = informer(&server, dir.spill(64 << 20));
    assert!(matches!(informer.synced().await, Err(Error::OverLimit { .. })));
    assert_eq!((informer.held_bytes(), informer.stats()[0].1.spilled_bytes), (0, 0));
    std::fs::remove_file(&dir.0).expect("it is there");
    until(|| informer.has_synced()).await;
    all_is_there(&informer, OBJECTS);
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn bytes_that_do_not_come_back_are_an_error_and_a_list() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let spoils: [(&str, Spoil); 2] = [
        ("cut", |file| file.set_len(1_000).expect("it is cut")),
        ("spoiled", |file| {
            let len = file.metadata().expect("it is open").len();
            for at in (0..len).step_by(512) {
                file.write_all_at(b"?", at + 100).expect("it is written");
            }
        }),
    ];
    for (name, spoil) in spoils {
        let (server, dir) = (Server::new(OBJECTS), Dir::new(name));
        let (factory, informer) = informer(&server, dir.spill(64 << 20));
        let mut told = informer.subscribe();
        informer.synced().await.expect("it syncs");
        assert_eq!(notices(&mut told), [("added", OBJECTS), ("synced", 1)]);
        let files = open_files(&dir.0);
        assert_eq!(files.len(), 1);
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&files[0]).expect("it is there");
        assert_eq!(file.metadata().expect("it is open").mode() & 0o777, 0o600);
        spoil(&file);
        drop(file);
        let view = informer.view().expect("synced");
        let failed = view.iter().filter_map(|map| map.typed().err()).collect::<Vec<_>>();
        assert!(
            failed.len() > OBJECTS / 4 && failed.iter().all(|error| error.is_damaged),
            "{}",
            failed.len()
        );
        let lost = view.iter().find(|map| map.field("data.text").is_err()).expect("one of them");
        assert!(lost.to_json().is_err() && lost.metadata().is_err_and(|error| error.is_damaged));
        assert_eq!((lost.kind(), lost.label("app"), lost.is_partial()), ("ConfigMap", Some("web"), false));
        until(|| informer.view().is_err()).await;
        assert!(matches!(informer.view(), Err(Error::SpillLost)), "it says so");
        assert!(informer.health().failing.is_some() && informer.stats()[0].1.spill_losses == 1);
        assert!(factory.metrics().contains("informer_spill_losses_total"));
        until(|| informer.has_synced()).await;
        all_is_there(&informer, OBJECTS);
        assert_eq!((server.lists(), informer.health().failing), (2, None));
        assert_eq!(notices(&mut told), [("let go", 1), ("added", OBJECTS), ("synced", 1)]);
        drop((view, lost));
        assert_eq!(open_files(&dir.0).len(), 1, "the old one is gone with who held it");
    }
}
