//! Who this server is to its webhooks.
//!
//! In: a kubeconfig whose users are named for hosts, as a tree. Out: what is shown to a host. Never: reads a
//! file by itself; runs a program.
//!
//! Source: apiserver v0.36.3 `pkg/util/webhook/authentication.go`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What is shown to a webhook.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credential {
    /// The header, if there is one.
    pub authorization: Option<String>,
    /// A chain of certificates and its key: PEM in base64.
    pub identity: Option<(String, String)>,
}

/// By host, which may begin with `*.`, and with a port where that is not 443.
#[derive(Clone, Default)]
pub struct HostCredentials {
    users: BTreeMap<String, Arc<Credential>>,
    /// For whom no user is named.
    current: Option<Arc<Credential>>,
}

/// Who it is to those of each plugin.
#[derive(Clone, Debug, Default)]
pub struct CredentialsOfPlugins {
    pub mutating: HostCredentials,
    pub validating: HostCredentials,
}

/// Secrets are not shown.
impl std::fmt::Debug for HostCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HostCredentials").field(&self.users.keys()).finish()
    }
}

impl HostCredentials {
    /// - `kubeconfig`: as a tree.
    /// - `read`: reads a file that it names.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn of_kubeconfig(
        kubeconfig: &Value,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<HostCredentials, String> {
        let named = |of: &str, name: &'static str| {
            let all = kubeconfig[of].as_array().cloned().unwrap_or_default();
            all.into_iter().filter_map(move |one| Some((one["name"].as_str()?.to_owned(), one[name].clone())))
        };
        let mut users = BTreeMap::new();
        for (name, user) in named("users", "user") {
            let credential =
                Credential::of_user(&user, read).map_err(|why| format!("user {name:?}: {why}"))?;
            users.insert(name, Arc::new(credential));
        }
        let current = kubeconfig["current-context"].as_str().unwrap_or_default();
        // Once: when the server starts.
        let context = named("contexts", "context").find(|(name, _)| name == current);
        let current = context.and_then(|(_, context)| users.get(context["user"].as_str()?).cloned());
        Ok(HostCredentials { users, current })
    }

    /// What is shown to `host` on `port`.
    pub fn of(&self, host: &str, port: u16) -> Option<Arc<Credential>> {
        let with_port = format!("{host}:{port}");
        self.named(&with_port)
            .or_else(|| self.named(host).filter(|_| port == 443))
            .or_else(|| self.users.get("*"))
            .or(self.current.as_ref())
            .cloned()
    }

    fn named(&self, target: &str) -> Option<&Arc<Credential>> {
        let parts = target.match_indices('.').map(|(at, _)| format!("*{}", &target[at..]));
        self.users.get(target).or_else(|| parts.into_iter().find_map(|name| self.users.get(&name)))
    }
}

impl Credential {
    /// - `user`: of a kubeconfig, as a tree; null for nobody.
    /// - `read`: reads a file that it names.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn of_user(
        user: &Value,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Credential, String> {
        let text = |name: &str| user[name].as_str().filter(|text| !text.is_empty());
        for name in ["exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra"] {
            if !user[name].is_null() {
                return Err(format!("{name:?} is not served"));
            }
        }
        let token = match (text("token"), text("tokenFile")) {
            (Some(token), _) => Some(token.to_owned()),
            (None, Some(file)) => {
                let read = String::from_utf8(read(Path::new(file))?).map_err(|why| why.to_string())?;
                Some(read.trim().to_owned())
            }
            (None, None) => None,
        };
        let password = (text("username"), text("password"));
        let authorization = match (token, password) {
            (Some(token), _) => Some(format!("Bearer {token}")),
            (None, (None, None)) => None,
            (None, (user, word)) => {
                let both = format!("{}:{}", user.unwrap_or_default(), word.unwrap_or_default());
                Some(format!("Basic {}", STANDARD.encode(both)))
            }
        };
        let part = |data: &str, file: &str| match (text(data), text(file)) {
            (Some(data), _) => Ok(Some(data.to_owned())),
            (None, Some(file)) => Ok(Some(STANDARD.encode(read(Path::new(file))?))),
            (None, None) => Ok::<_, String>(None),
        };
        let chain = part("client-certificate-data", "client-certificate")?;
        let key = part("client-key-data", "client-key")?;
        let identity = match (chain, key) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            _ => return Err("a certificate and its key go together".to_owned()),
        };
        Ok(Credential { authorization, identity })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn credentials(kubeconfig: &Value) -> Result<HostCredentials, String> {
        HostCredentials::of_kubeconfig(kubeconfig, &|_| Ok(b"from a file\n".to_vec()))
    }

    #[test]
    fn a_host_is_shown_what_is_named_for_it_and_else_what_is_named_for_all() {
        let user = |name: &str| json!({ "name": name, "user": { "token": name } });
        let all = ["a.ns.svc", "b.ns.svc:8443", "*.ns.svc", "*.svc:9", "other"].map(user);
        let contexts = json!([{ "name": "c", "context": { "user": "other" } }]);
        let kubeconfig = json!({ "users": all, "contexts": contexts, "current-context": "c" });
        let known = credentials(&kubeconfig).expect("credentials");
        let shown = |host, port| known.of(host, port).and_then(|it| it.authorization.clone());
        for (host, port, token) in [
            ("a.ns.svc", 443, "a.ns.svc"),
            ("b.ns.svc", 8443, "b.ns.svc:8443"),
            ("b.ns.svc", 443, "*.ns.svc"),
            ("b.ns.svc", 9, "*.svc:9"),
            ("a.ns.svc", 1, "other"),
            ("example.com", 443, "other"),
        ] {
            assert_eq!(shown(host, port), Some(format!("Bearer {token}")), "{host}:{port}");
        }
    }

    #[test]
    fn tokens_passwords_and_certificates_are_read_and_the_rest_is_refused() {
        let read = |user: Value| {
            let known = credentials(&json!({ "users": [{ "name": "*", "user": user }] }))?;
            Ok::<_, String>(known.of("h", 443).map(|it| (*it).clone()).unwrap_or_default())
        };
        let header = |user| read(user).map(|it| it.authorization);
        assert_eq!(header(json!({ "tokenFile": "/f" })), Ok(Some("Bearer from a file".to_owned())));
        let password = json!({ "username": "u", "password": "p" });
        assert_eq!(header(password), Ok(Some("Basic dTpw".to_owned())));
        let pair = json!({ "client-certificate-data": "Yw==", "client-key": "/k" });
        let identity = read(pair).map(|it| it.identity);
        assert_eq!(identity, Ok(Some(("Yw==".to_owned(), STANDARD.encode("from a file\n")))));
        assert_eq!(
            header(json!({ "client-key": "/k" })),
            Err("user \"*\": a certificate and its key go together".to_owned())
        );
        let exec = json!({ "exec": { "command": "c" } });
        assert_eq!(header(exec), Err("user \"*\": \"exec\" is not served".to_owned()));
    }
}
