//! Admission policies on the embedded engine in memory: what they tell, and whom their `authorizer` asks.

use std::sync::{Arc, Mutex};

use forebay_api::{Authorizer, Because, Body, Decision, Eventual, Rules, Undecided};
use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{About, Attributes, Caller, Status};
use forebay_catalog::Target;
use forebay_embedded::{Engine, Options};
use forebay_registry::{Config, Registry};
use forebay_rt::{Clock, Duration, Random, Tasks};
use serde_json::{Value, json};

/// Allows everything and says how often it was asked; what is asked of it by expressions it has to wait for.
/// It cannot be asked about `unheard`.
#[derive(Default)]
struct Waits {
    // Each question of an expression that was waited for.
    asked: Mutex<Vec<String>>,
    // Who asked them.
    callers: Mutex<Vec<Caller>>,
}

impl Authorizer for Waits {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        if asked.caller.name == "unheard" {
            let (because, error) = (Because::Unsaid, "it is down".to_owned());
            return Eventual::Now(Decision::Undecided(Box::new(Undecided {
                is_final: false,
                because,
                error,
            })));
        }
        let About::Resource(of) = asked.about else { return Eventual::Now(Decision::Allow(Because::Unsaid)) };
        if of.version != "*" {
            return Eventual::Now(Decision::Allow(Because::Unsaid));
        }
        Eventual::later(async move {
            // Who polls once and gives up has asked nothing.
            tokio::task::yield_now().await;
            self.callers.lock().expect("callers").push(asked.caller.clone());
            let mut all = self.asked.lock().expect("asked");
            let fields: Vec<String> = of.fields.iter().map(ToString::to_string).collect();
            let labels: Vec<&str> = of.labels.iter().map(|of| of.key()).collect();
            all.push(format!(
                "{} {}/{} {fields:?} {labels:?}",
                asked.verb.as_str(),
                of.resource,
                of.subresource
            ));
            let said = Because::Said(all.len().to_string().into());
            if of.resource == "secrets" { Decision::NoOpinion(said) } else { Decision::Allow(said) }
        })
    }

    fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
}

struct World {
    registry: Registry,
    authorizer: Arc<Waits>,
    tasks: Tasks,
}

const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

impl World {
    async fn new() -> World {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let engine =
            Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
        let authorizer = Arc::new(Waits::default());
        let config = Config { authorizer: authorizer.clone(), ..Config::default() };
        let tasks = Tasks::new();
        let registry = Registry::new(config, engine, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, authorizer, tasks }
    }

    async fn create(
        &self,
        (group, resource): (&str, &str),
        namespace: Option<&str>,
        body: Value,
    ) -> Result<Vec<String>, Status> {
        let served = self.registry.catalog().resource(group, "v1", resource).expect("served").clone();
        let target = Target::of_server(served, namespace.map(str::to_owned), None);
        let body = Body::Json(body.to_string().into());
        self.registry.create(&target, &body, &CreateOptions::default()).await.map(|answer| answer.warnings)
    }

    /// A policy about config maps with such validations, and a binding for each of the actions.
    async fn policy(&self, spec: Value, actions: &[&str]) {
        self.policy_of_name("p", spec, actions).await;
    }

    async fn policy_of_name(&self, name: &str, spec: Value, actions: &[&str]) {
        const GROUP: &str = "admissionregistration.k8s.io";
        let mut spec = spec;
        spec["matchConstraints"] = json!({ "resourceRules": [{ "apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["*"], "resources": ["configmaps"] }] });
        let policy = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "ValidatingAdmissionPolicy",
            "metadata": { "name": name }, "spec": spec });
        self.create((GROUP, POLICIES), None, policy).await.expect("a policy");
        for action in actions {
            let binding = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": { "name": binding_of(name, action) },
                "spec": { "policyName": name, "validationActions": [action] } });
            self.create((GROUP, BINDINGS), None, binding).await.expect("a binding");
        }
    }

    async fn config_map(&self) -> Result<Vec<String>, Status> {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        self.create(("", "configmaps"), Some("default"), map).await
    }

    /// What was asked of the authorizer.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.authorizer.asked.lock().expect("asked"))
    }

    async fn end(self) {
        assert!(self.tasks.stop(Duration::from_secs(60)).await, "tasks end");
    }
}

fn binding_of(policy: &str, action: &str) -> String {
    let action = action.to_lowercase();
    if policy == "p" { action } else { format!("{action}-{policy}") }
}

/// Policies of such validations let a config map pass, and ask so.
async fn check(validations: &[&str], want: &[&str]) {
    let world = World::new().await;
    let validations: Vec<Value> = validations.iter().map(|it| json!({ "expression": it })).collect();
    world.policy(json!({ "validations": validations }), &["Deny"]).await;
    let passed = world.config_map().await;
    assert!(passed.is_ok(), "{validations:?}: {passed:?}");
    assert_eq!(world.asked(), want, "{validations:?}");
    world.end().await;
}

#[tokio::test]
async fn warnings_are_told_also_where_another_binding_denies() {
    // The one that warns comes before and behind the one that denies.
    for actions in [["Warn", "Deny"], ["Deny", "Warn"]] {
        let world = World::new().await;
        world
            .policy(json!({ "validations": [{ "expression": "false", "message": "never" }] }), &actions)
            .await;
        let refusal = world.config_map().await.expect_err("is denied");
        assert_eq!(
            refusal.message,
            "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'deny' denied request: never"
        );
        let told = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'warn': never";
        assert_eq!(refusal.warnings, [told]);
        world.end().await;
    }
}

#[tokio::test]
async fn who_has_to_wait_is_asked_once_what_is_the_same() {
    check(
        &[
            "authorizer.requestResource.check('test').reason() == authorizer.requestResource.check('test').reason()",
            "authorizer.requestResource.check('test').reason() == '1'",
        ],
        &["test configmaps/ [] []"],
    )
    .await;
}

#[tokio::test]
async fn who_has_to_wait_is_asked_in_the_order_of_the_expressions() {
    check(
        &[
            "authorizer.requestResource.subresource('a').check('test').reason() == '1'",
            "authorizer.requestResource.subresource('b').check('test').reason() == '2'",
            "authorizer.requestResource.subresource('c').check('test').allowed()",
        ],
        &["test configmaps/a [] []", "test configmaps/b [] []", "test configmaps/c [] []"],
    )
    .await;
}

#[tokio::test]
async fn nothing_is_asked_that_an_answer_makes_needless() {
    check(
        &["authorizer.group('').resource('pods').check('get').allowed() \
           || authorizer.group('').resource('nodes').check('get').allowed()"],
        &["get pods/ [] []"],
    )
    .await;
    check(
        &["authorizer.group('').resource('secrets').check('get').allowed() \
           ? authorizer.group('').resource('pods').check('get').allowed() \
           : authorizer.group('').resource('nodes').check('get').allowed()"],
        &["get secrets/ [] []", "get nodes/ [] []"],
    )
    .await;
}

#[tokio::test]
async fn selectors_are_asked_as_far_as_they_can_be_read() {
    check(
        &["authorizer.group('').resource('pods').fieldSelector('spec.nodeName=n1').labelSelector('a in (b),!c') \
           .check('list').allowed()",
          "authorizer.group('').resource('pods').fieldSelector('spec.nodeName').labelSelector('a in b') \
           .check('list').reason() == '2'"],
        &[r#"list pods/ ["spec.nodeName=n1"] ["a", "c"]"#, "list pods/ [] []"],
    )
    .await;
}

#[tokio::test]
async fn who_writes_a_policy_with_parameters_is_told_why_nobody_decides() {
    const GROUP: &str = "admissionregistration.k8s.io";
    let world = World::new().await;
    let caller = Caller { name: "unheard".to_owned(), ..Caller::default() };
    for (resource, kind, spec, want) in [
        (
            POLICIES,
            "ValidatingAdmissionPolicy",
            json!({
                "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
                "matchConstraints": { "resourceRules": [{ "apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["*"], "resources": ["pods"] }] },
                "validations": [{ "expression": "true" }],
            }),
            "spec.paramKind: Forbidden: it is down",
        ),
        (
            BINDINGS,
            "ValidatingAdmissionPolicyBinding",
            json!({
                "policyName": "p", "validationActions": ["Deny"],
                "paramRef": { "name": "m", "namespace": "n", "parameterNotFoundAction": "Deny" },
            }),
            "spec.paramRef: Forbidden: failed to authorize request: it is down",
        ),
    ] {
        let served = world.registry.catalog().resource(GROUP, "v1", resource).expect("served").clone();
        let target = Target::of_server(served, None, None);
        let target = Target { caller: Some(Arc::new(caller.clone())), ..target };
        let body = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind,
            "metadata": { "name": "p" }, "spec": spec });
        let body = Body::Json(body.to_string().into());
        let refused = world.registry.create(&target, &body, &CreateOptions::default()).await.err();
        let refused = refused.expect("refused").message;
        assert!(refused.ends_with(want), "{refused}");
    }
    world.end().await;
}

#[tokio::test]
async fn an_account_is_asked_for_in_the_groups_of_accounts_alone() {
    let world = World::new().await;
    let expression = "authorizer.serviceAccount('n', 'a').group('').resource('pods').check('get').allowed()";
    world.policy(json!({ "validations": [{ "expression": expression }] }), &["Deny"]).await;
    world.config_map().await.expect("is let pass");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:n"].map(str::to_owned).to_vec();
    let account = Caller { name: "system:serviceaccount:n:a".to_owned(), groups, ..Caller::default() };
    assert_eq!(*world.authorizer.callers.lock().expect("callers"), [account]);
    world.end().await;
}

#[tokio::test]
async fn conditions_wait_too_and_what_is_asked_again_is_paid_for_once() {
    let world = World::new().await;
    // Each check costs a thirtieth of what a policy may, and five hundred of them what all may of a
    // write. Asked again and again, those of two policies would cost more.
    let asks =
        |of: &str, at: usize| format!("authorizer.group('').resource('{of}{at}').check('get').allowed()");
    for name in ["p", "q"] {
        let condition = "authorizer.group('').resource('pods').check('get').allowed()";
        let spec = json!({
            "matchConditions": [{ "name": "c", "expression": condition }],
            "validations": (0..25).map(|at| json!({ "expression": asks(name, at) })).collect::<Vec<_>>(),
        });
        world.policy_of_name(name, spec, &["Deny"]).await;
    }
    assert_eq!(world.config_map().await.map_err(|refusal| refusal.message), Ok(Vec::new()));
    assert_eq!(world.asked().len(), 1 + 2 * 25);
    world.end().await;
}
