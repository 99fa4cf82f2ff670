//! A registry as one controller asks it: by its service account, which may do no more there than its role
//! says.
//!
//! In: a registry, an authorizer, a service account. Out: the same verbs; what they write is written by the
//! account, after the authorizer allowed it. What a controller reads, informers included, is read by the
//! server: all of it is in memory here. Never: a token, a Secret, a ServiceAccount.
//!
//! Source: kubernetes v1.36.3 `--use-service-account-credentials` of kube-controller-manager.

use std::ops::Deref;
use std::sync::Arc;

use forebay_api::{Answer, Authorizer, Body, PatchKind};
use forebay_apimachinery::caller::{SERVICE_ACCOUNTS, service_account_name};
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{About, Attributes, Caller, Reason, ResourceAttributes, Status, Verb};
use forebay_catalog::Target;
use forebay_registry::Registry;
use serde_json::Value;

/// Where the service accounts of controllers are.
const NAMESPACE: &str = "kube-system";

/// See the module's doc. What it does not say is the registry's.
#[derive(Clone)]
pub struct ActingRegistry {
    registry: Registry,
    account: Arc<Caller>,
    authorizer: Arc<dyn Authorizer>,
}

impl Deref for ActingRegistry {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        &self.registry
    }
}

impl ActingRegistry {
    /// For the controller whose service account is called `account`.
    pub fn new(registry: Registry, account: &str, authorizer: Arc<dyn Authorizer>) -> ActingRegistry {
        ActingRegistry { registry, account: Arc::new(caller(account)), authorizer }
    }

    /// In whose name it asks.
    pub fn account(&self) -> &Arc<Caller> {
        &self.account
    }

    /// Who is asked what somebody may.
    pub fn authorizer(&self) -> &dyn Authorizer {
        &*self.authorizer
    }

    /// As [`Registry::create`].
    ///
    /// # Errors
    /// As there, and 403 for what the account may not do; so do the others.
    pub async fn create(
        &self,
        target: &Target,
        body: &Body,
        options: &CreateOptions,
    ) -> Result<Answer, Status> {
        let target = self.allowed(&Verb::Create, target).await?;
        self.registry.create(&target, body, options).await
    }

    /// As [`Registry::update`].
    pub async fn update(
        &self,
        target: &Target,
        body: &Body,
        options: &UpdateOptions,
    ) -> Result<Answer, Status> {
        let target = self.allowed(&Verb::Update, target).await?;
        self.registry.update(&target, body, options).await
    }

    /// As [`Registry::patch`].
    pub async fn patch(
        &self,
        target: &Target,
        kind: PatchKind,
        body: &[u8],
        options: &PatchOptions,
    ) -> Result<Answer, Status> {
        let target = self.allowed(&Verb::Patch, target).await?;
        self.registry.patch(&target, kind, body, options).await
    }

    /// As [`Registry::apply`].
    pub async fn apply(
        &self,
        target: &Target,
        config: &Value,
        options: &PatchOptions,
    ) -> Result<Answer, Status> {
        let target = self.allowed(&Verb::Patch, target).await?;
        self.registry.apply(&target, config, options).await
    }

    /// As [`Registry::delete`].
    pub async fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Answer, Status> {
        let target = self.allowed(&Verb::Delete, target).await?;
        self.registry.delete(&target, options).await
    }

    /// The same, asked for by the account, which may do that.
    async fn allowed(&self, verb: &Verb, target: &Target) -> Result<Target, Status> {
        let of = ResourceAttributes { name: target.name(), ..of_collection(target) };
        let account = self.account_that_may(verb, of).await?;
        Ok(Target { caller: Some(account.clone()), ..target.clone() })
    }

    /// The account, which may do that.
    ///
    /// # Errors
    /// 403 where it may not.
    pub async fn account_that_may(
        &self,
        verb: &Verb,
        of: ResourceAttributes<'_>,
    ) -> Result<&Arc<Caller>, Status> {
        let asked = Attributes { caller: &self.account, verb, about: About::Resource(of) };
        if self.authorizer.authorize(&asked).wait().await.is_allowed() {
            return Ok(&self.account);
        }
        let message = format!("{} may not {} this", self.account.name, verb.as_str());
        Err(Status::new(Reason::Forbidden, message).about(of.group, of.resource, of.name))
    }
}

/// What `target` is, but for its name.
fn of_collection(target: &Target) -> ResourceAttributes<'_> {
    ResourceAttributes {
        group: target.served.group(),
        version: &target.served.gvk.version,
        namespace: target.namespace(),
        resource: target.served.resource(),
        subresource: target.subresource.as_deref().unwrap_or_default(),
        ..ResourceAttributes::default()
    }
}

/// Who the service account `account` is.
fn caller(account: &str) -> Caller {
    let groups = vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{NAMESPACE}")];
    Caller { name: service_account_name(NAMESPACE, account), groups, ..Caller::default() }.authenticated()
}

#[cfg(test)]
mod tests {
    use forebay_api::{Because, Decision, Eventual, Rules};

    use super::*;

    /// Nobody is refused anything.
    struct Everything;

    impl Authorizer for Everything {
        fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Eventual<'a, Decision> {
            Eventual::Now(Decision::Allow(Because::Unsaid))
        }

        fn rules(&self, _: &Caller, _: &str, _: &mut Rules) {}
    }

    impl ActingRegistry {
        /// One that may do everything, for tests.
        pub fn of_tests(registry: Registry) -> ActingRegistry {
            ActingRegistry::new(registry, "tests", Arc::new(Everything))
        }
    }

    #[test]
    fn the_account_is_in_the_groups_of_service_accounts() {
        let caller = caller("namespace-controller");
        assert_eq!(caller.name, "system:serviceaccount:kube-system:namespace-controller");
        assert_eq!(
            caller.groups,
            ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"]
        );
    }
}
