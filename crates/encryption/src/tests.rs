//! Encryption as a whole: from a file to bytes in a store, through rotations, and with a plugin.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, Expect, FeedStep, Op, Range, Txn, TxnResponse};
use forebay_embedded::{Engine, Options};
use forebay_hook::kms::{KmsMethods, KmsMischief, KmsPlugin};
use forebay_rt::Clock;
use forebay_scratch::Scratch;

use super::*;

const HEAD: &str = "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n";
const SECRET: &str = "/registry/secrets/default/a";
const MAP: &str = "/registry/configmaps/default/a";
const PANDA: &str = "/registry/bears.example/pandas/default/a";
const PLAIN: &[u8] = b"{\"kind\":\"Secret\",\"data\":\"plain to see\"}";

/// A rule with these providers, each a line of YAML.
fn rule(resources: &str, providers: &[&str]) -> String {
    let mut text = format!("- resources: [{resources}]\n  providers:\n");
    providers.iter().for_each(|provider| text.push_str(&format!("  - {provider}\n")));
    text
}

fn keys(provider: &str, names: &[&str]) -> String {
    let key = |name: &&str| {
        let secret = name.bytes().cycle().take(32).map(char::from).collect::<String>();
        use base64::Engine as _;
        let secret = base64::engine::general_purpose::STANDARD.encode(secret);
        format!("{{name: {name}, secret: {secret}}}")
    };
    let keys: Vec<String> = names.iter().map(key).collect();
    format!("{provider}: {{keys: [{}]}}", keys.join(", "))
}

fn write(scratch: &Scratch, rules: &[String]) -> std::path::PathBuf {
    let file = scratch.path().join("encryption.yaml");
    std::fs::write(&file, format!("{HEAD}{}", rules.concat())).expect("written");
    file
}

async fn try_load(file: &Path, reload: Reload) -> Result<Arc<Encryption>, String> {
    let (prefix, clock) = ("/registry".to_owned(), Clock::system());
    Encryption::load(EncryptionSettings { file: file.to_owned(), reload, prefix, clock }).await
}

async fn load(scratch: &Scratch, rules: &[String]) -> Arc<Encryption> {
    try_load(&write(scratch, rules), Reload::Automatic).await.expect("in force")
}

fn seal(encryption: &Encryption, key: &str) -> Bytes {
    encryption.seal(key, &Bytes::from_static(PLAIN)).expect("sealed")
}

/// The value and whether it is stale, or why it cannot be opened.
fn open(encryption: &Encryption, key: &str, kept: &Bytes) -> Result<bool, String> {
    let opened = encryption.open(key, kept).map_err(|error| error.why)?;
    assert_eq!(opened.value, PLAIN);
    Ok(opened.stale)
}

fn has(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[tokio::test]
async fn what_is_kept_begins_as_upstream_writes_it() {
    let scratch = Scratch::new();
    for (provider, prefix) in [
        ("aesgcm", "k8s:enc:aesgcm:v1:key1:"),
        ("aescbc", "k8s:enc:aescbc:v1:key1:"),
        ("secretbox", "k8s:enc:secretbox:v1:key1:"),
    ] {
        let encryption = load(&scratch, &[rule("secrets", &[&keys(provider, &["key1"])])]).await;
        let kept = seal(&encryption, SECRET);
        assert!(kept.starts_with(prefix.as_bytes()) && !has(&kept, b"plain to see"), "{provider}");
        assert_eq!(open(&encryption, SECRET, &kept), Ok(false), "{provider}");
        // Of others nothing is encrypted.
        assert_eq!(seal(&encryption, MAP), PLAIN, "{provider}");
        let elsewhere = open(&encryption, MAP, &kept);
        assert_eq!(elsewhere, Err("identity transformer tried to read encrypted data".to_owned()));
    }
}

#[tokio::test]
async fn the_first_provider_writes_and_what_another_one_wrote_is_stale() {
    let scratch = Scratch::new();
    let plain = Bytes::from_static(PLAIN);
    let before = load(&scratch, &[rule("secrets", &[&keys("aescbc", &["key1"]), "identity: {}"])]).await;
    assert_eq!(open(&before, SECRET, &plain), Ok(true), "it is to be encrypted");
    let old = seal(&before, SECRET);
    // The new key can be read everywhere before it is written anywhere.
    let between = load(&scratch, &[rule("secrets", &[&keys("aescbc", &["key1", "key2"])])]).await;
    assert_eq!(open(&between, SECRET, &old), Ok(false));
    let after = load(&scratch, &[rule("secrets", &[&keys("aescbc", &["key2", "key1"])])]).await;
    assert_eq!(open(&after, SECRET, &old), Ok(true));
    let new = seal(&after, SECRET);
    assert!(new.starts_with(b"k8s:enc:aescbc:v1:key2:"));
    assert_eq!(open(&between, SECRET, &new), Ok(true), "as seen by one that was not told yet");
    let gone = load(&scratch, &[rule("secrets", &[&keys("aescbc", &["key2"])])]).await;
    let why = "no matching key was found for the provided AES transformer";
    assert_eq!(open(&gone, SECRET, &old), Err(why.to_owned()));
    assert_eq!(open(&gone, SECRET, &plain), Err("no matching prefix found".to_owned()));
    // Away from encryption.
    let away = load(&scratch, &[rule("secrets", &["identity: {}", &keys("aescbc", &["key2"])])]).await;
    assert_eq!(open(&away, SECRET, &new), Ok(true));
    assert_eq!(seal(&away, SECRET), PLAIN);
    assert_eq!(open(&away, SECRET, &plain), Ok(false));
}

#[tokio::test]
async fn the_same_provider_twice_reads_with_the_keys_of_both() {
    let scratch = Scratch::new();
    let first = load(&scratch, &[rule("secrets", &[&keys("secretbox", &["same"])])]).await;
    let kept = seal(&first, SECRET);
    // A key of the same name, and another secret.
    let other = "secretbox: {keys: [{name: same, secret: 'YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY='}]}";
    let both = load(&scratch, &[rule("secrets", &[other, &keys("secretbox", &["same"])])]).await;
    assert_eq!(open(&both, SECRET, &kept), Ok(true));
    let neither = load(&scratch, &[rule("secrets", &[other])]).await;
    let why = "output array was not large enough for encryption";
    assert_eq!(open(&neither, SECRET, &kept), Err(why.to_owned()));
}

#[tokio::test]
async fn the_first_rule_of_a_resource_counts_and_wildcards_take_the_rest() {
    let scratch = Scratch::new();
    let rules = [
        rule("configmaps", &["identity: {}"]),
        rule("secrets, '*.apps'", &[&keys("aesgcm", &["some"])]),
        rule("'*.*'", &[&keys("aesgcm", &["rest"])]),
    ];
    let encryption = load(&scratch, &rules).await;
    for (key, prefix) in [
        (MAP, "{"),
        (SECRET, "k8s:enc:aesgcm:v1:some:"),
        ("/registry/deployments/default/a", "k8s:enc:aesgcm:v1:some:"),
        (PANDA, "k8s:enc:aesgcm:v1:rest:"),
        ("/registry/events/default/a", "k8s:enc:aesgcm:v1:rest:"),
        // What servers keep beside objects.
        ("/registry/masterleases/10.0.0.1", "{"),
        ("/registry/ranges/serviceips", "{"),
    ] {
        let kept = seal(&encryption, key);
        assert!(kept.starts_with(prefix.as_bytes()), "{key}: {kept:?}");
        assert_eq!(open(&encryption, key, &kept), Ok(false), "{key}");
    }
    let masked = [rule("'*.'", &["identity: {}"]), rule("secrets", &["identity: {}"])];
    let why = try_load(&write(&scratch, &masked), Reload::Never).await.err();
    let expected =
        "error while building transformers: resource \"secrets\" is masked by earlier rule \"*.\"".to_owned();
    assert_eq!(why, Some(expected));
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_said_to_be_so_and_kms_v1_is_refused() {
    let scratch = Scratch::new();
    let file = scratch.path().join("none.yaml");
    let shown = file.display();
    let why = try_load(&file, Reload::Never).await.err().expect("none");
    let head = "error while parsing file: error while loading file";
    assert!(
        why.starts_with(&format!("{head}: error reading encryption provider configuration file \"{shown}\""))
    );
    std::fs::write(&file, "").expect("written");
    let why = try_load(&file, Reload::Never).await.err();
    assert_eq!(why, Some(format!("{head}: encryption provider configuration file \"{shown}\" is empty")));
    let first = rule("secrets", &["kms: {name: p, endpoint: 'unix:///tmp/p.sock'}"]);
    let why = try_load(&write(&scratch, &[first]), Reload::Never).await.err().expect("v1");
    assert!(why.contains("KMSv1 is deprecated") && why.contains("Use KMSv2 instead."), "{why}");
}

#[tokio::test]
async fn another_file_is_taken_in_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let encryption = load(&scratch, &[rule("secrets", &[&keys("aesgcm", &["one"])])]).await;
    assert_eq!(encryption.reload().await, Ok(false), "nothing has changed");
    let old = seal(&encryption, SECRET);
    write(&scratch, &[rule("secrets", &[&keys("aesgcm", &["two", "one"])])]);
    assert_eq!(encryption.reload().await, Ok(true));
    assert_eq!(open(&encryption, SECRET, &old), Ok(true));
    assert!(seal(&encryption, SECRET).starts_with(b"k8s:enc:aesgcm:v1:two:"));
    write(&scratch, &[rule("Secrets", &["identity: {}"])]);
    let why = encryption.reload().await.expect_err("wrong");
    assert!(why.contains("resource name should not contain capital letters"), "{why}");
    assert!(seal(&encryption, SECRET).starts_with(b"k8s:enc:aesgcm:v1:two:"), "as before");
}

#[tokio::test]
async fn a_file_that_is_what_it_was_by_the_time_it_is_read_is_no_other_and_another_is_told_of() {
    let scratch = Scratch::new();
    let encryption = load(&scratch, &[rule("secrets", &[&keys("aesgcm", &["one"])])]).await;
    // Another file was there when it was looked whether there is one.
    let (configuration, hash) =
        in_force::read_configuration(&encryption.settings.file, Reload::Automatic).expect("it is well");
    assert_eq!(encryption.put_in_force(&configuration, hash).await, Ok(false));
    let mut rekeyed = polled(encryption.rekeyed(0));
    assert!(rekeyed.is_pending(), "it is the same");
    write(&scratch, &[rule("secrets", &[&keys("aesgcm", &["two", "one"])])]);
    assert_eq!(encryption.reload().await, Ok(true));
    assert_eq!(rekeyed.after().await, 1);
    assert!(polled(encryption.rekeyed(1)).is_pending());
}

/// A future that was polled once.
fn polled<F: Future>(future: F) -> Polled<F> {
    let mut future = Box::pin(future);
    let is_pending =
        future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending();
    Polled { future, is_pending }
}

struct Polled<F> {
    future: std::pin::Pin<Box<F>>,
    is_pending: bool,
}

impl<F: Future> Polled<F> {
    fn is_pending(&self) -> bool {
        self.is_pending
    }

    async fn after(&mut self) -> F::Output {
        (&mut self.future).await
    }
}

#[tokio::test]
async fn a_store_in_front_keeps_nothing_in_the_clear_and_reads_all_of_it() {
    let scratch = Scratch::new();
    let below = Engine::open_in_memory(Options::default()).expect("a store");
    let encryption = load(&scratch, &[rule("secrets", &[&keys("aesgcm", &["one"])])]).await;
    let front = EncryptedStore::new(below.clone(), encryption);
    let (secret, map) = (Key::new(SECRET), Key::new(MAP));
    let put = |key: &Key, expect| Txn {
        key: key.clone(),
        expect,
        op: Op::Put { value: Bytes::from_static(PLAIN), ttl: None },
    };
    let mut feed = front.feed("/registry/secrets/", front.barrier().await.expect("open")).await.expect("fed");
    let response = front.commit(put(&secret, Expect::Absent)).await.expect("committed");
    let TxnResponse::Committed(revision) = response else { panic!("{response:?}") };
    front.commit(put(&map, Expect::Absent)).await.expect("committed");
    let kept = below.get(&secret).await.expect("open").expect("there");
    assert!(kept.value.starts_with(b"k8s:enc:aesgcm:v1:one:") && !has(&kept.value, b"plain to see"));
    assert_eq!(below.get(&map).await.expect("open").expect("there").value, PLAIN);
    let found = front.get(&secret).await.expect("open").expect("there");
    assert_eq!((found.revision, &found.value[..]), (revision, PLAIN));
    let conflict = front.commit(put(&secret, Expect::Absent)).await.expect("answered");
    assert_eq!(conflict, TxnResponse::Conflict(Some(found)));
    let all = Range { prefix: Key::new("/registry/"), start_after: None, limit: 10, at: None };
    let page = front.range(all.clone()).await.expect("open");
    assert_eq!(page.items.iter().map(|(_, found)| &found.value[..]).collect::<Vec<_>>(), [PLAIN, PLAIN]);
    let mut changes = Vec::new();
    while changes.is_empty() {
        feed.ready().await;
        let step = feed.take(10, &mut changes).expect("no gap");
        assert!(!matches!(step, FeedStep::Changes) || !changes.is_empty());
    }
    assert_eq!(changes[0].value.as_deref(), Some(PLAIN));
    assert!(!front.is_stale(&secret).await.expect("open"));

    // Under another key the old one is stale; without it, it is told why it cannot be read, and the rest is.
    let both = load(&scratch, &[rule("secrets", &[&keys("aesgcm", &["two", "one"])])]).await;
    let front = EncryptedStore::new(below.clone(), both);
    assert!(front.may_be_stale() && front.is_stale(&secret).await.expect("open"));
    assert!(!front.is_stale(&map).await.expect("open"));
    let without = load(&scratch, &[rule("secrets", &[&keys("aesgcm", &["two"])])]).await;
    let front = EncryptedStore::new(below, without);
    let why: &[u8] = b"k8s:enc:\0no matching key was found for the provided AES transformer";
    assert_eq!(front.get(&secret).await.expect("open").expect("there").value, why);
    let page = front.range(all).await.expect("open");
    assert_eq!(page.items.iter().map(|(_, found)| &found.value[..]).collect::<Vec<_>>(), [PLAIN, why]);
}

fn plugin_rule(plugin: &KmsPlugin) -> String {
    let kms =
        format!("kms: {{apiVersion: v2, name: plugin, timeout: 2s, endpoint: '{}'}}", plugin.endpoint());
    rule("secrets", &[&kms, "identity: {}"])
}

async fn fetched(encryption: &Encryption, kept: &Bytes) -> Result<bool, String> {
    if let Some(lacking) = encryption.lacks(SECRET, kept) {
        lacking.fetch().await.map_err(|error| format!("later: {}", error.why))?;
    }
    open(encryption, SECRET, kept)
}

#[tokio::test]
async fn a_plugin_is_asked_once_for_a_seed_and_again_after_a_start() {
    let scratch = Scratch::new();
    let plugin = KmsPlugin::start(&scratch.path().join("kms.sock"), "key1");
    let encryption = load(&scratch, &[plugin_rule(&plugin)]).await;
    assert_eq!(encryption.check(), Ok(()));
    let kept: Vec<Bytes> = (0..100).map(|_| seal(&encryption, SECRET)).collect();
    assert!(kept[0].starts_with(b"k8s:enc:kms:v2:plugin:") && !has(&kept[0], b"plain to see"));
    assert_eq!(fetched(&encryption, &kept[0]).await, Ok(false));
    assert_eq!((plugin.asked().encrypt, plugin.asked().decrypt), (1, 0));
    // Another start has a seed of its own, and asks for the one of before once.
    let again = load(&scratch, &[plugin_rule(&plugin)]).await;
    for kept in &kept {
        assert_eq!(fetched(&again, kept).await, Ok(false));
    }
    assert_eq!((plugin.asked().encrypt, plugin.asked().decrypt), (2, 1));
    // What is kept is bound to its place.
    let elsewhere = again.open("/registry/secrets/default/b", &kept[0]).expect_err("moved");
    assert_eq!(elsewhere.why, "cipher: message authentication failed");
    let counted = again.metrics().counted();
    assert_eq!((counted.cache_misses, counted.data_keys.values().sum::<usize>()), (1, 2));
}

#[tokio::test]
async fn another_key_of_the_plugin_makes_what_was_written_stale() {
    let scratch = Scratch::new();
    let plugin = KmsPlugin::start(&scratch.path().join("kms.sock"), "key1");
    let encryption = load(&scratch, &[plugin_rule(&plugin)]).await;
    let old = seal(&encryption, SECRET);
    plugin.use_key("key2");
    assert_eq!(open(&encryption, SECRET, &old), Ok(false), "it was not asked yet");
    assert_eq!(encryption.current.load().ask_all().await, Ok(()));
    assert_eq!(open(&encryption, SECRET, &old), Ok(true));
    let new = seal(&encryption, SECRET);
    assert_eq!(open(&encryption, SECRET, &new), Ok(false));
    assert_eq!(plugin.asked().encrypt, 2);
}

#[tokio::test]
async fn a_plugin_that_is_not_there_yet_is_waited_for_and_one_that_refuses_is_told_of() {
    let scratch = Scratch::new();
    let socket = scratch.path().join("kms.sock");
    let plugin = KmsPlugin::start(&socket, "key1");
    let rules = [plugin_rule(&plugin)];
    let kept = seal(&*load(&scratch, &rules).await, SECRET);
    drop(plugin);
    let encryption = load(&scratch, &rules).await;
    let why = encryption.check().expect_err("it is not there");
    let expected =
        "kms-provider-0: failed to perform status section of the healthz check for KMS Provider plugin";
    assert!(why.starts_with(expected), "{why}");
    let sealed = encryption.seal(SECRET, &Bytes::from_static(PLAIN)).expect_err("nobody encrypts");
    assert_eq!(sealed.why, "got unexpected nil transformer");
    assert!(fetched(&encryption, &kept).await.expect_err("not now").starts_with("later: "));
    let plugin = KmsPlugin::start(&socket, "key1");
    assert_eq!(encryption.current.load().ask_all().await, Ok(()));
    assert_eq!(fetched(&encryption, &kept).await, Ok(false));

    // One that says that the key is gone is believed, and asked no more for a while.
    plugin.forget("key1");
    plugin.use_key("key2");
    let later = load(&scratch, &rules).await;
    let why = fetched(&later, &kept).await.expect_err("gone");
    assert_eq!(why, "failed to decrypt DEK, error: rpc error: code = NotFound desc = no key key1");
    let asked = plugin.asked().decrypt;
    assert_eq!(fetched(&later, &kept).await, Err(why));
    assert_eq!(plugin.asked().decrypt, asked);
    plugin.be("unwell");
    let why = later.current.load().ask_all().await.expect_err("unwell");
    assert!(why.contains("got unexpected healthz status: unwell"), "{why}");
    // What is known goes on.
    assert_eq!(fetched(&later, &seal(&later, SECRET)).await, Ok(false));
}

#[tokio::test]
async fn a_plugin_that_is_well_and_never_decrypts_hinders_until_it_does() {
    let scratch = Scratch::new();
    let plugin = KmsPlugin::start(&scratch.path().join("kms.sock"), "key1");
    let rules = [plugin_rule(&plugin)];
    let kept = seal(&*load(&scratch, &rules).await, SECRET);
    plugin.misbehave(KmsMischief::Hangs, KmsMethods::Decrypt);
    let encryption = load(&scratch, &rules).await;
    assert_eq!((encryption.check(), encryption.hindered()), (Ok(()), None), "nobody was asked yet");
    let why = fetched(&encryption, &kept).await.expect_err("it does not answer");
    assert!(why.starts_with("later: failed to decrypt DEK"), "{why}");
    // Of itself it says that it is well; who waits for all that is kept waits for long.
    assert_eq!(encryption.check(), Ok(()));
    assert!(encryption.hindered().is_some_and(|why| why.contains("deadline exceeded")));
    plugin.behave();
    while fetched(&encryption, &kept).await != Ok(false) {
        tokio::task::yield_now().await;
    }
    assert_eq!(encryption.hindered(), None);
    plugin.be("unwell");
    assert!(encryption.current.load().ask_all().await.is_err());
    assert!(encryption.hindered().is_some_and(|why| why.contains("unwell")));
}

#[tokio::test]
async fn a_feed_stands_still_while_a_plugin_does_not_answer() {
    let scratch = Scratch::new();
    let plugin = KmsPlugin::start(&scratch.path().join("kms.sock"), "key1");
    let rules = [plugin_rule(&plugin)];
    let below = Engine::open_in_memory(Options::default()).expect("a store");
    let writer = EncryptedStore::new(below.clone(), load(&scratch, &rules).await);
    let reader = EncryptedStore::new(below, load(&scratch, &rules).await);
    let begin = reader.barrier().await.expect("open");
    let mut feed = reader.feed("/registry/secrets/", begin).await.expect("fed");
    let op = Op::Put { value: Bytes::from_static(PLAIN), ttl: None };
    let txn = Txn { key: Key::new(SECRET), expect: Expect::Absent, op };
    writer.commit(txn).await.expect("committed");
    plugin.fail(Some((14, "not now")));
    let mut changes = Vec::new();
    feed.ready().await;
    while matches!(feed.take(10, &mut changes).expect("no gap"), FeedStep::Progress(_)) {
        feed.ready().await;
    }
    assert_eq!(changes, [], "what cannot be read yet is not told");
    plugin.fail(None);
    while changes.is_empty() {
        feed.ready().await;
        feed.take(10, &mut changes).expect("no gap");
    }
    assert_eq!(changes[0].value.as_deref(), Some(PLAIN));
}

/// A Secret under the key of a plugin, in a store that another configuration reads.
async fn written(scratch: &Scratch, plugin: &KmsPlugin) -> (Arc<Engine>, Arc<Encryption>) {
    let rules = [plugin_rule(plugin)];
    let below = Engine::open_in_memory(Options::default()).expect("a store");
    let writer = EncryptedStore::new(below.clone(), load(scratch, &rules).await);
    let op = Op::Put { value: Bytes::from_static(PLAIN), ttl: None };
    writer.commit(Txn { key: Key::new(SECRET), expect: Expect::Absent, op }).await.expect("committed");
    (below, load(scratch, &rules).await)
}

/// Works until the plugin was asked to decrypt, and then no more.
async fn until_asked<F: Future>(work: &mut std::pin::Pin<Box<F>>, plugin: &KmsPlugin) {
    while plugin.asked().decrypt == 0 {
        tokio::select! {
            biased;
            _ = &mut *work => panic!("it is not known yet"),
            () = tokio::task::yield_now() => {}
        }
    }
}

#[tokio::test]
async fn what_another_configuration_has_to_ask_anew_is_not_known_yet_and_never_corrupt() {
    let scratch = Scratch::new();
    let [old, new] =
        ["old.sock", "new.sock"].map(|socket| KmsPlugin::start(&scratch.path().join(socket), "key1"));
    let (below, encryption) = written(&scratch, &old).await;
    let front = EncryptedStore::new(below.clone(), encryption.clone());
    let secret = Key::new(SECRET);
    let all = Range { prefix: Key::new("/registry/"), start_after: None, limit: 10, at: None };
    // While the old plugin is asked, another one takes its place, and does not answer yet.
    let mut page = Box::pin(front.range(all.clone()));
    until_asked(&mut page, &old).await;
    let mut get = Box::pin(front.get(&secret));
    assert!(polled(&mut get).is_pending());
    write(&scratch, &[plugin_rule(&new)]);
    assert_eq!(encryption.reload().await, Ok(true));
    new.fail(Some((14, "not now")));
    let why = page.await.expect_err("nobody knows it now");
    assert!(matches!(why, forebay_backend::ReadError::Unanswered { .. }), "{why}");
    let why = get.await.expect_err("nobody knows it now");
    assert!(matches!(why, forebay_backend::ReadError::Unanswered { .. }), "{why}");
    new.fail(None);
    let found = loop {
        match front.get(&secret).await {
            Ok(found) => break found.expect("there"),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(&found.value[..], PLAIN);
}

#[tokio::test]
async fn a_feed_that_waits_for_a_plugin_goes_on_with_the_one_that_takes_its_place() {
    let scratch = Scratch::new();
    let [old, new] =
        ["old.sock", "new.sock"].map(|socket| KmsPlugin::start(&scratch.path().join(socket), "key1"));
    let (below, encryption) = written(&scratch, &old).await;
    let front = EncryptedStore::new(below, encryption.clone());
    old.fail(Some((14, "gone for good")));
    let mut feed = front.feed("/registry/secrets/", Revision::FIRST).await.expect("fed");
    let mut changes = Vec::new();
    while old.asked().decrypt == 0 {
        feed.take(10, &mut changes).expect("no gap");
        tokio::select! {
            biased;
            () = feed.ready() => {}
            () = tokio::task::yield_now() => {}
        }
    }
    write(&scratch, &[plugin_rule(&new)]);
    assert_eq!(encryption.reload().await, Ok(true));
    while changes.is_empty() {
        feed.ready().await;
        feed.take(10, &mut changes).expect("no gap");
    }
    assert_eq!(changes[0].value.as_deref(), Some(PLAIN));
}

#[tokio::test]
async fn a_plugin_that_decrypts_what_it_refused_is_told_of() {
    let scratch = Scratch::new();
    let socket = scratch.path().join("kms.sock");
    let plugin = KmsPlugin::start(&socket, "key1");
    let kept = seal(&*load(&scratch, &[plugin_rule(&plugin)]).await, SECRET);
    plugin.use_key("key2");
    plugin.forget("key1");
    let (clock, hand) = Clock::manual(1_000_000);
    let (file, prefix) = (scratch.path().join("encryption.yaml"), "/registry".to_owned());
    let settings = EncryptionSettings { file, reload: Reload::Automatic, prefix, clock };
    let encryption = Encryption::load(settings).await.expect("in force");
    assert!(fetched(&encryption, &kept).await.expect_err("gone").contains("NotFound"));
    drop(plugin);
    let _plugin = KmsPlugin::start(&socket, "key2");
    assert!(polled(encryption.rekeyed(0)).is_pending());
    hand.advance_ms(limits::REFUSED_HOLD.as_millis() as u64);
    while fetched(&encryption, &kept).await != Ok(true) {
        hand.advance_ms(limits::REFUSED_HOLD.as_millis() as u64);
        tokio::task::yield_now().await;
    }
    assert_eq!(encryption.rekeyed(0).await, 1);
}
