//! The `authorizer` of an expression: the authorizer of this server.
//!
//! In: checks. Out: its decisions. Never: waits for one.

use forebay_api::Authorizer;
use forebay_apimachinery::caller::service_account_name;
use forebay_apimachinery::{About, Attributes, Caller, ResourceAttributes, Verb};
use forebay_cel::authorizer::{self as cel, Check, CheckDecision};

/// On whose behalf who is asked.
pub(super) struct Asked<'a> {
    pub authorizer: &'a dyn Authorizer,
    pub caller: &'a Caller,
}

impl cel::Authorizer for Asked<'_> {
    fn check(&self, check: &Check, verb: &str) -> CheckDecision {
        let verb = Verb::named(verb);
        let (asker, about) = match check {
            Check::Path { asker, path } => (asker, About::Path(path)),
            Check::Group { asker, group } => {
                (asker, About::Resource(ResourceAttributes { group, ..ResourceAttributes::default() }))
            }
            Check::Resource(of) => (
                &of.asker,
                About::Resource(ResourceAttributes {
                    group: &of.group,
                    version: "*",
                    namespace: &of.namespace,
                    resource: &of.resource,
                    subresource: &of.subresource,
                    name: &of.name,
                    ..ResourceAttributes::default()
                }),
            ),
        };
        let account;
        let caller = match asker {
            cel::Asker::Requester => self.caller,
            cel::Asker::ServiceAccount { namespace, name } => {
                account = service_account(namespace, name);
                &account
            }
        };
        let asked = Attributes { caller, verb: &verb, about };
        let Some(decision) = self.authorizer.authorize(&asked).at_once() else {
            let error = Some("the authorizer cannot decide at once".into());
            return CheckDecision { allowed: false, reason: "".into(), error };
        };
        let allowed = decision.is_allowed();
        let error = decision.error().map(Into::into);
        CheckDecision { allowed, reason: decision.because().to_string().into(), error }
    }
}

fn service_account(namespace: &str, name: &str) -> Caller {
    let groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    Caller { name: service_account_name(namespace, name), groups, ..Caller::default() }.authenticated()
}
