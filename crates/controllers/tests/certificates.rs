//! Requests for certificates are approved where a node asks for its own, signed once they are approved, and
//! go when their time is over; and what a controller writes is written by its service account.

mod world;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_api::{Authorizer, Because, Body, Decision, Eventual, Rules};
use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{About, Attributes, Caller};
use forebay_catalog::Target;
use forebay_pki::signing::expires;
use forebay_rt::Duration;
use serde_json::{Value, json};
use world::World;

const REQUESTS: &str = "certificates.k8s.io@v1/certificatesigningrequests";
const CONTROLLERS: &str = "certificatesigningrequest-signing-controller,\
                           certificatesigningrequest-approving-controller";
const CLEANER: &str = "certificatesigningrequest-cleaner-controller";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const ACCOUNT: &str = "system:serviceaccount:kube-system:certificate-controller";

/// Says yes to those who are in the list, and keeps who was asked about.
#[derive(Default)]
struct Listed {
    // user, verb, what
    allowed: Vec<(&'static str, &'static str, &'static str)>,
    asked: Mutex<Vec<String>>,
}

impl Listed {
    /// Waits until somebody has asked this.
    async fn until_asked(&self, what: &str) {
        let is_asked = || self.asked.lock().expect("no panic").iter().any(|one| one == what);
        let asked = async {
            while !is_asked() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), asked).await.expect("is asked");
    }
}

impl Authorizer for Listed {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        let About::Resource(of) = asked.about else { panic!("no path is asked about") };
        let what = match of.subresource {
            "" if of.resource == "signers" => of.name.to_owned(),
            "" => of.resource.to_owned(),
            subresource => format!("{}/{subresource}", of.resource),
        };
        let known = (&*asked.caller.name, asked.verb.as_str(), &*what);
        self.asked.lock().expect("no panic").push(format!("{} {} {}", known.0, known.1, known.2));
        Eventual::Now(match self.allowed.contains(&known) {
            true => Decision::Allow(Because::Unsaid),
            false => Decision::NoOpinion(Because::Unsaid),
        })
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}

/// What the role of the controllers gives, and `more`.
fn listed(more: &[(&'static str, &'static str, &'static str)]) -> Arc<Listed> {
    let mut allowed = vec![
        (ACCOUNT, "delete", "certificatesigningrequests"),
        (ACCOUNT, "update", "certificatesigningrequests/status"),
        (ACCOUNT, "update", "certificatesigningrequests/approval"),
        (ACCOUNT, "approve", KUBELET_CLIENT),
        (ACCOUNT, "sign", KUBELET_CLIENT),
        (ACCOUNT, "sign", "kubernetes.io/kube-apiserver-client"),
    ];
    allowed.extend(more);
    Arc::new(Listed { allowed, ..Listed::default() })
}

fn pem(common_name: &str, organization: &str) -> String {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().expect("a key");
    STANDARD.encode(params.serialize_request(&key).expect("a request").pem().expect("PEM"))
}

/// A request that `user` makes.
async fn ask(world: &World, user: &str, name: &str, signer: &str, request: String) -> Value {
    let spec = json!({
        "signerName": signer, "request": request, "expirationSeconds": 3600,
        "usages": ["digital signature", "client auth"],
    });
    let body = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        // Its spec belongs to nobody: what has no owner when it is made has none after an update either.
        "metadata": { "name": name, "labels": { "asked": "yes" } }, "spec": spec,
    });
    let caller = Caller { name: user.to_owned(), ..Caller::default() };
    let target = Target { caller: Some(Arc::new(caller)), ..world.target(REQUESTS) };
    let body = Body::Json(body.to_string().into());
    let options = CreateOptions { field_manager: user.to_owned(), ..CreateOptions::default() };
    world.registry.create(&target, &body, &options).await.expect("created");
    world.get(&format!("{REQUESTS}/{name}")).await
}

fn conditions(request: &Value) -> Vec<&str> {
    let all = request["status"]["conditions"].as_array().into_iter().flatten();
    all.filter_map(|condition| condition["type"].as_str()).collect()
}

#[tokio::test]
async fn a_node_that_may_have_its_certificate_gets_one_and_no_other() {
    let authorizer = listed(&[
        ("system:bootstrap:abc", "create", "certificatesigningrequests/nodeclient"),
        ("system:node:two", "create", "certificatesigningrequests/selfnodeclient"),
    ]);
    let world = World::asking(authorizer.clone(), CONTROLLERS).await;
    let issued = |found: Option<&Value>| found.is_some_and(|one| one["status"]["certificate"].is_string());
    for (user, name, node) in [
        ("system:bootstrap:abc", "first", "system:node:one"),
        ("system:node:two", "renewed", "system:node:two"),
    ] {
        ask(&world, user, name, KUBELET_CLIENT, pem(node, "system:nodes")).await;
        world.until(&format!("{REQUESTS}/{name}"), issued).await;
    }
    let renewed = world.get(&format!("{REQUESTS}/renewed")).await;
    assert_eq!(conditions(&renewed), ["Approved"]);
    let condition = &renewed["status"]["conditions"][0];
    assert_eq!(condition["reason"], "AutoApproved");
    assert_eq!(
        condition["message"],
        "Auto approving self kubelet client certificate after SubjectAccessReview."
    );
    let certificate =
        STANDARD.decode(renewed["status"]["certificate"].as_str().expect("there")).expect("it is");
    assert_eq!(expires(&certificate).map(jiff::Timestamp::as_second), Some(1_700_003_600));
    // Who writes is the account, by kube-controller-manager's name.
    let managers = renewed["metadata"]["managedFields"].as_array().expect("a list");
    assert!(managers.iter().any(|one| one["manager"] == "kube-controller-manager"), "{managers:#?}");

    // Somebody else's certificate, and what is no kubelet's.
    ask(&world, "system:node:two", "other", KUBELET_CLIENT, pem("system:node:three", "system:nodes")).await;
    let client = "kubernetes.io/kube-apiserver-client";
    ask(&world, "system:bootstrap:abc", "client", client, pem("system:node:one", "system:nodes")).await;
    let asked = "system:node:two create certificatesigningrequests/nodeclient";
    authorizer.until_asked(asked).await;
    for name in ["other", "client"] {
        let request = world.get(&format!("{REQUESTS}/{name}")).await;
        assert!(conditions(&request).is_empty(), "{name}: {request:#?}");
    }
}

#[tokio::test]
async fn what_is_approved_is_signed_if_it_is_what_its_signer_signs() {
    let world = World::with(CONTROLLERS).await;
    let client = "kubernetes.io/kube-apiserver-client";
    for (name, signer, organization) in [
        ("person", client, "people"),
        ("wrong", KUBELET_CLIENT, "people"),
        ("elsewhere", "example.com/signer", "people"),
    ] {
        let mut request = ask(&world, "somebody", name, signer, pem("someone", organization)).await;
        request["status"] =
            json!({ "conditions": [{ "type": "Approved", "status": "True", "reason": "Ok" }] });
        world.update(&format!("{REQUESTS}/{name}/approval"), request).await;
    }
    let issued = |found: Option<&Value>| found.is_some_and(|one| one["status"]["certificate"].is_string());
    world.until(&format!("{REQUESTS}/person"), issued).await;
    let failed = |found: Option<&Value>| found.is_some_and(|one| conditions(one).contains(&"Failed"));
    world.until(&format!("{REQUESTS}/wrong"), failed).await;
    let wrong = world.get(&format!("{REQUESTS}/wrong")).await;
    let condition = &wrong["status"]["conditions"][1];
    assert_eq!(condition["reason"], "SignerValidationFailure");
    assert_eq!(condition["message"], "subject organization is not system:nodes");
    assert!(wrong["status"]["certificate"].is_null());
    let elsewhere = world.get(&format!("{REQUESTS}/elsewhere")).await;
    assert!(elsewhere["status"]["certificate"].is_null() && conditions(&elsewhere) == ["Approved"]);
}

#[tokio::test]
async fn nothing_is_signed_by_an_account_that_lost_its_right() {
    let mut without = listed(&[]);
    let all = Arc::get_mut(&mut without).expect("nobody else has it");
    all.allowed.retain(|(_, verb, _)| *verb != "sign");
    all.allowed.push(("somebody", "approve", KUBELET_CLIENT));
    let world = World::asking(without.clone(), CONTROLLERS).await;
    let mut request =
        ask(&world, "somebody", "one", KUBELET_CLIENT, pem("system:node:one", "system:nodes")).await;
    request["status"] = json!({ "conditions": [{ "type": "Approved", "status": "True", "reason": "Ok" }] });
    world.update(&format!("{REQUESTS}/one/approval"), request).await;
    without.until_asked(&format!("{ACCOUNT} sign kubernetes.io/*")).await;
    assert!(world.get(&format!("{REQUESTS}/one")).await["status"]["certificate"].is_null());
}

#[tokio::test]
async fn requests_go_when_their_time_is_over() {
    let world = World::with(CLEANER).await;
    for name in ["pending", "denied"] {
        ask(&world, "somebody", name, KUBELET_CLIENT, pem("system:node:one", "system:nodes")).await;
    }
    let mut denied = world.get(&format!("{REQUESTS}/denied")).await;
    denied["status"] = json!({ "conditions": [{ "type": "Denied", "status": "True", "reason": "No" }] });
    world.update(&format!("{REQUESTS}/denied/approval"), denied).await;
    pass(&world, 3_602).await;
    world.until_gone(&format!("{REQUESTS}/denied")).await;
    assert!(world.find(&format!("{REQUESTS}/pending")).await.is_some(), "a day is not over");
    pass(&world, 23 * 3_600).await;
    world.until_gone(&format!("{REQUESTS}/pending")).await;
}

/// Lets so much time go by, for everybody.
async fn pass(world: &World, seconds: u64) {
    world.hand.advance_ms(seconds * 1_000);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}
