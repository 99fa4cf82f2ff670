//! One plugin: the seed that values are written with now, the keys that they are read with, and how it is.
//!
//! The plugin is asked how it is again and again; when it calls its key otherwise than before, there is a
//! new seed. While it is not well, what was last made is written with for three minutes; what is known is
//! read for ever.
//!
//! Owner of the write key: whoever asks the plugin how it is, one at a time. Never: asked within a write.
//!
//! Source: apiserver v0.36.3 `server/options/encryptionconfig/config.go` (`kmsv2PluginProbe`),
//! `encrypt/envelope/kmsv2/envelope.go`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use forebay_rt::{Clock, Duration, Instant, Random, Tasks};
use tokio::sync::{Notify, Semaphore};

use super::client::KmsClient;
use super::envelope::{CacheKey, DataKeyRef, EncryptedObject, SourceType, check_key_id};
use super::keys::{DataKey, DataKeys};
use super::messages::{self, PluginStatus};
use crate::ciphers::{Seed, random};
use crate::failed::SealError;
use crate::hash::hashed;
use crate::limits;
use crate::metrics::{Direction, EncryptionMetrics};
use crate::rekeyed::Rekeyed;

/// What stands before what a plugin's seeds encrypt.
const PREFIX: &str = "k8s:enc:kms:v2:";
const SEED_BYTES: usize = 32;

const NO_STATE: &str = "got unexpected nil transformer";

/// What a provider is made of.
pub(crate) struct KmsSettings<'a> {
    pub name: &'a str,
    /// The path of the socket.
    pub socket: &'a str,
    pub timeout: Duration,
    pub clock: Clock,
    pub tasks: Tasks,
    pub metrics: Arc<EncryptionMetrics>,
    pub rekeyed: Rekeyed,
}

/// See the module's doc.
pub struct KmsProvider {
    name: Arc<str>,
    prefix: String,
    client: KmsClient,
    clock: Clock,
    random: Random,
    metrics: Arc<EncryptionMetrics>,
    rekeyed: Rekeyed,
    write: ArcSwapOption<WriteKey>,
    keys: Mutex<DataKeys>,
    // One asks the plugin for a data key at a time: who waited may find it known.
    fetch: Semaphore,
    // One asks it how it is at a time.
    probe: Semaphore,
    health: Mutex<Health>,
    // Somebody wants to know how it is.
    wanted: Notify,
}

/// What is written with.
#[derive(Clone)]
struct WriteKey {
    data_key: DataKeyRef,
    // Of the plugin's key, as metrics name it.
    key_hash: Arc<str>,
    seed: Arc<DataKey>,
    until: Instant,
    // Of wall time, for whoever is told.
    until_unix_ms: u64,
}

struct Health {
    // When it was asked, and what is wrong with it.
    last: Option<(Instant, Result<(), String>)>,
    // What it said first.
    version: Option<String>,
    // When it did not answer what a data key is, and why, unless it has answered since.
    unanswered: Option<(Instant, String)>,
}

impl KmsProvider {
    pub(crate) fn new(settings: KmsSettings<'_>) -> Arc<KmsProvider> {
        let KmsSettings { name, socket, timeout, clock, tasks, metrics, rekeyed } = settings;
        let name: Arc<str> = name.into();
        let client = KmsClient::new(name.clone(), socket, timeout, (clock.clone(), tasks), metrics.clone());
        Arc::new(KmsProvider {
            prefix: format!("{PREFIX}{name}:"),
            name,
            client,
            clock,
            random: Random::system(),
            metrics,
            rekeyed,
            write: ArcSwapOption::empty(),
            keys: Mutex::default(),
            fetch: Semaphore::new(1),
            probe: Semaphore::new(1),
            health: Mutex::new(Health { last: None, version: None, unanswered: None }),
            wanted: Notify::new(),
        })
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Asks the plugin how it is, for as long as the server runs.
    pub(crate) async fn follow(self: Arc<KmsProvider>) {
        loop {
            let is_well = self.health().last.as_ref().is_some_and(|(_, last)| last.is_ok());
            let period = if is_well { limits::STATUS_PERIOD } else { limits::STATUS_PERIOD_ILL };
            tokio::select! {
                () = self.clock.sleep(period) => {}
                () = self.wanted.notified() => {}
            }
            // It says so in the log, and what is wrong is remembered.
            let _ill = self.ask_how_it_is().await;
        }
    }

    /// What is wrong with it, as far as is known; who asks has it asked anew, if that is long ago.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        let last = self.health().last.clone();
        let Some((at, last)) = last else { return Err(self.failed_status("it was not asked yet")) };
        let ttl = if last.is_ok() { limits::HEALTH_WELL_TTL } else { limits::HEALTH_ILL_TTL };
        if self.clock.now() >= at + ttl {
            self.wanted.notify_one();
        }
        last
    }

    /// Why some of what it encrypted cannot be read for now: it may be well, and yet not answer what a data
    /// key is.
    pub(crate) fn hindered(&self) -> Option<String> {
        let unanswered = self.health().unanswered.clone();
        let unanswered = unanswered.filter(|(at, _)| self.clock.now() < *at + limits::REFUSED_HOLD);
        self.check().err().or(unanswered.map(|(_, why)| why))
    }

    /// Asks it how it is now, and makes a new seed if it has another key.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) async fn ask_how_it_is(&self) -> Result<(), String> {
        let Ok(_turn) = self.probe.acquire().await else { return Err("the server is closing".to_owned()) };
        let found = match self.client.status().await {
            Ok(status) => self.judge(&status).await,
            Err(error) => Err(self.failed_status(&error.to_string())),
        };
        if let Err(why) = &found {
            tracing::warn!(name = &*self.name, why, "a kms plugin is not well");
        }
        self.health().last = Some((self.clock.now(), found.clone()));
        found
    }

    fn failed_status(&self, why: &str) -> String {
        let name = &self.name;
        format!("failed to perform status section of the healthz check for KMS Provider {name}, error: {why}")
    }

    async fn judge(&self, status: &PluginStatus) -> Result<(), String> {
        let mut wrong = Vec::new();
        if status.healthz != "ok" {
            wrong.push(format!("got unexpected healthz status: {}", status.healthz));
        }
        if !matches!(status.version.as_str(), "v2" | "v2beta1") {
            wrong.push(format!("expected KMSv2 API version v2, got {}", status.version));
        } else {
            let first = self.health().version.get_or_insert_with(|| status.version.clone()).clone();
            if first != status.version {
                wrong.push(format!(
                    "KMSv2 API version should not change after the initial status response version {first}, got {}",
                    status.version
                ));
            }
        }
        match check_key_id(&status.key_id) {
            Err((sort, why)) => {
                self.metrics.invalid_key_id(&self.name, sort);
                wrong.push(format!("got invalid KMSv2 KeyID hash \"{}\": {why}", hashed(&status.key_id)));
            }
            Ok(()) => {
                self.metrics.key_id_of_status(&self.name, &hashed(&status.key_id), self.clock.unix_ms());
                wrong.extend(self.rotate(&status.key_id).await.err());
            }
        }
        match wrong.as_slice() {
            [] => Ok(()),
            [only] => Err(format!("kmsv2 Provider {} is not healthy, error: {only}", self.name)),
            several => {
                Err(format!("kmsv2 Provider {} is not healthy, error: [{}]", self.name, several.join(", ")))
            }
        }
    }

    /// Goes on with the seed that there is, or makes one that the key of `key_id` has encrypted.
    async fn rotate(&self, key_id: &str) -> Result<(), String> {
        let life = limits::WRITE_KEY_LIFE;
        let until = self.clock.now() + life;
        let until_unix_ms = self.clock.unix_ms() + life.as_millis() as u64;
        let current = self.write.load_full();
        if let Some(current) = current.as_deref().filter(|current| current.data_key.key_id == key_id) {
            self.write.store(Some(Arc::new(WriteKey { until, until_unix_ms, ..current.clone() })));
            return Ok(());
        }
        let uid = self.random.uuid();
        let made = self.generate(&uid).await;
        let (encrypted_by, why) = match made {
            Ok((data_key, seed)) if data_key.key_id == key_id => {
                let cache_key = data_key.cache_key();
                self.learn(cache_key, seed.clone());
                let key_hash = hashed(key_id).into();
                let write = WriteKey { data_key, key_hash, seed, until, until_unix_ms };
                self.write.store(Some(Arc::new(write)));
                tracing::info!(name = &*self.name, key_id_hash = hashed(key_id), "a new seed for values");
                return Ok(());
            }
            Ok((data_key, _)) => (data_key.key_id, "<nil>".to_owned()),
            Err(why) => (String::new(), why),
        };
        let (state, error) = match current.as_deref() {
            Some(current) => (current.data_key.key_id.clone(), "<nil>"),
            None => (String::new(), NO_STATE),
        };
        let [status, encrypted, state] = [key_id, encrypted_by.as_str(), state.as_str()].map(hashed);
        Err(format!(
            "failed to rotate DEK uid=\"{uid}\", useSeed=true, errState={error}, errGen={why}, \
             statusKeyIDHash=\"{status}\", encryptKeyIDHash=\"{encrypted}\", stateKeyIDHash=\"{state}\""
        ))
    }

    /// A seed, and what the plugin made of it.
    async fn generate(&self, uid: &str) -> Result<(DataKeyRef, Arc<DataKey>), String> {
        let began = self.clock.now();
        let mut seed = [0; SEED_BYTES];
        let made = random(&mut seed);
        self.metrics.generated(made.is_ok(), self.clock.now() - began);
        made?;
        let encrypted = self.client.encrypt(&seed, uid).await;
        let encrypted = encrypted.map_err(|error| format!("failed to encrypt DEK, error: {error}"))?;
        let messages::EncryptedSeed { ciphertext, key_id, annotations } = encrypted;
        let source = SourceType::Seed;
        let data_key = DataKeyRef { key_id, encrypted: ciphertext, annotations, source };
        data_key.check()?;
        let seed = Seed::new(&seed).ok_or("a seed of the wrong length")?;
        Ok((data_key, Arc::new(DataKey::Seed(seed))))
    }

    /// Appends what is kept of `value` at `key`.
    ///
    /// # Errors
    /// The plugin has not been well for too long, or never was.
    pub fn seal(&self, value: &[u8], key: &str, kept: &mut Vec<u8>) -> Result<(), SealError> {
        let write = self.write.load();
        let Some(write) = write.as_deref() else {
            return Err(SealError { passes: true, ..SealError::new(NO_STATE) });
        };
        if self.clock.now() > write.until {
            let id = &write.key_hash;
            let [until, now] = [write.until_unix_ms, self.clock.unix_ms()].map(rfc3339);
            let why = format!(
                "encryptedDEKSource with keyID hash \"{id}\" expired at {until} (current time is {now})"
            );
            return Err(SealError { passes: true, ..SealError::new(why) });
        }
        let DataKey::Seed(seed) = &*write.seed else { return Err(NO_STATE.into()) };
        let (head, tail) = write.data_key.around(Seed::SEALED_MORE + value.len());
        kept.reserve(head.len() + Seed::SEALED_MORE + value.len() + tail.len());
        kept.extend_from_slice(&head);
        seed.seal(value, key.as_bytes(), kept)?;
        kept.extend_from_slice(&tail);
        let now = self.clock.unix_ms();
        self.metrics.key_id_used(Direction::ToStorage, &self.name, &write.key_hash, now);
        Ok(())
    }

    /// What `kept` at `key` stands for, and whether it is to be written anew.
    ///
    /// # Errors
    /// It is not what it should be, its data key is not known, or was refused.
    pub fn open(&self, kept: &[u8], key: &str) -> Result<(Vec<u8>, bool), SealError> {
        let object = EncryptedObject::read(kept).map_err(SealError::new)?;
        let write = self.write.load();
        let Some(write) = write.as_deref() else {
            return Err(SealError { passes: true, ..SealError::new(NO_STATE) });
        };
        let cache_key = object.cache_key();
        let known = {
            let keys = self.keys();
            keys.get(&cache_key).ok_or_else(|| {
                let unasked = || SealError { passes: true, ..SealError::new("the DEK is not known yet") };
                keys.last_refusal(&cache_key).cloned().unwrap_or_else(unasked)
            })
        }?;
        let value = known.open(object.data, key.as_bytes())?;
        let now = self.clock.unix_ms();
        let is_by_current = object.key_id == write.data_key.key_id;
        let key_hash = if is_by_current { write.key_hash.clone() } else { hashed(object.key_id).into() };
        self.metrics.key_id_used(Direction::FromStorage, &self.name, &key_hash, now);
        Ok((value, !is_by_current || object.source() != write.data_key.source))
    }

    /// The data key of `kept`, if the plugin has to be asked for it.
    pub fn lacks(&self, kept: &[u8]) -> Option<DataKeyRef> {
        // What cannot be read needs no key; who opens it says so.
        let object = EncryptedObject::read(kept).ok()?;
        let cache_key = object.cache_key();
        let keys = self.keys();
        let is_known = self.write.load().is_some() && keys.get(&cache_key).is_some();
        let is_refused = || keys.refusal(&cache_key, self.clock.now()).is_some_and(|error| !error.passes);
        (!is_known && !is_refused()).then(|| object.data_key())
    }

    /// Asks the plugin for `data_key`. Ready also when it says that it will not decrypt it: that is told when
    /// a value is opened. Cancel-safe.
    ///
    /// # Errors
    /// It does not answer: the same may be done later.
    pub async fn fetch(&self, data_key: &DataKeyRef) -> Result<(), SealError> {
        let closed = |_| SealError::new("the server is closing");
        let _turn = self.fetch.acquire().await.map_err(closed)?;
        if self.write.load().is_none() {
            let passes = |why: String| SealError { passes: true, ..SealError::new(why) };
            let last = self.health().last.clone();
            match last {
                // It was asked just now, by somebody who waited here.
                Some((at, Err(why))) if self.clock.now() < at + limits::HEALTH_ILL_TTL => {
                    return Err(passes(why));
                }
                _ => self.ask_how_it_is().await.map_err(passes)?,
            }
        }
        let cache_key = data_key.cache_key();
        {
            let keys = self.keys();
            if keys.get(&cache_key).is_some() {
                return Ok(());
            }
            match keys.refusal(&cache_key, self.clock.now()) {
                Some(error) if error.passes => return Err(error.clone()),
                Some(_) => return Ok(()),
                None => {}
            }
        }
        self.metrics.missed();
        let uid = self.random.uuid();
        let DataKeyRef { encrypted, key_id, annotations, source } = data_key;
        let request = messages::decrypt(encrypted, &uid, key_id, annotations);
        let refused = match self.client.decrypt(&request).await {
            Ok(plaintext) => match DataKey::new(*source, &plaintext) {
                Ok(known) => {
                    self.learn(cache_key, Arc::new(known));
                    self.health().unanswered = None;
                    return Ok(());
                }
                Err(why) => SealError::new(why),
            },
            Err(error) => SealError::of_call("failed to decrypt DEK, error", &error),
        };
        tracing::warn!(name = &*self.name, why = refused.why, "a data key is not decrypted");
        self.keys().refuse(cache_key, refused.clone(), self.clock.now());
        if refused.passes {
            self.health().unanswered = Some((self.clock.now(), refused.why.clone()));
        }
        if refused.passes { Err(refused) } else { Ok(()) }
    }

    /// What `earlier` knew is known here.
    pub(crate) fn inherit(&self, earlier: &KmsProvider) {
        let known = earlier.keys().all();
        for (cache_key, data_key) in known {
            self.learn(cache_key, data_key);
        }
    }

    fn learn(&self, cache_key: CacheKey, data_key: Arc<DataKey>) {
        let (count, was_refused) = {
            let mut keys = self.keys();
            let was_refused = keys.learn(cache_key, data_key);
            (keys.len(), was_refused)
        };
        self.metrics.data_keys(&self.name, count);
        if was_refused {
            self.rekeyed.note();
        }
    }

    fn keys(&self) -> MutexGuard<'_, DataKeys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rfc3339(unix_ms: u64) -> String {
    let seconds = i64::try_from(unix_ms / 1_000).unwrap_or(0);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |at| at.to_string())
}
