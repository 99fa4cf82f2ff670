//! A server as a kubeconfig says it: where it is, who vouches for it, and who this server is to it.
//!
//! In: a kubeconfig as a tree. Out: the current context's server, and connections to it. Never: reads a file
//! by itself, shows a secret.
//!
//! Source: apiserver v0.36.3 `pkg/util/webhook/webhook.go`; client-go v0.36.3 `tools/clientcmd`.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::json::go_quote;
use forebay_connector::{Pool, PoolOptions, connect};
use forebay_rt::Clock;
use http::{HeaderValue, Uri};
use serde_json::Value;

use crate::credentials::Credential;
use crate::{routes, words};

/// See the module's doc.
#[derive(Clone)]
pub struct Kubeconfig {
    pub url: Uri,
    /// `None`: whom the system believes.
    authorities: Option<Vec<Vec<u8>>>,
    tls_server_name: Option<String>,
    is_any_believed: bool,
    proxy: Option<Uri>,
    pub credential: Credential,
}

impl Kubeconfig {
    /// - `kubeconfig`: as a tree.
    /// - `read`: reads a file that it names.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn read(
        kubeconfig: &Value,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Kubeconfig, String> {
        let current = kubeconfig["current-context"].as_str().unwrap_or_default();
        let context = named(kubeconfig, "contexts", "context", current)?;
        let of_context = |name: &str| context[name].as_str().unwrap_or_default();
        let cluster = named(kubeconfig, "clusters", "cluster", of_context("cluster"))?;
        let credential = match of_context("user") {
            "" => Credential::default(),
            name => {
                let user = named(kubeconfig, "users", "user", name)?;
                Credential::of_user(&user, read).map_err(|why| format!("user {}: {why}", go_quote(name)))?
            }
        };
        let text = |name: &str| cluster[name].as_str().filter(|text| !text.is_empty());
        let server = text("server").ok_or("the cluster has no server")?;
        let unfit = |why: &str| format!("server {}: {why}", go_quote(server));
        let url: Uri = server.parse().map_err(|why: http::uri::InvalidUri| unfit(&why.to_string()))?;
        if url.host().is_none() || url.scheme().is_none() {
            return Err(unfit("it is no URL of a host"));
        }
        let bundle = match (text("certificate-authority-data"), text("certificate-authority")) {
            (Some(data), _) => {
                STANDARD.decode(data).map_err(|why| format!("certificate-authority-data: {why}"))?
            }
            (None, Some(file)) => read(Path::new(file))?,
            (None, None) => Vec::new(),
        };
        let proxy = text("proxy-url").map(str::parse::<Uri>).transpose();
        Ok(Kubeconfig {
            url,
            authorities: routes::authorities(&bundle)?,
            tls_server_name: text("tls-server-name").map(str::to_owned),
            is_any_believed: cluster["insecure-skip-tls-verify"].as_bool().unwrap_or_default(),
            proxy: proxy.map_err(|why| format!("proxy-url: {why}"))?,
            credential,
        })
    }

    /// Must be called within a runtime, in which the connections live. None is opened yet.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn pool(&self, clock: Clock) -> Result<Pool, String> {
        let mut config = kube::Config::new(self.url.clone());
        config.root_cert.clone_from(&self.authorities);
        config.tls_server_name.clone_from(&self.tls_server_name);
        config.accept_invalid_certs = self.is_any_believed;
        config.proxy_url.clone_from(&self.proxy);
        if let Some((chain, secret)) = self.credential.identity.clone() {
            config.auth_info.client_certificate_data = Some(chain);
            config.auth_info.client_key_data = Some(secret.into());
        }
        let options = PoolOptions { clock, ..PoolOptions::default() };
        Ok(connect(config, options).map_err(|why| words::of(&why))?.pool)
    }

    /// The header that says who this server is, if one does.
    ///
    /// # Errors
    /// It cannot be said in a header.
    pub fn authorization(&self) -> Result<Option<HeaderValue>, String> {
        let Some(text) = &self.credential.authorization else { return Ok(None) };
        let mut value = HeaderValue::from_str(text).map_err(|_| "a secret that no header can have")?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// Without secrets.
impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kubeconfig").field(&self.url).finish()
    }
}

fn named(kubeconfig: &Value, list: &str, of: &str, name: &str) -> Result<Value, String> {
    // Once: when it is read.
    let found = kubeconfig[list].as_array().into_iter().flatten().find(|one| one["name"] == name);
    let found = found.map(|one| one[of].clone()).filter(Value::is_object);
    found.ok_or_else(|| format!("{of} {} does not exist", go_quote(name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(cluster: &Value, user: &Value) -> Result<Kubeconfig, String> {
        let kubeconfig = json!({
            "current-context": "c", "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
            "clusters": [{ "name": "k", "cluster": cluster }], "users": [{ "name": "u", "user": user }],
        });
        Kubeconfig::read(&kubeconfig, &|file| Err(format!("no file {}", file.display())))
    }

    #[test]
    fn the_current_context_says_where_it_is_and_what_is_shown() {
        let cluster = json!({
            "server": "https://h:1/authorize", "tls-server-name": "other", "proxy-url": "http://proxy:3128",
        });
        let known = read(&cluster, &json!({ "token": "secret" })).expect("a server");
        assert_eq!((known.url.path(), known.tls_server_name.as_deref()), ("/authorize", Some("other")));
        assert_eq!(known.proxy.as_ref().and_then(Uri::host), Some("proxy"));
        let header = known.authorization().expect("a header").expect("one");
        assert!(header == "Bearer secret" && header.is_sensitive());
        assert_eq!(format!("{known:?}"), "Kubeconfig(https://h:1/authorize)");
    }

    #[test]
    fn what_is_missing_or_cannot_be_used_is_told() {
        let at = json!({ "server": "https://h" });
        let nobody = json!({});
        for (cluster, user, why) in [
            (&json!(7), &nobody, "cluster \"k\" does not exist"),
            (&json!({ "server": "" }), &nobody, "the cluster has no server"),
            (&json!({ "server": "/x" }), &nobody, "server \"/x\": it is no URL of a host"),
            (&json!({ "server": "host:1" }), &nobody, "server \"host:1\": it is no URL of a host"),
            (&json!({ "server": "https://h", "certificate-authority": "/f" }), &nobody, "no file /f"),
            (&at, &json!({ "exec": {} }), "user \"u\": \"exec\" is not served"),
        ] {
            assert_eq!(read(cluster, user).err().as_deref(), Some(why), "{cluster} {user}");
        }
        let none = Kubeconfig::read(&nobody, &|_| Ok(Vec::new()));
        assert_eq!(none.err().as_deref(), Some("context \"\" does not exist"));
    }
}
