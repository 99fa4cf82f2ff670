//! The kubeconfig of the administrator: one cluster, one user, one context, everything embedded.
//!
//! In: where the server is, who vouches for it, who the administrator is. Out: a file that says so, beside
//! whatever somebody has set in it: a namespace, contexts of other servers. Never: changes what is right.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::error::Error;
use forebay_pki::KeyPairPem;
use forebay_pki::private_files::{self, Readers};

/// What a client needs.
#[derive(Debug, Clone)]
pub struct Kubeconfig<'a> {
    /// `https://127.0.0.1:6443`
    pub server: String,
    /// The certificates to trust, PEM.
    pub authority: &'a str,
    /// The name in the server's certificate, where it is not that of `server`.
    pub tls_server_name: Option<&'a str>,
    pub client: &'a KeyPairPem,
}

const NAME: &str = "forebay";
const USER: &str = "kubernetes-admin";

impl Kubeconfig<'_> {
    /// Writes the file in one step, for its owner alone, unless what it says of the server, of who vouches
    /// for it and of the administrator is right already. Of one that is there only that is replaced.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let there = private_files::read_if_there(path).ok().flatten();
        let text = match there.as_deref().and_then(tree) {
            Some(mut config) => {
                if !self.put_right(&mut config) {
                    return Ok(());
                }
                yaml(&config).unwrap_or_else(|| self.to_yaml())
            }
            None => self.to_yaml(),
        };
        private_files::write(path, text.as_bytes(), Readers::Owner)?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(private_files::sync_dir(dir)?)
    }

    /// Replaces what is not right any more; whether anything was not.
    ///
    /// - `config`: a [`tree`].
    fn put_right(&self, config: &mut Value) -> bool {
        let before = config.clone();
        let cluster = entry(config, "clusters", NAME, "cluster");
        cluster["server"] = self.server.as_str().into();
        cluster["certificate-authority-data"] = data(self.authority).into();
        if let Some(members) = cluster.as_object_mut() {
            // Beside an authority it is an error.
            members.remove("insecure-skip-tls-verify");
            members.remove("tls-server-name");
        }
        if let Some(name) = self.tls_server_name {
            cluster["tls-server-name"] = name.into();
        }
        let user = entry(config, "users", USER, "user");
        user["client-certificate-data"] = data(&self.client.cert).into();
        user["client-key-data"] = data(&self.client.key).into();
        let mut contexts = config["contexts"].as_array().into_iter().flatten();
        // Once: in a file of few contexts.
        let leads_here = contexts
            .find(|one| one["context"]["cluster"] == NAME && one["context"]["user"] == USER)
            .map(|one| one["name"].clone());
        let leads_here = leads_here.unwrap_or_else(|| {
            let context = entry(config, "contexts", NAME, "context");
            (context["cluster"], context["user"]) = (NAME.into(), USER.into());
            NAME.into()
        });
        if config["current-context"].as_str().is_none_or(str::is_empty) {
            config["current-context"] = leads_here;
        }
        *config != before
    }

    /// In the order in which kubectl writes it.
    pub fn to_yaml(&self) -> String {
        // Quoted as JSON, which YAML reads the same.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let server_name = self
            .tls_server_name
            .map_or_else(String::new, |name| format!("    tls-server-name: {}\n", quoted(name)));
        format!(
            "apiVersion: v1\n\
             clusters:\n\
             - cluster:\n    \
                 certificate-authority-data: {authority}\n    \
                 server: {server}\n{server_name}  \
               name: {NAME}\n\
             contexts:\n\
             - context:\n    \
                 cluster: {NAME}\n    \
                 user: {USER}\n  \
               name: {NAME}\n\
             current-context: {NAME}\n\
             kind: Config\n\
             users:\n\
             - name: {USER}\n  \
               user:\n    \
                 client-certificate-data: {cert}\n    \
                 client-key-data: {key}\n",
            authority = data(self.authority),
            server = quoted(&self.server),
            cert = data(&self.client.cert),
            key = data(&self.client.key),
        )
    }
}

fn data(pem: &str) -> String {
    STANDARD.encode(pem)
}

/// A kubeconfig that is there, if it is one: its lists are lists of objects.
fn tree(text: &str) -> Option<Value> {
    let mut config: Value = serde_saphyr::from_str(text).ok()?;
    let members = config.as_object_mut()?;
    for list in ["clusters", "users", "contexts"] {
        let entries = members.entry(list).or_insert(Value::Null);
        if entries.is_null() {
            *entries = json!([]);
        }
        if !entries.as_array()?.iter().all(Value::is_object) {
            return None;
        }
    }
    Some(config)
}

/// What `list` says by `name`, made if it says nothing.
///
/// - `what`: the member that has it.
fn entry<'c>(config: &'c mut Value, list: &str, name: &str, what: &str) -> &'c mut Value {
    let found = match &mut config[list] {
        Value::Array(entries) => {
            // Few: of people's servers.
            let at = entries.iter().position(|entry| entry["name"] == name).unwrap_or_else(|| {
                entries.push(json!({ "name": name }));
                entries.len() - 1
            });
            &mut entries[at][what]
        }
        other => other,
    };
    if !found.is_object() {
        *found = json!({});
    }
    found
}

/// In the order in which kubectl writes it: by name.
fn yaml(config: &Value) -> Option<String> {
    String::from_utf8(forebay_yaml::from_json(config.to_string().as_bytes()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use expect_test::expect;

    use super::*;
    use forebay_scratch::Scratch;

    fn pair() -> KeyPairPem {
        KeyPairPem { cert: "CERT\n".to_owned(), key: "KEY\n".to_owned() }
    }

    #[test]
    fn it_reads_back_as_what_kubectl_needs() {
        let client = pair();
        let config = Kubeconfig {
            server: "https://[::1]:6443".to_owned(),
            authority: "CA\n",
            tls_server_name: Some("api.example.org"),
            client: &client,
        };
        expect![[r#"
            apiVersion: v1
            clusters:
            - cluster:
                certificate-authority-data: Q0EK
                server: "https://[::1]:6443"
                tls-server-name: "api.example.org"
              name: forebay
            contexts:
            - context:
                cluster: forebay
                user: kubernetes-admin
              name: forebay
            current-context: forebay
            kind: Config
            users:
            - name: kubernetes-admin
              user:
                client-certificate-data: Q0VSVAo=
                client-key-data: S0VZCg==
        "#]]
        .assert_eq(&config.to_yaml());
        let read: serde_json::Value = serde_saphyr::from_str(&config.to_yaml()).expect("YAML");
        assert_eq!(read["clusters"][0]["cluster"]["server"], "https://[::1]:6443");
        assert_eq!(read["contexts"][0]["context"]["user"], read["users"][0]["name"]);
        assert_eq!(read["current-context"], read["contexts"][0]["name"]);
        assert_eq!(
            STANDARD.decode(read["users"][0]["user"]["client-key-data"].as_str().expect("text")),
            Ok(b"KEY\n".to_vec())
        );
    }

    /// Writes it for a server and says what is there then, and which file it is.
    fn written(path: &Path, server: &str, client: &KeyPairPem) -> (String, u64) {
        let config = Kubeconfig { server: server.to_owned(), authority: "CA", tls_server_name: None, client };
        config.write(path).expect("written");
        (fs::read_to_string(path).expect("read"), fs::metadata(path).expect("there").ino())
    }

    #[test]
    fn what_somebody_has_set_in_it_stays_and_only_what_is_wrong_is_replaced() {
        let scratch = Scratch::new();
        let (path, client) = (scratch.path().join("admin.kubeconfig"), pair());
        let (text, _) = written(&path, "https://127.0.0.1:1", &client);
        let set = text
            .replace("    user: kubernetes-admin\n", "    namespace: mine\n    user: kubernetes-admin\n")
            .replace("  name: forebay\ncurrent", "  name: own\ncurrent")
            .replace(
                "current-context: forebay",
                "- context: {cluster: k, user: u}\n  name: other\ncurrent-context: other # for today",
            )
            .replace("users:\n", "preferences: {colors: true}\nusers:\n- name: u\n  user: {token: t}\n");
        assert!(set.contains("namespace: mine") && set.contains("name: own") && set.contains("token: t"));
        fs::write(&path, &set).expect("set");
        let ino = fs::metadata(&path).expect("there").ino();
        assert_eq!(written(&path, "https://127.0.0.1:1", &client), (set, ino), "nothing is wrong with it");
        // Another port, and another certificate.
        let other = KeyPairPem { cert: "OTHER\n".to_owned(), key: "KEY\n".to_owned() };
        let (text, _) = written(&path, "https://127.0.0.1:2", &other);
        expect![[r#"
            apiVersion: v1
            clusters:
            - cluster:
                certificate-authority-data: Q0E=
                server: https://127.0.0.1:2
              name: forebay
            contexts:
            - context:
                cluster: forebay
                namespace: mine
                user: kubernetes-admin
              name: own
            - context:
                cluster: k
                user: u
              name: other
            current-context: other
            kind: Config
            preferences:
              colors: true
            users:
            - name: u
              user:
                token: t
            - name: kubernetes-admin
              user:
                client-certificate-data: T1RIRVIK
                client-key-data: S0VZCg==
        "#]]
        .assert_eq(&text);
        let mode = fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_no_kubeconfig_is_replaced() {
        let scratch = Scratch::new();
        let (path, client) = (scratch.path().join("admin.kubeconfig"), pair());
        let (whole, _) = written(&path, "https://127.0.0.1:1", &client);
        let own = serde_saphyr::from_str::<Value>(&whole).expect("YAML");
        for (there, is_kept) in [
            ("apiVersion: v1\nkind: Config\n", true),
            ("apiVersion: v1\nkind: Config\nclusters: null\ncurrent-context: \"\"\n", true),
            ("clusters: [{name: forebay, cluster: {insecure-skip-tls-verify: true}}]\n", true),
            ("contexts: [{name: forebay}]\n", true),
            ("[]", false),
            ("clusters: 1\n", false),
            ("clusters: [1]\n", false),
            ("a: b: c", false),
            ("", false),
        ] {
            fs::write(&path, there).expect("set");
            let (text, _) = written(&path, "https://127.0.0.1:1", &client);
            let made = serde_saphyr::from_str::<Value>(&text).expect("YAML");
            for part in ["clusters", "contexts", "users", "current-context"] {
                assert_eq!(made[part], own[part], "{there}: {part}");
            }
            assert_eq!(text == whole, !is_kept, "{there}");
        }
    }

    #[test]
    fn it_is_written_for_its_owner_and_only_when_it_changes() {
        let scratch = Scratch::new();
        let path = scratch.path().join("admin.kubeconfig");
        let client = pair();
        let write = |server: &str| {
            Kubeconfig { server: server.to_owned(), authority: "CA", tls_server_name: None, client: &client }
                .write(&path)
                .expect("written");
            fs::metadata(&path).expect("there")
        };
        let first = write("https://127.0.0.1:1");
        assert_eq!(first.permissions().mode() & 0o777, 0o600);
        assert_eq!(write("https://127.0.0.1:1").ino(), first.ino());
        write("https://127.0.0.1:2");
        let text = fs::read_to_string(&path).expect("read");
        assert!(
            text.contains("server: https://127.0.0.1:2\n") && !text.contains("tls-server-name"),
            "{text}"
        );
    }
}
