//! A webhook that answers what a test says, on time that stands still but for those who wait for it.

use std::collections::VecDeque;

use forebay_apimachinery::{About, Verb};
use forebay_authorization::ReviewVersion;
use serde_json::{Value, json};

use super::*;

/// What it answers, one after the other; with nothing left it never does.
#[derive(Default)]
struct Says {
    answers: Mutex<VecDeque<Result<(u16, Value), bool>>>,
    asked: Mutex<Vec<Value>>,
}

impl Says {
    fn asked(&self) -> usize {
        self.asked.lock().expect("whole").len()
    }
}

impl CarriesReviews for Says {
    fn carry(&self, review: Bytes) -> BoxFuture<'_, Result<CarriedReview, NotCarried>> {
        self.asked.lock().expect("whole").push(serde_json::from_slice(&review).expect("JSON"));
        let answer = self.answers.lock().expect("whole").pop_front();
        Box::pin(async move {
            match answer {
                Some(Ok((number, body))) => Ok(CarriedReview { number, body: body.to_string().into() }),
                Some(Err(is_lost)) => Err(NotCarried { why: "lost".to_owned(), is_lost }),
                None => std::future::pending().await,
            }
        })
    }
}

struct Setting {
    says: Arc<Says>,
    metrics: Arc<AuthorizationMetrics>,
    webhook: Arc<AuthorizationWebhook>,
}

fn setting(
    answers: Vec<Result<(u16, Value), bool>>,
    change: impl FnOnce(&mut WebhookAuthorizerConfig),
) -> Setting {
    let mut config = WebhookAuthorizerConfig {
        authorized_ttl: Some(Duration::from_secs(300)),
        unauthorized_ttl: Some(Duration::from_secs(30)),
        timeout: Duration::from_secs(3),
        version: ReviewVersion::V1,
        on_error: OnWebhookError::NoOpinion,
        kubeconfig: "/k".into(),
        conditions: Vec::new(),
    };
    change(&mut config);
    let says = Arc::new(Says { answers: Mutex::new(answers.into()), ..Says::default() });
    let metrics = Arc::<AuthorizationMetrics>::default();
    let conditions = MatchConditions::of(&config.conditions, "").expect("conditions");
    let with = (Clock::system(), Random::seeded(1));
    let webhook = AuthorizationWebhook::new("w", config, conditions, says.clone(), metrics.clone(), with);
    Setting { says, metrics, webhook: Arc::new(webhook) }
}

impl Setting {
    async fn decides(&self, path: &str) -> String {
        let caller = Caller { name: "bob".into(), ..Caller::default() };
        let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path(path) };
        match self.webhook.authorize(&asked).wait().await {
            Decision::Undecided(undecided) => {
                format!("{}: {}", if undecided.is_final { "denied" } else { "open" }, undecided.error)
            }
            decision => format!("{decision:?}"),
        }
    }

    fn calls(&self, call: WebhookCall) -> u64 {
        self.metrics.counted().calls.get(&("w".into(), call)).map_or(0, |took| took.all)
    }
}

fn status(status: Value) -> Result<(u16, Value), bool> {
    Ok((200, json!({ "status": status })))
}

#[tokio::test(start_paused = true)]
async fn what_it_says_is_heard_and_kept_for_a_while() {
    let answers = vec![
        status(json!({ "allowed": true, "reason": "friend" })),
        status(json!({ "denied": true, "reason": "foe" })),
        status(json!({})),
        status(json!({ "allowed": true })),
        status(json!({ "denied": true, "allowed": true })),
    ];
    let setting = setting(answers, |_| {});
    assert_eq!(setting.decides("/a").await, "Allow(\"friend\")");
    assert_eq!(setting.decides("/b").await, "Deny(\"foe\")");
    assert_eq!(setting.decides("/a").await, "Allow(\"friend\")");
    assert_eq!(setting.says.asked(), 2);
    tokio::time::advance(Duration::from_secs(31)).await;
    assert_eq!(setting.decides("/b").await, "NoOpinion(\"\")");
    assert_eq!(setting.decides("/a").await, "Allow(\"friend\")");
    tokio::time::advance(Duration::from_secs(300)).await;
    assert_eq!(setting.decides("/a").await, "Allow(\"\")");
    assert_eq!(
        setting.decides("/c").await,
        "denied: webhook subject access review returned both allow and deny response"
    );
    assert_eq!((setting.says.asked(), setting.calls(WebhookCall::Success)), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_again_where_that_may_help_and_an_error_is_not_kept() {
    let boom = || Ok((500, json!("boom")));
    let again =
        setting(vec![Err(true), boom(), Ok((429, json!(""))), status(json!({ "allowed": true }))], |_| {});
    assert_eq!(again.decides("/a").await, "Allow(\"\")");
    assert_eq!((again.says.asked(), again.calls(WebhookCall::Error)), (4, 3));
    let never = setting(
        (0..5).map(|_| boom()).chain([Err(false), status(json!({ "allowed": true }))]).collect(),
        |_| {},
    );
    let why = r#"an error on the server ("\"boom\"") has prevented the request from succeeding"#;
    assert_eq!(never.decides("/a").await, format!("open: {why}"));
    assert_eq!(never.says.asked(), 5);
    assert_eq!(never.decides("/a").await, "open: lost");
    assert_eq!(never.decides("/a").await, "Allow(\"\")");
    assert_eq!(never.metrics.counted().open[&("w".into(), WebhookCall::Error)], 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_counts_by_the_failure_policy_and_is_not_kept() {
    let wrong = [
        json!({ "denied": "true" }),
        json!({ "allowed": "true" }),
        json!({ "allowed": true, "denied": 1 }),
        json!({ "allowed": true, "reason": ["r"] }),
        json!({ "allowed": true, "evaluationError": 5 }),
        json!("denied"),
        json!([]),
    ];
    for status_said in wrong {
        for on_error in [OnWebhookError::Deny, OnWebhookError::NoOpinion] {
            let answers = vec![status(status_said.clone()), status(json!({ "allowed": true }))];
            let setting = setting(answers, |config| config.on_error = on_error);
            let begins = if on_error == OnWebhookError::Deny { "denied: " } else { "open: " };
            let decision = setting.decides("/a").await;
            let want = format!("{begins}json: cannot unmarshal ");
            assert!(decision.starts_with(&want), "{status_said}: {decision}");
            assert_eq!((setting.calls(WebhookCall::Error), setting.calls(WebhookCall::Success)), (1, 0));
            // It is asked again.
            assert_eq!(setting.decides("/a").await, "Allow(\"\")");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_is_given_up_and_its_policy_counts() {
    let setting = setting(Vec::new(), |config| config.on_error = OnWebhookError::Deny);
    let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    assert_eq!(setting.decides("/a").await, format!("denied: {why}"));
    assert_eq!((setting.says.asked(), setting.calls(WebhookCall::Timeout)), (1, 1));
    assert!(setting.metrics.counted().open.is_empty());
    // Whoever asks goes away.
    let gone = tokio::time::timeout(Duration::from_secs(1), setting.decides("/b")).await;
    assert!(gone.is_err());
    assert_eq!(setting.calls(WebhookCall::Canceled), 1);
}

#[tokio::test(start_paused = true)]
async fn conditions_say_what_it_is_asked() {
    let conditions = ["has(request.nonResourceAttributes)", "request.nonResourceAttributes.path != '/a'"];
    let setting = setting(vec![status(json!({ "allowed": true }))], |config| {
        config.conditions = conditions.iter().map(ToString::to_string).collect();
        config.on_error = OnWebhookError::Deny;
    });
    assert_eq!(setting.decides("/a").await, "NoOpinion(\"\")");
    assert_eq!(setting.says.asked(), 0);
    assert_eq!(setting.decides("/b").await, "Allow(\"\")");
    let counted = setting.metrics.counted();
    let conditions = &counted.conditions[&Arc::from("w")];
    assert_eq!((conditions.took.all, conditions.exclusions, conditions.errors), (2, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn who_looks_only_whether_an_answer_is_there_begins_nothing() {
    let setting = setting(vec![status(json!({ "allowed": true }))], |_| {});
    let caller = Caller::default();
    let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/x") };
    assert!(setting.webhook.authorize(&asked).at_once().is_none());
    assert_eq!(setting.says.asked(), 0);
    assert!(setting.webhook.authorize(&asked).wait().await.is_allowed());
    assert!(setting.webhook.authorize(&asked).at_once().is_some_and(|decision| decision.is_allowed()));
}
