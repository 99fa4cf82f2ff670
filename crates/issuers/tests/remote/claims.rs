//! Groups that are kept elsewhere, by sources that are good, slow, wrong, or somebody else's.

use super::*;

/// A provider that is known, with sources at hooks of their own.
struct Setting {
    idp: Provider,
    signer: Signer,
    source: Arc<Hook>,
    other: Arc<Hook>,
    remote: RemoteTokens,
}

const CLAIM: &str = "oidc: could not expand distributed claims:";

impl Setting {
    async fn start() -> Setting {
        let hook = || async { Arc::new(Hook::start().await) };
        let (idp, source, other) = (hook().await, hook().await, hook().await);
        let (idp, signer) = (Provider::at(&idp, "idp"), Signer::new("own"));
        idp.has_keys_of(&signer);
        let (remote, _) = remote(issuers(&[&idp], &[&idp.hook, &source, &other]), None);
        let setting = Setting { idp, signer, source, other, remote };
        assert_eq!(verdict_after(&setting.remote, &setting.plain("ann"), NOT_YET).await, "ann");
        setting
    }

    fn signed(&self, claims: &Value) -> String {
        self.signer.token("ES256", &self.idp.claims(claims))
    }

    /// A token that says nothing of groups.
    fn plain(&self, name: &str) -> String {
        self.signed(&json!({ "sub": name }))
    }

    /// A token whose groups are kept there.
    fn sent_to(&self, name: &str, endpoint: &str) -> String {
        self.signed(&json!({
            "sub": name, "_claim_names": { "groups": "s" },
            "_claim_sources": { "s": { "endpoint": endpoint, "access_token": "for-the-source" } },
        }))
    }

    /// What a source says from now on: these claims, signed.
    fn says(&self, hook: &Hook, claims: &Value) {
        hook.answers("claims", json!({ "raw": self.signed(claims) }));
    }

    async fn groups(&self, token: &str) -> String {
        groups(&self.remote, token).await
    }
}

fn at(hook: &Hook) -> String {
    format!("{}/source/claims", hook.url())
}

async fn groups(remote: &RemoteTokens, token: &str) -> String {
    match judged(remote, token).await {
        Authentication::Known(known) => format!("{} {}", known.caller.name, known.caller.groups.join(",")),
        Authentication::NoOpinion => "nobody".to_owned(),
        Authentication::Refused(why) => why.into_owned(),
    }
}

#[tokio::test]
async fn groups_are_asked_for_with_the_access_token_and_once_while_they_are_remembered() {
    let setting = Setting::start().await;
    setting.says(&setting.source, &json!({ "groups": ["a", "b"], "sub": "root" }));
    let token = setting.sent_to("ann", &at(&setting.source));
    let all = join_all((0..20).map(|_| setting.groups(&token))).await;
    assert!(all.iter().all(|said| said == "ann a,b,system:authenticated"), "{all:?}");
    let asked = setting.source.asked();
    assert_eq!(asked.len(), 1, "once for all who wait");
    assert_eq!(asked[0].authorization, "Bearer for-the-source");
    // Of two sources the one of the groups is asked.
    let both = setting.signed(&json!({
        "sub": "eve", "_claim_names": { "mail": "m", "groups": "g" },
        "_claim_sources": { "m": { "endpoint": at(&setting.other) }, "g": { "endpoint": at(&setting.source) } },
    }));
    assert_eq!(setting.groups(&both).await, "eve a,b,system:authenticated");
    let asked = setting.source.asked();
    assert_eq!(asked.iter().map(|asked| asked.authorization.as_str()).collect::<Vec<_>>(), [""]);
    assert_eq!(setting.other.asked().len(), 0);
}

#[tokio::test]
async fn a_source_that_answers_badly_makes_nobody_of_somebody_and_is_not_remembered() {
    let setting = Setting::start().await;
    let token = setting.sent_to("ann", &at(&setting.source));
    let getting = format!("{CLAIM} while getting distributed claim \"groups\": ");
    let untrusted = format!("{CLAIM} getting untrusted issuer from endpoint");
    for (answer, begins, says) in [
        (json!({ "flood": 10 << 20 }), &getting, "it is longer than 131072 bytes"),
        (json!({ "raw": "x".repeat(140_000) }), &getting, "it is longer than 131072 bytes"),
        (json!({ "cut": true }), &getting, ": EOF"),
        (json!({ "raw": "no", "length": 1_000 }), &getting, "could not decode distributed claim response"),
        (json!({ "raw": "no", "code": 503 }), &getting, "error while getting distributed claim JWT: 503"),
        (json!({ "raw": "<html>" }), &untrusted, "malformed token"),
        (json!({ "raw": "{\"groups\":[\"a\"]}" }), &untrusted, "malformed token"),
    ] {
        setting.source.answers("claims", answer.clone());
        let why = setting.groups(&token).await;
        assert!(why.starts_with(begins.as_str()) && why.contains(says), "{answer}: {why}");
    }
    setting.says(&setting.source, &json!({ "groups": "a" }));
    assert_eq!(setting.groups(&token).await, "ann a,system:authenticated");
}

#[tokio::test]
async fn what_a_source_says_counts_if_an_issuer_that_is_believed_signed_it_for_us() {
    let hook = Arc::new(Hook::start().await);
    let (own, others) = (Signer::new("own"), Signer::new("others"));
    let idp = Provider::at(&hook, "idp");
    idp.has_keys_of(&own);
    let theirs = Arc::new(Hook::start().await);
    let directory = Provider::at(&theirs, "directory");
    directory.has_keys_of(&others);
    let (remote, _) = remote(issuers(&[&idp, &directory], &[&hook, &theirs]), None);
    let known = |signer: &Signer, provider: &Provider| signer.token("ES256", &provider.claims(&Value::Null));
    assert_eq!(verdict_after(&remote, &known(&own, &idp), NOT_YET).await, "ann");
    assert_eq!(verdict_after(&remote, &known(&others, &directory), NOT_YET).await, "ann");
    let token = own.token(
        "ES256",
        &idp.claims(&json!({
            "_claim_names": { "groups": "s" }, "_claim_sources": { "s": { "endpoint": at(&hook) } },
        })),
    );
    let groups_by = async |signer: &Signer, claims: Value| {
        hook.answers("claims", json!({ "raw": signer.token("ES256", &claims) }));
        groups(&remote, &token).await
    };
    let a = json!({ "groups": "a" });
    let verify = format!("{CLAIM} verify distributed claim token:");
    // Somebody whose tokens nobody believes.
    let stranger = idp.claims(&json!({ "groups": "a", "iss": "https://elsewhere" }));
    assert_eq!(
        groups_by(&own, stranger).await,
        format!(
            "{CLAIM} verifying untrusted issuer \"https://elsewhere\" failed: it is none whose tokens are believed"
        )
    );
    // Somebody else in the name of one.
    let unsigned = format!("{verify} failed to verify signature: failed to verify id token signature");
    assert_eq!(groups_by(&others, idp.claims(&a)).await, unsigned);
    assert_eq!(groups_by(&own, directory.claims(&a)).await, unsigned);
    // For somebody else, or long ago.
    let elsewhere = groups_by(&others, directory.claims(&json!({ "groups": "a", "aud": "x" }))).await;
    assert_eq!(elsewhere, format!("{verify} oidc: expected audience \"kube\" got [\"x\"]"));
    let late = groups_by(&others, directory.claims(&json!({ "groups": "a", "exp": 1 }))).await;
    assert!(late.starts_with(&format!("{verify} oidc: token is expired")), "{late}");
    let header = json!({ "alg": "none", "kid": "own-ec" });
    hook.answers("claims", json!({ "raw": own.token_under(header, &idp.claims(&a)) }));
    let none = groups(&remote, &token).await;
    assert!(none.starts_with(&verify) && none.contains("unsupported algorithm"), "{none}");
    // None of which was remembered; and one issuer may speak for another one's users.
    assert_eq!(groups_by(&others, directory.claims(&a)).await, "ann a,system:authenticated");
}

#[tokio::test]
async fn a_source_is_asked_by_https_and_whom_it_sends_on_to_is_shown_no_access_token() {
    let setting = Setting::start().await;
    let plain = setting.sent_to("ann", "http://127.0.0.1:1/claims");
    assert_eq!(
        setting.groups(&plain).await,
        format!(
            "{CLAIM} while getting distributed claim \"groups\": while calling \"http://127.0.0.1:1/claims\": only https is \
             spoken with sources"
        )
    );
    setting.source.answers("claims", json!({ "raw": "", "code": 302, "location": at(&setting.other) }));
    setting.says(&setting.other, &json!({ "groups": "a" }));
    let token = setting.sent_to("ann", &at(&setting.source));
    assert_eq!(setting.groups(&token).await, "ann a,system:authenticated");
    let shown =
        |hook: &Hook| -> Vec<String> { hook.asked().into_iter().map(|asked| asked.authorization).collect() };
    assert_eq!(
        (shown(&setting.source), shown(&setting.other)),
        (vec!["Bearer for-the-source".to_owned()], vec![String::new()])
    );
    // To nobody by what is no TLS.
    setting
        .source
        .answers("claims", json!({ "raw": "", "code": 302, "location": "http://127.0.0.1:1/claims" }));
    let why = setting.groups(&setting.sent_to("eve", &at(&setting.source))).await;
    assert!(why.ends_with("only https is spoken with providers"), "{why}");
}

#[tokio::test]
async fn a_source_that_hangs_holds_up_nobody_but_a_number_of_those_who_ask_it() {
    let setting = Setting::start().await;
    setting.source.answers("claims", json!({ "hang": true }));
    setting.says(&setting.other, &json!({ "groups": "b" }));
    let of = |name: String, hook: &Hook| setting.sent_to(&name, &at(hook));
    let hanging: Vec<String> = (0..65).map(|index| of(format!("u{index}"), &setting.source)).collect();
    let waits = join_all(hanging.iter().map(|token| setting.groups(token)));
    let others = async {
        setting.source.was_asked(16).await;
        let one = of("ben".to_owned(), &setting.other);
        assert_eq!(setting.groups(&one).await, "ben b,system:authenticated");
        assert_eq!(verdict(&setting.remote, &setting.plain("eve")).await, "eve");
        assert_eq!(setting.source.asked().len(), 16, "no more at once");
        tokio::time::pause();
    };
    let (said, ()) = tokio::join!(waits, others);
    tokio::time::resume();
    let refused = said.iter().filter(|said| said.ends_with("too many are asking its source")).count();
    let late = said.iter().filter(|said| said.contains("deadline exceeded")).count();
    assert_eq!((refused, late), (1, 64), "{said:?}");
    // It was not remembered.
    setting.says(&setting.source, &json!({ "groups": "a" }));
    assert_eq!(setting.groups(&hanging[0]).await, "u0 a,system:authenticated");
}
