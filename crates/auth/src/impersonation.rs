//! Acting as somebody else.
//!
//! In: whom a request wants to be made as, and who really asks. Out: whom it is made as. Every name, group
//! and attribute has to be allowed by itself, as in kube-apiserver. Never: reads a header.
//!
//! Source: apiserver v1.36.3 `endpoints/filters/impersonation.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::caller::{ANONYMOUS, AUTHENTICATED, SERVICE_ACCOUNTS, UNAUTHENTICATED};
use forebay_apimachinery::{About, Caller, ResourceAttributes, Verb};

use crate::access::{Access, Refused};
use crate::asker::Asker;

/// What service accounts are named by.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Whom a request wants to be made as.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Not empty.
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// Further attributes, key and value.
    pub extra: Vec<(String, String)>,
}

impl Wanted {
    /// Whom the request is made as, if `asker` may.
    ///
    /// # Errors
    /// [`Refused`], for the first that is not allowed.
    pub async fn checked(self, access: &Access, asker: &Asker) -> Result<Asker, Refused> {
        const GROUP: &str = "authentication.k8s.io";
        let check = async |of: ResourceAttributes<'_>| {
            access.check(asker, &Verb::Impersonate, About::Resource(of)).await
        };
        let of = ResourceAttributes::default();
        let account = service_account(&self.user);
        match account {
            Some((namespace, name)) => {
                check(ResourceAttributes { resource: "serviceaccounts", namespace, name, ..of }).await?;
            }
            None => check(ResourceAttributes { resource: "users", name: &self.user, ..of }).await?,
        }
        for group in &self.groups {
            check(ResourceAttributes { resource: "groups", name: group, ..of }).await?;
        }
        if !self.uid.is_empty() {
            check(ResourceAttributes { group: GROUP, resource: "uids", name: &self.uid, ..of }).await?;
        }
        for (key, value) in &self.extra {
            let of = ResourceAttributes { group: GROUP, resource: "userextras", name: value, ..of };
            check(ResourceAttributes { subresource: key, ..of }).await?;
        }
        let mut groups = self.groups;
        if let (Some((namespace, _)), true) = (account, groups.is_empty()) {
            groups = vec![SERVICE_ACCOUNTS.to_string(), format!("{SERVICE_ACCOUNTS}:{namespace}")];
        }
        let is_anonymous = self.user == ANONYMOUS;
        if is_anonymous && groups.is_empty() && self.uid.is_empty() && self.extra.is_empty() {
            return Ok(Asker::Anonymous);
        }
        let of_all = if is_anonymous { UNAUTHENTICATED } else { AUTHENTICATED };
        if !groups.iter().any(|group| group == of_all || group == UNAUTHENTICATED) {
            groups.push(of_all.to_string());
        }
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for (key, value) in self.extra {
            extra.entry(key).or_default().push(value);
        }
        Ok(Asker::Known(Arc::new(Caller { name: self.user, uid: self.uid, groups, extra })))
    }
}

/// The namespace and the name of the service account that `user` is; one that could not be there is a user
/// like any other.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let is_label = |text: &str| {
        let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends = bytes.first().is_some_and(is_end) && bytes.last().is_some_and(is_end);
        ends && bytes.iter().all(|byte| is_end(byte) || *byte == b'-')
    };
    let fits =
        namespace.len() <= 63 && is_label(namespace) && name.len() <= 253 && name.split('.').all(is_label);
    fits.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_that_could_not_be_there_is_a_user() {
        for (user, want) in [
            ("system:serviceaccount:ns:sa", Some(("ns", "sa"))),
            ("system:serviceaccount:ns:s.a", Some(("ns", "s.a"))),
            ("system:serviceaccount:ns:sa:x", None),
            ("system:serviceaccount:Ns:sa", None),
            ("system:serviceaccount::sa", None),
            ("system:serviceaccount:ns:", None),
            ("bob", None),
        ] {
            assert_eq!(service_account(user), want, "{user}");
        }
    }
}
