//! A signer as a whole, over its socket: what it says, and what it does not.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use forebay_auth::tokens::ExternalSigner as _;
use forebay_documents::metrics::Text;
use forebay_hook::signer::{SignerMischief, SignerPlugin, SignerSays};
use forebay_rt::{Clock, Duration, Tasks};
use forebay_scratch::Scratch;

use super::*;

/// A key on P-256 in DER: the point that its curve begins with.
pub const POINT: [u8; 91] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42,
    0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2, 0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0,
    0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96, 0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e,
    0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6,
    0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5,
];

/// Wide where only a failure would reach them, and none between two questions for keys.
const WAITS: SignerWaits = SignerWaits {
    fetch: Duration::from_secs(120),
    fetch_again: Duration::from_secs(3600),
    fetch_every_min: Duration::ZERO,
    metadata: Duration::from_secs(120),
    sign: Duration::from_secs(120),
    lookup: Duration::from_secs(120),
};

/// What nobody waits for who is going to be told so.
const SOON: Duration = Duration::from_millis(20);

const CLAIMS: &str = "e30";

struct Rig {
    plugin: SignerPlugin,
    tasks: Tasks,
    _scratch: Scratch,
}

impl Rig {
    fn new() -> Rig {
        let scratch = Scratch::new();
        let plugin = SignerPlugin::start(&scratch.path().join("signer.sock"), "first");
        Rig { plugin, tasks: Tasks::new(), _scratch: scratch }
    }

    async fn try_start(&self, waits: SignerWaits) -> Result<StartedSigner, String> {
        TokenSigner::start(&self.plugin.endpoint(), waits, Clock::system(), &self.tasks).await
    }

    async fn start(&self, waits: SignerWaits) -> Arc<TokenSigner> {
        self.try_start(waits).await.expect("it answers").signer
    }

    fn misbehave(&self, method: &'static str, mischief: SignerMischief) {
        self.plugin.change(|says| says.does(method, mischief));
    }
}

async fn sign(signer: &TokenSigner) -> Result<(String, String), String> {
    signer.sign(CLAIMS).wait().await
}

fn names(signer: &TokenSigner) -> Vec<String> {
    signer.keys().iter().map(|key| key.id().to_owned()).collect()
}

fn metrics(signer: &TokenSigner) -> String {
    let mut text = Text::default();
    signer.metrics().write(&mut text);
    text.finish()
}

#[tokio::test]
async fn a_signer_is_asked_for_its_keys_and_what_it_can_do_and_then_signs() {
    let rig = Rig::new();
    let StartedSigner { signer, life_max } = rig.try_start(WAITS).await.expect("it answers");
    assert_eq!((names(&signer), life_max), (vec!["first".to_owned()], Duration::from_secs(86_400)));
    assert!((3500..=3600).contains(&signer.keys_age_max()), "{}", signer.keys_age_max());
    let (header, signature) = sign(&signer).await.expect("signed");
    assert_eq!(header, URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","kid":"first","typ":"JWT"}"#));
    assert_eq!(signature.len(), 86);
    let asked = rig.plugin.asked();
    assert_eq!((asked.fetch_keys, asked.metadata, asked.sign), (1, 1, 1));
    let metrics = metrics(&signer);
    for line in [
        "apiserver_externaljwt_fetch_keys_request_total{code=\"OK\"} 1",
        "apiserver_externaljwt_sign_request_total{code=\"OK\"} 1",
        "apiserver_externaljwt_fetch_keys_data_timestamp 1700000000.5",
        "apiserver_externaljwt_request_duration_seconds_count{code=\"OK\",method=\"/v1.ExternalJWTSigner/FetchKeys\"} 1",
        "apiserver_externaljwt_request_duration_seconds_count{code=\"OK\",method=\"/v1.ExternalJWTSigner/Metadata\"} 1",
        "apiserver_externaljwt_request_duration_seconds_count{code=\"OK\",method=\"/v1.ExternalJWTSigner/Sign\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn a_signer_that_is_not_as_it_should_be_ends_the_start_in_upstreams_words() {
    const FILLING: &str = "while initially filling key cache: while performing initial cache fill: while fetching token verification keys: ";
    const ASKING: &str = "while getting externally supported jwt signing keys: ";
    type Change = fn(&mut SignerSays);
    let rows: [(Change, String); 8] = [
        (
            |says| says.does("FetchKeys", SignerMischief::Fails(2, "keys fetch error")),
            format!("{FILLING}{ASKING}rpc error: code = Unknown desc = keys fetch error"),
        ),
        (
            |says| says.does("FetchKeys", SignerMischief::Floods(2 << 20)),
            format!(
                "{FILLING}{ASKING}rpc error: code = ResourceExhausted desc = grpc: received message larger than max (2097152 vs. 1048576)"
            ),
        ),
        (|says| says.keys.clear(), format!("{FILLING}found no keys")),
        (|says| says.refresh_seconds = -1, format!("{FILLING}found invalid refresh hint (-1s)")),
        (|says| says.at = None, format!("{FILLING}invalid data timestamp: proto: invalid nil Timestamp")),
        (
            |says| says.does("Metadata", SignerMischief::Fails(2, "metadata error")),
            "rpc error: code = Unknown desc = metadata error".to_owned(),
        ),
        (
            |says| says.max_seconds = 300,
            "max token life supported by external-jwt-signer (300s) is less than acceptable (min 600s)"
                .to_owned(),
        ),
        (
            |says| says.max_seconds = -1,
            "max token life supported by external-jwt-signer (-1s) is less than acceptable (min 600s)"
                .to_owned(),
        ),
    ];
    for (change, want) in rows {
        let rig = Rig::new();
        rig.plugin.change(change);
        assert_eq!(rig.try_start(WAITS).await.map(drop), Err(want));
    }
    let rig = Rig::new();
    rig.plugin.change(|says| says.max_seconds = i64::MAX);
    assert_eq!(rig.try_start(WAITS).await.expect("it answers").life_max.as_secs(), i64::MAX.unsigned_abs());
    // With nobody there.
    rig.plugin.die();
    let why =
        rig.try_start(SignerWaits { fetch: SOON, ..WAITS }).await.map(drop).expect_err("nobody answers");
    let head = format!("{FILLING}{ASKING}rpc error: code = DeadlineExceeded desc = ");
    assert!(why.starts_with(&head), "{why}");
    let rig = Rig::new();
    rig.misbehave("FetchKeys", SignerMischief::Hangs);
    let why = rig.try_start(SignerWaits { fetch: SOON, ..WAITS }).await.map(drop);
    assert_eq!(why, Err(format!("{head}context deadline exceeded")));
    let rig = Rig::new();
    rig.misbehave("Metadata", SignerMischief::Hangs);
    let why = rig.try_start(SignerWaits { metadata: SOON, ..WAITS }).await.map(drop);
    assert_eq!(why, Err("rpc error: code = DeadlineExceeded desc = context deadline exceeded".to_owned()));
}

#[tokio::test]
async fn a_signer_that_comes_later_is_waited_for() {
    let mut rig = Rig::new();
    rig.plugin.die();
    let endpoint = rig.plugin.endpoint();
    let (clock, tasks) = (Clock::system(), rig.tasks.clone());
    let starting = tokio::spawn(async move { TokenSigner::start(&endpoint, WAITS, clock, &tasks).await });
    // It may have found nobody by now, or not.
    tokio::task::yield_now().await;
    rig.plugin.restart();
    let started = starting.await.expect("no panic").expect("it answers");
    assert_eq!(names(&started.signer), ["first"]);
}

#[tokio::test]
async fn what_a_signer_puts_around_claims_is_checked() {
    type Change = fn(&mut SignerSays);
    let rows: &[(Change, &str)] = &[
        (
            |says| says.header = Some(r#"{"alg":"ABC","kid":"first","typ":"JWT"}"#.into()),
            "while validating header: bad signing algorithm \"ABC\"",
        ),
        (
            |says| says.header = Some(r#"{"alg":"ES256","kid":"first","typ":"ABC"}"#.into()),
            "while validating header: bad type",
        ),
        (
            |says| says.header = Some(r#"{"alg":"ES256","kid":"first","typ":"JWT","x5c":[]}"#.into()),
            "while validating header: while parsing header JSON: json: unknown field \"x5c\"",
        ),
        (|says| says.signature = Some(String::new()), "empty signature returned"),
        (|says| says.signature = Some("A".repeat(2049)), "signature longer than 2048 bytes returned"),
        (
            |says| says.does("Sign", SignerMischief::Fails(7, "not for you")),
            "while signing jwt: rpc error: code = PermissionDenied desc = not for you",
        ),
        (
            |says| says.does("Sign", SignerMischief::Floods(100 << 20)),
            "while signing jwt: rpc error: code = ResourceExhausted desc = grpc: received message larger than max (104857600 vs. 16384)",
        ),
    ];
    for (change, want) in rows {
        let rig = Rig::new();
        let signer = rig.start(WAITS).await;
        rig.plugin.change(change);
        assert_eq!(sign(&signer).await, Err((*want).to_owned()));
    }
    let rig = Rig::new();
    let signer = rig.start(SignerWaits { sign: SOON, ..WAITS }).await;
    rig.misbehave("Sign", SignerMischief::Hangs);
    let late = "while signing jwt: rpc error: code = DeadlineExceeded desc = context deadline exceeded";
    assert_eq!(sign(&signer).await, Err(late.to_owned()));
    let counted = metrics(&signer);
    let line = "apiserver_externaljwt_sign_request_total{code=\"DeadlineExceeded\"} 1";
    assert!(counted.lines().any(|found| found == line), "{counted}");
}

#[tokio::test]
async fn a_key_that_others_are_not_told_signs_nothing_and_one_that_nobody_knows_may() {
    let rig = Rig::new();
    let signer = rig.start(WAITS).await;
    let kept = rig.plugin.key("kept", true);
    rig.plugin.change(|says| {
        says.keys.push(kept);
        says.signs_with = "kept".into();
    });
    let why =
        "while validating header: key used for signing JWT (kid: kept) is excluded from OIDC discovery docs";
    assert_eq!(sign(&signer).await, Err(why.to_owned()));
    assert_eq!((names(&signer), rig.plugin.asked().fetch_keys), (vec!["first".into(), "kept".into()], 2));
    rig.plugin.change(|says| says.signs_with = "elsewhere".into());
    assert!(sign(&signer).await.is_ok(), "as upstream");
    assert_eq!(rig.plugin.asked().fetch_keys, 3);
    // Also where its keys are not to be had.
    rig.misbehave("FetchKeys", SignerMischief::Fails(14, "not now"));
    assert!(sign(&signer).await.is_ok());
    assert_eq!(names(&signer), ["first", "kept"]);
}

#[tokio::test]
async fn keys_are_asked_for_once_for_all_who_wait_and_stay_while_the_signer_is_away() {
    let mut rig = Rig::new();
    let signer = rig.start(WAITS).await;
    let before = signer.keys();
    signer.refresh().wait().await;
    assert!(Arc::ptr_eq(&before, &signer.keys()), "they are the same");
    assert_eq!(rig.plugin.asked().fetch_keys, 2);
    let second = rig.plugin.key("second", false);
    rig.plugin.change(|says| says.keys = vec![second]);
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let signer = signer.clone();
            tokio::spawn(async move { signer.refresh().wait().await })
        })
        .collect();
    for waits in waiting {
        waits.await.expect("no panic");
    }
    assert_eq!(names(&signer), ["second"]);
    // One that was under way already, and one for those who came then.
    assert!(rig.plugin.asked().fetch_keys <= 5, "{:?}", rig.plugin.asked());
    // What cannot be used changes nothing.
    let broken = rig.plugin.key("broken", false);
    rig.plugin.change(|says| {
        says.keys.push(broken);
        says.keys[1].der = b"no key".to_vec();
    });
    signer.refresh().wait().await;
    assert_eq!(names(&signer), ["second"]);
    let line = "apiserver_externaljwt_fetch_keys_request_total{code=\"unknown-non-grpc\"} 1";
    assert!(metrics(&signer).lines().any(|found| found == line), "{}", metrics(&signer));
    rig.plugin.change(|says| says.keys.truncate(1));
    rig.plugin.die();
    assert_eq!(names(&signer), ["second"]);
    rig.plugin.restart();
    // On another connection, once it is seen that the one before is gone.
    while sign(&signer).await.is_err() {}
    signer.refresh().wait().await;
    assert_eq!(names(&signer), ["second"]);
}

#[tokio::test]
async fn who_waits_for_keys_of_one_that_hangs_waits_for_so_long_and_not_too_many_do() {
    let rig = Rig::new();
    let signer = rig.start(SignerWaits { lookup: SOON, ..WAITS }).await;
    rig.misbehave("FetchKeys", SignerMischief::Hangs);
    signer.refresh().wait().await;
    assert_eq!(names(&signer), ["first"]);
    let signer = rig.start_hanging().await;
    let waiting: Vec<_> = (0..limits::LOOKUPS_MAX)
        .map(|_| {
            let signer = signer.clone();
            tokio::spawn(async move { signer.refresh().wait().await })
        })
        .collect();
    // All of them have had their turn.
    for _ in 0..limits::LOOKUPS_MAX {
        tokio::task::yield_now().await;
    }
    signer.refresh().wait().await;
    assert!(waiting.iter().all(|waits| !waits.is_finished()), "it has not waited like these");
    waiting.iter().for_each(|waits| waits.abort());
}

impl Rig {
    /// Starts it again, and it hangs when it is asked for keys after that.
    async fn start_hanging(&self) -> Arc<TokenSigner> {
        self.plugin.change(|says| says.mischief.clear());
        let signer = self.start(WAITS).await;
        self.misbehave("FetchKeys", SignerMischief::Hangs);
        signer
    }
}

#[tokio::test]
async fn keys_are_read_again_when_the_signer_says_so_and_after_a_failure() {
    let rig = Rig::new();
    rig.plugin.change(|says| says.refresh_seconds = 1);
    let signer = rig.start(SignerWaits { fetch_again: SOON, ..WAITS }).await;
    rig.misbehave("FetchKeys", SignerMischief::Fails(14, "not now"));
    let failed = "apiserver_externaljwt_fetch_keys_request_total{code=\"Unavailable\"} ";
    let has_failed = async || {
        while !metrics(&signer).contains(failed) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), has_failed()).await.expect("nobody asks");
    let second = rig.plugin.key("second", false);
    rig.plugin.change(|says| {
        says.keys.push(second);
        says.mischief.clear();
    });
    let is_there = async || {
        while names(&signer).len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), is_there()).await.expect("nobody asks again");
    assert!(signer.keys_age_max() <= 1);
}
