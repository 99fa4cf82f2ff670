//! The signer: what it is asked, when, and what is made of its answers.
//!
//! One task asks for keys: when they are due by the signer's own word, ten seconds after that has failed, and
//! when a token names a key that is not known; whoever waits for them waits for that task's rounds. What is
//! known stays known while the signer is away.
//!
//! Owner: the task publishes keys; [`TokenSigner`] hands them out.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use forebay_api::Eventual;
use forebay_auth::tokens::{ExternalKey, ExternalSigner, ToldToOthers};
use forebay_documents::metrics::{NOT_OF_GRPC, SignerCode, SignerMetrics};
use forebay_grpc::proto::Malformed;
use forebay_grpc::{CallError, UnixService, status_name};
use forebay_rt::{Clock, Duration, Instant, Tasks};
use tokio::sync::{Semaphore, watch};

use crate::keys::{self, JudgedKeys};
use crate::messages::{self, FETCH_KEYS, METADATA, SIGN, Signed};
use crate::{header, limits};

/// Shortest life of a token that a signer has to allow, in seconds.
const LIFE_MIN_SECONDS: i64 = 600;

/// See the module's doc.
pub struct TokenSigner {
    service: UnixService,
    waits: SignerWaits,
    clock: Clock,
    metrics: Arc<SignerMetrics>,
    held: ArcSwap<HeldKeys>,
    rounds: watch::Sender<Rounds>,
    // The round that somebody waits for.
    wanted: watch::Sender<u64>,
    lookups: Semaphore,
    signing: Semaphore,
}

/// How long is waited for what.
#[derive(Clone, Copy, Debug)]
pub struct SignerWaits {
    pub fetch: Duration,
    pub fetch_again: Duration,
    pub fetch_every_min: Duration,
    pub metadata: Duration,
    pub sign: Duration,
    pub lookup: Duration,
}

/// A signer that has answered.
#[derive(Debug)]
pub struct StartedSigner {
    pub signer: Arc<TokenSigner>,
    /// Longest life of a token that it signs; ten minutes at least.
    pub life_max: Duration,
}

struct HeldKeys {
    keys: Arc<[ExternalKey]>,
    // When they are to be asked for again.
    until: Instant,
}

/// How often keys were asked for, beginning with those of the start.
#[derive(Clone, Copy, Default)]
struct Rounds {
    begun: u64,
    ended: u64,
}

/// What came of something, as metrics and as people are told.
struct Failed {
    code: SignerCode,
    why: String,
}

impl TokenSigner {
    /// Asks a signer for its keys and for what it can do, and follows its keys from then on. One that is not
    /// there yet is waited for. Cancel-safe.
    ///
    /// - `endpoint`: the path of its socket; `@` begins a name of Linux' own.
    ///
    /// # Errors
    /// It does not answer in time, or cannot be used; in upstream's words.
    pub async fn start(
        endpoint: &str,
        waits: SignerWaits,
        clock: Clock,
        tasks: &Tasks,
    ) -> Result<StartedSigner, String> {
        let service = UnixService::new("token signer".into(), endpoint, clock.clone(), tasks.clone());
        let signer = Arc::new(TokenSigner {
            service,
            waits,
            held: ArcSwap::from_pointee(HeldKeys { keys: Vec::new().into(), until: clock.now() }),
            clock,
            metrics: Arc::default(),
            rounds: watch::Sender::default(),
            wanted: watch::Sender::default(),
            lookups: Semaphore::new(limits::LOOKUPS_MAX),
            signing: Semaphore::new(limits::SIGN_CALLS_MAX),
        });
        let begun = signer.clock.now();
        let filled = signer.fetch().await;
        filled.map_err(|failed| {
            let why = failed.why;
            format!("while initially filling key cache: while performing initial cache fill: {why}")
        })?;
        let life_max = signer.life_max().await?;
        tasks.spawn("keys of the token signer", signer.clone().follow(begun));
        Ok(StartedSigner { signer, life_max })
    }

    /// What is counted of it.
    pub fn metrics(&self) -> Arc<SignerMetrics> {
        self.metrics.clone()
    }

    async fn life_max(&self) -> Result<Duration, String> {
        let bounds = (limits::METADATA_BYTES_MAX, self.waits.metadata);
        let seconds = self.call(METADATA, &[], bounds, messages::read_metadata).await;
        let seconds = seconds.map_err(|failed| failed.why)?;
        if seconds < LIFE_MIN_SECONDS {
            return Err(format!(
                "max token life supported by external-jwt-signer ({seconds}s) is less than acceptable (min \
                 {LIFE_MIN_SECONDS}s)"
            ));
        }
        Ok(Duration::from_secs(seconds.unsigned_abs()))
    }

    async fn follow(self: Arc<TokenSigner>, mut begun: Instant) {
        let mut wanted = self.wanted.subscribe();
        let mut next = self.held.load().until;
        loop {
            let last = self.rounds.borrow().begun;
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                _ = async { wanted.wait_for(|round| *round > last).await.is_ok() } => {}
            }
            self.clock.sleep_until(begun + self.waits.fetch_every_min).await;
            begun = self.clock.now();
            self.rounds.send_modify(|rounds| rounds.begun += 1);
            let fetched = self.fetch().await;
            next = match fetched {
                Ok(()) => self.held.load().until,
                Err(Failed { why, .. }) => {
                    tracing::error!(
                        why,
                        "when syncing supported public keys(Stale set of keys will be supported)"
                    );
                    self.clock.now() + self.waits.fetch_again
                }
            };
            self.rounds.send_modify(|rounds| rounds.ended = rounds.begun);
        }
    }

    /// Asks for the keys, and goes by them from now on. Counted.
    async fn fetch(&self) -> Result<(), Failed> {
        let judged = self.judged().await;
        let code = judged.as_ref().map_or_else(|failed| failed.code, |_| status_name(0));
        let taken = judged.as_ref().ok().map(|judged| (self.clock.unix_ms(), judged.at_seconds));
        self.metrics.fetched(code, taken);
        let JudgedKeys { keys, refresh_hint, .. } =
            judged.map_err(|failed| failed.behind("while fetching token verification keys"))?;
        let until = self.clock.now() + refresh_hint;
        let before = self.held.load().keys.clone();
        // What was verified with the same keys need not be again.
        let keys = if *before == *keys { before } else { keys.into() };
        self.held.store(Arc::new(HeldKeys { keys, until }));
        Ok(())
    }

    async fn judged(&self) -> Result<JudgedKeys, Failed> {
        let bounds = (limits::KEYS_BYTES_MAX, self.waits.fetch);
        let read = |answer| messages::read_keys(answer, limits::KEYS_MAX);
        let fetched = self.call(FETCH_KEYS, &[], bounds, read).await;
        let fetched =
            fetched.map_err(|failed| failed.behind("while getting externally supported jwt signing keys"))?;
        keys::judge(fetched).map_err(Failed::in_answer)
    }

    /// See [`ExternalSigner::sign`]. All of it within [`SignerWaits::sign`].
    async fn signed(&self, claims: &str) -> Result<(String, String), Failed> {
        let until = self.clock.now() + self.waits.sign;
        let seat = tokio::select! {
            seat = self.signing.acquire() => seat.ok(),
            () = self.clock.sleep_until(until) => None,
        };
        let left = until.saturating_duration_since(self.clock.now());
        let bounds = (limits::SIGN_BYTES_MAX, left);
        let answer = match &seat {
            Some(_) => self.call(SIGN, &messages::sign(claims), bounds, messages::read_signed).await,
            None => Err(Failed::of(&self.service.late())),
        };
        drop(seat);
        let Signed { header, signature } = answer.map_err(|failed| failed.behind("while signing jwt"))?;
        let checked = self.check_header(&header, until).await;
        checked.map_err(|why| Failed::in_answer(format!("while validating header: {why}")))?;
        if signature.is_empty() {
            return Err(Failed::in_answer("empty signature returned".to_owned()));
        }
        if signature.len() > limits::SIGNATURE_BYTES_MAX {
            let why = format!("signature longer than {} bytes returned", limits::SIGNATURE_BYTES_MAX);
            return Err(Failed::in_answer(why));
        }
        Ok((header, signature))
    }

    async fn check_header(&self, header: &str, until: Instant) -> Result<(), String> {
        let id = header::key_id(header)?;
        if !self.keys().iter().any(|key| key.id() == id) {
            // It may be new. If it is not known then either, the token may still be good elsewhere.
            self.wait_for_keys(until).await;
        }
        let is_excluded = |key: &ExternalKey| key.id() == id && key.told == ToldToOthers::No;
        match self.keys().iter().any(is_excluded) {
            true => Err(format!("key used for signing JWT (kid: {id}) is excluded from OIDC discovery docs")),
            false => Ok(()),
        }
    }

    /// Ready once the answer to a question is there that is put after this call, or that has failed; or when
    /// it is not waited for any longer.
    async fn wait_for_keys(&self, until: Instant) {
        let Ok(_seat) = self.lookups.try_acquire() else {
            return tracing::debug!("Error while syncing keys: too many tokens wait for them");
        };
        let mut rounds = self.rounds.subscribe();
        let round = rounds.borrow_and_update().begun + 1;
        self.wanted.send_if_modified(|wanted| {
            let is_more = round > *wanted;
            *wanted = round.max(*wanted);
            is_more
        });
        tokio::select! {
            _ = async { rounds.wait_for(|rounds| rounds.ended >= round).await.is_ok() } => {}
            () = self.clock.sleep_until(until) => tracing::debug!("Error while syncing keys: the signer is slow"),
        }
    }

    /// One call, counted; what fails is told as gRPC for Go tells it.
    async fn call<T>(
        &self,
        method: &'static str,
        message: &[u8],
        (bytes_max, wait): (usize, Duration),
        read: impl FnOnce(Bytes) -> Result<T, Malformed>,
    ) -> Result<T, Failed> {
        let began = self.clock.now();
        let answer = tokio::select! {
            answer = self.service.call(method, message, bytes_max) => answer,
            () = self.clock.sleep_until(began + wait) => Err(self.service.late()),
        };
        let read = answer.and_then(|answer| read(answer).map_err(|error| malformed(&error)));
        let read = read.map_err(|error| Failed::of(&as_go_says(error, bytes_max)));
        let code = read.as_ref().map_or_else(|failed| failed.code, |_| status_name(0));
        self.metrics.called(method, code, self.clock.now() - began);
        read
    }
}

impl ExternalSigner for TokenSigner {
    fn sign<'a>(&'a self, claims: &'a str) -> Eventual<'a, Result<(String, String), String>> {
        Eventual::later(async move {
            let signed = self.signed(claims).await;
            self.metrics.signed(signed.as_ref().map_or_else(|failed| failed.code, |_| status_name(0)));
            signed.map_err(|failed| failed.why)
        })
    }

    fn keys(&self) -> Arc<[ExternalKey]> {
        self.held.load().keys.clone()
    }

    fn keys_age_max(&self) -> u64 {
        self.held.load().until.saturating_duration_since(self.clock.now()).as_secs()
    }

    fn refresh(&self) -> Eventual<'_, ()> {
        Eventual::later(self.wait_for_keys(self.clock.now() + self.waits.lookup))
    }
}

/// As the limits say.
impl Default for SignerWaits {
    fn default() -> SignerWaits {
        SignerWaits {
            fetch: limits::FETCH_MAX,
            fetch_again: limits::FETCH_AGAIN,
            fetch_every_min: limits::FETCH_EVERY_MIN,
            metadata: limits::METADATA_MAX,
            sign: limits::SIGN_MAX,
            lookup: limits::LOOKUP_MAX,
        }
    }
}

impl Failed {
    fn of(error: &CallError) -> Failed {
        let code = if let CallError::Status { code, .. } = error { *code } else { UNAVAILABLE };
        Failed { code: status_name(code), why: error.to_string() }
    }

    /// It has answered, and that cannot be used.
    fn in_answer(why: String) -> Failed {
        Failed { code: NOT_OF_GRPC, why }
    }

    /// The same, said behind what was being done.
    fn behind(self, what: &str) -> Failed {
        Failed { why: format!("{what}: {}", self.why), ..self }
    }
}

impl fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSigner").field("service", &self.service).finish_non_exhaustive()
    }
}

const RESOURCE_EXHAUSTED: u32 = 8;
const INTERNAL: u32 = 13;
const UNAVAILABLE: u32 = 14;

fn malformed(error: &Malformed) -> CallError {
    let text = format!("grpc: failed to unmarshal the received message: {error}");
    CallError::Status { code: INTERNAL, text }
}

/// A call that failed, as a status.
fn as_go_says(error: CallError, bytes_max: usize) -> CallError {
    let (code, text) = match error {
        CallError::Status { .. } => return error,
        CallError::Unreachable { text } => (UNAVAILABLE, text),
        CallError::Lost { text } => (UNAVAILABLE, format!("error reading from server: {text}")),
        CallError::Long { bytes } => {
            (RESOURCE_EXHAUSTED, format!("grpc: received message larger than max ({bytes} vs. {bytes_max})"))
        }
        CallError::Compressed => {
            (INTERNAL, "grpc: compressed flag set with identity or empty encoding".to_owned())
        }
    };
    CallError::Status { code, text }
}
