//! What a webhook is asked about a token, and what it says.
//!
//! In: a token, for whom it has to be good; an answer. Out: a `TokenReview`; who that makes of who shows it,
//! or why nobody. Never: carries either.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/authenticator/token/webhook/webhook.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_api::Authenticated;
use forebay_apimachinery::Caller;
use forebay_apimachinery::caller::{ANONYMOUS, UNAUTHENTICATED};
use serde::Deserialize;
use serde_json::json;

const KIND: &str = "TokenReview";

/// Which version of reviews a webhook speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    V1,
    V1Beta1,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    authenticated: bool,
    user: User,
    audiences: Option<Vec<String>>,
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Option<Vec<String>>>>,
}

impl ReviewVersion {
    /// The version of a name.
    pub fn named(name: &str) -> Option<ReviewVersion> {
        match name {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1Beta1),
            _ => None,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "authentication.k8s.io/v1",
            ReviewVersion::V1Beta1 => "authentication.k8s.io/v1beta1",
        }
    }

    /// What is asked.
    pub fn question(self, token: &str, audiences: &[String]) -> Vec<u8> {
        let mut spec = json!({ "token": token });
        if !audiences.is_empty() {
            spec["audiences"] = json!(audiences);
        }
        let review = json!({
            "kind": KIND,
            "apiVersion": self.api_version(),
            "metadata": {},
            "spec": spec,
            "status": { "user": {} },
        });
        review.to_string().into_bytes()
    }

    /// What was said; `None`: it stands for nobody there.
    ///
    /// - `wanted`: for whom it has to be good.
    /// - `own`: whom it is good for where that is not said.
    ///
    /// # Errors
    /// What was said is no review, or says why it was not made.
    pub fn answer(
        self,
        body: &[u8],
        wanted: &[String],
        own: &[String],
    ) -> Result<Option<Authenticated>, String> {
        let answer: Answer = serde_json::from_slice(body).map_err(|why| why.to_string())?;
        if answer.kind != KIND || answer.api_version != self.api_version() {
            return Err(format!(
                "unable to decode a {KIND} of {}: got {:?} of {:?}",
                self.api_version(),
                answer.kind,
                answer.api_version
            ));
        }
        let status = answer.status;
        let good = status.audiences.filter(|said| !said.is_empty());
        let good = good.as_deref().unwrap_or(own);
        let known: std::collections::BTreeSet<&String> = good.iter().collect();
        let audiences: Vec<String> = wanted.iter().filter(|asked| known.contains(asked)).cloned().collect();
        if audiences.is_empty() {
            return Ok(None);
        }
        if !status.authenticated {
            return if status.error.is_empty() { Ok(None) } else { Err(status.error) };
        }
        let User { username, uid, groups, extra } = status.user;
        let extra = extra.unwrap_or_default().into_iter();
        let caller = Caller {
            name: username,
            uid,
            groups: groups.unwrap_or_default(),
            extra: extra.map(|(key, values)| (key, values.unwrap_or_default())).collect(),
        };
        Ok(Some(Authenticated { caller: Arc::new(authenticated(caller)), audiences }))
    }
}

/// The same user in the group of everyone who is known, unless it is said to be nobody.
pub fn authenticated(caller: Caller) -> Caller {
    match caller.name == ANONYMOUS || caller.is_in(UNAUTHENTICATED) {
        true => caller,
        false => caller.authenticated(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn check(version: ReviewVersion, status: Value, want: &str) {
        let body =
            json!({ "kind": KIND, "apiVersion": "authentication.k8s.io/v1", "status": status }).to_string();
        let (wanted, own) = (["a".to_owned(), "b".to_owned()], ["b".to_owned()]);
        let got = match version.answer(body.as_bytes(), &wanted, &own) {
            Ok(None) => "nobody".to_owned(),
            Err(why) => why,
            Ok(Some(known)) => {
                let user = &known.caller;
                let extra: Vec<_> =
                    user.extra.iter().map(|(key, all)| format!("{key}={}", all.join("+"))).collect();
                format!(
                    "{} {} {} {} for {}",
                    user.name,
                    user.uid,
                    user.groups.join(","),
                    extra.join(","),
                    known.audiences.join(",")
                )
            }
        };
        assert_eq!(got, want, "{status}");
    }

    #[test]
    fn a_word_counts_for_those_audiences_that_were_asked_for() {
        let v1 = |status: Value, want: &str| check(ReviewVersion::V1, status, want);
        let user = json!({ "username": "ann", "uid": "7", "groups": ["g"], "extra": { "k": ["v", "w"] } });
        let group = "g,system:authenticated";
        v1(json!({ "authenticated": true, "user": user }), &format!("ann 7 {group} k=v+w for b"));
        let said = json!({ "authenticated": true, "user": user, "audiences": ["c", "b", "a"] });
        v1(said, &format!("ann 7 {group} k=v+w for a,b"));
        v1(json!({ "authenticated": true, "user": user, "audiences": ["c"] }), "nobody");
        v1(json!({ "authenticated": false }), "nobody");
        v1(json!({ "authenticated": false, "error": "no such thing" }), "no such thing");
        v1(json!({}), "nobody");
        let none =
            json!({ "authenticated": true, "user": { "username": "system:anonymous", "groups": null } });
        v1(none, "system:anonymous    for b");
    }

    #[test]
    fn what_is_no_review_of_the_version_is_an_error() {
        check(
            ReviewVersion::V1Beta1,
            json!({ "authenticated": true }),
            "unable to decode a TokenReview of authentication.k8s.io/v1beta1: got \"TokenReview\" of \
             \"authentication.k8s.io/v1\"",
        );
        let own = ["b".to_owned()];
        for body in ["", "<html>", "[]", "{}", r#"{"kind":"Status"}"#] {
            assert!(ReviewVersion::V1.answer(body.as_bytes(), &own, &own).is_err(), "{body}");
        }
    }

    #[test]
    fn a_question_has_the_token_and_its_audiences() {
        let question = ReviewVersion::V1Beta1.question("t", &["a".to_owned()]);
        let question: Value = serde_json::from_slice(&question).expect("JSON");
        assert_eq!(question["apiVersion"], "authentication.k8s.io/v1beta1");
        assert_eq!(question["spec"], json!({ "token": "t", "audiences": ["a"] }));
    }
}
